//! What an agent may do with each command. People may do everything.
//!
//! One table, which docs/mcp.md shows; a test compares the two and looks whether every command is
//! in it. Where a word says `own`, the command itself looks whose the thing is.

use clap::ArgMatches;
use store::Failure;

use crate::context::Context;

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// Nobody of ours: a person, or a program that is none of our agents.
    Person,
    /// An agent that leads its team.
    Lead,
    /// One that leads it by planning alone.
    Coordinator,
    /// An agent that takes part in a team.
    Teammate,
    /// An agent with one piece of work.
    Worker,
    /// An agent, but nobody knows which.
    Unknown,
}

impl Who {
    /// Whether it decides for its team: what tasks are checked by, who works on them.
    pub(crate) fn decides(self) -> bool {
        matches!(self, Self::Person | Self::Lead | Self::Coordinator)
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Person => "a person",
            Self::Lead => "the lead",
            Self::Coordinator => "the coordinator",
            Self::Teammate => "a teammate",
            Self::Worker => "a worker",
            Self::Unknown => "an agent nobody knows",
        }
    }
}

/// What the table says about one command and one sort of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Say {
    Yes,
    /// What is its own: its tasks, requests to it, agents it started.
    Own,
    No,
}

use Say::{No, Own, Yes};

/// A command, or one with a flag that matters, and what lead, teammate and worker may do.
pub(crate) type Row = (&'static str, [Say; 3]);

/// Looks, and changes nothing.
const READ: [Say; 3] = [Yes, Yes, Yes];
const LEAD: [Say; 3] = [Yes, No, No];
const TEAM: [Say; 3] = [Yes, Yes, No];
const ALL_OWN: [Say; 3] = [Own, Own, Own];
const NOBODY: [Say; 3] = [No, No, No];

/// What starts or resumes a session.
pub(crate) const SESSION: &str = "--team NAME [PROMPT]";

/// Commands that only look, which also work on another list and for an agent nobody knows.
pub(crate) const READING: &[Row] = &[
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
    ("status", READ),
    ("doctor", READ),
    ("trust --show", READ),
    ("completions", READ),
    ("man", READ),
];

/// Commands that change something.
pub(crate) const CHANGING: &[Row] = &[
    (SESSION, NOBODY),
    ("task create", TEAM),
    ("task update", [Yes, Own, Own]),
    ("task update --force", LEAD),
    ("task claim", TEAM),
    ("task next", TEAM),
    ("task done", ALL_OWN),
    ("task done --force", LEAD),
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
    ("worktree enter", TEAM),
    ("worktree exit", TEAM),
    ("worktree pool fill", TEAM),
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
    ("mcp", ALL_OWN),
    ("doctor --fix", NOBODY),
    ("trust", NOBODY),
    ("demo", NOBODY),
];

/// The command that was called, as the table names it.
pub(crate) fn command(matches: &ArgMatches) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut here = matches;
    while let Some((name, inner)) = here.subcommand() {
        words.push(name);
        here = inner;
    }
    let path = words.join(" ");
    if path.is_empty() {
        return SESSION.to_owned();
    }
    let given = |row: &&Row| {
        let flag = row.0.strip_prefix(path.as_str())?.strip_prefix(" --")?;
        let flag = here.try_get_one::<bool>(flag).ok().flatten();
        flag.copied().filter(|given| *given)
    };
    let rows = || READING.iter().chain(CHANGING);
    let flagged = rows().find(|row| given(row).is_some());
    flagged.map_or(path, |row| row.0.to_owned())
}

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
    let row = READING.iter().chain(CHANGING);
    let mut row = row.filter(|(name, _)| *name == command);
    // A command nobody thought of is nobody's but a person's.
    row.next().map_or(No, |(_, says)| says[column])
}

