//! The rules that bind every coordinator, and the fate of workers that go wrong.

use harness::runs::{LONG, kill};
use harness::script::{Do, Script};
use harness::team_session::SessionScene;
use harness::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::CCB;
use crate::coordinator::{run_of, scene, session, slower_than_the_lead, transcript, worker};

fn gate(scene: &SessionScene, name: &str) -> std::path::PathBuf {
    scene.home.path().join(name)
}

/// The last line of a session.
fn end(answer: &harness::Answer) -> Value {
    answer.json_lines().pop().unwrap()
}

#[test]
fn no_more_workers_than_the_session_has_however_often_it_is_tried() {
    let scene = scene();
    let open = gate(&scene, "open");
    let waits = || Script::new().wait_file(&open);
    let mut lead = Script::new()
        .call("Agent", worker("a", "", waits()))
        .call("Agent", worker("b", "", waits()));
    for number in 0..5 {
        lead = lead.try_call("Agent", worker(&format!("more-{number}"), "", waits()));
    }
    let lead = lead.touch(&open).done("tried").serve();
    let answer = session(&scene, &lead, &["--mates", "2"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let refused = transcript(&scene).matches("2 workers are at work").count();
    assert_eq!(refused, 5);
    let agents = scene.home.ok(&["agent", "list"]);
    assert_eq!(agents["agents"].as_array().unwrap().len(), 3, "{agents}");
    scene.await_nobody();
}

#[test]
fn a_file_has_one_writer_at_a_time() {
    let scene = scene();
    let (open, over) = (gate(&scene, "open"), gate(&scene, "over"));
    let first = Script::new()
        .wait_file(&open)
        .write("src/x", "a\n")
        .touch(&over);
    let on_board = Script::new()
        .append("src/x", "b")
        .done("did it")
        .to_prompt();
    let verify = format!("test -e {} && grep -qx a src/x", over.display());
    let lead = Script::new()
        .call("Agent", worker("a", "Paths: src", first))
        .try_call("Agent", worker("b", "Paths: src/x, lib", Script::new()))
        // The board waits, too: if it did not, its only attempt would fail.
        .call(
            "TaskCreate",
            json!({"subject": "next", "description": on_board,
                   "metadata": {"ccb": {"paths": ["src/x"], "verify": verify}}}),
        )
        .then(Do::Pause { ms: 600 })
        .touch(&open)
        .done("set")
        .serve();
    let answer = session(&scene, &lead, &["--mates", "4", "--attempts", "1"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let said = transcript(&scene);
    assert!(said.contains("a file has one writer at a time"), "{said}");
    assert!(said.contains("work of a"), "{said}");
    assert_eq!(scene.repo.git(&["show", "HEAD:src/x"]), "a\nb\n");
    scene.await_nobody();
}

#[test]
fn a_worker_starts_no_workers() {
    let scene = scene();
    let code = gate(&scene, "code");
    let nested = format!(
        "{CCB} agent spawn --runtime shell --background true; echo $? > {}",
        code.display()
    );
    let script = Script::new().run(&["sh", "-c", &nested]);
    let lead = Script::new()
        .call("Agent", worker("a", "", script))
        .done("started")
        .serve();
    let answer = session(&scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(std::fs::read_to_string(code).unwrap(), "4\n");
    let agents = scene.home.ok(&["agent", "list"]);
    assert_eq!(agents["agents"].as_array().unwrap().len(), 2, "{agents}");
    // It has none of the tools either.
    assert_eq!(run_of(&scene, "a")["launch"]["mcpServers"], Value::Null);
}

#[test]
fn a_prompt_that_delegates_understanding_is_sent_back_once() {
    let scene = scene();
    let lazy = worker("a", "Based on your findings, fix the bug.", Script::new());
    let lead = Script::new()
        .try_call("Agent", lazy.clone())
        .call("Agent", lazy)
        .try_call(
            "SendMessage",
            json!({"to": "a", "summary": "go on", "message": "As discussed, go on."}),
        )
        .done("over")
        .serve();
    let answer = session(&scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let said = transcript(&scene);
    assert_eq!(
        said.matches("what you should know yourself").count(),
        2,
        "{said}"
    );
    assert_eq!(run_of(&scene, "a")["life"], 1);
}

#[test]
fn what_a_worker_left_that_died_mid_edit_is_listed_and_lands_when_it_goes_on() {
    let scene = scene();
    let dies = Script::new()
        .write("half", "half\n")
        .then(Do::Die { signal: 9 });
    let lead = Script::new()
        .call("Agent", worker("a", "", dies.clone()))
        .done("started")
        .serve();
    let answer = session(&scene, &lead, &[]);
    assert_eq!(answer.code, Some(8), "{answer:?}");
    let left = end(&answer)["leftTrees"].clone();
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left[0]["description"], "work of a");
    assert_eq!(scene.trees().len(), 1);
    let mut told = scene.home.notifications();
    told.retain(|(_, status)| status == "failed");
    assert_eq!(told.len(), 1, "{told:?}");
    // The next session's coordinator continues.
    let whole = Script::new()
        .append("half", "whole")
        .done("did the rest")
        .to_prompt();
    let lead = Script::new()
        .call(
            "SendMessage",
            json!({"to": "a", "summary": "go on", "message": whole}),
        )
        .done("sent")
        .serve();
    let answer = session(&scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:half"]), "half\nwhole\n");
    assert_eq!(scene.trees(), Vec::<String>::new());
}

#[test]
fn a_stopped_worker_that_answers_late_does_not_count_and_can_be_redirected() {
    let scene = scene();
    let never = gate(&scene, "never");
    // It ignores orders, and would claim success in the end.
    let wrong = Script::new()
        .write("wrong", "w\n")
        .stubborn()
        .wait_file(&never);
    let right = Script::new()
        .run(&["sh", "-c", "rm -f wrong; echo r > right"])
        .done("now it is right")
        .to_prompt();
    let lead = Script::new()
        .call("Agent", worker("a", "", wrong))
        .then(Do::WaitFile {
            path: scene.repo.main().join(".claude/worktrees"),
        })
        .call("TaskStop", json!({"task_id": "a"}))
        .touch(&never)
        .try_call("TaskStop", json!({"task_id": "a"}))
        .call(
            "SendMessage",
            json!({"to": "a", "summary": "other way", "message": right}),
        )
        .done("redirected")
        .serve();
    let answer = session(&scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        transcript(&scene).contains("is not running"),
        "stopped twice"
    );
    assert_eq!(scene.repo.git(&["show", "HEAD:right"]), "r\n");
    assert_eq!(
        scene.repo.git(&["ls-tree", "--name-only", "HEAD", "wrong"]),
        ""
    );
}

#[test]
fn workers_that_contradict_each_other_are_told_apart() {
    let scene = scene();
    let (one, two) = (gate(&scene, "one"), gate(&scene, "two"));
    // Both begin from the same commit, and neither declared the file.
    let writes = |text: &str, own: &std::path::Path, other: &std::path::Path| {
        Script::new()
            .touch(own)
            .wait_file(other)
            .write("answer", text)
    };
    let lead = Script::new()
        .call("Agent", worker("a", "", writes("42\n", &one, &two)))
        .call("Agent", worker("b", "", writes("43\n", &two, &one)))
        .done("both are working")
        .serve();
    let answer = session(&scene, &lead, &["--mates", "2"]);
    // No agent here can merge them.
    assert_eq!(answer.code, Some(8), "{answer:?}");
    let landed = scene.repo.git(&["show", "HEAD:answer"]);
    assert!(landed == "42\n" || landed == "43\n", "{landed}");
    let said = transcript(&scene);
    assert!(said.contains("did not land"), "{said}");
    let task = scene.file(3);
    assert!(
        task["subject"].as_str().unwrap().starts_with("Bring "),
        "{task}"
    );
}

#[test]
fn work_that_breaks_the_rest_does_not_land_and_its_coordinator_is_told() {
    let scene = scene();
    let lead = Script::new()
        .call(
            "Agent",
            worker("a", "", slower_than_the_lead(&scene).write("bad", "b\n")),
        )
        .done("started")
        .wait_message()
        .done("It is all done and verified!")
        .serve();
    let answer = session(&scene, &lead, &["--verify", "! test -e bad"]);
    assert_eq!(answer.code, Some(8), "{answer:?}");
    assert_eq!(end(&answer)["leftTrees"][0]["description"], "work of a");
    assert!(!scene.repo.main().join("bad").exists());
    let said = transcript(&scene);
    assert!(said.contains("did not land"), "{said}");
}

#[test]
fn what_is_not_to_be_merged_is_listed() {
    let scene = scene();
    let lead = Script::new()
        .call("Agent", worker("a", "", Script::new().write("one", "1\n")))
        .done("started")
        .serve();
    let answer = session(&scene, &lead, &["--merge", "never"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(end(&answer)["notLanded"], json!(["1"]), "{answer:?}");
    assert_eq!(scene.trees().len(), 1);
    // Later it is.
    let lead = Script::new().done("nothing new").serve();
    let answer = session(&scene, &lead, &["--merge", "auto"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:one"]), "1\n");
    assert_eq!(scene.trees(), Vec::<String>::new());
}

#[test]
fn a_session_killed_between_synthesis_and_implementation_goes_on() {
    let scene = scene();
    let (thought, open) = (gate(&scene, "thought"), gate(&scene, "open"));
    let finding =
        slower_than_the_lead(&scene).run(&["sh", "-c", "echo 7 > $CCB_SCRATCHPAD/finding"]);
    let change = Script::new().run(&["sh", "-c", "cp $CCB_SCRATCHPAD/finding answer"]);
    let lead = Script::new()
        .call("Agent", worker("research", "Change nothing.", finding))
        .done("looking")
        .wait_message()
        .touch(&thought)
        .wait_file(&open)
        .call("Agent", worker("change", "Paths: answer", change))
        .done("changing")
        .serve();
    let prompt = lead.to_prompt();
    let mut first = scene
        .command(&["--json", "--coordinator", "--runtime", "fake", &prompt])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until(LONG, "the coordinator to have understood", || {
        thought.exists()
    });
    first.kill().unwrap();
    first.wait().unwrap();
    // The coordinator dies with it.
    let lead = run_of(&scene, "team-lead");
    kill(
        i32::try_from(lead["pid"].as_i64().unwrap()).unwrap(),
        Signal::KILL,
    );
    wait_until(LONG, "the coordinator to be gone", || {
        !scene
            .home
            .ok(&["agent", "list", "--alive"])
            .to_string()
            .contains("team-lead")
    });
    std::fs::write(&open, "").unwrap();
    let answer = scene.run(&["--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:answer"]), "7\n");
    assert_eq!(run_of(&scene, "team-lead")["life"], 2);
    scene.await_nobody();
}

#[test]
fn a_coordinator_that_dies_while_its_session_lives_is_brought_back() {
    let scene = scene();
    let once = gate(&scene, "once");
    // Dies the first time; its prompt is all it has.
    let dies = format!(
        "test -e {0} || {{ touch {0}; kill -9 $PPID; sleep 9; }}",
        once.display()
    );
    let lead = Script::new()
        .run(&["sh", "-c", &dies])
        .call("Agent", worker("a", "", Script::new().write("one", "1\n")))
        .done("started")
        .serve();
    let answer = session(&scene, &lead, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(run_of(&scene, "team-lead")["life"].as_u64() > Some(1));
}
