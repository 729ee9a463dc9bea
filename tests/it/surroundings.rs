//! The home, the list and the identity of a command, and the streams of its output.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::{Answer, TestHome};

use crate::CCB;

/// Creates a task with these flags and variables and returns its list.
fn list_used(home: &TestHome, dir: &Path, flags: &[&str], vars: &[(&str, &str)]) -> String {
    let lists = home.path().join("tasks");
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(&lists).into_iter().flatten();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let before = names();
    let mut command = home.command_without_list(flags);
    command
        .args(["--json", "task", "create", "x"])
        .current_dir(dir);
    command.envs(vars.iter().copied());
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, Some(0), "{flags:?} {vars:?}: {answer:?}");
    let mut new = names();
    new.retain(|name| !before.contains(name));
    assert_eq!(new.len(), 1, "one new list for {flags:?} {vars:?}");
    new.remove(0)
}

#[test]
fn the_first_source_of_a_list_name_wins() {
    let home = TestHome::new(CCB);
    let vars = [
        ("CLAUDE_CODE_TASK_LIST_ID", "by-list-id"),
        ("CLAUDE_CODE_TEAM_NAME", "by-team-name"),
        ("CLAUDE_CODE_SESSION_ID", "by-session-id"),
    ];
    let used = |flags: &[&str], vars| list_used(&home, home.path(), flags, vars);
    assert_eq!(used(&["--list", "a", "--team", "b"], &vars), "a");
    assert_eq!(used(&["--team", "b"], &vars), "b");
    assert_eq!(used(&[], &vars), "by-list-id");
    assert_eq!(used(&[], &vars[1..]), "by-team-name");
    assert_eq!(used(&[], &vars[2..]), "by-session-id");
    assert_eq!(
        used(&[], &[("CLAUDE_CODE_TASK_LIST_ID", "")]),
        "default",
        "empty is unset"
    );
}

fn git(dir: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

#[test]
fn all_trees_of_a_repository_share_a_list() {
    let home = TestHome::new(CCB);
    let repo = home.path().join("My Repo");
    std::fs::create_dir_all(repo.join("src/deep")).unwrap();
    git(&repo, &["init", "-q"]);
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "start"]);
    git(&repo, &["worktree", "add", "-q", "../linked"]);
    let name = list_used(&home, &repo, &[], &[]);
    let (stem, hex) = name.rsplit_once('-').unwrap();
    assert_eq!(stem, "My-Repo");
    assert!(
        hex.len() == 8 && hex.chars().all(|c| c.is_ascii_hexdigit()),
        "{name}"
    );
    let count = |mut command: Command| {
        let answer = Answer::of(command.args(["--json", "task", "list"]).output().unwrap());
        answer.json()["tasks"].as_array().unwrap().len()
    };
    for tree in ["My Repo/src/deep", "linked"] {
        let mut command = home.command_without_list(&[]);
        command.current_dir(home.path().join(tree));
        assert_eq!(count(command), 1, "{tree}");
        assert_eq!(
            count(home.command_without_list(&["-C", tree])),
            1,
            "-C {tree}"
        );
    }
    assert_eq!(count(home.command_without_list(&[])), 0, "outside");
    // A repository of the same name elsewhere has its own.
    let other = home.path().join("elsewhere/My Repo");
    std::fs::create_dir_all(&other).unwrap();
    git(&other, &["init", "-q"]);
    assert!(list_used(&home, &other, &[], &[]).starts_with("My-Repo-"));
}

#[test]
fn the_first_source_of_a_home_wins() {
    let home = TestHome::new(CCB);
    let used = |flags: &[&str], vars: &[(&str, &str)]| {
        let mut command = home.command_without_list(flags);
        command.env_remove("CCB_HOME").args(["task", "create", "x"]);
        for (name, dir) in vars {
            command.env(name, home.path().join(dir));
        }
        assert!(command.output().unwrap().status.success());
    };
    let has_tasks = |dir: &str| home.path().join(dir).join("tasks").is_dir();
    let vars = [
        ("CCB_HOME", "ccb-home"),
        ("CLAUDE_CONFIG_DIR", "claude-dir"),
    ];
    for (flags, vars, dir) in [
        (["--home", "by-flag"].as_slice(), &vars[..], "by-flag"),
        (&[], &vars[..], "ccb-home"),
        (&[], &vars[1..], "claude-dir"),
        (&[], &[], ".claude"),
    ] {
        assert!(!has_tasks(dir));
        used(flags, vars);
        assert!(has_tasks(dir), "{flags:?} {vars:?}");
    }
}

