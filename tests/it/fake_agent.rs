use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use harness::fake::Pids;
use harness::script::{Do, Grandchild, Script, To};
use harness::{TestRepo, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::FAKE_AGENT;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a script as a plain command.
fn plain(script: &Script) -> Output {
    let mut command = Command::new(FAKE_AGENT);
    let command = command.arg("--plain").arg("--json").arg(script.to_json());
    command.stdin(Stdio::null()).output().expect("it starts")
}

/// A fake agent that speaks in lines, without a runtime in between.
struct Talk {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Talk {
    fn new(script: &Script) -> Self {
        let mut child = Command::new(FAKE_AGENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut talk = Self {
            child,
            lines: BufReader::new(stdout).lines(),
        };
        let text = format!("Some words. {} And more.", script.to_prompt());
        talk.tell(&json!({ "type": "prompt", "text": text }));
        talk
    }

    fn tell(&mut self, line: &Value) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{line}").expect("it listens");
    }

    fn hear(&mut self) -> Option<Value> {
        let line = self.lines.next()?.expect("text");
        Some(serde_json::from_str(&line).expect("JSON"))
    }

    /// The next line must be of this type.
    fn hear_type(&mut self, kind: &str) -> Value {
        let line = self.hear().expect("it goes on");
        assert_eq!(line["type"], kind, "{line}");
        line
    }

    fn rest(mut self) -> (Vec<Value>, Option<i32>) {
        drop(self.child.stdin.take());
        let mut rest = Vec::new();
        while let Some(line) = self.hear() {
            rest.push(line);
        }
        (rest, self.child.wait().expect("its end").code())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Only a failed test leaves it running.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_script_survives_the_prompt() {
    let inner = Script::new().done("inner");
    let script = Script::new()
        .say("quotes \" and 'more'")
        .ask("tool", |yes| yes.say("yes"), |no| no.exit(3))
        .daemon()
        .run(&["ccb", "agent", "spawn", &inner.to_prompt()])
        .then(Do::Repeat {
            times: None,
            steps: Script::new().hang().steps,
        });
    let found = |text: &str| Script::find(text);
    let text = format!(
        "before {} {{}} {} after",
        inner.to_prompt(),
        script.to_prompt()
    );
    assert_eq!(found(&text), Some(Ok(script)));
    assert_eq!(found("nothing"), None);
    let wrong = found("<<AGENT {\"stpes\":[]}").expect("a mark");
    assert!(wrong.expect_err("a wrong key").contains("stpes"));
}

#[test]
fn a_plain_command_prints_and_ends() {
    let output = plain(&Script::new().print("a").print_error("b").say("c").done("d"));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ac\nd\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "b");
    let output = plain(&Script::new().failed("oh no"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "oh no\n");
    assert_eq!(plain(&Script::new().exit(17)).status.code(), Some(17));
    assert_eq!(plain(&Script::new().die(9)).status.signal(), Some(9));
    let count = 300_000;
    let to = To::Stdout;
    assert_eq!(
        plain(&Script::new().then(Do::PrintBytes { count, to }))
            .stdout
            .len(),
        300_000
    );
    let garbage = plain(&Script::new().then(Do::Garbage { count, to })).stdout;
    assert!(String::from_utf8(garbage).is_err());
    let long = plain(&Script::new().then(Do::LongLine { megabytes: 2, to })).stdout;
    assert_eq!(long.len(), 2_000_001);
}

#[test]
fn a_full_disk_is_survived() {
    let dir = tempfile::tempdir().expect("a directory");
    let fill = |path: &Path| Do::FillDisk {
        path: path.to_owned(),
        megabytes: 3,
    };
    let file = dir.path().join("file");
    let script = Script::new()
        .then(fill(Path::new("/dev/full")))
        .then(fill(&file))
        .done("went on");
    let output = plain(&script);
    assert_eq!(output.status.code(), Some(0));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with("cannot write /dev/full: "), "{errors}");
    assert_eq!(std::fs::metadata(file).expect("a file").len(), 3_000_000);
}

#[test]
fn steps_are_repeated_and_streams_closed() {
    let steps = Script::new().print("x").then(Do::Pause { ms: 1 }).steps;
    let times = Some(3);
    let what = To::Stdout;
    let script = Script::new()
        .then(Do::Repeat { times, steps })
        .then(Do::Close { what })
        .print("unseen");
    let output = plain(&script);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"xxx");
}

#[test]
fn it_works_in_its_directory() {
    let repo = TestRepo::new();
    let script = Script::new()
        .write("src/new", "text")
        .commit("by an agent")
        .append("log", "1")
        .append("log", "2");
    let script = script.run(&["sh", "-c", "echo $((6*7)) > answer"]);
    let file = repo.beside("script.json");
    std::fs::write(&file, script.to_json()).expect("a file");
    let status = Command::new(FAKE_AGENT)
        .args([Path::new("--plain"), Path::new("--script"), &file])
        .current_dir(repo.main())
        .status();
    assert!(status.expect("it starts").success());
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "by an agent\n");
    let read = |name: &str| std::fs::read_to_string(repo.main().join(name)).expect("a file");
    assert_eq!(read("src/new"), "text");
    assert_eq!(read("log"), "1\n2\n");
    assert_eq!(read("answer"), "42\n");
}

#[test]
fn it_speaks_the_protocol() {
    let dir = tempfile::tempdir().expect("a directory");
    let go = dir.path().join("go");
    let script = Script::new()
        .session("s1")
        .say("hello")
        .tool_around("wait", "came", |script| script.wait_file(&go))
        .usage(5, 6, 0.25)
        .run(&["sh", "-c", "echo out; echo err >&2; exit 3"])
        .ask("danger", |yes| yes.say("yes"), |no| no.say("no"))
        .then(Do::Stalled {
            why: "tired".into(),
        })
        .done("first")
        .wait_message()
        .result("quota", "second");
    let mut talk = Talk::new(&script);
    assert_eq!(talk.hear_type("ready")["session"], "s1");
    assert_eq!(talk.hear_type("text")["text"], "hello");
    let tool = talk.hear_type("tool");
    talk.tell(&json!({ "type": "message", "id": "m1", "text": "in between" }));
    std::fs::write(&go, "").expect("a file");
    assert_eq!(talk.hear_type("tool_result")["id"], tool["id"]);
    assert_eq!(talk.hear_type("accepted")["id"], "m1");
    assert_eq!(talk.hear_type("text")["text"], "heard: in between");
    assert_eq!(talk.hear_type("usage")["costUsd"], 0.25);
    talk.hear_type("tool");
    let ran = talk.hear_type("tool_result");
    assert_eq!(
        (&ran["output"], &ran["error"]),
        (&json!("out\nerr\n"), &json!(true))
    );
    let asked = talk.hear_type("permission");
    talk.tell(&json!({ "type": "permission", "id": asked["id"], "allow": false }));
    assert_eq!(talk.hear_type("text")["text"], "no");
    assert_eq!(talk.hear_type("stalled")["why"], "tired");
    assert_eq!(talk.hear_type("result")["text"], "first");
    talk.tell(&json!({ "type": "message", "id": "m2", "text": "next" }));
    assert_eq!(talk.hear_type("accepted")["id"], "m2");
    talk.hear_type("text");
    assert_eq!(talk.hear_type("result")["status"], "quota");
    assert_eq!(talk.rest(), (vec![], Some(0)));
}

#[test]
fn a_deaf_agent_takes_messages_only_when_told() {
    let script = Script::new()
        .deaf()
        .tool("quick", "ok")
        .tool("again", "ok")
        .wait_message()
        .done("");
    let mut talk = Talk::new(&script);
    talk.tell(&json!({ "type": "message", "id": "m", "text": "hi" }));
    let (lines, code) = talk.rest();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    let expected = [
        "ready",
        "tool",
        "tool_result",
        "tool",
        "tool_result",
        "accepted",
        "text",
        "result",
    ];
    assert_eq!((&kinds[..], code), (&expected[..], Some(0)));
}

#[test]
fn an_interrupt_leaves_out_the_rest_of_the_turn() {
    let script = Script::new()
        .say("a")
        .hang()
        .say("never")
        .done("never")
        .wait_message()
        .done("b");
    let mut talk = Talk::new(&script);
    talk.hear_type("ready");
    talk.hear_type("text");
    talk.tell(&json!({ "type": "interrupt" }));
    assert_eq!(talk.hear_type("result")["status"], "interrupted");
    talk.tell(&json!({ "type": "interrupt" }));
    talk.tell(&json!({ "type": "message", "id": "m", "text": "hi" }));
    talk.hear_type("accepted");
    talk.hear_type("text");
    assert_eq!(talk.hear_type("result")["text"], "b");
    assert_eq!(talk.rest(), (vec![], Some(0)));
}

#[test]
fn stop_ends_it_unless_it_is_stubborn() {
    let mut talk = Talk::new(&Script::new().hang());
    talk.hear_type("ready");
    talk.tell(&json!({ "type": "stop" }));
    assert_eq!(talk.rest(), (vec![], Some(0)));
    let mut talk = Talk::new(&Script::new().stubborn().wait_message().done("still here"));
    talk.hear_type("ready");
    talk.tell(&json!({ "type": "stop" }));
    talk.tell(&json!({ "type": "message", "id": "m", "text": "hi" }));
    talk.hear_type("accepted");
    assert_eq!(talk.rest().1, Some(0));
}

#[test]
fn without_a_script_it_echoes() {
    let mut child = Command::new(FAKE_AGENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    writeln!(
        stdin,
        "{}",
        json!({ "type": "prompt", "text": "hi", "session": "old" })
    )
    .expect("it listens");
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("\"session\":\"old\"") && text.contains("heard: hi"),
        "{text}"
    );
}

#[test]
fn signals_can_be_ignored() {
    let dir = tempfile::tempdir().expect("a directory");
    let (up, go) = (dir.path().join("up"), dir.path().join("go"));
    let script = Script::new()
        .ignore_signals()
        .touch(&up)
        .wait_file(&go)
        .exit(5);
    let mut child = Command::new(FAKE_AGENT)
        .args(["--plain", "--json", &script.to_json()])
        .spawn()
        .expect("it starts");
    wait_until(LIMIT, "it to run", || up.exists());
    let pid = Pid::from_child(&child);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(pid, signal).expect("it is there");
    }
    std::fs::write(&go, "").expect("a file");
    assert_eq!(child.wait().expect("its end").code(), Some(5));
}

