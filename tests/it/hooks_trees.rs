//! `WorktreeCreate` and `WorktreeRemove`: no git, no judging, no rescue.

use harness::Workplace;
use harness::runs::one_hook;
use harness::script::Script;
use serde_json::json;

use crate::{CCB, FAKE_AGENT};

/// Makes worktrees as directories beside the home, and removes them.
fn place() -> Workplace {
    let place = Workplace::new(CCB);
    let root = place.home.path().join("trees");
    let create = format!(
        r#"name=$(sed 's/.*"name":"\([^"]*\)".*/\1/'); mkdir -p {0}/$name && echo {0}/$name"#,
        root.display()
    );
    let remove = r#"rm -r "$(sed 's/.*"worktree_path":"\([^"]*\)".*/\1/')""#;
    place.home.hooks(&json!({
        "WorktreeCreate": [{"command": create}],
        "WorktreeRemove": [{"command": remove}],
    }));
    place
}

#[test]
fn a_hook_makes_the_tree_and_a_hook_removes_it() {
    let place = place();
    let made = place.ok(&["worktree", "create", "a"]);
    let tree = place.home.path().join("trees/a");
    assert_eq!(made["worktree"]["path"], tree.to_str().unwrap());
    assert_eq!(made["worktree"]["hookBased"], true);
    assert!(made["worktree"]["branch"].is_null());
    assert!(tree.is_dir() && !place.repo.tree("a").exists());
    // Found again, not made again.
    let again = place.ok(&["worktree", "create", "a"]);
    assert_eq!(again["worktree"]["created"], false);
    // Never judged: it is kept unless the command says otherwise.
    let error = place.fails(4, "hook_based", &["worktree", "remove", "a"]);
    assert!(error["message"].as_str().unwrap().contains("--discard"));
    assert!(tree.is_dir());
    let said = place.command(&["worktree", "remove", "a", "--discard"]);
    let said = harness::Answer::of({ said }.output().unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("brought back"), "{said:?}");
    assert!(!tree.exists());
    let undo = place.run(&["worktree", "undo", "a"]);
    assert_ne!(undo.code, Some(0), "{undo:?}");
}

#[test]
fn a_path_must_be_absolute_and_there() {
    let place = place();
    for (command, why) in [
        ("echo trees/x", "where the worktree is"),
        ("echo /no/such/directory", "not a directory"),
        (
            r#"echo '{"hookSpecificOutput":{"worktreePath":"relative"}}'"#,
            "not an absolute path",
        ),
        ("echo 'no disk' >&2; exit 2", "no disk"),
        ("echo 'no luck' >&2; exit 1", "no luck"),
        ("true", "where the worktree is"),
        ("kill -9 $$", "signal 9"),
        ("sleep 600", "longer than"),
    ] {
        place.home.hooks(&one_hook("WorktreeCreate", command, 0.5));
        let answer = place.run(&["worktree", "create", "x"]);
        assert_ne!(answer.code, Some(0), "{command}: {answer:?}");
        assert!(answer.stdout.contains(why), "{command}: {answer:?}");
        assert!(!place.repo.tree("x").exists());
    }
    let list = place.ok(&["worktree", "list"]);
    assert_eq!(list["worktrees"], json!([]));
}

#[test]
fn a_removal_that_fails_removes_nothing() {
    let place = place();
    place.ok(&["worktree", "create", "a"]);
    for command in ["exit 1", "exit 2", "kill -9 $$", "sleep 600"] {
        place.home.hooks(&one_hook("WorktreeRemove", command, 0.5));
        let answer = place.run(&["worktree", "remove", "a", "--discard"]);
        assert_eq!(
            answer.json()["error"]["kind"],
            "hook_failed",
            "{command}: {answer:?}"
        );
    }
    place.home.hooks(&json!({}));
    place.fails(4, "hook_based", &["worktree", "remove", "a", "--discard"]);
    let list = place.ok(&["worktree", "list"]);
    assert_eq!(list["worktrees"].as_array().unwrap().len(), 1);
}

#[test]
fn an_agents_tree_from_a_hook_is_kept() {
    let place = place();
    let settings =
        format!(r#"{{"runtimes":{{"fake":{{"kind":"lines","command":["{FAKE_AGENT}"]}}}}}}"#);
    place.home.settings(&settings);
    let prompt = Script::new().done("ok").to_prompt();
    let answer = place.ok(&[
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--isolation",
        "worktree",
        &prompt,
    ]);
    let path = answer["agent"]["worktree"]["worktreePath"].as_str();
    let path = path.unwrap_or_else(|| panic!("kept and told: {answer}"));
    assert!(
        path.starts_with(place.home.path().join("trees").to_str().unwrap()),
        "{path}"
    );
    assert!(
        std::path::Path::new(path).is_dir(),
        "unchanged, and still there"
    );
}

#[test]
fn the_repositorys_own_hook_is_not_run_and_git_does_not_stand_in() {
    let place = Workplace::new(CCB);
    let hooks = json!({ "hooks": one_hook("WorktreeCreate", "echo /tmp", 60.0) });
    place
        .repo
        .write(".claude/settings.json", &hooks.to_string());
    let error = place.fails(4, "not_trusted", &["worktree", "create", "a"]);
    assert!(
        error["message"].as_str().unwrap().contains("ccb trust"),
        "{error}"
    );
    assert!(!place.repo.tree("a").exists());
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--isolation",
        "worktree",
        "true",
    ];
    place.fails(4, "not_trusted", &spawn);
    place.ok(&["trust"]);
    place.ok(&["worktree", "create", "a"]);
}

#[test]
fn a_session_enters_and_leaves_such_a_tree() {
    let place = place();
    let entered = place.ok(&["worktree", "enter", "s"]);
    assert_eq!(entered["session"]["hookBased"], true);
    place.fails(4, "hook_based", &["worktree", "exit", "--remove"]);
    place.ok(&["worktree", "exit", "--remove", "--discard"]);
    assert!(!place.home.path().join("trees/s").exists());
}
