//! Bad input and bad luck with agents: a stated outcome, one notification, nothing left.

use std::os::unix::fs::PermissionsExt;

use harness::fake::Pids;
use harness::runs::{LONG, await_none_left, kill};
use harness::script::{Do, Script, To};
use harness::{TestHome, TestRepo, wait_until};
use rustix::process::Signal;

use crate::{CCB, FAKE_AGENT};

fn home() -> TestHome {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, "");
    home
}

/// Runs a script to its end in the background; returns its end.
fn outcome(home: &TestHome, script: &Script) -> (String, serde_json::Value) {
    let id = home.spawn_fake(script, &[]);
    home.await_settled(&id);
    let told = home.notifications();
    assert_eq!(
        told.iter().filter(|told| told.0 == id).count(),
        1,
        "{told:?}"
    );
    let exit = home.run_exit(&id).unwrap();
    (id, exit)
}

#[test]
fn an_executable_that_is_missing() {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime("/nowhere/agent", "");
    let (_, exit) = outcome(&home, &Script::new());
    assert_eq!(exit["status"], "failed");
    assert!(
        exit["error"].as_str().unwrap().contains("/nowhere/agent"),
        "{exit}"
    );
    // A file that cannot be run is no better.
    let file = home.path().join("not-a-program");
    std::fs::write(&file, "text").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    home.with_fake_runtime(file.to_str().unwrap(), "");
    assert_eq!(outcome(&home, &Script::new()).1["status"], "failed");
}

#[test]
fn garbage_and_an_end_without_a_result() {
    let home = home();
    let garbage = Do::Garbage {
        count: 300_000,
        to: To::Stdout,
    };
    let (id, exit) = outcome(&home, &Script::new().then(garbage).exit(0));
    assert_eq!(exit["status"], "failed", "no result is no success");
    assert!(
        exit["error"].as_str().unwrap().contains("without a result"),
        "{exit}"
    );
    // And all of its output can be shown.
    assert_eq!(home.run(&["agent", "logs", &id]).code, Some(0));
    home.ok(&["agent", "show", &id]);
    let (_, exit) = outcome(&home, &Script::new().say("half").die(9));
    assert_eq!(
        (&exit["status"], &exit["result"]),
        (&"failed".into(), &"half".into())
    );
}

