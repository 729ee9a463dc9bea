//! The rights of an agent, for each command. People may do everything.
//!
//! One table, which docs/mcp.md shows; a test compares the two and checks that every command is in
//! it. If the table says `own`, the command itself checks whose the thing is.

use store::Failure;
use swarm::run::Meta;

pub use crate::who::not_yours;
use crate::workplace::{Who, Workplace};

/// The right of one sort of agent to one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Allowed.
    Yes,
    /// Only the agent's own: its tasks, requests to it, agents it started.
    Own,
    /// It may not.
    No,
}

use Say::{No, Own, Yes};

/// A command, or one with a flag that matters, and what lead, teammate and worker may do.
pub type Row = (&'static str, [Say; 3]);

/// The rights of a command that only reads.
const READ: [Say; 3] = [Yes, Yes, Yes];
const LEAD: [Say; 3] = [Yes, No, No];
const TEAM: [Say; 3] = [Yes, Yes, No];
const ALL_OWN: [Say; 3] = [Own, Own, Own];
const NOBODY: [Say; 3] = [No, No, No];

/// The flags that start or resume a session.
pub const SESSION: &str = "--team NAME [PROMPT]";

/// Commands that only read. They also work on another list, and for an unknown agent.
pub const READING: &[Row] = &[
    ("task list", READ),
    ("task show", READ),
    ("task graph", READ),
    ("task watch", READ),
    ("mail requests", READ),
    ("worktree list", READ),
    ("worktree status", READ),
    ("worktree events", READ),
    ("worktree gc", READ),
    ("worktree pool list", READ),
    ("agent list", READ),
    ("agent show", READ),
    ("agent logs", READ),
    ("agent output", READ),
    ("agent types", READ),
    ("team list", READ),
    ("team show", READ),
    ("team limits", READ),
    ("fanout merge-reports", READ),
    ("fanout schema", READ),
    ("board show", READ),
    ("status", READ),
    ("top", READ),
    ("diff", READ),
    ("report", READ),
    ("runs", READ),
    ("undo --show", READ),
    ("doctor", READ),
    ("trust --show", READ),
    ("cd", READ),
    ("shell-init", READ),
    ("completions", READ),
    ("man", READ),
];

/// Commands that change something.
pub const CHANGING: &[Row] = &[
    (SESSION, NOBODY),
    ("task create", TEAM),
    ("task update", [Yes, Own, Own]),
    ("task update --force", LEAD),
    ("task claim", TEAM),
    ("task next", TEAM),
    ("task done", ALL_OWN),
    ("task done --force", LEAD),
    ("task retry", [Yes, Own, Own]),
    ("task release", ALL_OWN),
    ("task release --force", LEAD),
    ("task rm", [Yes, Own, No]),
    ("task rm --force", LEAD),
    ("task block", TEAM),
    ("task unblock", LEAD),
    ("task reset", LEAD),
    ("mail send", READ),
    ("mail inbox", ALL_OWN),
    ("mail read", ALL_OWN),
    ("mail ack", ALL_OWN),
    ("mail watch", ALL_OWN),
    ("web", NOBODY),
    ("mail approve", ALL_OWN),
    ("mail reject", ALL_OWN),
    ("worktree create", TEAM),
    ("worktree run", READ),
    ("worktree bind", TEAM),
    ("worktree unbind", TEAM),
    ("worktree keep", TEAM),
    ("worktree remove", TEAM),
    ("worktree remove --discard", LEAD),
    ("worktree undo", TEAM),
    ("worktree merge", LEAD),
    ("worktree gc --yes", LEAD),
    ("land", LEAD),
    ("reject", LEAD),
    ("undo", LEAD),
    ("worktree enter", TEAM),
    ("worktree exit", TEAM),
    ("worktree pool fill", TEAM),
    ("worktree pool return", TEAM),
    ("agent spawn", [Yes, Own, No]),
    ("agent send", TEAM),
    ("agent stop", [Yes, Own, No]),
    ("agent resume", [Yes, Own, No]),
    ("team create", NOBODY),
    ("team join", NOBODY),
    ("team leave", NOBODY),
    ("team delete", [Own, No, No]),
    ("team limits --reset", NOBODY),
    ("fanout", NOBODY),
    ("fanout run", NOBODY),
    ("fanout init", READ),
    ("fanout apply", NOBODY),
    ("worker", NOBODY),
    ("board migrate", NOBODY),
    ("board prune", NOBODY),
    ("mcp", ALL_OWN),
    ("clean", NOBODY),
    ("doctor --fix", NOBODY),
    ("trust", NOBODY),
    ("demo", NOBODY),
];

fn says(command: &str, who: Who) -> Say {
    let column = match who {
        Who::Person => return Yes,
        Who::Lead | Who::Coordinator => 0,
        Who::Teammate => 1,
        Who::Worker => 2,
        Who::Unknown => {
            let reads = READING.iter().any(|(name, _)| *name == command);
            return if reads { Yes } else { No };
        }
    };
    let mut row = rows().filter(|(name, _)| *name == command);
    // Only a person may give a command that is not in the table.
    row.next().map_or(No, |(_, says)| says[column])
}

/// Refuses a command that the caller may not give.
pub fn check(command: &str, workplace: &Workplace) -> Result<(), Failure> {
    let who = workplace.who();
    if says(command, who) == No {
        return Err(not_for(
            workplace,
            &format!("`ccb {command}`"),
            CHANGING
                .iter()
                .any(|(name, says)| *name == command && says[0] != No),
        ));
    }
    let reads = READING.iter().any(|(name, _)| *name == command);
    if let Some(list) = workplace.foreign_list().filter(|_| !reads) {
        return Err(not_yours(
            format!(
                "the tasks of {} are not on the list {list}, which it can only look at",
                workplace.agent()
            ),
            "leave out --list",
        ));
    }
    Ok(())
}

/// The error for a command that only the lead, or only a person, may give.
pub fn not_for(workplace: &Workplace, what: &str, lead_may: bool) -> Failure {
    let who = workplace.who().in_words();
    let whose = match lead_may {
        true => "its lead and the person who runs ccb",
        false => "the person who runs ccb",
    };
    let message = match workplace.who() {
        Who::Unknown => format!("this is {who}, and {what} is for {whose}"),
        _ => format!("{} is {who}, and {what} is for {whose}", workplace.agent()),
    };
    let hint = match workplace.who().decides() {
        true => "ask the person who started you",
        false => "ask with: ccb mail send team-lead TEXT",
    };
    not_yours(message, hint)
}

/// An agent that does not lead controls those it started.
pub fn may_control(meta: &Meta, verb: &str, workplace: &Workplace) -> Result<(), Failure> {
    if workplace.who().decides() || meta.parent == workplace.agent() {
        return Ok(());
    }
    let message = format!(
        "{} did not start {} and cannot {verb} it",
        workplace.agent(),
        meta.address()
    );
    Err(not_yours(message, "ask with: ccb mail send team-lead TEXT"))
}

/// Every row of the table.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    READING.iter().chain(CHANGING)
}
