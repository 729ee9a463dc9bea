//! Further work and output of a session: colours, and worktrees that are not needed any more.

use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{Answer, write};

use crate::{CCB, FAKE_AGENT};

#[test]
fn an_agent_that_begins_is_shown_in_its_definitions_colour() {
    let scene = SessionScene::new(CCB);
    scene.home.with_fake_runtime(FAKE_AGENT, "");
    let definition = "---\nname: painter\ndescription: paints\ncolor: pink\n---\nYou paint.\n";
    write(&scene.home.path().join("agents/painter.md"), definition);
    let work = Script::new().done("painted").to_prompt();
    let painter = r#"ccb={"agent":"painter"}"#;
    scene.task("the wall", &["-d", &work, "--meta", painter]);
    let mut command = scene.command(&["--runtime", "fake", "--mates", "1"]);
    command.env("CLICOLOR_FORCE", "1");
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stderr.contains("\x1b[38;5;211mmate-1\x1b[0m #1"),
        "{answer:?}"
    );
}

#[test]
fn a_session_removes_agents_worktrees_that_nobody_needs() {
    let scene = SessionScene::new(CCB);
    let work = "echo x > new && git add new && git commit -qm new";
    let how = ["--runtime", "shell", "--isolation", "worktree", "--wait"];
    let done = scene.ok(&[&["agent", "spawn"], &how[..], &[work]].concat());
    let id = done["agent"]["agentId"].as_str().unwrap();
    let stale = format!("agent-{id}");
    // A person made this one, and only a person removes it.
    scene.ok(&["worktree", "create", "mine"]);
    let both = [stale.clone(), "mine".to_owned()];
    assert_eq!(scene.trees(), both);
    let findings = |answer: &Answer| -> Vec<String> {
        let lines = answer.json_lines().into_iter();
        let found = lines.filter(|line| line["kind"] == "stale_worktree");
        found.map(|line| line["message"].to_string()).collect()
    };
    // Its work is nowhere else, whatever its age.
    let age = |days: u32| {
        scene
            .home
            .settings(&format!(r#"{{"worktree":{{"gcDays":{days}}}}}"#));
    };
    age(0);
    assert_eq!(findings(&scene.session(&[])), Vec::<String>::new());
    let branch = format!("worktree/{stale}");
    scene.repo.git(&["merge", "-q", &branch]);
    // It was used just now.
    age(30);
    assert_eq!(findings(&scene.session(&[])), Vec::<String>::new());
    assert_eq!(scene.trees(), both);
    age(0);
    let answer = scene.session(&[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(findings(&answer).len(), 1, "{answer:?}");
    assert_eq!(scene.trees(), ["mine"]);
    scene.ok(&["worktree", "undo", &stale]);
}

#[test]
fn a_session_ends_with_tasks_that_need_what_this_machine_has_not() {
    let scene = SessionScene::new(CCB);
    scene.task("render", &["--run", "true", "--needs", "gpu"]);
    scene.task("write", &["--run", "true"]);
    let answer = scene.session(&[]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let rests = answer.json_lines().into_iter();
    let rests = rests.filter(|line| line["event"] == "at_rest");
    assert_eq!(rests.count(), 1, "{answer:?}");
}
