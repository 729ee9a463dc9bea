//! The events of a session, in words for people and as JSON for programs.

use std::path::PathBuf;
use std::time::Duration;

use anstyle::Style;
use coordinator::session::{DirectorEvent, Stand, TaskEnd, Why};
use serde_json::{Value, json};
use store::counted;
use swarm::run::{CheckPlace, Checked};
use taskboard::{TaskId, Unchecked};

use crate::output::{CYAN, DIM, GREEN, RED, YELLOW, clean_line, failure_lines};

/// Maximum number of worktrees named at the end; the rest is counted.
pub(super) const NAMED: usize = 10;

pub(crate) fn event_json(event: &DirectorEvent) -> Value {
    let mut json = json!(event);
    match event {
        DirectorEvent::Ended {
            end, usage, took, ..
        } => {
            let (word, why) = end_words(end);
            json["outcome"] = word.into();
            json["tokens"] = usage.total_tokens().into();
            json["durationMs"] = ms(*took).into();
            if let Some(why) = why {
                json["why"] = why.into();
            }
            if let TaskEnd::Done {
                proof: Some(proof), ..
            } = end
            {
                json["proof"] = json!(proof);
            }
        }
        DirectorEvent::AtRest { stand } => json["stand"] = stand_words(stand).into(),
        _ => {}
    }
    json
}

/// The values that the words for people depend on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(super) team: String,
    /// True if the teammates run commands and nothing else.
    pub(super) commands_only: bool,
    pub(super) person_leads: bool,
    /// The branch that finished work lands on.
    pub(super) into: Option<String>,
    /// The person's directory.
    pub(super) directory: PathBuf,
    /// The file with the whole output of the event's agent or check.
    pub(super) log: Option<PathBuf>,
}

impl Place {
    /// For a worker on this team's board; its work lands on `into`.
    pub(crate) fn of_worker(team: &str, into: Option<String>) -> Self {
        Self {
            team: team.to_owned(),
            into,
            ..Self::default()
        }
    }

    /// The hint in the line where the person types.
    pub(super) fn typing_hint(&self) -> &'static str {
        match (self.person_leads, self.commands_only) {
            (true, true) => "/run CMD adds a task, /help lists the commands",
            (true, false) => "type a task for the mates, /help lists the commands",
            (false, _) => "type a message to the lead, /help lists the commands",
        }
    }

    /// The command that adds a task to this board.
    fn add_a_task(&self) -> String {
        let run = match self.commands_only {
            true => " --run CMD --verify CMD",
            false => "",
        };
        format!("ccb --team {} task create SUBJECT{run}", self.team)
    }
}

/// The text for an event; `style` is its agent's.
pub(crate) fn event_text(event: &DirectorEvent, style: Style, place: &Place) -> String {
    match event {
        DirectorEvent::Started {
            task,
            subject,
            agent,
            name,
            attempt,
            adopted,
        } => {
            let who = clean_line(name.as_deref().unwrap_or(agent));
            let again = match (*attempt, *adopted) {
                (_, true) => " (found at work)".to_owned(),
                (1, _) => String::new(),
                (more, _) => format!(" (attempt {more})"),
            };
            format!(
                "{CYAN}▶{CYAN:#} {style}{who}{style:#} #{task} {}{again}",
                clean_line(subject)
            )
        }
        DirectorEvent::Ended {
            task, end, took, ..
        } => ended_text(*task, end, *took, place),
        DirectorEvent::Landed { task, into, commit } => {
            let commit = commit.get(..10).unwrap_or(commit);
            format!("{GREEN}⇥{GREEN:#} #{task} is on {into} {DIM}{commit}{DIM:#}")
        }
        DirectorEvent::NotLanded {
            task,
            files,
            why,
            became,
            worktree,
            rivals,
        } => {
            let why = failure_lines(why, None, None);
            let by = match rivals.as_slice() {
                [] => String::new(),
                rivals => format!(", by {}", clean_line(&rivals.join(", "))),
            };
            let mut text = format!("{YELLOW}⚠{YELLOW:#} #{task} did not land: {why}{by}");
            if !files.is_empty() {
                text.push_str(&format!(" ({})", clean_line(&files.join(", "))));
            }
            if let Some(id) = became {
                text.push_str(&format!("\n  #{id} was added for a mate to resolve it"));
            }
            if let (Some(worktree), Some(into)) = (worktree, &place.into) {
                let (team, into) = (&place.team, clean_line(into));
                let here = worktree.strip_prefix(&place.directory);
                let path = here.unwrap_or(worktree).to_string_lossy();
                text.push_str(&format!(
                    "\n  to resolve it yourself:\n    cd {} && git merge {into}\n    ccb --team \
                     {team} land {task}",
                    clean_line(&path)
                ));
            }
            text
        }
        DirectorEvent::AtRest { stand } => stand_text(stand, place),
        DirectorEvent::Paused { why } => format!("{YELLOW}paused:{YELLOW:#} {}", clean_line(why)),
        DirectorEvent::Resumed => "resumed".into(),
        DirectorEvent::Note { text } => clean_line(text),
        other => format!("{other:?}"),
    }
}

