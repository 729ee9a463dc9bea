//! A team in the middle of its work, for pictures: its files are those that agents leave, but no
//! agent runs, so that every picture is the same.

use serde_json::{Value, json};
use store::clock::{Clock, SystemClock, rfc3339};
use store::lock::FileLock;
use store::name::Name;
use swarm::run::{Entry, Exit, ExitStatus, Held, Meta, RunDir, RunState, Transcript, TreeOf};
use swarm::runtime::{RuntimeKind, Usage};

use crate::team_session::SessionScene;

/// A team whose agents seem to work as long as it is held.
#[derive(Debug)]
pub struct StagedTeam {
    pub scene: SessionScene,
    _runs: Vec<Held>,
    _director: FileLock,
}

/// The work of an agent so far.
struct Part<'a> {
    id: &'a str,
    name: &'a str,
    agent_type: &'a str,
    task: Option<u64>,
    minutes: i64,
    tokens: u64,
    cost: f64,
    color: &'a str,
    entries: Vec<Entry>,
}

fn said(text: &str) -> Entry {
    Entry::Text { text: text.into() }
}

fn used(id: &str, tool: &str, input: Value, output: &str, error: bool) -> [Entry; 2] {
    [
        Entry::ToolUse {
            id: id.into(),
            name: tool.into(),
            input,
        },
        Entry::ToolResult {
            id: id.into(),
            output: output.into(),
            error,
        },
    ]
}

impl StagedTeam {
    /// On a small repository, with `binary` as its `ccb`.
    pub fn new(binary: &str) -> Self {
        let scene = SessionScene::new(binary);
        let home = store::home::Home::new(scene.home.path().to_owned()).expect("a home");
        let team = Name::new("team", "board").expect("a name");
        scene.ok(&["team", "create", "board"]);
        put_tasks(&scene);
        put_session(&scene);
        let mut runs = Vec::new();
        for part in parts() {
            runs.push(put_run(&scene, &home, &team, part));
        }
        put_finished(&home, &team);
        put_mail(&scene);
        let lock = home.team(&team).join(".ccb/engine.lock");
        let director = FileLock::try_exclusive(&lock)
            .expect("a lock")
            .expect("free");
        Self {
            scene,
            _runs: runs,
            _director: director,
        }
    }
}

fn put_tasks(scene: &SessionScene) {
    let check = "cargo test -q";
    scene.task("Parse durations like 1h30m", &["--verify", check]);
    scene.task("Report the line of a bad setting", &["--verify", check]);
    scene.task("Keep the order of keys when saving", &["--verify", check]);
    scene.task(
        "Cache parsed files",
        &["--blocked-by", "1", "--blocked-by", "3"],
    );
    scene.task(
        "Write the manual page",
        &["--blocked-by", "2", "--blocked-by", "4"],
    );
    scene.task(
        "Port the old importer",
        &["--verify", "./import.sh --check"],
    );
    for (task, mate) in [(1, "mate-1"), (2, "mate-2"), (3, "mate-3")] {
        let (task, owner) = (task.to_string(), format!("--as={mate}"));
        scene.ok(&[&owner, "task", "claim", &task]);
    }
    scene.ok(&["--as=mate-3", "task", "done", "3", "--force"]);
    // Only the engine records attempts.
    let mut file = scene.file(6);
    let attempt = |run: &str, seconds: i64| {
        json!({"run": run, "status": "failed", "counts": true, "tree": "0f3a",
               "at": rfc3339(SystemClock.now_ms() - seconds * 1_000),
               "why": "the check `./import.sh --check` failed: exit code 1\n3 of 40 records differ:\n  row 7: date is 1970-01-01\n  row 12: date is 1970-01-01\n  row 31: name is empty"})
    };
    file["metadata"]["ccb"]["attempts"] = json!([attempt("a01", 400), attempt("a02", 200)]);
    file["metadata"]["ccb"]["parked"] = json!({
        "reason": "no progress: failed 2 times the same way, and nothing changed in between: the check `./import.sh --check` failed: exit code 1",
    });
    std::fs::write(scene.home.task_file(6), format!("{file:#}\n")).expect("a task");
}

