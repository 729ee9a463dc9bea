//! The items that need a person, each with the command that resolves it and the actions of a view.

use std::collections::BTreeSet;

use landing::is_conflict;
use mailbox::{Question, Request};
use runs::failure_text::FailureText;
use runs::progress::is_check_failure;
use serde::Serialize;
use store::agent_id::LEAD;
use store::clock::parse_rfc3339;
use store::{counted, text};
use taskboard::{Snapshot, Task, TaskId, Unchecked};

use super::Kind;
use crate::act::Act;
use mailbox::{in_short, short_id};

/// Time without a sign of life after which an agent needs attention, in ms.
pub(crate) const SILENT: i64 = 10 * 60 * 1000;
/// Maximum number of tasks of one kind that are listed by number.
const NAMED: usize = 5;

/// The reason why a person is needed; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// An agent waits for a permission.
    Permission,
    /// An agent waits for its plan to be approved.
    Plan,
    /// Another request waits for an answer.
    Request,
    /// A budget or quota is exhausted.
    Budget,
    /// Two pieces of work conflict.
    Conflict,
    /// A task's check failed too often.
    Check,
    /// A task failed too often, but not by its check.
    Parked,
    /// A task's file cannot be read.
    Unreadable,
    /// An agent shows no sign of life.
    Silent,
    /// A session or plan was ended before it was done.
    Interrupted,
    /// Finished work has not landed.
    Unlanded,
}

/// An item that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attention {
    /// The reason.
    pub need: Need,
    /// The team of the item.
    pub team: String,
    /// The task; `None` if it is about no task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The agent's name; `None` if it is about no agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The whole id of the request that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// A description on one line.
    pub what: String,
    /// The command that resolves it, or shows more.
    pub command: String,
    /// Everything a person must know to decide: the tool's whole input, the plan, the output of a
    /// check. May have several lines and is safe to print.
    #[serde(skip)]
    pub detail: String,
    /// The actions that a view can offer, the usual one first; each may still ask for a text
    /// ([`Act::asks_for`]). Empty if only `command` helps.
    #[serde(skip)]
    pub answers: Vec<Act>,
    /// The time limit of the answer, in ms since the epoch.
    #[serde(skip)]
    pub until_ms: Option<i64>,
}

/// The items of a board that need a person. They follow from the board alone, so a repeated reader
/// computes them once per change.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoardNeeds {
    needs: Vec<Attention>,
    /// Completed tasks without proof.
    unchecked: BTreeSet<TaskId>,
    /// Number of tasks that a session would start or resume.
    open: usize,
}

impl BoardNeeds {
    /// Of the board of the team of this name.
    pub(crate) fn of(snapshot: &Snapshot, team: &str) -> Self {
        let bare = |need, what: String, command: &str| Attention::bare(need, team, &what, command);
        let mut needs = Vec::new();
        of_board(snapshot, &bare, &mut needs);
        let counts = super::Counts::of(snapshot);
        let unchecked = snapshot.tasks().filter(|task| task.unchecked().is_some());
        Self {
            needs,
            unchecked: unchecked.map(|task| task.id).collect(),
            open: counts.ready + counts.in_progress,
        }
    }
}

/// The state of a team, which alone decides the items that need a person.
pub(crate) struct Seen<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    /// True if a process directs it.
    pub(crate) running: bool,
    /// True if its session was killed.
    pub(crate) cut_short: bool,
    /// Requests that wait for an answer.
    pub(crate) requests: &'a [Request],
    /// Silent agents: the name and a description.
    pub(crate) silent: Vec<(String, String)>,
    /// The exhausted limit.
    pub(crate) spent: Option<&'a str>,
    pub(crate) board: Option<&'a BoardNeeds>,
    /// Tasks whose work is finished and has not landed.
    pub(crate) unlanded: &'a [TaskId],
}

