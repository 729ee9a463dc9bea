//! The leftovers of ccb, and removing them; refused starts leave none.

use std::path::Path;

use harness::team_session::SessionScene;
use harness::terminal::Terminal;
use harness::{Answer, TestHome, git, write};
use serde_json::{Value, json};

use crate::{CCB, ON_TERMINAL};

fn find<'v>(answer: &'v Value, kind: &str) -> Vec<&'v Value> {
    let all = answer["leftovers"].as_array().expect("leftovers");
    all.iter().filter(|one| one["kind"] == kind).collect()
}

/// A session of which one task has landed, one has not, and a third has failed.
fn scene() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene.task("one", &["--run", "echo 1 > one", "--verify", "test -s one"]);
    assert_eq!(scene.session(&["--merge", "auto"]).code, Some(0));
    scene.task("two", &["--run", "echo 2 > two", "--verify", "test -s two"]);
    assert_eq!(scene.session(&["--merge", "never"]).code, Some(0));
    scene
}

#[test]
fn the_next_start_removes_locks_of_rescue_refs_that_a_killed_git_left() {
    let scene = SessionScene::new(CCB);
    let common = scene.repo.main().join(".git");
    let ours = common.join("refs/ccb/rescue/x-1/head.lock");
    let theirs = common.join("refs/heads/feature.lock");
    for lock in [&ours, &theirs] {
        write(lock, "");
    }
    scene.ok(&["worktree", "create", "next"]);
    assert!(!ours.exists());
    // A person's git may have made it, which is waited for if it is in the way.
    assert!(theirs.exists());
}