fn put_session(scene: &SessionScene) {
    let session = json!({"v": 1, "session": {
        "sessionId": "5a1c", "mode": "team", "lead": "claude", "leadRun": "a0000000000000001", "mates": 3,
        "runtime": "claude", "merge": "ask", "into": "main", "attended": true,
        "prompt": "Make the settings parser fast and its errors helpful",
        "startedAt": rfc3339(SystemClock.now_ms() - 11 * 60_000),
    }});
    let file = scene.home.team_dir().join("session.json");
    std::fs::write(file, session.to_string()).expect("a session");
}

fn parts() -> Vec<Part<'static>> {
    let mut lead = vec![said(
        "I split the work into six tasks. The cache waits for the parser and the writer; the manual \
         page comes last.",
    )];
    lead.extend(used(
        "l1",
        "TaskList",
        json!({}),
        "6 tasks: 2 in progress, 1 done, 1 parked",
        false,
    ));
    lead.push(said(
        "mate-1 asks about negative durations; they stay errors.",
    ));
    let mut one = vec![said(
        "I start with the tests: they say which forms are expected.",
    )];
    one.extend(used(
        "t1",
        "Grep",
        json!({"pattern": "parse_duration"}),
        "src/duration.rs:12\nsrc/settings.rs:88",
        false,
    ));
    one.extend(used(
        "t2",
        "Read",
        json!({"file_path": "src/duration.rs"}),
        "1  pub fn parse_duration(text: &str) -> Option<u64> {\n2      text.parse().ok()\n3  }",
        false,
    ));
    one.push(said("It takes whole seconds only. I read number and unit in turn, and refuse a unit that comes twice."));
    one.extend(used(
        "t3",
        "Edit",
        json!({"file_path": "src/duration.rs"}),
        "1 replacement",
        false,
    ));
    one.extend(used(
        "t4",
        "Bash",
        json!({"command": "cargo test -q duration"}),
        "running 9 tests\n8 passed\n1 failed: negative_is_an_error",
        true,
    ));
    one.push(said(
        "One left: a minus sign in front. That is an error, says the lead.",
    ));
    one.extend(used(
        "t5",
        "Edit",
        json!({"file_path": "src/duration.rs"}),
        "1 replacement",
        false,
    ));
    one.push(Entry::ToolUse {
        id: "t6".into(),
        name: "Bash".into(),
        input: json!({"command": "cargo test -q"}),
    });
    let mut two = vec![said("The parser drops positions before the error is made.")];
    for n in 0..6 {
        two.extend(used(
            &format!("r{n}"),
            "Bash",
            json!({"command": "cargo test -q settings"}),
            "error[E0382]: use of moved value: `spans`",
            true,
        ));
    }
    vec![
        Part {
            id: "a0000000000000001",
            name: "team-lead",
            agent_type: "general-purpose",
            task: None,
            minutes: 11,
            tokens: 48_210,
            cost: 0.31,
            color: "purple",
            entries: lead,
        },
        Part {
            id: "a0000000000000002",
            name: "mate-1",
            agent_type: "general-purpose",
            task: Some(1),
            minutes: 6,
            tokens: 91_400,
            cost: 0.47,
            color: "green",
            entries: one,
        },
        Part {
            id: "a0000000000000003",
            name: "mate-2",
            agent_type: "debugger",
            task: Some(2),
            minutes: 4,
            tokens: 63_900,
            cost: 0.35,
            color: "orange",
            entries: two,
        },
    ]
}

fn meta_of(part: &Part<'_>) -> Meta {
    let started = rfc3339(SystemClock.now_ms() - part.minutes * 60_000);
    let mut meta = Meta {
        agent_id: part.id.into(),
        life: 1,
        name: Some(part.name.into()),
        teammate: part.task.is_none(),
        team: "board".into(),
        list: "board".into(),
        parent: "team-lead".into(),
        agent_type: part.agent_type.into(),
        description: "leads team board".into(),
        task_id: part.task.map(|id| id.to_string()),
        state: if part.task.is_some() {
            RunState::Running
        } else {
            RunState::Idle
        },
        model: Some("opus".into()),
        usage: Usage {
            input_tokens: part.tokens,
            cost_usd: part.cost,
            tool_uses: part.entries.len() as u64 / 2,
            ..Usage::default()
        },
        created_at: started.clone(),
        started_at: started,
        ..Meta::default()
    };
    meta.runtime.name = "claude".into();
    meta.runtime.kind = RuntimeKind::Claude;
    meta.launch.color = Some(part.color.into());
    meta
}