pub(crate) fn of_team(team: &Seen<'_>) -> Vec<Attention> {
    let name = team.name;
    let to_lead = team.requests.iter().filter(|request| request.to == LEAD);
    let mut all: Vec<Attention> = to_lead.map(|request| of_request(request, name)).collect();
    let bare = |need, what: String, command: &str| Attention::bare(need, name, &what, command);
    if let Some(what) = team.spent {
        all.push(Attention {
            answers: vec![Act::ResetLimits],
            ..bare(
                Need::Budget,
                format!("team {name} has used up its limit: {what}"),
                &format!("team limits {name} --reset"),
            )
        });
    }
    for (agent, how) in &team.silent {
        let (to, text) = (agent.clone(), String::new());
        all.push(Attention {
            agent: Some(agent.clone()),
            answers: vec![
                Act::Message { to, text },
                Act::Stop {
                    agent: agent.clone(),
                    why: None,
                },
            ],
            ..bare(
                Need::Silent,
                format!("{agent} {how}"),
                &format!("agent logs {agent}"),
            )
        });
    }
    all.extend(team.board.into_iter().flat_map(|board| board.needs.clone()));
    // A plan lands the work of its own team.
    let lands_itself = team.running || team.kind == Kind::Fanout;
    if !lands_itself {
        all.extend(of_unlanded(team, &bare));
    }
    let open = team.board.map_or(0, |board| board.open);
    if team.cut_short && open > 0 {
        let open = counted(open, "task");
        let what = format!("the session {name} stopped with {open} open");
        all.push(bare(Need::Interrupted, what, ""));
    }
    all
}

/// Finished work that has not landed. Unchecked work is a separate question, so that a person does
/// not land it with the rest by accident.
fn of_unlanded(team: &Seen<'_>, bare: &dyn Fn(Need, String, &str) -> Attention) -> Vec<Attention> {
    let is_unchecked = |id: &TaskId| team.board.is_some_and(|it| it.unchecked.contains(id));
    let (unchecked, checked): (Vec<TaskId>, Vec<TaskId>) =
        team.unlanded.iter().partition(|id| is_unchecked(id));
    let only = |ids: &[TaskId]| ids.first().copied().filter(|_| ids.len() == 1);
    let mut all = Vec::new();
    if !checked.is_empty() {
        let what = format!("{} finished and not landed", tasks(&checked));
        all.push(Attention {
            task: only(&checked),
            answers: vec![Act::Land { tasks: Vec::new() }],
            ..bare(Need::Unlanded, what, "land --all")
        });
    }
    if !unchecked.is_empty() {
        let mark = Unchecked::MARK;
        let what = format!("{} finished, {mark} and not landed", tasks(&unchecked));
        let ids: Vec<String> = unchecked.iter().map(ToString::to_string).collect();
        all.push(Attention {
            task: only(&unchecked),
            answers: vec![Act::Land { tasks: unchecked }],
            ..bare(Need::Unlanded, what, &format!("land {}", ids.join(" ")))
        });
    }
    all
}

fn of_board(
    snapshot: &Snapshot,
    bare: &dyn Fn(Need, String, &str) -> Attention,
    all: &mut Vec<Attention>,
) {
    let visible = snapshot.tasks().filter(|task| !task.is_internal());
    let mut left_out = 0;
    for (n, task) in visible.filter(|task| task.parked().is_some()).enumerate() {
        if n >= NAMED {
            left_out += 1;
            continue;
        }
        let (id, subject) = (task.id, &task.subject);
        let what = format!("#{id} {subject} is parked{}", why_parked(task));
        all.push(Attention {
            task: Some(id),
            detail: text::clean(task.attempts().last().map_or_else(
                || task.parked().unwrap_or_default(),
                |last| last.why.as_str(),
            )),
            answers: vec![
                Act::Retry { task: id },
                Act::Reject {
                    task: id,
                    feedback: String::new(),
                },
            ],
            ..bare(need_of_parked(task), what, &format!("task show {id}"))
        });
    }
    if left_out > 0 {
        let what = format!("{} more", counted(left_out, "parked task"));
        all.push(bare(Need::Parked, what, "task list"));
    }
    if !snapshot.unreadable().is_empty() {
        let files = counted(snapshot.unreadable().len(), "task file");
        let what = format!("{files} cannot be read");
        let why = snapshot.unreadable().values();
        let why: Vec<String> = why.map(|bad| text::clean_line(&bad.detail)).collect();
        all.push(Attention {
            detail: why.join("\n"),
            ..bare(Need::Unreadable, what, "doctor --fix")
        });
    }
}

