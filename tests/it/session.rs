//! Team sessions without a model: a board worked through in worktrees, proved, landed, in spite of
//! kills on the way.

use harness::fake::Pids;
use harness::runs::{LONG, await_none_left, kill};
use harness::script::Script;
use harness::team_session::SessionScene;
use harness::wait_until;
use rustix::process::Signal;

use crate::{CCB, FAKE_AGENT};

fn scene() -> SessionScene {
    SessionScene::new(CCB)
}

/// A command that waits for a file.
fn wait_for(path: &std::path::Path, pids: &std::path::Path) -> String {
    let script = Script::new().pids(pids).wait_file(path);
    // `exec` would end the rest of the command.
    format!("( {} )", script.to_command(FAKE_AGENT))
}

#[test]
fn mates_take_a_repository_to_green_although_the_director_is_killed_twice() {
    let scene = scene();
    let modules = ["alpha", "beta", "gamma", "delta"];
    for module in modules {
        scene.repo.write(&format!("{module}/value"), "broken\n");
    }
    scene.repo.write(
        "check.sh",
        "for m in alpha beta gamma delta; do grep -qx fixed $m/value || exit 1; done\n\
         test \"$(cat summary)\" = 4\n",
    );
    scene.repo.git(&["add", "."]);
    scene.repo.git(&["commit", "-qm", "modules"]);
    let (pids, gates, ran) = (
        scene.home.path().join("pids"),
        scene.home.path().join("gates"),
        scene.home.path().join("ran"),
    );
    for dir in [&pids, &gates, &ran] {
        std::fs::create_dir(dir).unwrap();
    }
    let mut ids = Vec::new();
    for module in modules {
        let run = format!(
            "echo x >> {0}/{module}; {1}; echo fixed > {module}/value",
            ran.display(),
            wait_for(&gates.join("first"), &pids),
        );
        let verify = format!("grep -qx fixed {module}/value");
        let subject = format!("fix {module}");
        let id = scene.task(&subject, &["--run", &run, "--verify", &verify]);
        ids.push(id.to_string());
    }
    let join = format!(
        "echo x >> {0}/join; {1}; cat */value | grep -cx fixed > summary",
        ran.display(),
        wait_for(&gates.join("second"), &pids),
    );
    let blocked: Vec<&str> = ids.iter().flat_map(|id| ["--blocked-by", id]).collect();
    let args = [&["--run", &join, "--verify", "sh check.sh"], &blocked[..]].concat();
    let last = scene.task("count what is fixed", &args);

    let mut first = scene.start(&["--mates", "4", "--verify", "test -d alpha"]);
    wait_until(LONG, "four mates to be at work", || {
        std::fs::read_dir(&ran).unwrap().count() == 4
    });
    assert_eq!(scene.trees().len(), 4, "each in a tree of its own");
    first.kill().unwrap();
    first.wait().unwrap();

    let mut second = scene.start(&[]);
    std::fs::write(gates.join("first"), "").unwrap();
    wait_until(LONG, "the last task to be at work", || {
        ran.join("join").exists()
    });
    second.kill().unwrap();
    second.wait().unwrap();

    // The settings of the first still hold.
    let kept = std::fs::read_to_string(scene.home.team_dir().join("session.json")).unwrap();
    assert!(kept.contains("test -d alpha"), "{kept}");
    let mut third = scene.start(&[]);
    std::fs::write(gates.join("second"), "").unwrap();
    assert_eq!(scene.await_end(&mut third), Some(0), "{}", log(&scene));

    for id in 1..=last {
        let task = scene.file(id);
        assert_eq!(task["status"], "completed", "{task}");
        let result = &task["metadata"]["ccb"]["result"];
        assert_eq!(result["check"]["passed"], true, "{task}");
        assert!(result["commit"].is_string(), "{task}");
    }
    for module in modules.iter().chain(&["join"]) {
        let runs = std::fs::read_to_string(ran.join(module)).unwrap();
        assert_eq!(runs, "x\n", "{module} was done once");
    }
    let check = std::process::Command::new("sh")
        .arg("check.sh")
        .current_dir(scene.repo.main())
        .status();
    assert!(check.unwrap().success(), "the branch is green");
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    assert_eq!(scene.trees(), Vec::<String>::new(), "{}", log(&scene));
    scene.await_nobody();
    await_none_left(&Pids::new(&pids));
}