fn put_run(scene: &SessionScene, home: &store::home::Home, team: &Name, part: Part<'_>) -> Held {
    let mut meta = meta_of(&part);
    if part.task == Some(1) {
        let tree = scene.ok(&["worktree", "create", "agent-parser"]);
        let path = tree["worktree"]["path"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let dir = std::path::Path::new(&path);
        std::fs::create_dir_all(dir.join("src")).expect("a directory");
        std::fs::write(dir.join("src/duration.rs"), DURATION).expect("a file");
        meta.cwd = dir.to_owned();
        meta.worktree = Some(TreeOf {
            name: "agent-parser".into(),
            path,
            branch: Some("worktree/agent-parser".into()),
            set_up: Value::Null,
            make_from: None,
            outcome: None,
        });
    }
    let run = RunDir::new(&home.team(team).join("runs"), part.id);
    let held = run.create(&meta, "").expect("a run");
    let mut log = Transcript::open(&run, 1, u64::MAX);
    for entry in part.entries {
        log.add(entry).expect("a transcript");
    }
    held
}

/// An agent that has ended.
fn put_finished(home: &store::home::Home, team: &Name) {
    let part = Part {
        id: "a0000000000000004",
        name: "mate-3",
        agent_type: "general-purpose",
        task: Some(3),
        minutes: 8,
        tokens: 40_100,
        cost: 0.22,
        color: "cyan",
        entries: vec![said(
            "Keys keep their order now; the two tests that sorted them are gone.",
        )],
    };
    let mut meta = meta_of(&part);
    let run = RunDir::new(&home.team(team).join("runs"), part.id);
    let held = run.create(&meta, "").expect("a run");
    let mut log = Transcript::open(&run, 1, u64::MAX);
    for entry in part.entries {
        log.add(entry).expect("a transcript");
    }
    let result = Some("Keys keep their order".to_owned());
    let by = swarm::run::By::Host;
    let exit = Exit {
        result,
        ..Exit::now(&meta, ExitStatus::Completed, None, by)
    };
    run.end(&exit, store::atomic::Durability::Relaxed)
        .expect("an end");
    meta.state = RunState::Completed;
    meta.ended_at = Some(exit.ended_at);
    run.write_meta(&meta).expect("a run");
    drop(held);
}

fn put_mail(scene: &SessionScene) {
    let place = project::workplace::Workplace::open(&project::workplace::Asked {
        team: Some("board".into()),
        home: Some(scene.home.path().to_owned()),
        directory: Some(scene.repo.main().to_owned()),
        ..Default::default()
    });
    let mailbox = place.and_then(|place| place.mailbox()).expect("a mailbox");
    let name = |name: &str| Name::new("agent", name).expect("a name");
    for (from, to, text) in [
        (
            "mate-1",
            "team-lead",
            "Are negative durations an error? The tests do not say.",
        ),
        (
            "team-lead",
            "mate-1",
            "Yes: an error that names the setting.",
        ),
    ] {
        let draft = mailbox::Draft::text(name(from), name(to), text);
        mailbox.send(&draft).expect("a message");
    }
    let day = std::time::Duration::from_secs(86_400);
    let permission = mailbox::Question::Permission(mailbox::Permission {
        tool_name: "Bash".into(),
        tool_use_id: None,
        description: "Fetch the locked dependencies".into(),
        input: json!({"command": "cargo fetch --locked"}),
    });
    mailbox
        .ask(&name("mate-2"), &name("team-lead"), permission, day)
        .expect("a request");
    let plan = serde_json::from_value(json!({"plan":
        "Report the line of a bad setting\n\n1. Keep the span of every value in the parser.\n2. Carry it into the error.\n3. Show the line, and a caret under the value."}));
    let plan = mailbox::Question::Plan(plan.expect("a plan"));
    mailbox
        .ask(&name("mate-2"), &name("team-lead"), plan, day)
        .expect("a request");
}

const DURATION: &str = "//! Durations as people write them: 1h30m, 45s, 250ms.\n\n/// Milliseconds; none for what is no duration.\npub fn parse_duration(text: &str) -> Option<u64> {\n    let mut left = text.trim();\n    let mut total: u64 = 0;\n    while !left.is_empty() {\n        let digits = left.find(|c: char| !c.is_ascii_digit())?;\n        let (number, rest) = left.split_at(digits);\n        let (unit, after) = unit_of(rest)?;\n        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;\n        left = after;\n    }\n    Some(total)\n}\n";