#[test]
fn a_hundred_megabytes_on_one_line() {
    let home = TestHome::in_memory(CCB);
    home.with_fake_runtime(FAKE_AGENT, r#""agents":{"outputMaxBytes":1000000}"#);
    let long = Do::LongLine {
        megabytes: 100,
        to: To::Stdout,
    };
    let (id, exit) = outcome(&home, &Script::new().then(long).done("fine"));
    assert_eq!(exit["status"], "completed", "{exit}");
    let mut kept = 0;
    for entry in std::fs::read_dir(home.run_dir(&id)).unwrap() {
        kept += entry.unwrap().metadata().unwrap().len();
    }
    assert!(kept < 5_000_000, "{kept} bytes are kept");
}

#[test]
fn one_that_never_ends_and_does_not_listen() {
    let home = home();
    let pids_dir = home.path().join("pids");
    std::fs::create_dir(&pids_dir).unwrap();
    let up = home.path().join("up");
    let script = Script::new()
        .pids(&pids_dir)
        .stubborn()
        .ignore_signals()
        .spawn_in_new_session()
        .touch(&up)
        .hang();
    let id = home.spawn_fake(&script, &[]);
    wait_until(LONG, "the agent to be up", || up.exists());
    let answer = home.ok(&["agent", "stop", &id, "--grace", "200", "--reason", "enough"]);
    assert_eq!(answer["agent"]["status"], "killed");
    assert!(
        answer["agent"]["error"]
            .as_str()
            .unwrap()
            .contains("enough"),
        "{answer}"
    );
    await_none_left(&Pids::new(&pids_dir));
    home.await_settled(&id);
    assert_eq!(home.notifications(), [(id, "killed".to_owned())]);
}

#[test]
fn prompts_no_program_can_be_given_and_very_long_ones() {
    let home = home();
    let spawn = ["--json", "agent", "spawn", "--runtime", "shell", "-"];
    let answer = home.run_with_input(&spawn, b"echo \0 x");
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let answer = home.run_with_input(&spawn, b"  \n");
    assert_eq!(answer.code, Some(2), "{answer:?}");
    let long = format!("# {}\necho end", "x".repeat(400_000));
    let answer = home.run_with_input(&spawn, long.as_bytes());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["agent"]["content"], "end");
    let too_long = vec![b'x'; 9 * 1024 * 1024];
    let answer = home.run_with_input(&spawn, &too_long);
    assert_eq!(answer.code, Some(2), "{:?}", answer.stderr);
    for bad in [
        &["--type", "ghost"][..],
        &["--isolation", "remote"],
        &["--isolation", "box"],
        &["--mode", "plan"],
        &["--mode", "yolo", "--name", "x"],
        &["--runtime", "shel"],
        &["--task", "99"],
        &["--cwd", "/nowhere"],
        &["--env", "=x"],
        &["--name", "team-lead"],
        &["--name", "../x"],
    ] {
        let mut args = vec!["--json", "agent", "spawn"];
        if !bad.contains(&"--runtime") {
            args.extend_from_slice(&["--runtime", "shell"]);
        }
        args.extend_from_slice(bad);
        args.push("true");
        let answer = home.run(&args);
        assert!(matches!(answer.code, Some(2..=4)), "{bad:?}: {answer:?}");
        let error = answer.json();
        assert!(error["error"]["message"].is_string(), "{bad:?}: {error}");
    }
    let listed = home.ok(&["agent", "list"]);
    assert_eq!(
        listed["agents"].as_array().unwrap().len(),
        1,
        "nothing was started: {listed}"
    );
}

/// Runs a program that has just been written. Another thread's child may have inherited the
/// file while it was open for writing; until it has become another program this one is busy.
fn started_copy(command: &mut std::process::Command) -> std::process::Output {
    let mut output = None;
    wait_until(LONG, "the copy to be free", || match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => false,
        ended => {
            output = Some(ended.unwrap());
            true
        }
    });
    output.unwrap()
}

#[test]
fn the_program_is_replaced_while_runs_are_alive() {
    let home = home();
    let program = home.path().join("program");
    std::fs::copy(CCB, &program).unwrap();
    let go = home.path().join("go");
    let script = Script::new().wait_file(&go).done("went on").to_prompt();
    let ids: Vec<String> = (0..2)
        .map(|_| {
            let args = [
                "--json",
                "agent",
                "spawn",
                "--runtime",
                "fake",
                "--background",
                &script,
            ];
            let mut command = std::process::Command::new(&program);
            let like = home.command(&args);
            command.args(like.get_args()).env_clear();
            command.envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))));
            command.current_dir(home.path());
            let output = started_copy(&mut command);
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            answer["agent"]["agentId"].as_str().unwrap().to_owned()
        })
        .collect();
    for id in &ids {
        home.await_run(id, "running");
    }
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "#!/bin/sh\nexit 9\n").unwrap();
    kill(home.run_process(&ids[0], "host"), Signal::KILL);
    std::fs::write(&go, "").unwrap();
    for id in &ids {
        home.await_settled(id);
    }
    assert_eq!(home.run_exit(&ids[0]).unwrap()["status"], "lost");
    assert_eq!(home.run_exit(&ids[1]).unwrap()["status"], "completed");
    assert_eq!(home.notifications().len(), 2);
}

