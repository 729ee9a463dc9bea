//! Bad names, damaged rosters, other repositories, held locks: an error that helps, and
//! nothing changed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::{Answer, TestHome, wait_until};
use serde_json::{Value, json};
use store::lock::{DEFAULT_TIMEOUT, FileLock, is_held};

use crate::CCB;
use crate::bad_input::check_refusal;

const LIMIT: Duration = Duration::from_secs(30);

fn team() -> TestHome {
    let home = TestHome::new(CCB);
    home.ok(&["team", "create", "fixers"]);
    home.ok(&["team", "join", "fixers", "--as", "alice"]);
    home
}

fn refused(home: &TestHome, args: &[&str], code: i32, kind: &str, says: &str) -> Value {
    let before = home.everything();
    let answer = home.run(&[&["--json"], args].concat());
    check_refusal(args, &answer, code, kind, says);
    assert_eq!(home.everything(), before, "{args:?} changed something");
    answer.json()["error"].clone()
}

#[test]
fn hostile_names() {
    let home = team();
    let long = "x".repeat(65);
    let names = [
        ("", "empty"),
        ("..", "start with"),
        ("../x", "start with"),
        ("a/b", "only letters"),
        ("a..b", "contains '..'"),
        (".hidden", "start with"),
        ("a\nb", "only letters"),
        ("é", "start with"),
        ("*", "start with"),
        ("x.lock", "ends in"),
        ("x.", "ends in"),
        (&long, "longer"),
    ];
    for (name, why) in names {
        for command in ["create", "join", "leave", "show", "delete"] {
            refused(
                &home,
                &["team", command, name, "--as", "bob"],
                2,
                "bad_name",
                why,
            );
        }
        refused(
            &home,
            &["team", "join", "fixers", "--as", name],
            2,
            "bad_name",
            why,
        );
    }
    for (name, why) in [
        ("user", "without giving a name"),
        ("TEAM-lead", "the lead's"),
    ] {
        let error = refused(
            &home,
            &["team", "join", "fixers", "--as", name],
            2,
            "bad_name",
            why,
        );
        assert!(error["hint"].as_str().unwrap().contains("--as"), "{error}");
    }
    refused(
        &home,
        &["team", "join", "fixers"],
        2,
        "bad_name",
        "without giving a name",
    );
}

#[test]
fn a_name_that_a_list_has_in_another_case() {
    let home = TestHome::new(CCB).with_list("Fixers");
    home.create("x");
    let error = home.fails(2, &["team", "create", "fixers"]);
    assert_eq!(error["error"]["kind"], "bad_name");
}

#[test]
fn an_unreadable_roster_is_not_an_absent_one() {
    let home = team();
    home.ok(&["team", "create", "others"]);
    let config = home.dir_of_team("fixers").join("config.json");
    // Each of these takes the second that other tools are given to finish writing.
    for text in ["", "[]", r#"{"members":7}"#] {
        std::fs::write(&config, text).unwrap();
        let args = ["team", "join", "fixers", "--as", "bob"];
        refused(&home, &args, 4, "corrupt", "unreadable");
    }
    std::fs::write(&config, "{ half").unwrap();
    for command in ["create", "join", "leave", "show", "delete"] {
        let args = ["team", command, "fixers", "--as", "alice"];
        let error = refused(&home, &args, 4, "corrupt", "unreadable");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("by hand"), "{hint}");
    }
    let args = ["--json", "--team", "fixers", "task", "list"];
    let answer = run_in(&home, home.path(), &args);
    check_refusal(&args, &answer, 4, "corrupt", "unreadable");
    let listed = home.ok(&["team", "list"]);
    assert_eq!(listed["teams"][0]["name"], "others");
    assert_eq!(listed["unreadable"][0]["name"], "fixers");
    // A directory, or a link to somewhere, in its place.
    std::fs::remove_file(&config).unwrap();
    std::fs::create_dir(&config).unwrap();
    home.fails(1, &["team", "join", "fixers", "--as", "bob"]);
    std::fs::remove_dir(&config).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &config).unwrap();
    home.fails(1, &["team", "join", "fixers", "--as", "bob"]);
}

