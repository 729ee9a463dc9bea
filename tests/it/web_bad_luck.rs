//! The page under load and in bad luck: thousands of tasks, endless transcripts, browsers that sleep,
//! people who answer at once, a director that dies.

use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::process::Stdio;
use std::sync::Barrier;

use harness::team_session::SessionScene;
use harness::{McpClient, wait_until};
use serde_json::{Value, json};

use crate::CCB;
use crate::web::{LIMIT, Page};

/// Puts this many tasks on the board at once.
fn create(scene: &SessionScene, count: usize, word: &str) {
    let task = |n: usize| json!({"subject": format!("{word} {n}")}).to_string();
    let lines: Vec<String> = (1..=count).map(task).collect();
    let mut child = scene
        .command(&["task", "create", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("ccb starts");
    let mut input = child.stdin.take().expect("stdin");
    input
        .write_all(lines.join("\n").as_bytes())
        .expect("it reads");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

fn tasks(update: &Value) -> usize {
    let all = update["set"].as_object().expect("pieces");
    all.keys().filter(|name| name.starts_with("task/")).count()
}

/// The largest size of the server so far, in MB.
fn memory(page: &Page) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", page.child.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb: u64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .expect("a size");
    kb / 1024
}

#[test]
fn of_ten_thousand_tasks_only_the_one_that_changed_is_sent() {
    let scene = SessionScene::new(CCB);
    create(&scene, 10_000, "task number");
    let page = Page::of(&scene, &[]);
    let (seen, all) = page.update(None);
    assert_eq!(tasks(&all), 10_000);
    scene.ok(&["task", "claim", "7000", "--as", "alice"]);
    let (_, new) = page.update(Some(&seen));
    assert_eq!(new["set"]["task/board/7000"]["state"], "running", "{new}");
    assert_eq!(tasks(&new), 1, "{new}");
    assert_eq!(new["reset"], false);
    scene.ok(&["task", "rm", "9999"]);
    page.until("it is gone", |all| tasks(all) == 9_999);
}

#[test]
fn of_a_transcript_of_500_mb_only_the_end_is_read() {
    let scene = SessionScene::new(CCB);
    scene.task("talk", &["--run", "echo the first words"]);
    assert_eq!(scene.session(&["--merge", "never"]).code, Some(0));
    let page = Page::of(&scene, &[]);
    let (_, all) = page.update(None);
    let pieces = all["set"].as_object().expect("pieces");
    let agent = pieces
        .keys()
        .find_map(|name| name.strip_prefix("agent/board/"));
    let agent = agent.expect("an agent").to_owned();
    drop(page);
    // Half a gigabyte without a line end, which takes no room on the disk, and then the last words.
    let log = scene
        .home
        .team_dir()
        .join("runs")
        .join(&agent)
        .join("transcript.jsonl");
    let mut file = std::fs::File::options()
        .write(true)
        .open(&log)
        .expect("a transcript");
    file.seek(SeekFrom::Start(500 << 20)).expect("a hole");
    let line = json!({"ts": "2026-01-01T00:00:00.000Z", "life": 1, "type": "text", "text": "the last words"});
    file.write_all(format!("\n{line}\n").as_bytes())
        .expect("a line");
    let page = Page::of(&scene, &[]);
    page.update(None);
    let path = format!("GET /api/transcript?team=board&agent={agent} HTTP/1.1");
    let stream = page.send(&[&path, &page.host(), &page.signed_in()], "");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.find_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
    let first = first.expect("an event");
    assert!(
        first.contains("the last words"),
        "{}",
        &first[..first.len().min(500)]
    );
    assert!(first.len() < 4 << 20, "{} bytes", first.len());
    let (status, report) = page.get("/api/report?team=board");
    assert_eq!(status, 200, "{report}");
    assert!(memory(&page) < 200, "{} MB", memory(&page));
}

#[test]
fn a_browser_that_sleeps_is_not_remembered_and_misses_nothing() {
    let scene = SessionScene::new(CCB);
    create(&scene, 300, "before");
    let page = Page::of(&scene, &[]);
    let (seen, _) = page.update(None);
    // It listens, and reads nothing.
    let asleep = page.send(
        &["GET /events HTTP/1.1", &page.host(), &page.signed_in()],
        "",
    );
    for round in 0..8 {
        let word = format!("round {round} {}", "of long words ".repeat(16));
        create(&scene, 300, &word);
        page.until("others see them", |all| tasks(all) == 300 * (round + 2));
    }
    assert!(memory(&page) < 150, "{} MB", memory(&page));
    // Awake again, it gets the missing updates, and in the end knows everything.
    let mut known = std::collections::HashSet::new();
    for line in BufReader::new(asleep).lines() {
        let line = line.expect("an event");
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let update: Value = serde_json::from_str(data).expect(data);
        let names = update["set"].as_object().expect("pieces").keys();
        known.extend(names.filter(|name| name.starts_with("task/")).cloned());
        if known.len() == 2_700 {
            break;
        }
    }
    assert_eq!(known.len(), 2_700);
    // A client with a broken connection names the last update it saw.
    let (_, missed) = page.update(Some(&seen));
    assert_eq!(
        (missed["reset"].clone(), tasks(&missed)),
        (json!(false), 2_400)
    );
}

#[test]
fn of_two_people_who_answer_at_once_one_is_told_that_the_other_was_first() {
    let scene = SessionScene::new(CCB);
    scene.ok(&["team", "create", "board"]);
    scene.ok(&["team", "join", "board", "--as", "alice"]);
    let mut alice =
        McpClient::connect(scene.command(&["mcp", "--role", "teammate", "--as", "alice"]));
    alice.ok("EnterPlanMode", json!({}));
    alice.ok("ExitPlanMode", json!({"plan": "First this"}));
    let page = Page::of(&scene, &[]);
    let plan = |all: &Value| {
        let needs = all["set"]["attention"].as_array().cloned();
        needs?.into_iter().find(|need| need["need"] == "plan")
    };
    let all = page.until("it asks", |all| plan(all).is_some());
    let answers = plan(&all).expect("a plan")["answers"].clone();
    let yes = answers[0]["act"].clone();
    let mut no = answers[1]["act"].clone();
    no["why"] = "not like this".into();
    let ready = Barrier::new(2);
    let answer = |act: &Value| {
        ready.wait();
        page.act("board", act)
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| answer(&yes));
        let other = scope.spawn(|| answer(&no));
        (
            one.join().expect("an answer"),
            other.join().expect("an answer"),
        )
    });
    let mut codes = [one.0, other.0];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409], "{one:?} {other:?}");
    let second = if one.0 == 409 { &one.1 } else { &other.1 };
    let said = second["error"]["message"].as_str().unwrap_or_default();
    let first = if one.0 == 200 { "approved" } else { "rejected" };
    assert!(said.contains(first), "{second}");
}

