//! The files of mail.

use harness::TestHome;

use crate::{CCB, MAIL_WORKER};

#[test]
fn everything_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::in_memory(CCB);
    home.team(&["team-lead", "Bob", "carol"]);
    home.ok(&["mail", "send", "*", "hi"]);
    home.ok(&["mail", "read", "--as", "bob"]);
    let args = ["worker", "ask", "bob", "team-lead", "a plan"];
    let asked = harness::mail_command(&home, MAIL_WORKER, &args).status();
    assert!(asked.unwrap().success());
    let mut waiting = vec![
        home.team_dir().join("inboxes"),
        home.team_dir().join("requests"),
    ];
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().unwrap();
        let expected = if meta.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(
            meta.permissions().mode() & 0o777,
            expected,
            "{}",
            path.display()
        );
        seen += 1;
        if meta.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
    }
    assert!(seen > 20, "{seen}");
}
