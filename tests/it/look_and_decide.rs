//! A person looks at the work of agents, and decides: land it, send it back, undo it.

use std::path::PathBuf;

use harness::script::{Do, Script};
use harness::team_session::SessionScene;
use harness::terminal::Terminal;
use harness::{git, write};
use serde_json::json;

use crate::{CCB, FAKE_AGENT, ON_TERMINAL};

/// A session that left the work of these tasks on its branches.
fn left(tasks: &[(&str, &str, &str)]) -> SessionScene {
    let scene = SessionScene::new(CCB);
    for (subject, run, verify) in tasks {
        scene.task(subject, &["--run", run, "--verify", verify]);
    }
    let answer = scene.session(&["--merge", "never"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    scene
}

fn one() -> SessionScene {
    left(&[("write one", "echo 1 > one", "test -s one")])
}

fn tree_of(scene: &SessionScene, id: u64) -> PathBuf {
    let name = &scene.file(id)["metadata"]["ccb"]["result"]["worktree"];
    scene.repo.tree(name.as_str().expect("a worktree"))
}

#[test]
fn a_diff_shows_what_a_task_changed_while_its_worktree_is_there_and_after() {
    let scene = one();
    for what in [
        vec!["diff"],
        vec!["diff", "1"],
        vec!["diff", "#1"],
        vec!["diff", "mate-1"],
    ] {
        let answer = scene.run(&what);
        assert_eq!(answer.code, Some(0), "{what:?}: {answer:?}");
        assert!(
            answer.stdout.contains("+++ b/one\n@@ -0,0 +1 @@\n+1\n"),
            "{answer:?}"
        );
    }
    assert_eq!(scene.run(&["diff", "1", "--name-only"]).stdout, "one\n");
    assert!(
        scene
            .run(&["diff", "1", "--stat"])
            .stdout
            .contains("one | 1 +")
    );
    // Uncommitted work counts as well, and the index is not changed.
    let tree = tree_of(&scene, 1);
    write(&tree.join("more"), "a\nb\n");
    let json = scene.ok(&["diff", "1"]);
    assert_eq!(json["uncommitted"], true);
    let files = json!([{"path": "more", "added": 2, "deleted": 0}, {"path": "one", "added": 1, "deleted": 0}]);
    assert_eq!((&json["files"], &json["added"]), (&files, &json!(3)));
    assert_eq!(git(&tree, &["status", "--porcelain"]), "?? more\n");
    std::fs::remove_file(tree.join("more")).unwrap();
    // From inside the worktree, without a name.
    let inside = scene.run(&["-C", tree.to_str().unwrap(), "diff", "--name-only"]);
    assert_eq!(inside.stdout, "one\n", "{inside:?}");

    scene.ok(&["land", "1"]);
    assert!(!tree.exists());
    assert_eq!(scene.run(&["diff", "1", "--name-only"]).stdout, "one\n");
    let nothing = scene.run(&["diff"]);
    assert!(
        nothing.stdout.contains("no changes that have not landed"),
        "{nothing:?}"
    );
    let unknown = scene.run(&["diff", "nosuch"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(
        unknown
            .stderr
            .contains("no task, worktree or agent \"nosuch\""),
        "{unknown:?}"
    );
}

#[test]
fn without_a_name_several_with_changes_are_listed_with_their_commands() {
    let scene = left(&[
        ("write one", "echo 1 > one", "test -s one"),
        ("write two", "echo 2 > two", "test -s two"),
    ]);
    let answer = scene.run(&["diff"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for id in ["1", "2"] {
        assert!(
            answer
                .stdout
                .contains(&format!("ccb --team board diff {id}\n"))
                || answer
                    .stdout
                    .trim_end()
                    .ends_with(&format!("ccb --team board diff {id}")),
            "{answer:?}"
        );
    }
    let json = scene.ok(&["diff"]);
    assert_eq!(json["candidates"][1]["command"], "ccb --team board diff 2");
}

#[test]
fn work_lands_with_its_subject_id_and_check_by_whoever_git_says() {
    let scene = left(&[
        ("write one", "echo 1 > one", "test -s one"),
        (
            "write two",
            "echo 2 > two; git add two; git commit -qm mine --author 'A <a@b>'",
            "test -s two",
        ),
        (
            "write three",
            "echo 3 > three; git add three; git commit -qm mine",
            "test -s three",
        ),
    ]);
    let dry = scene.ok(&["land", "--all", "--dry-run"]);
    assert_eq!(dry["landings"].as_array().unwrap().len(), 3);
    assert!(
        dry["landings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["outcome"] == "would_land"),
        "{dry}"
    );
    assert_eq!(
        scene.repo.git(&["ls-tree", "--name-only", "main", "one"]),
        ""
    );
    let landed = scene.run(&["land", "1"]);
    assert_eq!(landed.code, Some(0), "{landed:?}");
    assert!(
        landed.stdout.starts_with("⇥ #1 write one is on main "),
        "{landed:?}"
    );
    let message = |format: &str| {
        scene
            .repo
            .git(&["log", "-1", &format!("--format={format}"), "main"])
    };
    assert_eq!(
        message("%B").trim_end(),
        "write one\n\nTask: board#1\nCheck: test -s one"
    );
    scene.ok(&["land", "2", "--strategy", "squash"]);
    assert_eq!(
        message("%an|%B").trim_end(),
        "test|write two\n\nTask: board#2\nCheck: test -s two"
    );
    assert_eq!(message("%P").trim().split(' ').count(), 1);
    scene.ok(&["land", "3", "--check", "test -s two"]);
    assert_eq!(
        message("%an|%B").trim_end(),
        "test|Merge task 3: write three\n\nTask: board#3\nCheck: test -s three"
    );
    assert_eq!(message("%P").trim().split(' ').count(), 2);
    let again = scene.run(&["land", "1"]);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(
        again.stderr.contains("task 1 is on main already") && again.stderr.contains("undo L1"),
        "{again:?}"
    );
    let nothing = scene.run(&["land", "--all"]);
    assert!(
        nothing
            .stdout
            .contains("nothing is done that has not landed"),
        "{nothing:?}"
    );
    assert_eq!(scene.run(&["land", "9"]).code, Some(3));
    assert_eq!(scene.run(&["land"]).code, Some(2));
}

#[test]
fn a_session_lands_by_the_strategy_it_was_told() {
    let scene = SessionScene::new(CCB);
    let run =
        "echo 1 > one; git add one; git commit -qm a; echo 2 > two; git add two; git commit -qm b";
    scene.task("write both", &["--run", run, "--verify", "test -s two"]);
    let answer = scene.session(&["--merge", "auto", "--strategy", "squash"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(
        scene.repo.git(&["log", "--format=%s", "-2", "main"]),
        "write both\nfirst\n"
    );
}

#[test]
fn a_conflict_says_which_files_and_which_commands_resolve_it() {
    let scene = left(&[
        ("write a", "echo a > file", "test -s file"),
        ("write b", "echo b > file", "test -s file"),
    ]);
    let answer = scene.run(&["land", "--all"]);
    assert_eq!(answer.code, Some(8), "{answer:?}");
    assert!(
        answer.stdout.contains(
            "✘ #2 write b did not land: main has changed the same lines of file, by #1\n"
        ),
        "{answer:?}"
    );
    let tree = tree_of(&scene, 2);
    let short = tree
        .strip_prefix(scene.repo.main())
        .unwrap()
        .display()
        .to_string();
    assert!(
        answer
            .stdout
            .contains(&format!("cd {short} && git merge main\n")),
        "{answer:?}"
    );
    assert!(
        answer.stdout.contains("ccb --team board land 2"),
        "{answer:?}"
    );
    // Resolved by the instructions.
    let merge = harness::git_command(&tree, &["merge", "-q", "main"])
        .output()
        .unwrap();
    assert!(!merge.status.success());
    write(&tree.join("file"), "a\nb\n");
    git(&tree, &["commit", "-qam", "both"]);
    scene.ok(&["land", "2"]);
    assert_eq!(scene.repo.git(&["show", "main:file"]), "a\nb\n");
}

#[test]
fn a_merged_result_that_does_not_pass_moves_nothing_and_says_what_the_check_printed() {
    let scene = one();
    let before = scene.repo.git(&["rev-parse", "main"]);
    let answer = scene.run(&["land", "1", "--check", "echo it is red; false"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(
        answer.stdout.contains("✘ #1 write one did not land"),
        "{answer:?}"
    );
    assert!(answer.stdout.contains("│ it is red"), "{answer:?}");
    assert!(
        answer
            .stdout
            .contains("ccb --team board reject 1 --feedback TEXT"),
        "{answer:?}"
    );
    assert_eq!(scene.repo.git(&["rev-parse", "main"]), before);
    assert_eq!(scene.status(1), "completed");
    scene.ok(&["land", "1"]);
}

#[test]
fn a_rejected_result_goes_on_with_the_feedback_from_where_it_was() {
    let scene = SessionScene::new(CCB);
    let run = r#"if test -z "$CCB_LAST_FAILURE"; then echo 1 > one; else cp one first; echo "$CCB_LAST_FAILURE" > one; fi"#;
    scene.task("write one", &["--run", run, "--verify", "test -s one"]);
    assert_eq!(scene.session(&["--merge", "never"]).code, Some(0));
    let early = scene.run(&["reject", "1", "--feedback", "  "]);
    assert_eq!(early.code, Some(2), "{early:?}");
    let answer = scene.run(&["reject", "1", "--feedback", "more, please"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains("#1 write one was sent back"),
        "{answer:?}"
    );
    assert!(answer.stdout.contains("ccb --team board"), "{answer:?}");
    assert_eq!(scene.status(1), "pending");
    assert_eq!(scene.run(&["land", "1"]).code, Some(4));
    assert_eq!(scene.session(&["--merge", "auto"]).code, Some(0));
    assert_eq!(scene.repo.git(&["show", "main:one"]), "more, please\n");
    assert_eq!(
        scene.repo.git(&["show", "main:first"]),
        "1\n",
        "it began with the work as it was"
    );
    // Landed work has to be undone first.
    let landed = scene.run(&["reject", "1", "--feedback", "no"]);
    assert_eq!(landed.code, Some(4), "{landed:?}");
    assert!(
        landed.stderr.contains("task 1 is on main already") && landed.stderr.contains("undo L1"),
        "{landed:?}"
    );
    scene.task("later", &["--run", "true"]);
    assert_eq!(
        scene.run(&["reject", "2", "--feedback", "no"]).code,
        Some(4)
    );
}

/// A model resumes in its own worktree and conversation.
#[test]
fn an_agent_whose_work_was_sent_back_resumes_with_the_feedback() {
    let scene = SessionScene::new(CCB);
    scene
        .home
        .with_fake_runtime(FAKE_AGENT, r#""agents":{"stopGraceMs":300}"#);
    let file = |path: &str, text: &str| Do::Write {
        path: path.into(),
        text: text.into(),
    };
    let work = Script::new()
        .then(file("one", "1\n"))
        .done("did it")
        .to_prompt();
    scene.ok(&[
        "task",
        "create",
        "write one",
        "--description",
        &work,
        "--verify",
        "test -s one",
    ]);
    let session = [
        "--json",
        "--runtime",
        "fake",
        "--lead",
        "me",
        "--mates",
        "1",
    ];
    let first = scene.run(&[&session[..], &["--merge", "never"]].concat());
    assert_eq!(first.code, Some(0), "{first:?}");
    let run = || {
        let run = scene.file(1)["metadata"]["ccb"]["result"]["run"].clone();
        run.as_str().expect("a run").to_owned()
    };
    let before = run();
    let tree = tree_of(&scene, 1);
    let more = Script::new()
        .then(file("two", "2\n"))
        .done("did more")
        .to_prompt();
    scene.ok(&["reject", "1", "--feedback", &more]);
    let second = scene.run(&[&session[..], &["--merge", "never"]].concat());
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(run(), format!("{before}#2"), "the same agent");
    assert_eq!(tree_of(&scene, 1), tree);
    assert_eq!(
        scene.run(&["diff", "1", "--name-only"]).stdout,
        "one\ntwo\n"
    );
}

fn files(scene: &SessionScene) -> String {
    scene
        .repo
        .git(&["ls-tree", "--name-only", "main"])
        .replace('\n', " ")
}

#[test]
fn a_landing_with_nothing_on_top_is_undone_as_if_it_had_never_been() {
    let scene = one();
    let before = scene.repo.git(&["rev-parse", "main"]);
    scene.ok(&["land", "1"]);
    let listed = scene.run(&["undo", "--show"]);
    assert!(
        listed
            .stdout
            .starts_with("⇥ landed L1 (board#1 write one) on main"),
        "{listed:?}"
    );
    let dry = scene.run(&["undo", "1", "--dry-run"]);
    assert!(
        dry.stdout
            .contains("would undo L1 (board#1 write one) on main: main goes back"),
        "{dry:?}"
    );
    // A file of the user's is in the way.
    scene.repo.write("one", "mine\n");
    let refused = scene.run(&["undo", "1"]);
    assert_eq!(refused.code, Some(8), "{refused:?}");
    scene.repo.git(&["checkout", "-q", "one"]);
    // A file that is not in the way is kept.
    scene.repo.write("other", "mine\n");
    let undone = scene.run(&["undo", "1"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(
        undone.stdout.contains("ccb --team board land 1"),
        "{undone:?}"
    );
    assert_eq!(scene.repo.git(&["rev-parse", "main"]), before);
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "?? other\n");
    assert_eq!(scene.status(1), "completed");
    assert!(
        tree_of(&scene, 1).join("one").exists(),
        "its worktree is back"
    );
    // No session lands it again by itself; a person does.
    assert_eq!(scene.session(&["--merge", "auto"]).code, Some(0));
    assert_eq!(scene.repo.git(&["rev-parse", "main"]), before);
    assert_eq!(scene.ok(&["land", "--all"])["landings"], json!([]));
    assert_eq!(scene.run(&["undo", "1"]).code, Some(4));
    scene.ok(&["land", "1"]);
    assert_eq!(scene.repo.git(&["show", "main:one"]), "1\n");
    assert_eq!(
        scene.ok(&["undo", "--show"])["landings"][1]["undone"]["by"],
        "moved_back"
    );
}

#[test]
fn a_landing_with_something_on_top_is_reverted_and_can_land_again() {
    let scene = left(&[
        ("write one", "echo 1 > one", "test -s one"),
        ("write two", "echo 2 > two", "test -s two"),
    ]);
    scene.ok(&["land", "1"]);
    scene.ok(&["land", "2"]);
    // The check of later landings has to pass, and the given one.
    let red = scene.run(&["undo", "1", "--check", "test -e one"]);
    assert_eq!(red.code, Some(1), "{red:?}");
    assert!(files(&scene).contains("one"));
    let undone = scene.ok(&["undo", "1", "--check", "! test -e one"])["undo"].clone();
    assert_eq!(
        (&undone["how"], &undone["why"]),
        (&json!("reverted"), &json!("main has later commits"))
    );
    assert!(
        undone["check"].as_str().unwrap().contains("test -s two"),
        "{undone}"
    );
    assert!(!files(&scene).contains("one") && files(&scene).contains("two"));
    let message = scene.repo.git(&["log", "-1", "--format=%B", "main"]);
    assert!(
        message.starts_with("Revert \"write one\"\n") && message.contains("Task: board#1"),
        "{message}"
    );
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    // The restored worktree is no rubbish, and the work lands although git has its commits.
    assert!(tree_of(&scene, 1).exists());
    scene.ok(&["land", "1"]);
    assert_eq!(scene.repo.git(&["show", "main:one"]), "1\n");
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_somebody_else_has_is_not_taken_away_from_under_them() {
    let scene = one();
    scene.ok(&["land", "1"]);
    scene.repo.git(&["branch", "release"]);
    let undone = scene.ok(&["undo", "L1"])["undo"].clone();
    assert_eq!(
        (&undone["how"], &undone["why"]),
        (&json!("reverted"), &json!("release has it, too"))
    );
    assert!(!files(&scene).contains("one"));
}

#[test]
fn a_landing_that_later_work_builds_on_is_not_undone_by_itself() {
    let scene = one();
    scene.ok(&["land", "1"]);
    scene.repo.write("one", "1\nand more\n");
    scene.repo.git(&["commit", "-qam", "more"]);
    let refused = scene.run(&["undo", "1"]);
    assert_eq!(refused.code, Some(8), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("later commits on main change the same lines: one"),
        "{refused:?}"
    );
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
}

fn terminal(scene: &SessionScene, args: &[&str]) -> Terminal {
    let mut command = scene.command(args);
    for name in ["PATH", "HOME"] {
        command.env(name, std::env::var_os(name).unwrap_or_default());
    }
    Terminal::start(ON_TERMINAL, &command, 80, 24)
}

#[test]
fn on_a_terminal_a_diff_has_the_users_colours_and_pager() {
    let scene = left(&[("greet", "echo hello > one", "test -s one")]);
    let pager = "sed -e '$a -- the pager --'";
    scene.repo.git(&["config", "core.pager", pager]);
    let (code, screen) = terminal(&scene, &["diff", "1"]).end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert_eq!(screen.colour_of("+hello"), vt100::Color::Idx(2));
    assert!(screen.text().contains("-- the pager --"), "{screen:?}");
}

#[test]
fn on_a_terminal_work_lands_and_the_last_landing_is_undone_after_a_question() {
    let scene = one();
    let (code, screen) = terminal(&scene, &["land", "1"]).end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(
        screen.text().contains("⇥ #1 write one is on main"),
        "{screen:?}"
    );
    for (answer, gone) in [("n\r", false), ("y\r", true)] {
        let mut terminal = terminal(&scene, &["undo"]);
        terminal.wait_for_text("Undo L1 (board#1 write one) on main? [y/N]");
        terminal.type_keys(answer);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(if gone { 0 } else { 4 }), "{screen:?}");
        assert_eq!(!files(&scene).contains("one"), gone, "{screen:?}");
    }
    // Without a person to ask, the command must be explicit.
    scene.ok(&["land", "1"]);
    assert_eq!(scene.run(&["undo"]).code, Some(2));
    scene.ok(&["undo", "--yes"]);
}

#[test]
fn what_deletes_asks_on_a_terminal_and_nowhere_else() {
    let scene = one();
    let name = tree_of(&scene, 1)
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    for (args, question) in [
        (
            vec!["task", "reset"],
            "Delete 1 task of \"board\" for good? [y/N]",
        ),
        (
            vec!["worktree", "remove", &name, "--discard"],
            "with its changes",
        ),
        (vec!["team", "delete", "board"], "Delete team \"board\""),
    ] {
        let mut asked = terminal(&scene, &args);
        asked.wait_for_text(question);
        asked.type_keys("\r");
        let (code, screen) = asked.end();
        assert_eq!(code, Some(4), "{screen:?}");
        assert!(screen.text().contains("nothing was changed"), "{screen:?}");
        assert_eq!(scene.status(1), "completed");
    }
    let (code, screen) =
        terminal(&scene, &["worktree", "remove", &name, "--discard", "--yes"]).end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert_eq!(
        scene.run(&["task", "reset"]).code,
        Some(0),
        "scripts go on as before"
    );
    assert_eq!(scene.run(&["team", "delete", "board"]).code, Some(0));
}
