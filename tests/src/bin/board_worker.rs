//! Makes random calls to a board and prints the answers with their times.
//!
//! Arguments: home, list, seed, number of calls, number of tasks, then the names of the agents to
//! act as. It prints `Ready`, waits until its input is closed, and begins.

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read, Write};
use store::Explain;

use database::{Database, Secrets};
use harness::Random;
use harness::history::{Action, BoardAnswer, BoardCall, Line, TaskState, monotonic_now};
use store::atomic::Durability;
use store::home::Home;
use store::name::Name;
use taskboard::{
    Board, BoardError, BoardOptions, Caller, ClaimRequest, Next, Refusal, Status, TaskId, Update,
};

/// Refusals that are answers; any other error is a failure of the test.
const EXPECTED: &[&str] = &["already_claimed", "already_resolved", "blocked"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("too few arguments");
    let home = Home::new(next()?.into())?;
    let list = Name::new("list", &next()?)?;
    let seed: u64 = next()?.parse()?;
    let mut random = Random::new(seed);
    let calls: u64 = next()?.parse()?;
    let tasks: u64 = next()?.parse()?;
    let agents: Vec<String> = args.collect();
    let options = BoardOptions {
        // Both ways to write a task, against each other.
        durability: if seed.is_multiple_of(2) {
            Durability::Full
        } else {
            Durability::Relaxed
        },
        database: database()?,
        ..BoardOptions::default()
    };
    let board = Board::new(&home, list, options);

    say(&Line::Ready)?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    // The last known owner of each task.
    let mut owners: HashMap<u64, String> = HashMap::new();
    for _ in 0..calls {
        let call = choose(&mut random, &agents, tasks, &owners);
        say(&Line::Invoke {
            call: call.clone(),
            at: monotonic_now(),
        })?;
        let answer = perform(&board, &call)?;
        let at = monotonic_now();
        learn(&mut owners, &call, &answer);
        say(&Line::Return { answer, at })?;
    }
    Ok(())
}

/// The database of `$CCB_BOARD`, if it is set.
fn database() -> Result<Option<Database>, Box<dyn Error>> {
    let Some(url) = std::env::var("CCB_BOARD").ok() else {
        return Ok(None);
    };
    let settings = database::Settings::parse(&url, &Secrets::default())?;
    Ok(Some(Database::new(settings)))
}

/// One line in one write, so that a kill leaves whole lines.
fn say(line: &Line) -> Result<(), Box<dyn Error>> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Chooses mostly calls that change the board: half of them are about a task that one of the agents
/// seems to own.
fn choose(
    random: &mut Random,
    agents: &[String],
    tasks: u64,
    owners: &HashMap<u64, String>,
) -> BoardCall {
    let mut held: Vec<u64> = owners.keys().copied().collect();
    held.retain(|id| agents.contains(&owners[id]));
    held.sort_unstable();
    if !held.is_empty() && random.below(2) == 0 {
        let id = *random.pick(&held);
        let action = match random.below(8) {
            0..3 => Action::Release(id),
            3..6 => Action::Complete(id),
            6 => Action::Reopen(id),
            _ => Action::Claim(id),
        };
        let agent = owners[&id].clone();
        return BoardCall { agent, action };
    }
    let id = 1 + random.below(tasks);
    let action = match random.below(12) {
        0..4 => Action::Claim(id),
        4..6 => Action::Next,
        6 => Action::Release(id),
        7 => Action::Complete(id),
        8..10 => Action::Reopen(id),
        _ => Action::Show(id),
    };
    let agent = random.pick(agents).clone();
    BoardCall { agent, action }
}

fn learn(owners: &mut HashMap<u64, String>, call: &BoardCall, answer: &BoardAnswer) {
    match (answer, call.action) {
        (BoardAnswer::Took(id), _) => {
            owners.insert(*id, call.agent.clone());
        }
        (BoardAnswer::Done, Action::Release(id) | Action::Complete(id) | Action::Reopen(id)) => {
            owners.remove(&id);
        }
        (
            BoardAnswer::Refused(kind, named),
            Action::Claim(id) | Action::Release(id) | Action::Complete(id) | Action::Reopen(id),
        ) if kind == "already_claimed" => {
            owners.insert(id, named[0].clone());
        }
        _ => {}
    }
}

fn perform(board: &Board, call: &BoardCall) -> Result<BoardAnswer, BoardError> {
    match attempt(board, call) {
        Err(error) if EXPECTED.contains(&error.kind()) => Ok(BoardAnswer::Refused(
            error.kind().into(),
            match &error {
                BoardError::Refused { reason, .. } => match reason {
                    Refusal::AlreadyClaimed { owner } => vec![owner.clone()],
                    Refusal::Blocked { by } => by.iter().map(ToString::to_string).collect(),
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            },
        )),
        outcome => outcome,
    }
}

fn attempt(board: &Board, call: &BoardCall) -> Result<BoardAnswer, BoardError> {
    let task_id = |id: u64| TaskId::new(id).ok_or_else(|| BoardError::invalid("id", "too large"));
    let request = ClaimRequest::new(call.agent.as_str());
    let caller = Caller::new(call.agent.as_str());
    Ok(match call.action {
        Action::Claim(id) => {
            board.claim(task_id(id)?, &request)?;
            BoardAnswer::Took(id)
        }
        Action::Next => match board.claim_next(&request)? {
            Next::Claimed(claimed) => BoardAnswer::Took(claimed.task.id.get()),
            Next::Nothing(why) => BoardAnswer::Refused(why.as_str().into(), Vec::new()),
            Next::Busy(_) => return Err(BoardError::invalid("next", "busy without being asked")),
        },
        Action::Release(id) => {
            board.release(task_id(id)?, &caller)?;
            BoardAnswer::Done
        }
        Action::Complete(id) => {
            board.complete(task_id(id)?, &caller, None)?;
            BoardAnswer::Done
        }
        Action::Reopen(id) => {
            let update = Update {
                status: Some(Status::Pending),
                ..Update::default()
            };
            board.update(task_id(id)?, &update, &caller, None)?;
            BoardAnswer::Done
        }
        Action::Show(id) => {
            let snapshot = board.snapshot()?;
            let task = snapshot.require(task_id(id)?)?;
            BoardAnswer::Shown(TaskState {
                status: task.status.as_str().into(),
                owner: task.owner.clone(),
            })
        }
        Action::Choose | Action::Take | Action::LetGo => {
            return Err(BoardError::invalid("call", "only a part of one"));
        }
    })
}