#[test]
fn work_that_has_not_landed_stays_unless_told_and_everything_else_goes() {
    let scene = scene();
    scene.ok(&["worktree", "create", "unchanged"]);
    scene.ok(&["worktree", "create", "busy"]);
    write(&scene.repo.tree("busy").join("file"), "mine\n");
    let before = scene.repo.git(&["rev-parse", "main"]);
    let dry = scene.ok(&["clean", "--dry-run"]);
    let goes = |kind: &str| -> Vec<bool> {
        find(&dry, kind)
            .iter()
            .map(|one| one["goes"] == true)
            .collect()
    };
    assert_eq!(goes("worktree"), [false, true, false], "{dry}");
    assert_eq!(
        (goes("trash"), goes("team")),
        (vec![true], vec![false]),
        "{dry}"
    );
    assert!(
        find(&dry, "team")[0]["why"]
            .as_str()
            .unwrap()
            .contains("has not landed"),
        "{dry}"
    );
    assert!(
        find(&dry, "worktree")[0]["bytes"].as_u64().unwrap() > 0,
        "{dry}"
    );
    let unasked = scene.run(&["clean"]);
    assert_eq!(unasked.code, Some(2), "{unasked:?}");
    assert!(scene.repo.tree("unchanged").exists());

    let cleaned = scene.ok(&["clean", "--yes"]);
    assert_eq!(find(&cleaned, "worktree")[1]["removed"], true, "{cleaned}");
    assert!(!scene.repo.tree("unchanged").exists());
    assert_eq!(
        std::fs::read(scene.repo.tree("busy").join("file")).unwrap(),
        b"mine\n"
    );
    assert_eq!(scene.status(2), "completed");
    scene.ok(&["diff", "2"]);
    assert_eq!(
        scene.ok(&["undo", "--show"])["landings"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let all = scene.run(&["--json", "clean", "--all", "--yes"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    let left: Vec<Value> = all.json()["leftovers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["removed"] != true)
        .cloned()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!scene.repo.main().join(".claude").exists());
    assert!(!scene.repo.main().join(".git/ccb").exists());
    let exclude = std::fs::read_to_string(scene.repo.main().join(".git/info/exclude"));
    assert!(!exclude.unwrap_or_default().contains("worktrees"));
    assert_eq!(
        scene.repo.git(&["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main\n"
    );
    assert_eq!(scene.repo.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(scene.repo.git(&["rev-parse", "main"]), before);
    assert!(!scene.home.path().join("teams/board").exists());
    let nothing = scene.run(&["clean", "--dry-run"]);
    assert!(
        nothing.stdout.contains("ccb has left nothing here"),
        "{nothing:?}"
    );
}

#[test]
fn what_is_in_use_stays_even_if_everything_is_to_go() {
    let scene = SessionScene::new(CCB);
    let gate = scene.home.path().join("gate");
    let run = format!(
        "echo x > x; while ! test -e {}; do sleep 0.05; done",
        gate.display()
    );
    scene.task("slow", &["--run", &run]);
    let mut session = scene.start(&["--merge", "auto"]);
    scene.await_status(1, "in_progress");
    harness::wait_until(harness::runs::LONG, "its worktree", || {
        scene.trees().len() == 1
    });
    let cleaned = scene.run(&["--json", "clean", "--all", "--yes"]);
    let answer = cleaned.json();
    assert_eq!(find(&answer, "team")[0]["removed"], false, "{answer}");
    assert_eq!(find(&answer, "worktree")[0]["removed"], false, "{answer}");
    write(&gate, "");
    assert_eq!(scene.await_end(&mut session), Some(0));
    assert_eq!(scene.repo.git(&["show", "main:x"]), "x\n");
}

#[test]
fn on_a_terminal_clean_shows_what_goes_and_asks() {
    let scene = scene();
    let mut command = scene.command(&["clean"]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 30);
    let screen = terminal.wait_for_text("for good? [y/N]");
    assert!(screen.text().contains("stays:"), "{screen:?}");
    terminal.type_keys("n\r");
    assert_eq!(terminal.end().0, Some(4));
    assert_eq!(find(&scene.ok(&["clean", "--dry-run"]), "trash").len(), 1);
}

#[test]
fn a_start_that_is_refused_leaves_no_team() {
    let scene = SessionScene::new(CCB);
    for args in [
        vec!["--team", "x", "--runtime", "nosuch"],
        vec!["--team", "x", "--runtime", "shell", "--into", "nosuch"],
        vec!["--team", "x", "--runtime", "shell", "--lead", "shell"],
    ] {
        let answer = scene.run(&args);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(!scene.home.path().join("teams/x").exists(), "{args:?}");
    }
}

fn run_in(home: &TestHome, dir: &Path, args: &[&str]) -> Answer {
    let mut command = home.command_without_team(args);
    command.current_dir(dir);
    Answer::of(command.output().expect("ccb starts"))
}

/// In places where no agent could have a worktree, two agents share a directory only if told to.
#[test]
fn where_worktrees_are_not_possible_sessions_and_agents_are_refused_unless_told() {
    let home = TestHome::in_memory(CCB);
    let outside = home.path().join("outside");
    let (bare, empty) = (home.path().join("bare"), home.path().join("empty"));
    for dir in [&outside, &bare, &empty] {
        std::fs::create_dir(dir).unwrap();
    }
    git(&bare, &["init", "-q", "--bare", "."]);
    git(&empty, &["init", "-q", "."]);
    // A repository with a submodule, seen from above and from inside.
    let (inner, outer) = (home.path().join("inner"), home.path().join("outer"));
    for dir in [&inner, &outer] {
        std::fs::create_dir(dir).unwrap();
        git(dir, &["init", "-q", "."]);
        git(dir, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }
    let file = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    git(
        &outer,
        &[&file[..], &[inner.to_str().unwrap(), "libs/inner"]].concat(),
    );
    git(&outer, &["commit", "-qm", "a submodule"]);
    for (dir, kind) in [
        (outside, "no_repository"),
        (bare, "bare_repository"),
        (empty, "no_commit"),
        (outer.join("libs/inner"), "bare_repository"),
        (outer.clone(), "submodules"),
    ] {
        for args in [
            vec!["--json", "--team", "t", "--runtime", "shell"],
            vec![
                "--json",
                "agent",
                "spawn",
                "--runtime",
                "shell",
                "--isolation",
                "worktree",
                "true",
            ],
        ] {
            let refused = run_in(&home, &dir, &args);
            let error = refused.json()["error"].clone();
            assert_eq!(
                (refused.code, &error["kind"]),
                (Some(2), &json!(kind)),
                "{args:?}: {refused:?}"
            );
            let message = error["message"].as_str().unwrap();
            assert!(
                message.starts_with("agents cannot have worktrees of their own here: "),
                "{error}"
            );
        }
        assert!(!home.path().join("teams/t/config.json").exists());
        let told = [
            "--json",
            "--team",
            "t",
            "--runtime",
            "shell",
            "--no-worktrees",
        ];
        let told = run_in(&home, &dir, &told);
        assert_eq!(told.code, Some(0), "{dir:?}: {told:?}");
        run_in(&home, &dir, &["team", "delete", "t"]);
    }
    // The user initialises the submodules; work in them could not land anyway.
    home.settings(
        r#"{"worktree":{"setup":"git -c protocol.file.allow=always submodule update --init -q"}}"#,
    );
    let look = "git -C libs/inner log -1 --format=%s";
    let spawn = [
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--isolation",
        "worktree",
        look,
    ];
    let filled = run_in(&home, &outer, &spawn);
    assert_eq!(filled.code, Some(0), "{filled:?}");
    assert!(filled.stdout.contains("first"), "{filled:?}");
    let session = ["--json", "--team", "t", "--runtime", "shell"];
    assert_eq!(run_in(&home, &outer, &session).code, Some(2));
}

#[test]
fn a_plan_whose_submodules_would_be_empty_is_refused() {
    let fan = harness::Fan::new(CCB);
    let inner = fan.0.home.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q", "."]);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let file = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    fan.git(&[&file[..], &[inner.to_str().unwrap(), "inner"]].concat());
    fan.git(&["commit", "-qm", "a submodule"]);
    fan.plan(
        &json!({"name": "p", "tasks": [{"id": "a", "run": "echo a > a", "verify": "test -s a"}]}),
    );
    let answer = fan.answer(&[]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(
        answer.stdout.contains("would be empty in them"),
        "{answer:?}"
    );
}