#[test]
fn a_transcript_that_cannot_be_written_does_not_end_the_agent() {
    let home = home();
    let script = Script::new().say("one").say("two").done("fine").to_prompt();
    let args = ["--json", "agent", "spawn", "--runtime", "fake", &script];
    let mut command = home.command(&args);
    // The host's fourth entry, in the middle of the agent's output.
    command.env("CCB_FAULT", "enospc:log.half:4");
    let answer = harness::Answer::of(command.output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let agent = &answer.json()["agent"];
    assert_eq!(agent["content"], "fine");
    let id = agent["agentId"].as_str().unwrap();
    let text = std::fs::read_to_string(home.run_dir(id).join("transcript.jsonl")).unwrap();
    assert!(
        text.contains("could not be written"),
        "that something is missing is said: {text}"
    );
}

#[test]
fn a_run_that_cannot_be_written_down_is_not_started_and_one_that_is_has_one_end() {
    for nth in 1..=12 {
        let home = home();
        let script = Script::new().done("fine").to_prompt();
        let args = [
            "--json",
            "agent",
            "spawn",
            "--runtime",
            "fake",
            "--background",
            &script,
        ];
        let mut command = home.command(&args);
        command.env("CCB_FAULT", format!("enospc:stage.written:{nth}"));
        let answer = harness::Answer::of(command.output().unwrap());
        let runs = home.ok(&["agent", "list"])["agents"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(
            runs,
            usize::from(answer.code == Some(0)),
            "{nth}: {answer:?}"
        );
        wait_until(LONG, "everything to be settled", || {
            home.ok(&["agent", "list"]);
            std::fs::read_dir(home.team_dir().join("runs/.active")).map_or(0, Iterator::count) == 0
        });
        assert_eq!(home.notifications().len(), runs, "{nth}");
    }
}

#[test]
fn a_clock_that_is_set_back_changes_nothing_but_the_duration() {
    let home = home();
    let id = home.spawn_fake(&Script::new().hang(), &[]);
    // The last entry that its host writes by itself.
    wait_until(LONG, "its session", || {
        home.run_meta(&id)["session"].is_string()
    });
    // As if the run had begun before the clock was set back.
    let path = home.run_dir(&id).join("meta.json");
    let mut meta = home.run_meta(&id);
    meta["startedAt"] = "2199-01-01T00:00:00.000Z".into();
    std::fs::write(&path, meta.to_string()).unwrap();
    let listed = home.run(&["agent", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    kill(home.run_process(&id, "host"), Signal::KILL);
    home.await_settled(&id);
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(
        (&exit["status"], &exit["durationMs"]),
        (&"lost".into(), &0.into())
    );
    assert_eq!(home.notifications().len(), 1);
}

#[test]
fn a_supervisor_whose_log_cannot_be_written_does_not_die_of_that() {
    for role in ["__guard", "__host"] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = std::process::Command::new(CCB);
        command
            .args([role, "/nowhere/teams/board/runs/a0"])
            .stderr(full);
        let status = command.stdin(std::process::Stdio::null()).status().unwrap();
        // It reports that there is no such run, which no reader hears. A panic would be another
        // code.
        assert_eq!(status.code(), Some(1), "{role}");
    }
}

#[test]
fn an_agent_sees_what_it_is_to_see_and_nothing_else() {
    let home = home();
    let seen = home.path().join("seen");
    let script = Script::new().describe(&seen).done("x").to_prompt();
    let args = [
        "agent",
        "spawn",
        "--runtime",
        "fake",
        "--env",
        "MINE=1",
        "--env",
        "PASSED",
        &script,
    ];
    let mut command = home.command(&args);
    command
        .env("SECRET_THING", "x")
        .env("PASSED", "yes")
        .env("LC_ALL", "C");
    assert!(command.output().unwrap().status.success());
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&seen).unwrap()).unwrap();
    let env = told["environment"].as_object().unwrap();
    assert!(env.get("SECRET_THING").is_none(), "{env:?}");
    assert_eq!((&env["MINE"], &env["PASSED"]), (&"1".into(), &"yes".into()));
    for name in [
        "CCB_HOME",
        "CCB_AGENT",
        "CCB_RUN_ID",
        "CCB_PORT_BASE",
        "TMPDIR",
        "PATH",
    ] {
        assert!(env.contains_key(name), "{name} in {env:?}");
    }
    let tmp = env["TMPDIR"].as_str().unwrap();
    assert!(
        !std::path::Path::new(tmp).exists(),
        "its temporary files are gone"
    );
}

#[test]
fn secrets_do_not_reach_what_is_kept() {
    let home = home();
    let key = format!("sk-ant-api03-{}", "Z".repeat(40));
    let script = Script::new()
        .say(&key)
        .print(&format!("token {key}\n"))
        .done(&key);
    let id = home.spawn_fake(&script, &[]);
    home.await_settled(&id);
    for entry in std::fs::read_dir(home.run_dir(&id)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Its prompt is kept unchanged.
        if name != "prompt" && path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains(&key), "{name}");
        }
    }
    let inbox = std::fs::read_to_string(home.inbox_dir("team-lead").join("log.jsonl")).unwrap();
    assert!(
        !inbox.contains(&key) && inbox.contains("[redacted]"),
        "{inbox}"
    );
}