/// Refuses a command that is none of the caller's business.
pub(crate) fn check(command: &str, context: &Context) -> Result<(), Failure> {
    let who = context.who();
    if says(command, who) == No {
        return Err(not_for(
            context,
            &format!("`ccb {command}`"),
            CHANGING
                .iter()
                .any(|(name, says)| *name == command && says[0] != No),
        ));
    }
    let reads = READING.iter().any(|(name, _)| *name == command);
    if let Some(list) = context.foreign_list().filter(|_| !reads) {
        return Err(not_yours(
            format!(
                "the tasks of {} are not on the list {list}, which it can only look at",
                context.agent()
            ),
            "leave out --list",
        ));
    }
    Ok(())
}

/// The error for something that is somebody else's to do: the lead's, or a person's alone.
pub(crate) fn not_for(context: &Context, what: &str, lead_may: bool) -> Failure {
    let who = context.who().in_words();
    let whose = match lead_may {
        true => "its lead and the person who runs ccb",
        false => "the person who runs ccb",
    };
    let message = match context.who() {
        Who::Unknown => format!("this is {who}, and {what} is for {whose}"),
        _ => format!("{} is {who}, and {what} is for {whose}", context.agent()),
    };
    let hint = match context.who().decides() {
        true => "ask the person who started you",
        false => "ask with: ccb mail send team-lead TEXT",
    };
    not_yours(message, hint)
}

/// A refusal because of who calls.
pub(crate) fn not_yours(message: String, hint: &str) -> Failure {
    Failure::refused("not_yours", message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;
    use crate::args::Cli;

    fn rows() -> impl Iterator<Item = &'static Row> {
        READING.iter().chain(CHANGING)
    }

    /// Every command that does something, as the table names it.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        let below = command
            .get_subcommands()
            .filter(|it| it.get_name() != "help");
        let mut some = false;
        for inner in below {
            some = true;
            let path = format!("{path} {}", inner.get_name());
            leaves(inner, path.trim_start(), found);
        }
        if !some || path == "fanout" {
            found.push(path.to_owned());
        }
    }

    #[test]
    fn every_command_is_in_the_table_and_nothing_else() {
        let mut cli = Cli::command();
        cli.build();
        let mut commands = Vec::new();
        leaves(&cli, "", &mut commands);
        for command in &commands {
            let known = rows().any(|(name, _)| name == command);
            let flagged = rows().any(|(name, _)| name.starts_with(&format!("{command} --")));
            assert!(known || flagged, "who may `ccb {command}`?");
        }
        for (name, _) in rows().filter(|(name, _)| *name != SESSION) {
            let command = name.split(" --").next().unwrap();
            assert!(commands.iter().any(|it| it == command), "{name}");
        }
        let mut names: Vec<&str> = rows().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows().count(), "a command is listed twice");
    }

    #[test]
    fn flags_that_matter_are_part_of_the_command() {
        let named = |line: &str| {
            let args = std::iter::once("ccb").chain(line.split(' '));
            command(&Cli::command().try_get_matches_from(args).unwrap())
        };
        assert_eq!(named("trust"), "trust");
        assert_eq!(named("trust --show"), "trust --show");
        assert_eq!(named("--json wt gc --yes"), "worktree gc --yes");
        assert_eq!(named("task done 3 --force"), "task done --force");
        assert_eq!(named("task done 3 --verify"), "task done");
        assert_eq!(named("worktree pool ls"), "worktree pool list");
        assert_eq!(named("fanout plan.yaml"), "fanout");
        assert_eq!(named("--team x go"), SESSION);
    }

    #[test]
    fn the_documentation_shows_this_table() {
        let words = |say: Say| match say {
            Yes => "yes",
            Own => "own",
            No => "–",
        };
        let page = include_str!("../../docs/mcp.md");
        for (name, says) in rows() {
            let [lead, teammate, worker] = says.map(words);
            let line = format!("| `{name}` | {lead} | {teammate} | {worker} |");
            assert!(page.contains(&line), "docs/mcp.md lacks: {line}");
        }
        let listed = page.lines().filter(|line| {
            let cells = line.split('|').filter(|cell| {
                let cell = cell.trim();
                ["yes", "own", "–"].contains(&cell)
            });
            line.starts_with("| `") && cells.count() == 3
        });
        assert_eq!(listed.count(), rows().count(), "docs/mcp.md lists others");
    }
}
