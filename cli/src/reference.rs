//! docs/commands.md, generated from the command line itself, so that it is always complete.
//!
//! `CCB_WRITE_DOCS=1 cargo test --workspace --lib reference` writes it.

use clap::{Arg, ArgAction, Command, CommandFactory};

use crate::commands::Cli;
use crate::examples;
use crate::manual::EXIT_STATUS;

const TOP: &str = "# Commands

Every command with every flag. This page is made from `ccb --help`; to change it, change the help and run
`CCB_WRITE_DOCS=1 cargo test --workspace --lib reference`.

For settings and variables see [settings.md](settings.md).
";

const EXIT: &str = "
The limits of code 6 are in [agents.md](agents.md#limits). [sessions.md](sessions.md#when-it-ends) and [fanout.md](fanout.md#results) say what the codes mean for sessions and plans.
`ccb worktree run` exits with the code of the command it ran.

With `--json`, an error is `{\"error\": {\"kind\": …, \"message\": …, \"hint\": …}}` on standard output. `kind` is stable; `message` and `hint` are for people.
";

fn page() -> String {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut page = TOP.to_owned();
    page.push_str("\n## Flags of every command\n\n");
    let global: Vec<&Arg> = shown(&command).filter(|arg| arg.is_global_set()).collect();
    page.push_str(&table(&global));
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in EXIT_STATUS {
        page.push_str(&format!("| {code} | {meaning} |\n"));
    }
    page.push_str(EXIT);
    section(&command, "", 2, &mut page);
    page
}

fn section(command: &Command, path: &str, depth: usize, page: &mut String) {
    let title = match path {
        "" => "ccb: sessions".to_owned(),
        path => format!("ccb {path}"),
    };
    page.push_str(&format!("\n{} {title}\n\n", "#".repeat(depth)));
    if let Some(about) = command.get_about() {
        page.push_str(&format!("{}.\n", text(&about.to_string())));
    }
    let aliases: Vec<String> = command
        .get_visible_aliases()
        .map(|alias| format!("`{alias}`"))
        .collect();
    if !aliases.is_empty() {
        page.push_str(&format!("\nAlso: {}.\n", aliases.join(", ")));
    }
    let own: Vec<&Arg> = shown(command).filter(|arg| !arg.is_global_set()).collect();
    let inner = || {
        command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
    };
    if inner().next().is_none() || !own.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        page.push_str(&format!("\n```text\n{usage}\n```\n"));
    }
    if !own.is_empty() {
        page.push_str(&format!("\n{}", table(&own)));
    }
    let examples = examples::of(path);
    if !examples.is_empty() {
        let lines = examples
            .iter()
            .map(|(line, about)| format!("# {about}\n{line}"));
        let lines: Vec<String> = lines.collect();
        page.push_str(&format!("\n```sh\n{}\n```\n", lines.join("\n")));
    }
    if let Some(more) = command.get_after_help() {
        page.push_str(&format!("\n```text\n{more}\n```\n"));
    }
    for inner in inner() {
        let path = format!("{path} {}", inner.get_name());
        section(inner, path.trim_start(), (depth + 1).min(4), page);
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let hidden = |arg: &&Arg| {
        let built_in = [
            ArgAction::Help,
            ArgAction::HelpShort,
            ArgAction::HelpLong,
            ArgAction::Version,
        ];
        let action = format!("{:?}", arg.get_action());
        arg.is_hide_set() || built_in.iter().any(|one| format!("{one:?}") == action)
    };
    command.get_arguments().filter(move |arg| !hidden(arg))
}

fn table(args: &[&Arg]) -> String {
    let mut table = "| | |\n|---|---|\n".to_owned();
    for arg in args {
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let mut help = text(&help.map(ToString::to_string).unwrap_or_default());
        let values = arg.get_possible_values();
        let takes = arg.get_action().takes_values();
        let values: Vec<String> = values
            .iter()
            .filter(|value| takes && !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !values.is_empty() {
            help.push_str(&format!(": {}", values.join(", ")));
        }
        let defaults: Vec<String> = arg
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        if takes && !defaults.is_empty() {
            help.push_str(&format!(" [default: {}]", defaults.join(" ")));
        }
        table.push_str(&format!("| {} | {help} |\n", name(arg)));
    }
    table
}

fn name(arg: &Arg) -> String {
    let value = arg.get_value_names().map(|names| {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        names.join(" ")
    });
    let value = value.filter(|_| arg.get_action().takes_values());
    let short = arg.get_short().map(|short| format!("`-{short}`"));
    let long = arg.get_long().map(|long| match &value {
        Some(value) => format!("`--{long} {value}`"),
        None => format!("`--{long}`"),
    });
    let flags: Vec<String> = [short, long].into_iter().flatten().collect();
    match (flags.is_empty(), value) {
        (true, Some(value)) => format!("`{value}`"),
        (true, None) => format!("`{}`", arg.get_id().as_str().to_uppercase()),
        (false, _) => flags.join(", "),
    }
}

/// Help text on one line, escaped for a cell of a table.
fn text(help: &str) -> String {
    let words: Vec<&str> = help.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn the_reference_is_up_to_date() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let file = root.join("commands.md");
    let made = page();
    if std::env::var_os("CCB_WRITE_DOCS").is_some() {
        use store::atomic::{Durability, Staged};
        let staged = Staged::write(&root, made.as_bytes(), Durability::Relaxed).unwrap();
        staged.replace(&file).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = made
        .lines()
        .zip(there.lines())
        .find(|(made, there)| made != there);
    assert!(
        made == there,
        "docs/commands.md is old, write it with: CCB_WRITE_DOCS=1 cargo test --workspace --lib reference\n{differs:?}"
    );
}