fn log(scene: &SessionScene) -> String {
    std::fs::read_to_string(scene.log()).unwrap_or_default()
}

#[test]
fn a_failed_try_is_told_to_the_next_and_the_third_parks() {
    let scene = scene();
    let learns = "test \"$CCB_ATTEMPT\" = 2 && echo \"$CCB_LAST_FAILURE\" > lesson || { echo oh >&2; exit 7; }";
    let learned = scene.task(
        "learns",
        &["--run", learns, "--verify", "grep -q oh lesson"],
    );
    let otherwise =
        "case $CCB_ATTEMPT in 1) echo one;; 2) echo two;; *) echo three;; esac >&2; exit 9";
    let never = scene.task("never", &["--run", otherwise]);
    let same = scene.task("same", &["--run", "exit 8"]);
    let behind = scene.task(
        "behind",
        &["--run", "true", "--blocked-by", &never.to_string()],
    );
    let answer = scene.session(&[]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(scene.status(learned), "completed");
    assert!(
        scene
            .repo
            .git(&["show", "HEAD:lesson"])
            .contains("exit code 7")
    );
    let parked = scene.file(never);
    let ours = &parked["metadata"]["ccb"];
    assert_eq!(
        ours["attempts"].as_array().map(Vec::len),
        Some(3),
        "{parked}"
    );
    let why = ours["parked"]["reason"].as_str().unwrap();
    assert!(
        why.starts_with("failed 3 times") && why.contains("exit code 9"),
        "{why}"
    );
    // The same failure twice with nothing changed is enough.
    let parked_too = scene.file(same);
    let why = parked_too["metadata"]["ccb"]["parked"]["reason"]
        .as_str()
        .unwrap();
    assert!(why.starts_with("no progress"), "{why}");
    assert_eq!(scene.status(behind), "pending");
    let events = answer.json_lines();
    let end = events.last().unwrap();
    assert_eq!((&end["event"], &end["exit"]), (&"end".into(), &1.into()));
    assert_eq!(end["parked"][0]["id"], never.to_string());
}

#[test]
fn done_is_what_the_check_says_at_the_commit_and_a_check_that_never_ends_fails() {
    let scene = scene();
    let lies = scene.task("lies", &["--run", "echo done", "--verify", "test -e proof"]);
    let hangs = scene.task(
        "hangs",
        &["--run", "echo x > y", "--verify", "tail -f /dev/null"],
    );
    // Files that the check itself writes are not part of the checked work.
    let writes = scene.task(
        "writes",
        &["--run", "echo 1 > a", "--verify", "test -e b || echo 2 > b"],
    );
    let nothing = scene.task("nothing", &["--run", "true", "--verify", "true"]);
    let answer = scene.session(&["--attempts", "1", "--verify-timeout", "1"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let why = |id| {
        let task = scene.file(id);
        let reason = task["metadata"]["ccb"]["parked"]["reason"].as_str();
        reason.unwrap_or_else(|| panic!("{task}")).to_owned()
    };
    assert!(
        why(lies).contains("`test -e proof` failed"),
        "{}",
        why(lies)
    );
    assert!(why(hangs).contains("longer than 1 s"), "{}", why(hangs));
    assert_eq!(scene.status(writes), "completed");
    let landed = scene.repo.git(&["ls-tree", "--name-only", "HEAD"]);
    assert!(
        landed.contains("a\n") && !landed.contains("b\n"),
        "{landed}"
    );
    assert_eq!(scene.status(nothing), "completed");
    let ended = |id: u64| {
        let events = answer.json_lines();
        let id = id.to_string();
        let mine = |e: &&serde_json::Value| e["event"] == "ended" && e["task"] == id.as_str();
        events.iter().rfind(mine).cloned().unwrap()
    };
    assert_eq!(ended(nothing)["outcome"], "no_change");
    assert_eq!(ended(writes)["outcome"], "done");
    scene.await_nobody();
}

#[test]
fn what_others_say_is_done_is_checked_before_anything_builds_on_it() {
    let scene = scene();
    let lie = scene.task(
        "lie",
        &["--run", "echo 1 > proof", "--verify", "test -e proof"],
    );
    let truth = scene.task("truth", &["--run", "false", "--verify", "test -e readme"]);
    let behind = scene.task(
        "behind",
        &["--run", "cp proof copy", "--blocked-by", &lie.to_string()],
    );
    for id in [lie, truth] {
        scene.ok(&["task", "done", &id.to_string(), "--as", "person"]);
    }
    let answer = scene.session(&[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let task = scene.file(truth);
    assert_eq!(
        task["metadata"]["ccb"]["result"]["verified"], true,
        "{task}"
    );
    let runs = task["metadata"]["ccb"]["attempts"].as_array();
    assert_eq!(runs, None, "it was not done again: {task}");
    let task = scene.file(lie);
    assert_eq!(
        task["metadata"]["ccb"]["attempts"][0]["status"], "reported",
        "{task}"
    );
    assert_eq!(
        task["metadata"]["ccb"]["result"]["check"]["passed"], true,
        "{task}"
    );
    assert_eq!(scene.status(behind), "completed");
    assert_eq!(scene.repo.git(&["show", "HEAD:copy"]), "1\n");
}

#[test]
fn a_conflict_becomes_a_task_that_names_both_sides() {
    let scene = scene();
    let gate = scene.home.path().join("go");
    let pids = scene.home.path().join("pids");
    std::fs::create_dir(&pids).unwrap();
    for word in ["left", "right"] {
        let run = format!("{}; echo {word} > readme", wait_for(&gate, &pids));
        scene.task(word, &["--run", &run]);
    }
    let mut session = scene.start(&[]);
    // Both have their worktrees before either lands.
    scene.await_status(1, "in_progress");
    scene.await_status(2, "in_progress");
    wait_until(LONG, "two trees", || scene.trees().len() == 2);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(scene.await_end(&mut session), Some(8), "{}", log(&scene));
    let task = scene.file(3);
    assert_eq!(task["status"], "pending");
    let description = task["description"].as_str().unwrap();
    assert!(description.contains("readme") && description.contains("worktree/agent-"));
    assert_eq!(
        task["metadata"]["ccb"]["paths"],
        serde_json::json!(["readme"])
    );
    // The work of the other side is not lost, and asking again makes no second task.
    assert_eq!(scene.trees().len(), 1);
    let again = scene.session(&[]);
    assert_eq!(again.code, Some(8), "{again:?}");
    assert!(!scene.home.task_file(4).exists());
}

#[test]
fn an_interrupt_asks_everybody_to_stop_and_the_same_command_goes_on() {
    let scene = scene();
    let (gate, pids) = (scene.home.path().join("go"), scene.home.path().join("pids"));
    std::fs::create_dir(&pids).unwrap();
    let run = format!("{}; echo new > file", wait_for(&gate, &pids));
    let id = scene.task("waits", &["--run", &run]);
    let mut session = scene.start(&[]);
    wait_until(LONG, "the agent to be up", || {
        std::fs::read_dir(&pids).is_ok_and(|mut dir| dir.next().is_some())
    });
    kill(session.id().cast_signed(), Signal::INT);
    assert_eq!(scene.await_end(&mut session), Some(130), "{}", log(&scene));
    scene.await_nobody();
    await_none_left(&Pids::new(&pids));
    let task = scene.file(id);
    assert_eq!(
        (&task["status"], &task["owner"]),
        (&"pending".into(), &serde_json::Value::Null)
    );
    assert_eq!(task["metadata"]["ccb"]["attempts"], serde_json::Value::Null);
    std::fs::write(&gate, "").unwrap();
    let answer = scene.session(&[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(scene.repo.git(&["show", "HEAD:file"]), "new\n");
}

#[test]
fn a_second_session_follows_the_first_and_takes_over_when_it_is_killed() {
    let scene = scene();
    let (gate, pids) = (scene.home.path().join("go"), scene.home.path().join("pids"));
    std::fs::create_dir(&pids).unwrap();
    let run = format!("{}; echo new > file", wait_for(&gate, &pids));
    let first_task = scene.task("waits", &["--run", &run]);
    let blocked = first_task.to_string();
    let second_task = scene.task("then", &["--run", "cat file", "--blocked-by", &blocked]);
    let mut first = scene.start(&[]);
    scene.await_status(first_task, "in_progress");
    let mut second = scene.start(&[]);
    wait_until(LONG, "the second to follow", || {
        log(&scene).contains("following it")
    });
    first.kill().unwrap();
    first.wait().unwrap();
    std::fs::write(&gate, "").unwrap();
    assert_eq!(scene.await_end(&mut second), Some(0), "{}", log(&scene));
    assert_eq!(scene.status(second_task), "completed");
    assert_eq!(scene.repo.git(&["show", "HEAD:file"]), "new\n");
}

#[test]
fn an_agent_that_is_killed_costs_its_task_nothing_but_time() {
    let scene = scene();
    let (gate, pids) = (scene.home.path().join("go"), scene.home.path().join("pids"));
    std::fs::create_dir(&pids).unwrap();
    let run = format!("{}; echo new > file", wait_for(&gate, &pids));
    let id = scene.task("waits", &["--run", &run]);
    let mut session = scene.start(&["--mates", "1", "--attempts", "1"]);
    for which in ["host", "guard", "pid"] {
        let mut run = String::new();
        wait_until(LONG, "an agent to run", || {
            let listed = scene.ok(&["agent", "list", "--alive"]);
            let agents = listed["agents"].as_array().cloned().unwrap_or_default();
            let found = agents.iter().find(|agent| agent["state"] == "running");
            run = found.map_or(String::new(), |agent| {
                agent["agentId"].as_str().unwrap().into()
            });
            found.is_some()
        });
        if which == "pid" {
            break;
        }
        kill(scene.home.run_process(&run, which), Signal::KILL);
        scene.home.await_settled(&run);
    }
    std::fs::write(&gate, "").unwrap();
    assert_eq!(scene.await_end(&mut session), Some(0), "{}", log(&scene));
    let task = scene.file(id);
    let attempts = task["metadata"]["ccb"]["attempts"]
        .as_array()
        .cloned()
        .unwrap();
    assert_eq!(attempts.len(), 2, "{task}");
    assert!(
        attempts.iter().all(|attempt| attempt["counts"] == false),
        "{task}"
    );
    await_none_left(&Pids::new(&pids));
}

#[test]
fn a_session_refuses_what_it_cannot_do_before_it_does_anything() {
    let scene = scene();
    let answer = scene.session(&["make it green"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(
        answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("lead")
    );
    for args in [
        &["--lead", "shell"][..],
        &["--into", "nowhere"],
        &["--runtime", "ghost"],
        &["--mates", "0"],
    ] {
        let answer = scene.run(&[&["--json"], args].concat());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
    }
    // A mistyped command.
    let answer = scene
        .home
        .command_without_list(&["--json", "tsk"])
        .output()
        .unwrap();
    assert_eq!(answer.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&answer.stdout).contains("ccb task"));
    // The same name from another repository.
    scene.task("one", &["--run", "true"]);
    assert_eq!(scene.session(&[]).code, Some(0));
    let other = harness::TestRepo::new();
    let mut command = scene.command(&["--json"]);
    let answer = command.current_dir(other.main()).output().unwrap();
    assert_eq!(answer.status.code(), Some(4), "{answer:?}");
    // The file of a later version is not read.
    let file = scene.home.team_dir().join("session.json");
    std::fs::write(&file, r#"{"v":99}"#).unwrap();
    assert_eq!(scene.session(&[]).code, Some(2));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), r#"{"v":99}"#);
}