#[test]
fn who_is_acting() {
    let home = TestHome::new(CCB);
    let owner = |flags: &[&str], vars: &[(&str, &str)]| {
        let id = home.create("x").to_string();
        let mut command = home.command(&[&["--json", "task", "claim", &id], flags].concat());
        let answer = Answer::of(command.envs(vars.iter().copied()).output().unwrap());
        let json = answer.json();
        (
            answer.code,
            json["task"]["owner"].clone(),
            json["error"]["kind"].clone(),
        )
    };
    let won = |name: &str| (Some(0), name.into(), serde_json::Value::Null);
    let agent = ("CCB_AGENT", "ann");
    assert_eq!(owner(&[], &[]), won("user"));
    assert_eq!(owner(&[], &[agent]), won("ann"));
    assert_eq!(owner(&["--as", "bob"], &[agent]), won("bob"));
    // Inside an agent the identity is fixed.
    let inside = [agent, ("CCB_RUN_ID", "run-1")];
    assert_eq!(owner(&[], &inside), won("ann"));
    assert_eq!(owner(&["--as", "ann"], &inside), won("ann"));
    let refused = (Some(4), serde_json::Value::Null, "not_yours".into());
    assert_eq!(owner(&["--as", "bob"], &inside), refused);
    assert_eq!(owner(&[], &[("CCB_AGENT", "no good")]).0, Some(2));
}

#[test]
fn argument_errors_are_json_too() {
    let home = TestHome::new(CCB);
    for args in [
        ["task", "show"].as_slice(),
        &["task", "shwo", "1"],
        &["task", "list", "--no-such-flag"],
        &["task", "claim", "1", "--lease", "soon"],
        &["task", "create"],
        &["task", "done", "1", "--token", "-1"],
        &["-q", "-v", "task", "list"],
        &["tsk", "list"],
        &["--mates", "4", "task", "list"],
    ] {
        let error = home.fails(2, args)["error"].clone();
        assert_eq!(error["kind"], "usage", "{args:?}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{args:?}");
        assert!(error["hint"].is_string(), "{args:?}");
        let people = home.run(args);
        assert_eq!(
            (people.code, people.stdout.as_str()),
            (Some(2), ""),
            "{people:?}"
        );
        assert!(!people.stderr.is_empty());
    }
    assert!(home.run(&["--help"]).stdout.contains("task"));
    assert_eq!(home.run(&["--version"]).code, Some(0));
}

#[test]
fn a_closed_stdout_is_no_failure() {
    let home = TestHome::new(CCB);
    let row = format!(
        "{{\"subject\":\"x\",\"description\":\"{}\"}}\n",
        "y".repeat(2000)
    );
    let created = home.run_with_input(
        &["task", "create", "--from", "-"],
        row.repeat(100).as_bytes(),
    );
    assert_eq!(created.code, Some(0), "{created:?}");
    // More than a pipe holds.
    assert!(home.run(&["--json", "task", "list"]).stdout.len() > 128 * 1024);
    for args in [
        ["--json", "task", "list"].as_slice(),
        &["--json", "task", "watch", "--since", "0", "--no-follow"],
        &["--json", "task", "graph"],
    ] {
        let mut child = home
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(
            (answer.code, answer.stderr.as_str()),
            (Some(0), ""),
            "{args:?}"
        );
    }
}

#[test]
fn everything_is_readable_by_this_user_alone() {
    let home = TestHome::new(CCB);
    let private = home.path().join("private");
    for args in [
        ["task", "create", "one"].as_slice(),
        &["task", "create", "two", "--blocked-by", "1"],
        &["task", "claim", "1"],
        &["task", "rm", "2"],
    ] {
        // The widest umask: only ccb itself keeps others out.
        let status = Command::new("sh")
            .args(["-c", "umask 0; exec \"$0\" \"$@\"", CCB, "--list", "board"])
            .args(args)
            .env("CCB_HOME", &private)
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{args:?}");
    }
    let mut dirs = vec![private];
    let mut files = 0;
    while let Some(dir) = dirs.pop() {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                files += 1;
                assert_eq!(mode(&path), 0o600, "{}", path.display());
            }
        }
    }
    assert!(
        files >= 4,
        "a task, the mark, the lock and the log at least"
    );
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