#[test]
fn a_roster_that_is_just_being_written_is_waited_for() {
    let home = team();
    let config = home.dir_of_team("fixers").join("config.json");
    let whole = std::fs::read(&config).unwrap();
    std::fs::write(&config, &whole[..whole.len() / 2]).unwrap();
    let child = home
        .command(&["--json", "team", "join", "fixers", "--as", "bob"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lock = home.dir_of_team("fixers").join(".ccb/lock");
    wait_until(LIMIT, "the joining process", || is_held(&lock).unwrap());
    std::fs::write(&config, &whole).unwrap();
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(home.members("fixers"), ["team-lead", "alice", "bob"]);
}

#[test]
fn what_another_tool_wrote_survives() {
    let home = TestHome::new(CCB);
    std::fs::create_dir_all(home.dir_of_team("crew")).unwrap();
    let config = home.dir_of_team("crew").join("config.json");
    let foreign = json!({
        "name": "crew", "createdAt": 1_700_000_000_000_i64, "leadAgentId": "team-lead@crew",
        "leadProcess": {"pid": 7, "odd": [1e-7, null]},
        "members": [
            {"agentId": "team-lead@crew", "name": "team-lead", "joinedAt": 1, "subscriptions": []},
            {"agentId": "bob@crew", "name": "bob", "prompt": "x", "n": 12345678901234567_u64}
        ]
    });
    std::fs::write(&config, foreign.to_string()).unwrap();
    let joined = home.ok(&["team", "join", "crew", "--as", "alice"]);
    assert_eq!(joined["member"]["color"], "blue", "bob comes before");
    home.ok(&["team", "leave", "crew", "--as", "alice"]);
    let mut now = home.roster("crew");
    assert_eq!(now["ccb"]["v"], 1);
    now.as_object_mut().unwrap().remove("ccb");
    assert_eq!(now, foreign);
    // No record says which repository it belongs to.
    let other = repository(&home, "anywhere");
    let show = ["--json", "team", "join", "crew", "--as", "carol"];
    assert_eq!(run_in(&home, &other, &show).code, Some(0));
}

#[test]
fn a_roster_of_a_later_format_is_read_but_not_written() {
    let home = team();
    let config = home.dir_of_team("fixers").join("config.json");
    let mut roster = home.roster("fixers");
    roster["ccb"]["v"] = 2.into();
    std::fs::write(&config, roster.to_string()).unwrap();
    for command in ["join", "leave", "delete"] {
        let args = ["team", command, "fixers", "--as", "alice"];
        refused(&home, &args, 2, "newer_version", "format version 2");
    }
    refused(
        &home,
        &["team", "delete", "fixers", "--force"],
        2,
        "newer_version",
        "2",
    );
    assert_eq!(home.ok(&["team", "show", "fixers"])["team"]["ccb"]["v"], 2);
    home.ok(&["team", "list"]);
}

#[test]
fn a_held_lock_is_told_with_its_holder() {
    let home = team();
    home.settings(r#"{"taskboard": {"lockTimeoutMs": 50}}"#);
    let path = home.dir_of_team("fixers").join(".ccb/lock");
    let _held = FileLock::exclusive(&path, "the test", DEFAULT_TIMEOUT).unwrap();
    let args = ["team", "join", "fixers", "--as", "bob"];
    let error = refused(
        &home,
        &args,
        5,
        "lock_timeout",
        "the roster of team \"fixers\"",
    );
    let message = error["message"].as_str().unwrap();
    let holder = format!("process {}", std::process::id());
    assert!(message.contains(&holder), "{message}");
    home.ok(&["team", "show", "fixers"]);
}

fn repository(home: &TestHome, name: &str) -> std::path::PathBuf {
    let dir = home.path().join(name);
    std::fs::create_dir(&dir).unwrap();
    git(&dir, &["init", "-q"]);
    git(&dir, &["commit", "-q", "--allow-empty", "-m", "start"]);
    dir
}

fn git(dir: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn run_in(home: &TestHome, dir: &Path, args: &[&str]) -> Answer {
    let mut command = home.command_without_list(args);
    Answer::of(command.current_dir(dir).output().unwrap())
}

#[test]
fn a_team_is_used_from_its_own_repository_only() {
    let home = TestHome::new(CCB);
    let (ours, other) = (repository(&home, "ours"), repository(&home, "other"));
    git(&ours, &["worktree", "add", "-q", "../linked"]);
    let run = |dir: &Path, args: &[&str]| run_in(&home, dir, &[&["--json"], args].concat());
    let created = run(&ours, &["team", "create", "fixers"]);
    let git_dir = ours.join(".git");
    assert_eq!(
        created.json()["team"]["ccb"]["repository"],
        git_dir.to_str().unwrap()
    );
    let joined = run(
        &home.path().join("linked"),
        &["team", "join", "fixers", "--as", "a"],
    );
    assert_eq!(joined.code, Some(0), "{joined:?}");
    let before = home.everything();
    for args in [
        &["team", "join", "fixers", "--as", "b"][..],
        &["team", "leave", "fixers", "--as", "a"],
        &["team", "delete", "fixers", "--force"],
        &["--team", "fixers", "task", "create", "x"],
        &["--team", "fixers", "task", "list"],
        &["--team", "fixers", "mail", "send", "a", "hello"],
        &["--team", "fixers", "mail", "inbox", "--as", "a"],
    ] {
        let answer = run(&other, args);
        check_refusal(
            args,
            &answer,
            4,
            "other_repository",
            "belongs to the repository",
        );
    }
    let mut command = home.command_without_list(&["--json", "task", "list"]);
    command
        .current_dir(&other)
        .env("CLAUDE_CODE_TEAM_NAME", "fixers");
    assert_eq!(Answer::of(command.output().unwrap()).code, Some(4));
    assert_eq!(home.everything(), before);
    // Reading is not using, and outside every repository is not another one.
    assert_eq!(run(&other, &["team", "show", "fixers"]).code, Some(0));
    assert_eq!(run(&other, &["team", "list"]).code, Some(0));
    assert_eq!(
        run(home.path(), &["team", "leave", "fixers", "--as", "a"]).code,
        Some(0)
    );
    assert_eq!(
        run(&ours, &["--team", "fixers", "task", "create", "x"]).code,
        Some(0)
    );
}
