//! The manual: what clap knows about each command, with examples, exit codes, files and variables.

use clap::Command;

use crate::examples;

/// The meaning of each exit code. docs/commands.md shows the same.
pub(crate) const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "done"),
    ("1", "it ran and failed: a check, a task, the disk"),
    ("2", "wrong usage or configuration"),
    ("3", "not found, or no task is ready"),
    (
        "4",
        "refused: somebody else has it, it is blocked or parked, work would be lost, or you may not",
    ),
    (
        "5",
        "a lock was held for too long; the message says by whom",
    ),
    ("6", "a limit is used up"),
    ("7", "the model's provider refuses for now"),
    (
        "8",
        "a merge is left to do: conflicts, or files in the way; nothing was changed",
    ),
    ("70", "a bug in ccb"),
    (
        "130, 143",
        "interrupted; the state is consistent, run the command again to resume",
    ),
];

/// The files that ccb keeps. docs/settings.md shows the same.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("~/.claude/ccb.json", "your settings"),
    (
        "~/.claude/tasks/LIST/",
        "a task list, one JSON file per task",
    ),
    (
        "~/.claude/teams/TEAM/",
        "a team: roster, mail, runs of its agents with transcripts and logs",
    ),
    (
        "~/.claude/ccb/trust.json",
        "what you have trusted with `ccb trust`",
    ),
    (".claude/ccb.json", "the repository's settings"),
    (
        ".claude/ccb.local.json",
        "your settings for this repository",
    ),
    (".claude/worktrees/", "worktrees"),
    (".claude/agents/", "types of agents"),
    (
        ".worktreeinclude",
        "ignored files that every new worktree gets a copy of",
    ),
    ("ccb-out/", "results of `ccb fanout`"),
];

/// The variables ccb reads and sets. docs/settings.md shows the same.
pub(crate) const ENVIRONMENT: &[(&str, &str)] = &[
    ("CCB_HOME", "where state is kept"),
    ("CLAUDE_CONFIG_DIR", "the same, if `CCB_HOME` is not set"),
    ("CCB_AGENT", "who you act as, unless `--as` says"),
    ("CLAUDE_CODE_TEAM_NAME", "the team, unless `--team` says"),
    (
        "CLAUDE_CODE_TASK_LIST_ID",
        "the task list, unless `--list` or `--team` says",
    ),
    (
        "CLAUDE_CODE_SESSION_ID",
        "the task list is this session's own, unless a list or team is named",
    ),
    (
        "CLAUDE_CODE_COORDINATOR_MODE",
        "`1`: a session is led by a coordinator",
    ),
    ("CLAUDE_CODE_SUBAGENT_MODEL", "the model of every agent"),
    (
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
        "`1`: agents that models start do not run in the background",
    ),
    ("NO_COLOR", "no colours"),
    (
        "CCB_ATTEMPT, CCB_LAST_FAILURE",
        "set for a task's command: the number of the attempt, and why the last one failed",
    ),
    (
        "CCB_WORKTREE, CCB_MAIN_TREE",
        "set for checks, set-up and agents: the worktree, and your main worktree",
    ),
];

/// A page of the manual and the name of its file.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) file: String,
    pub(crate) text: Vec<u8>,
}

/// The page of `ccb` itself, then those of every command below it.
pub(crate) fn pages(command: Command) -> std::io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_page(&command, "", &mut pages)?;
    Ok(pages)
}

fn add_page(command: &Command, path: &str, pages: &mut Vec<Page>) -> std::io::Result<()> {
    let man = clap_mangen::Man::new(command.clone());
    let file = man.get_filename();
    let mut text = Vec::new();
    man.render(&mut text)?;
    // The text at the end of a command's help begins with examples.
    let mut text = String::from_utf8_lossy(&text)
        .replace(".SH EXTRA", ".SH EXAMPLES")
        .into_bytes();
    text.extend_from_slice(rest(path).as_bytes());
    pages.push(Page { file, text });
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        let path = format!("{path} {}", inner.get_name());
        add_page(inner, path.trim_start(), pages)?;
    }
    Ok(())
}

/// The sections of a page that clap does not know.
fn rest(path: &str) -> String {
    let mut text = String::new();
    let examples = examples::of(path)
        .iter()
        .map(|(line, about)| (*line, *about));
    section(&mut text, "EXAMPLES", examples);
    section(&mut text, "EXIT STATUS", EXIT_STATUS.iter().copied());
    if path.is_empty() {
        section(&mut text, "FILES", FILES.iter().copied());
        section(&mut text, "ENVIRONMENT", ENVIRONMENT.iter().copied());
    } else {
        text.push_str(".SH \"SEE ALSO\"\nccb(1), for files and environment\n");
    }
    text
}

fn section<'a>(text: &mut String, title: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    for (n, (name, about)) in rows.enumerate() {
        if n == 0 {
            text.push_str(&format!(".SH \"{title}\"\n"));
        }
        text.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(about)));
    }
}

/// Text escaped for roff: no character commands, and no control line.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let escaped = escaped.replace('\'', "\\(aq").replace('`', "\\(ga");
    match escaped.starts_with('.') {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    fn page(file: &str) -> String {
        let pages = pages(Cli::command()).unwrap();
        let page = pages.into_iter().find(|page| page.file == file);
        String::from_utf8(page.unwrap_or_else(|| panic!("{file}")).text).unwrap()
    }

    #[test]
    fn pages_have_what_a_manual_has() {
        let first = page("ccb.1");
        for title in ["EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT"] {
            assert!(first.contains(&format!(".SH \"{title}\"")), "{title}");
        }
        let create = page("ccb-task-create.1");
        assert!(create.contains(".SH \"EXAMPLES\""), "{create}");
        assert!(create.contains("\\-\\-blocked\\-by"), "{create}");
        assert!(create.contains(".SH \"EXIT STATUS\""));
    }

    #[test]
    fn the_documentation_says_the_same() {
        let codes = include_str!("../../docs/commands.md");
        let settings = include_str!("../../docs/settings.md");
        let rows = |page: &str, rows: &[(&str, &str)], name: fn(&str) -> String| {
            for (one, about) in rows {
                let line = format!("| {} | {about}", name(one));
                assert!(page.contains(&line), "the documentation lacks: {line}");
            }
        };
        rows(codes, EXIT_STATUS, str::to_owned);
        let code = |name: &str| format!("`{}`", name.replace(", ", "`, `"));
        rows(settings, FILES, code);
        rows(settings, ENVIRONMENT, code);
    }
}
