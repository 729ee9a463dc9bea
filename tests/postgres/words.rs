//! The output of `ccb` about a board in a database, and its refusals.

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
    let list = &board["lists"][0];
    assert_eq!(
        (&list["name"], &list["tasks"], &list["open"], &list["ready"]),
        (&json!("board"), &json!(1), &json!(1), &json!(1))
    );
    assert!(
        list["oldestReadyMs"].as_i64().is_some_and(|ms| ms >= 0),
        "{list}"
    );
    assert!(board["connections"]["used"].as_i64() > Some(0), "{board}");
    assert_eq!(board["notifications"], json!(true));
    assert!(
        board["tables"]["tasks"]["bytes"].as_i64() > Some(0),
        "{board}"
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
    assert_eq!(
        dry["missing"],
        json!(["database 1", "board 1", "mail 1", "teams 1"])
    );
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
    let answer = home.fails(2, &["clean"]);
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

#[test]
fn old_history_and_mail_go_and_tasks_stay() {
    let home = TestHome::new(CCB);
    home.create("one");
    let old = home.ok(&["board", "prune", "--older-than", "0", "--dry-run"]);
    assert_eq!((&old["changes"], &old["dryRun"]), (&json!(1), &json!(true)));
    assert_eq!(
        home.ok(&["board", "prune"])["changes"],
        json!(0),
        "not that old"
    );
    let gone = home.ok(&["board", "prune", "--older-than", "0"]);
    assert_eq!(gone["changes"], json!(1), "{gone}");
    assert!(gone["operations"].as_i64() >= Some(1), "{gone}");
    assert_eq!(
        home.ok(&["task", "list"])["tasks"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let files = home.fails(2, &["--board", "files", "board", "prune"]);
    assert_eq!(files["error"]["kind"], "usage");
}

#[test]
fn the_doctor_looks_at_the_database_first() {
    let home = TestHome::new(CCB);
    home.create("one");
    let kinds = |answer: &serde_json::Value| -> Vec<String> {
        let findings = answer["findings"].as_array().unwrap();
        let kind = |finding: &serde_json::Value| finding["kind"].as_str().unwrap().to_owned();
        findings.iter().map(kind).collect()
    };
    assert_eq!(kinds(&home.ok(&["doctor"])), Vec::<String>::new());
    let url = home.board_url().unwrap();
    let fresh = url.replace("schema=", "schema=fresh_");
    let asked = |url: &str| {
        let answer = home.run(&["--json", "--board", url, "doctor"]);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        kinds(&serde_json::from_str(&answer.stdout).unwrap())
    };
    assert_eq!(asked(&fresh), ["old_schema"]);
    let nowhere = "postgres://ccb@127.0.0.1:1/postgres?patience=1";
    assert_eq!(asked(nowhere), ["database_unreachable"]);
}
