//! What `ccb` says of a board in a database, and what it refuses.

use harness::TestHome;
use serde_json::json;

use crate::CCB;

#[test]
fn a_database_is_shown_prepared_and_told_from_files() {
    let home = TestHome::new(CCB);
    home.create("one");
    let shown = home.ok(&["board", "show"]);
    let board = &shown["board"];
    assert_eq!(
        (&board["kind"], &board["ready"]),
        (&json!("postgres"), &json!(true))
    );
    assert_eq!(
        board["lists"],
        json!([{"name": "board", "tasks": 1, "open": 1}])
    );
    assert_eq!(home.ok(&["board", "migrate"])["applied"], json!([]));
    let files = home.ok(&["--board", "files", "board", "show"]);
    assert_eq!(files["board"]["kind"], "files");
    assert_eq!(
        home.ok(&["--board", "files", "task", "list"])["tasks"],
        json!([])
    );

    let url = home
        .board_url()
        .unwrap()
        .replace("schema=", "schema=fresh_");
    let empty = home.fails(2, &["--board", &url, "task", "create", "x"]);
    assert_eq!(empty["error"]["kind"], "old_schema", "{empty}");
    let dry = home.ok(&["--board", &url, "board", "migrate", "--dry-run"]);
    assert_eq!(dry["missing"], json!(["database 1", "board 1", "mail 1"]));
    assert_eq!(
        home.ok(&["--board", &url, "board", "migrate"])["applied"],
        dry["missing"]
    );
    home.ok(&["--board", &url, "task", "create", "x"]);
}

#[test]
fn a_password_is_never_shown_and_never_an_argument() {
    let home = TestHome::new(CCB);
    let url = home.board_url().unwrap().replace("ccb@", "ccb:s3cret@");
    let refused = home.run(&["--json", "--board", &url, "task", "list"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(
        said.contains("password_in_argument") && said.contains("CCB_BOARD"),
        "{said}"
    );
    assert!(!said.contains("s3cret"), "{said}");
    // In the environment it is fine, and shown without it.
    let output = home
        .command(&["-vv", "board", "show"])
        .env("CCB_BOARD", &url)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("postgres://ccb@127.0.0.1"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    for wrong in ["postgres://ccb:s3cret@[bad/x", "mysql://ccb:s3cret@h/x"] {
        let output = home
            .command(&["task", "list"])
            .env("CCB_BOARD", wrong)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("s3cret"));
    }
}

#[test]
fn what_does_not_work_in_a_database_says_so_and_a_server_that_is_gone_too() {
    let home = TestHome::new(CCB);
    let answer = home.fails(2, &["status"]);
    assert_eq!(answer["error"]["kind"], "board_not_supported");
    let nowhere = "postgres://ccb@127.0.0.1:1/postgres?patience=1";
    let gone = home.fails(1, &["--board", nowhere, "task", "list"]);
    assert_eq!(gone["error"]["kind"], "database_unreachable");
}

#[test]
fn only_the_user_may_name_a_board_in_settings() {
    let home = TestHome::new(CCB);
    home.create("in the database");
    let url = home.board_url().unwrap();
    let settings = json!({"taskboard": {"board": url}}).to_string();
    std::fs::write(home.path().join("ccb.json"), &settings).unwrap();
    let list = |directory: &std::path::Path| {
        let mut command = home.command(&["--json", "task", "list"]);
        command
            .env_remove("CCB_BOARD")
            .current_dir(directory)
            .output()
            .unwrap()
    };
    let seen = list(home.path());
    assert!(
        String::from_utf8_lossy(&seen.stdout).contains("in the database"),
        "{seen:?}"
    );
    std::fs::remove_file(home.path().join("ccb.json")).unwrap();
    let repository = home.path().join("repository");
    std::fs::create_dir_all(repository.join(".claude")).unwrap();
    std::fs::write(repository.join(".claude/ccb.json"), &settings).unwrap();
    harness::git(&repository, &["init", "--quiet"]);
    let refused = list(&repository);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stdout).contains("a repository may not"));
}