fn need_of_parked(task: &Task) -> Need {
    let last = task.attempts().pop();
    match last {
        _ if is_conflict(task) => Need::Conflict,
        Some(last) if is_check_failure(&last.why) => Need::Check,
        _ => Need::Parked,
    }
}

/// The last failure if there were attempts, which says more than their number.
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
    let short = short_id(request);
    let id = request.id.clone();
    let what = format!("{} asks to {}", request.from, in_short(&request.question));
    Attention {
        agent: Some(text::clean_line(&request.from)),
        request: Some(id.clone()),
        command: format!("ccb --team {team} --as {LEAD} mail approve {short}"),
        detail: whole_question(&request.question),
        answers: vec![
            Act::Approve {
                request: id.clone(),
                comment: None,
            },
            Act::Deny {
                request: id,
                why: String::new(),
            },
        ],
        until_ms: Some(request.deadline()),
        ..Attention::new(need, team, &what)
    }
}

/// All facts a person needs before an approval.
fn whole_question(question: &Question) -> String {
    let whole = match question {
        Question::Plan(plan) => {
            let allowed = plan.allowed_prompts.iter();
            let allowed = allowed.map(|one| format!("- {}: {}\n", one.tool, one.prompt));
            let allowed: String = allowed.collect();
            match allowed.is_empty() {
                true => plan.plan.clone(),
                false => format!("{}\n\nIt also asks for:\n{allowed}", plan.plan.trim_end()),
            }
        }
        Question::Permission(permission) => {
            let input = serde_json::to_string_pretty(&permission.input).unwrap_or_default();
            let (tool, why) = (&permission.tool_name, &permission.description);
            format!("{tool}: {why}\n{input}")
        }
        Question::Shutdown(_) | Question::Mode(_) => in_short(question),
    };
    text::clean(&whole)
}

impl Attention {
    /// An item with a command of the team, and no other action.
    fn bare(need: Need, team: &str, what: &str, command: &str) -> Self {
        Self {
            command: format!("ccb --team {team} {command}").trim_end().to_owned(),
            ..Self::new(need, team, what)
        }
    }

    fn new(need: Need, team: &str, what: &str) -> Self {
        Self {
            need,
            team: team.to_owned(),
            task: None,
            agent: None,
            request: None,
            what: text::clean_line(what),
            command: String::new(),
            detail: String::new(),
            answers: Vec::new(),
            until_ms: None,
        }
    }
}

/// The description of an agent's silence; `None` if it is not silent. It reported a stall, or it
/// runs without a sign of life since `last_ms` for long.
pub(crate) fn silence(
    stalled: Option<&str>,
    runs: bool,
    last_ms: Option<i64>,
    now: i64,
) -> Option<String> {
    if let Some(why) = stalled {
        return Some(format!("makes no progress: {why}"));
    }
    let ms = now - last_ms.filter(|_| runs)?;
    (ms >= SILENT).then(|| format!("has shown nothing for {} minutes", ms / 60_000))
}

pub(super) fn silence_of(agent: &super::AgentView, now: i64) -> Option<String> {
    let last = agent.last_at.as_deref().unwrap_or(&agent.since);
    let runs = agent.state == "running";
    silence(agent.stalled.as_deref(), runs, parse_rfc3339(last), now)
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
