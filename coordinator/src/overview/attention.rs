//! What needs a person, each with the command that deals with it.

use mailbox::{Question, Request};
use serde::Serialize;
use store::clock::{Clock, SystemClock, parse_rfc3339};
use store::{Failure, counted};
use swarm::LEAD;
use taskboard::{Snapshot, Task, TaskId};

use super::{Kind, TeamView};
use crate::actions::mail::in_short;
use crate::failure_text::FailureText;
use crate::fleet::Gate;
use crate::landing::is_conflict;
use crate::workplace::Workplace;

/// An agent that has shown nothing for so long is worth a look, in ms.
const SILENT: i64 = 10 * 60 * 1000;
/// How many tasks of one kind are named one by one.
const NAMED: usize = 5;

/// Why a person is needed; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// An agent waits for a permission.
    Permission,
    /// An agent waits for its plan to be approved.
    Plan,
    /// Another request waits for an answer.
    Request,
    /// A budget or quota is used up.
    Budget,
    /// Two pieces of work do not go together.
    Conflict,
    /// A task failed too often.
    Parked,
    /// A task's file cannot be read.
    Unreadable,
    /// An agent shows nothing any more.
    Silent,
    /// A session or plan was ended before it was done.
    Interrupted,
    /// Something is finished and has not landed.
    Unlanded,
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attention {
    /// Why.
    pub need: Need,
    /// The team it is about.
    pub team: String,
    /// The task, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// In words, on one line.
    pub what: String,
    /// The command that deals with it, or shows more.
    pub command: String,
}

pub(super) fn of_team(team: &TeamView, workplace: &Workplace) -> Result<Vec<Attention>, Failure> {
    let name = &team.name;
    let mut all: Vec<Attention> = team
        .requests
        .iter()
        .filter(|request| request.to == LEAD)
        .map(|request| of_request(request, name))
        .collect();
    let mut add = |need, task, what: String, command: String| {
        all.push(Attention {
            need,
            team: name.clone(),
            task,
            what,
            command: format!("ccb --team {name} {command}").trim_end().to_owned(),
        });
    };
    if let Ok(Gate::Spent { what }) = workplace.agents()?.fleet().gate() {
        add(
            Need::Budget,
            None,
            format!("team {name} has used up its limit: {what}"),
            format!("team limits {name} --reset"),
        );
    }
    let now = SystemClock.now_ms();
    for agent in &team.agents {
        if let Some(why) = silence(agent, now) {
            let what = format!("{} {why}", agent.name);
            add(
                Need::Silent,
                None,
                what,
                format!("agent logs {}", agent.name),
            );
        }
    }
    let board = workplace.board();
    if board.dir().is_dir() {
        of_board(&board.snapshot()?, &mut add);
    }
    // Those that are there for plans are landed by their plan.
    let lands_itself = team.running || team.kind == Kind::Fanout;
    if !team.unlanded.is_empty() && !lands_itself {
        let what = format!("{} finished and not landed", tasks(&team.unlanded));
        add(Need::Unlanded, None, what, "land --all".into());
    }
    let open = team.tasks.ready + team.tasks.in_progress;
    let was_cut_short = team.session.is_some() && !team.running && !team.ended;
    if was_cut_short && open > 0 {
        let what = format!(
            "the session {name} stopped with {} open",
            counted(open, "task")
        );
        add(Need::Interrupted, None, what, String::new());
    }
    Ok(all)
}

fn of_board(snapshot: &Snapshot, add: &mut dyn FnMut(Need, Option<TaskId>, String, String)) {
    let visible = || snapshot.tasks().filter(|task| !task.is_internal());
    let mut left_out = 0;
    let parked = visible().filter(|task| task.parked().is_some());
    for (n, task) in parked.enumerate() {
        if n >= NAMED {
            left_out += 1;
            continue;
        }
        let need = match is_conflict(task) {
            true => Need::Conflict,
            false => Need::Parked,
        };
        let (id, subject) = (task.id, &task.subject);
        let what = format!("#{id} {subject} is parked{}", why_parked(task));
        add(need, Some(id), what, format!("task show {id}"));
    }
    if left_out > 0 {
        let what = format!("{} more", counted(left_out, "parked task"));
        add(Need::Parked, None, what, "task list".into());
    }
    if !snapshot.unreadable().is_empty() {
        let files = counted(snapshot.unreadable().len(), "task file");
        let what = format!("{files} cannot be read");
        add(Need::Unreadable, None, what, "doctor --fix".into());
    }
}

/// The last failure where there were attempts, which says more than how often it failed.
fn why_parked(task: &Task) -> String {
    let attempts = task.attempts();
    let failed = attempts.iter().filter(|attempt| attempt.counts);
    match (failed.count(), attempts.last()) {
        (0, _) | (_, None) => {
            let why = FailureText::of(task.parked().unwrap_or_default());
            format!(": {}", why.what)
        }
        (1, Some(last)) => format!(": {}", FailureText::of(&last.why).what),
        (times, Some(last)) => {
            format!(
                " after {times} attempts: {}",
                FailureText::of(&last.why).what
            )
        }
    }
}

fn of_request(request: &Request, team: &str) -> Attention {
    let need = match request.question {
        Question::Permission(_) => Need::Permission,
        Question::Plan(_) => Need::Plan,
        Question::Shutdown(_) | Question::Mode(_) => Need::Request,
    };
    let id = request.id.get(..8).unwrap_or(&request.id);
    Attention {
        need,
        team: team.to_owned(),
        task: None,
        what: format!("{} asks to {}", request.from, in_short(&request.question)),
        command: format!("ccb --team {team} mail approve {id}"),
    }
}

/// How an agent is silent, if it is.
fn silence(agent: &super::AgentView, now: i64) -> Option<String> {
    if let Some(why) = &agent.stalled {
        return Some(format!("makes no progress: {why}"));
    }
    if agent.state != "running" {
        return None;
    }
    let last = agent.last_at.as_deref().unwrap_or(&agent.since);
    let ms = now - parse_rfc3339(last)?;
    (ms >= SILENT).then(|| format!("has shown nothing for {} minutes", ms / 60_000))
}

/// `#1`, or `#1, #2 and 3 more`, with the verb.
fn tasks(ids: &[TaskId]) -> String {
    let named: Vec<String> = ids.iter().take(NAMED).map(|id| format!("#{id}")).collect();
    let more = ids.len().saturating_sub(NAMED);
    let verb = if ids.len() == 1 { "is" } else { "are" };
    match more {
        0 => format!("{} {verb}", named.join(", ")),
        more => format!("{} and {more} more {verb}", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_comes_first() {
        let mut needs = [Need::Unlanded, Need::Parked, Need::Permission, Need::Silent];
        needs.sort();
        let sorted = [Need::Permission, Need::Parked, Need::Silent, Need::Unlanded];
        assert_eq!(needs, sorted);
    }

    #[test]
    fn many_tasks_are_counted_few_are_named() {
        let ids = |n: u64| -> Vec<TaskId> { (1..=n).map(|n| TaskId::new(n).unwrap()).collect() };
        assert_eq!(tasks(&ids(1)), "#1 is");
        assert_eq!(tasks(&ids(2)), "#1, #2 are");
        assert_eq!(tasks(&ids(7)), "#1, #2, #3, #4, #5 and 2 more are");
    }
}