#[test]
fn a_director_that_dies_while_looked_at_is_shown_as_interrupted() {
    let scene = SessionScene::new(CCB);
    let gate = scene.home.path().join("go");
    let wait = format!("while ! test -e {}; do sleep 0.05; done", gate.display());
    let task = scene.task("wait", &["--run", &wait]);
    let mut session = scene.start(&["--merge", "never"]);
    scene.await_status(task, "in_progress");
    let page = Page::of(&scene, &[]);
    let life = |all: &Value| all["set"]["team/board"]["life"].clone();
    page.until("it runs", |all| life(all) == "running");
    session.kill().expect("it runs");
    session.wait().expect("it ends");
    let all = page.until("it is interrupted", |all| life(all) == "interrupted");
    assert_eq!(all["set"]["team/board"]["director"], Value::Null, "{all}");
    // The session continues, in another terminal.
    harness::write(&gate, "");
    assert_eq!(scene.session(&["--merge", "never"]).code, Some(0));
    page.until("it has ended", |all| {
        life(all) == "ended" && all["set"]["task/board/1"]["state"] == "done"
    });
    wait_until(LIMIT, "the server to answer", || page.get("/").0 == 200);
}

#[test]
fn what_is_removed_from_a_board_is_gone_from_the_page() {
    let scene = SessionScene::new(CCB);
    let run = |args: &[&str]| {
        let answer = harness::Answer::of(scene.unnamed(args).output().expect("ccb starts"));
        assert_eq!(answer.code, Some(0), "{answer:?}");
    };
    run(&["task", "create", "first"]);
    run(&["task", "create", "second", "--blocked-by", "1"]);
    let page = Page::start(scene.unnamed(&["--json", "web", "--listen", "127.0.0.1:0"]));
    let all = page.until("it is there", |all| tasks(all) == 2);
    let name = all["set"]["teams"][0].as_str().expect("a team").to_owned();
    let graph = &all["set"][format!("graph/{name}")];
    assert_eq!(graph["edges"][0], json!(["1", "2"]), "{graph}");
    run(&["task", "rm", "2"]);
    run(&["task", "rm", "1"]);
    let graph = format!("graph/{name}");
    page.until("all of it is gone", |all| {
        tasks(all) == 0 && all["set"][&graph]["edges"] == json!([])
    });
}
