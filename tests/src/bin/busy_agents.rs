//! Stands in for many agents at work, for tests of views under load: holds every run's lock,
//! appends to every transcript, and updates `meta.json` once a second, as hosts do.
//!
//! `busy-agents HOME TEAM AGENTS UPDATES TASKS`: UPDATES a second each; TASKS more on the board.
//! Prints `ready`, and works until its input ends.

use std::error::Error;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use store::clock::{Clock, SystemClock, rfc3339};
use store::home::Home;
use store::lock::FileLock;
use store::name::Name;
use swarm::run::{Entry, Held, Meta, RunDir, RunState, Transcript};
use taskboard::{Board, BoardOptions, ClaimRequest, NewTask};

/// An agent, as files.
struct Agent {
    run: RunDir,
    meta: Meta,
    log: Transcript,
    _held: Held,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [home, team, agents, updates, tasks] = args.as_slice() else {
        return Err("busy-agents HOME TEAM AGENTS UPDATES TASKS".into());
    };
    let home = Home::new(PathBuf::from(home))?;
    let team = Name::new("team", team)?;
    let (agents, updates): (usize, u32) = (agents.parse()?, updates.parse()?);
    let mut all = begin(&home, &team, agents, tasks.parse()?)?;
    let engine = home.team(&team).join(".ccb");
    store::home::create_private_dir(&engine)?;
    let _engine = FileLock::try_exclusive(&engine.join("engine.lock"))?;
    let over = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&over);
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        heard.store(true, Ordering::Relaxed);
    });
    println!("ready");
    let begun = Instant::now();
    for round in 0_u32.. {
        let due = begun + Duration::from_secs(1) / updates * round;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if over.load(Ordering::Relaxed) {
            break;
        }
        for (n, agent) in all.iter_mut().enumerate() {
            agent.log.add(entry(round, n))?;
            if (round as usize + n).is_multiple_of(updates as usize) {
                agent.meta.usage.input_tokens += 4_000;
                agent.meta.usage.output_tokens += 300;
                agent.run.write_meta(&agent.meta)?;
            }
        }
    }
    Ok(())
}

/// Puts the tasks on the board and claims one for each agent.
fn begin(
    home: &Home,
    team: &Name,
    agents: usize,
    more: usize,
) -> Result<Vec<Agent>, Box<dyn Error>> {
    let board = Board::new(home, team.clone(), BoardOptions::default());
    let runs = home.team(team).join("runs");
    let task = |n: usize| NewTask {
        subject: format!("Make part {n} of the test suite pass"),
        active_form: Some(format!("Making part {n} of the test suite pass")),
        ..NewTask::default()
    };
    let tasks: Vec<NewTask> = (0..agents + more).map(task).collect();
    let mut all = Vec::new();
    for (n, task) in board.create(&tasks, None)?.iter().take(agents).enumerate() {
        let name = format!("mate-{n}");
        board.claim(task.id, &ClaimRequest::new(&name))?;
        let now = rfc3339(SystemClock.now_ms());
        let meta = Meta {
            agent_id: format!("a{n:08x}"),
            life: 1,
            name: Some(name),
            team: team.to_string(),
            list: team.to_string(),
            parent: "team-lead".into(),
            agent_type: "general-purpose".into(),
            description: format!("part {n}"),
            task_id: Some(task.id.to_string()),
            state: RunState::Running,
            created_at: now.clone(),
            started_at: now,
            ..Meta::default()
        };
        let run = RunDir::new(&runs, &meta.agent_id);
        let held = run.create(&meta, "make it pass")?;
        let log = Transcript::open(&run, 1, u64::MAX);
        all.push(Agent {
            run,
            meta,
            log,
            _held: held,
        });
    }
    Ok(all)
}

fn entry(round: u32, agent: usize) -> Entry {
    let id = format!("toolu_{agent}_{}", round / 4);
    match round % 4 {
        0 => Entry::Text {
            text: format!("Next I look at what part {round} of the suite says about the parser."),
        },
        1 => Entry::ToolUse {
            id,
            name: "Bash".into(),
            input: json!({ "command": format!("cargo test -p part-{round} -- --nocapture") }),
        },
        2 => Entry::ToolResult {
            id,
            output: "running 3 tests\ntest one ... ok\ntest two ... ok\ntest three".into(),
            error: false,
        },
        _ => Entry::Text {
            text: format!("The test {round} passes now; the next one fails for another reason."),
        },
    }
}
