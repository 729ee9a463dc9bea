//! The row that a command has in the table of rights.

use clap::ArgMatches;
use project::rights::{Row, SESSION, rows};

/// The called command, as the table names it.
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
    let flagged = rows().find(|row| given(row).is_some());
    flagged.map_or(path, |row| row.0.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use project::rights::Say::{self, No, Own, Yes};

    use super::*;
    use crate::commands::Cli;

    /// Collects each command that does something, as the table names it.
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