/// The session and the parent of a process.
fn session_and_parent(pid: i32) -> (i32, i32) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let rest = stat.rsplit_once(") ").expect("a name").1;
    let numbers: Vec<i32> = rest
        .split(' ')
        .skip(1)
        .take(3)
        .filter_map(|n| n.parse().ok())
        .collect();
    (numbers[2], numbers[0])
}

#[test]
fn everything_it_starts_is_known() {
    let dir = tempfile::tempdir().expect("a directory");
    let go = dir.path().join("go");
    let pids = Pids::new(dir.path());
    let script = Script::new()
        .pids(dir.path())
        .spawn(Grandchild {
            role: "plain".into(),
            ..Grandchild::default()
        })
        .spawn_in_new_session()
        .daemon()
        .hidden_daemon()
        .fork_bomb(2, 2)
        .touch(dir.path().join(".up"))
        .wait_file(&go);
    let mut agent = Command::new(FAKE_AGENT)
        .args(["--plain", "--json", &script.to_json()])
        .env("CCB_RUN_ID", "run-7")
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until(LIMIT, "it to be done", || dir.path().join(".up").exists());
    // The agent, four, and a bomb of 1 + 2 + 4.
    assert_eq!(pids.alive().len(), 12, "{:?}", pids.all());
    let me = agent.id() as i32;
    let of = |role: &str| pids.of_role(role)[0];
    let (session, parent) = session_and_parent(of("plain"));
    assert_eq!((session, parent), (session_and_parent(me).0, me));
    assert_eq!(session_and_parent(of("new session")).0, of("new session"));
    for daemon in ["daemon", "hidden daemon"] {
        let (session, parent) = session_and_parent(of(daemon));
        assert_ne!(session, session_and_parent(me).0);
        assert_ne!(parent, me);
        let marked =
            std::fs::read(format!("/proc/{}/environ", of(daemon))).expect("an environment");
        let marked = String::from_utf8_lossy(&marked).contains("CCB_RUN_ID=run-7");
        assert_eq!(marked, daemon == "daemon");
    }
    std::fs::write(&go, "").expect("a file");
    agent.wait().expect("its end");
    assert_eq!(pids.alive().len(), 11);
    pids.kill_rest();
    wait_until(LIMIT, "all to be gone", || pids.alive().is_empty());
}

#[test]
fn it_describes_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("description");
    let mut command = Command::new(FAKE_AGENT);
    command.args([
        "--plain",
        "--json",
        &Script::new().describe(&file).to_json(),
    ]);
    command.env_clear().env("A", "b").current_dir(dir.path());
    assert!(command.status().expect("it starts").success());
    let text = std::fs::read_to_string(file).expect("a file");
    let text: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(text["environment"], json!({ "A": "b" }));
    assert_eq!(
        text["cwd"].as_str().map(Path::new),
        Some(dir.path().canonicalize().expect("a path").as_path())
    );
}