#[test]
fn a_task_that_is_taken_away_ends_the_agent() {
    let home = home();
    let task = home.create("job").to_string();
    let id = home.spawn_fake(&Script::new().hang(), &["--task", &task]);
    home.await_run(&id, "running");
    home.ok(&["task", "release", &task, "--force", "--as", "boss"]);
    home.await_settled(&id);
    let exit = home.run_exit(&id).unwrap();
    assert_eq!(exit["status"], "killed", "{exit}");
    assert!(exit["error"].as_str().unwrap().contains("task 1"), "{exit}");
}

#[test]
fn the_tree_of_an_agent_is_kept_or_removed_by_what_is_in_it() {
    let home = home();
    let repo = TestRepo::new();
    let directory = repo.main().to_str().unwrap().to_owned();
    let spawn = |script: &Script| {
        let more = ["-C", &directory, "--isolation", "worktree"];
        let id = home.spawn_fake(script, &more);
        home.await_settled(&id);
        (home.run_meta(&id), id)
    };
    let (meta, id) = spawn(&Script::new().done("nothing"));
    assert_eq!(meta["worktree"]["outcome"]["kept"], false, "{meta}");
    assert!(!repo.tree(&format!("agent-{id}")).exists());
    let (meta, id) = spawn(
        &Script::new()
            .write("new.txt", "x")
            .commit("work")
            .done("it"),
    );
    assert_eq!(meta["worktree"]["outcome"]["kept"], true, "{meta}");
    let tree = repo.tree(&format!("agent-{id}"));
    assert!(tree.join("new.txt").exists());
    // A removed one is made again at the same place for a resumed agent.
    let (_, id) = spawn(&Script::new().done("nothing"));
    let again = Script::new()
        .write("later.txt", "x")
        .done("now")
        .to_prompt();
    home.ok(&["-C", &directory, "agent", "send", &id, &again]);
    home.await_settled(&id);
    assert!(repo.tree(&format!("agent-{id}")).join("later.txt").exists());
    repo.check_sound();
}

#[test]
fn a_shell_agent_does_its_task_and_its_check() {
    let home = home();
    let good = home.ok(&[
        "task",
        "create",
        "good",
        "--run",
        "echo done > out",
        "--verify",
        "test -e out",
    ]);
    let bad = home.ok(&[
        "task",
        "create",
        "bad",
        "--run",
        "true",
        "--verify",
        "test -e nowhere",
    ]);
    let (good, bad) = (
        good["task"]["id"].as_str().unwrap(),
        bad["task"]["id"].as_str().unwrap(),
    );
    let answer = home.run(&["agent", "spawn", "--task", good]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(
        home.ok(&["task", "show", good])["task"]["status"],
        "completed"
    );
    let answer = home.run(&["agent", "spawn", "--task", bad]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let task = &home.ok(&["task", "show", bad])["task"];
    assert_eq!(
        (&task["status"], task.get("owner")),
        (&"pending".into(), None),
        "{task}"
    );
}