/// The text for the end of the work on a task.
fn ended_text(task: TaskId, end: &TaskEnd, took: Duration, place: &Place) -> String {
    let seconds = took.as_secs_f64();
    match end {
        TaskEnd::Done { proof, .. } => {
            let check = proof.as_ref().and_then(|proof| proof.check.as_ref());
            let check = check.filter(|check: &&Checked| check.passed);
            let checked = match check.map(|check| check.place) {
                Some(CheckPlace::Commit) => ", checked".to_owned(),
                Some(CheckPlace::InPlace) => ", checked in place".to_owned(),
                None => format!(", {YELLOW}{}{YELLOW:#}", Unchecked::MARK),
            };
            format!("{GREEN}✔{GREEN:#} #{task} done{checked} {DIM}{seconds:.1} s{DIM:#}")
        }
        TaskEnd::Failed { why } => {
            let failure = failure_lines(why, place.log.as_deref(), None);
            format!("{YELLOW}✘{YELLOW:#} #{task} failed, will be retried: {failure}")
        }
        TaskEnd::Parked { why } => {
            let again = format!("ccb --team {} task retry {task}", place.team);
            let failure = failure_lines(why, place.log.as_deref(), Some(&again));
            format!("{RED}‖{RED:#} #{task} parked: {failure}")
        }
        TaskEnd::Stopped { why } => {
            format!("{YELLOW}⊘{YELLOW:#} #{task} stopped: {}", clean_line(why))
        }
        TaskEnd::Taken => format!("{DIM}#{task} is somebody else's now{DIM:#}"),
    }
}

fn end_words(end: &TaskEnd) -> (&'static str, Option<&str>) {
    match end {
        TaskEnd::Done { proof, .. } => match proof {
            Some(proof) if proof.commit.is_some() && !proof.changed => ("no_change", None),
            _ => ("done", None),
        },
        TaskEnd::Failed { why } => ("failed", Some(why)),
        TaskEnd::Parked { why } => ("parked", Some(why)),
        TaskEnd::Stopped { why } => ("stopped", Some(why)),
        TaskEnd::Taken => ("taken", None),
    }
}

pub(super) fn stand_words(stand: &Stand) -> String {
    match stand {
        Stand::Working => "working".into(),
        Stand::Waiting(why) => format!("waiting: {why}"),
        Stand::Elsewhere => "waiting: other machines do the rest".into(),
        Stand::NoTasks => "no tasks yet".into(),
        Stand::AllDone => "every task is completed".into(),
        Stand::Stuck(left) => format!("{} cannot start", counted(left.len(), "task")),
        Stand::GivenUp(why) => format!("given up: {why}"),
    }
}

/// The session's state, with what the person can do about it.
fn stand_text(stand: &Stand, place: &Place) -> String {
    match stand {
        Stand::NoTasks if place.person_leads => {
            format!("no tasks yet. Add one: {}", place.add_a_task())
        }
        // The lead has just started.
        Stand::NoTasks => String::new(),
        Stand::Stuck(left) => {
            // The line about a parked task came before this, with the reason.
            let left: Vec<_> = left.iter().filter(|(_, why)| *why != Why::Parked).collect();
            let mut lines: Vec<String> = left
                .iter()
                .take(NAMED)
                .map(|(task, why)| format!("{YELLOW}○{YELLOW:#} #{task} {}", why_stuck(why, place)))
                .collect();
            if let Some(more @ 1..) = left.len().checked_sub(NAMED) {
                lines.push(format!(
                    "and {more} more: ccb --team {} task list",
                    place.team
                ));
            }
            lines.join("\n         ")
        }
        stand => format!("{DIM}{}{DIM:#}", clean_line(&stand_words(stand))),
    }
}

/// The reason why no agent starts a task.
fn why_stuck(why: &Why, place: &Place) -> String {
    match why {
        Why::Parked => "is parked".into(),
        Why::Blocked(by) => {
            let by: Vec<String> = by.iter().map(|id| format!("#{id}")).collect();
            format!("waits for {}", by.join(", "))
        }
        Why::Owned(owner) => format!(
            "belongs to {}, who is not a mate of this session; to take it back: ccb --team {} task release ID --as {}",
            clean_line(owner),
            place.team,
            clean_line(owner)
        ),
        Why::NeedsModel => "needs an agent with a model; these mates only run commands \
             (`ccb doctor` says which agents are installed)"
            .into(),
        Why::Needs(labels) => format!(
            "needs a machine with {}; start a worker there: ccb worker --label {}",
            clean_line(&labels.join(", ")),
            clean_line(labels.first().map_or("LABEL", String::as_str))
        ),
    }
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
