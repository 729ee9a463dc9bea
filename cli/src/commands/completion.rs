//! Answers a shell that completes a command line: what could be typed next.
//!
//! The script of `ccb completions` starts `ccb` with [`VARIABLE`] set and the words so far. One
//! function, [`kind_of`], says which values an argument takes. Nothing here takes a lock, writes,
//! or prints an error: a shell would show it in the middle of the line.

mod bash;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{Elvish, Fish, Powershell, Shells, Zsh};
use coordinator::candidates::{self, Candidate};
use project::workplace::{Asked, Workplace};
use store::Failure;
use term::table::fit;

use super::Cli;
use crate::output::clean_line;

/// The variable that names the shell that asks.
const VARIABLE: &str = "CCB_COMPLETE";

/// Maximum columns of a description. Shells cut or wrap longer ones, each in its own way.
const DESCRIPTION: usize = 50;

/// The shells that have a script.
const SHELLS: Shells<'static> = Shells(&[&bash::Bash, &Elvish, &Fish, &Powershell, &Zsh]);

/// The words typed before the word to complete.
static ASKED: OnceLock<Asked> = OnceLock::new();

/// The plan named on the command line; `None` if there is none.
static PLAN: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Answers a shell's question; `None` if no shell asks.
pub(crate) fn main(args: &[OsString]) -> Option<ExitCode> {
    std::env::var_os(VARIABLE)?;
    std::panic::set_hook(Box::new(|_| {}));
    let directory = std::env::current_dir().ok();
    ASKED.set(asked(args)).ok();
    let is_plan = |word: &&OsString| {
        let word = word.to_string_lossy();
        [".yaml", ".yml", ".json"]
            .iter()
            .any(|end| word.ends_with(end))
    };
    PLAN.set(args.iter().find(is_plan).map(PathBuf::from)).ok();
    let answer = AssertUnwindSafe(|| {
        CompleteEnv::with_factory(command)
            .var(VARIABLE)
            .shells(SHELLS)
            .try_complete(without_names(args), directory.as_deref())
    });
    match catch_unwind(answer) {
        Ok(Ok(true)) => Some(ExitCode::SUCCESS),
        // Set, but empty: the user has switched completions off.
        Ok(Ok(false)) => None,
        Ok(Err(_)) | Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The script that makes a shell ask `ccb`.
pub(crate) fn script(shell: &str) -> Result<String, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::internal(format!("completions: {error}"));
    let Some(shell) = SHELLS.completer(shell) else {
        return Err(wrong(&shell));
    };
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "ccb", "ccb", "ccb", &mut script)
        .map_err(|error| wrong(&error))?;
    Ok(String::from_utf8_lossy(&script).trim().to_owned())
}

/// The command line, with the values that each argument can take.
fn command() -> Command {
    with_candidates(Cli::command(), &mut Vec::new())
}

fn with_candidates(command: Command, path: &mut Vec<String>) -> Command {
    let names: Vec<String> = path.clone();
    let command = command.mut_args(|arg| match kind_of(&names, &arg) {
        Some(kind) => arg.add(ArgValueCandidates::new(move || values(kind))),
        None => arg,
    });
    command.mut_subcommands(|inner| {
        path.push(inner.get_name().to_owned());
        let inner = with_candidates(inner, path);
        path.pop();
        inner
    })
}

/// The kind of thing that an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Task,
    Worktree,
    RemovedWorktree,
    Team,
    List,
    Agent,
    Member,
    Runtime,
    Lead,
    Type,
    Request,
    Status,
    Priority,
    /// A team, an agent or a task with work to look at.
    Work,
    /// A run that has ended, or a team.
    Run,
    /// A task of the plan that is named on the line.
    PlanTask,
}

/// The kind of thing that the argument of the command at `path` names; `None` if ccb cannot list
/// its values.
fn kind_of(path: &[String], arg: &Arg) -> Option<Kind> {
    let id = arg.get_id().as_str();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (path.as_slice(), id) {
        (_, "team") if arg.is_global_set() => Some(Kind::Team),
        (["undo"], "what") => Some(Kind::Task),
        (_, "list") if arg.is_global_set() => Some(Kind::List),
        (_, "agent") if arg.is_global_set() => Some(Kind::Member),
        ([] | ["agent", "spawn"] | ["worker"], "runtime") => Some(Kind::Runtime),
        ([], "lead") => Some(Kind::Lead),
        (["agent", "spawn"] | ["team", "join"], "agent_type") => Some(Kind::Type),
        (["agent", "types"], "name") => Some(Kind::Type),
        (["agent", "spawn"], "fork") => Some(Kind::Agent),
        (["agent", ..], "who") => Some(Kind::Agent),
        (["team", "join" | "leave" | "show" | "delete"], "name") => Some(Kind::Team),
        (["mail", "send"], "to") => Some(Kind::Member),
        (["mail", "approve" | "reject"], "id") => Some(Kind::Request),
        (["mail" | "agent", "send"], "priority") => Some(Kind::Priority),
        (["task", "list" | "update"], "status") => Some(Kind::Status),
        (["task", "list" | "update"], "owner") => Some(Kind::Member),
        (["worktree", "undo"], "name") => Some(Kind::RemovedWorktree),
        (["worktree", "bind"], "task") | (_, "task" | "tasks") => Some(Kind::Task),
        (["worktree", .., last], "name") if !["create", "enter"].contains(last) => {
            Some(Kind::Worktree)
        }
        (["cd"], "name") => Some(Kind::Worktree),
        (["fanout", ..], "only" | "skip") => Some(Kind::PlanTask),
        (["diff"], "what") => Some(Kind::Work),
        (["report"], "what") => Some(Kind::Run),
        (["task", ..], "id" | "ids" | "blocker" | "dependent" | "blocked_by" | "blocks") => {
            Some(Kind::Task)
        }
        _ => None,
    }
}

/// The existing values of this kind, as far as ccb can read them.
fn values(kind: Kind) -> Vec<CompletionCandidate> {
    let words = |all: &[(&str, &str)]| -> Vec<Candidate> {
        let each = all.iter().map(|(value, about)| Candidate {
            value: (*value).to_owned(),
            about: (*about).to_owned(),
        });
        each.collect()
    };
    let Some(workplace) = workplace() else {
        return Vec::new();
    };
    let found = match kind {
        Kind::Task => candidates::tasks(&workplace),
        Kind::Worktree => candidates::worktrees(&workplace, false),
        Kind::RemovedWorktree => candidates::worktrees(&workplace, true),
        Kind::Team => candidates::teams(&workplace),
        Kind::Run => candidates::runs(&workplace),
        Kind::List => candidates::lists(&workplace),
        Kind::Agent => candidates::agents(&workplace),
        Kind::Member => candidates::members(&workplace),
        Kind::Runtime => candidates::runtimes(&workplace),
        Kind::Lead => {
            let mut found = words(&[("me", "you, at this terminal")]);
            found.extend(candidates::runtimes(&workplace));
            found
        }
        Kind::Type => candidates::types(&workplace),
        Kind::Request => candidates::requests(&workplace),
        Kind::Status => words(&[
            ("pending", "nobody works on it"),
            ("in_progress", "an agent works on it"),
            ("completed", "it is done"),
        ]),
        Kind::Priority => words(&[
            ("now", "interrupts the agent"),
            ("next", "at its next step"),
            ("later", "when it is idle"),
        ]),
        Kind::PlanTask => {
            let plan = PLAN.get().and_then(Option::as_ref);
            let plan = plan.map(|plan| workplace.directory.join(plan));
            plan.map(|plan| candidates::plan_tasks(&plan))
                .unwrap_or_default()
        }
        Kind::Work => {
            let mut found = candidates::tasks(&workplace);
            found.extend(candidates::worktrees(&workplace, false));
            found
        }
    };
    let shown = found.into_iter().enumerate().map(|(place, candidate)| {
        let about = fit(&clean_line(&candidate.about), DESCRIPTION);
        CompletionCandidate::new(candidate.value)
            .help((!about.is_empty()).then(|| about.into()))
            .tag(Some("values".to_owned().into()))
            .display_order(Some(place))
    });
    shown.collect()
}

/// The user's project and team. A team that cannot be used here must not hide the others.
fn workplace() -> Option<Workplace> {
    let asked = ASKED.get().cloned().unwrap_or_default();
    let without_team = Asked {
        team: None,
        ..asked.clone()
    };
    let found = Workplace::open(&asked).or_else(|_| Workplace::open(&without_team));
    // A person who presses a key does not wait for a database that does not answer.
    found.ok().map(|found| found.for_view())
}

/// The flags whose value says where to look.
const PLACES: [&str; 6] = ["--team", "--list", "--as", "--home", "--board", "-C"];

/// The words with the values of those flags replaced, except in the word to complete: the engine
/// takes any word that equals a command's name for the command, and a team may be called `demo`.
fn without_names(args: &[OsString]) -> Vec<OsString> {
    let mut words = args.to_vec();
    let start = words.iter().position(|word| word == "--");
    let start = start.map_or(0, |start| start + 1);
    let index = ["_CLAP_COMPLETE_INDEX", bash::INDEX].into_iter();
    let index = index.filter_map(|name| std::env::var(name).ok()?.parse::<usize>().ok());
    let index = index.map(|index| index + start).next();
    let completed = index.unwrap_or(words.len().saturating_sub(1));
    for n in start + 1..words.len() {
        // Bash splits `--team=demo` and makes the sign a word.
        let before = match words[n - 1] == "=" {
            true => n.checked_sub(2),
            false => Some(n - 1),
        };
        let flag = before.and_then(|before| words[before].to_str());
        let is_sign = words[n] == "=";
        if n != completed && !is_sign && flag.is_some_and(|flag| PLACES.contains(&flag)) {
            words[n] = "_".into();
        }
    }
    words
}

/// The flags in the words typed so far that say where to look.
fn asked(args: &[OsString]) -> Asked {
    let mut asked = Asked::default();
    let mut words = args.iter().skip_while(|word| *word != "--").skip(2);
    let mut next = words.next();
    while let Some(word) = next {
        let text = word.to_str().unwrap_or_default();
        let (flag, mut value) = match text.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(OsString::from(value))),
            _ => (text, None),
        };
        if PLACES.contains(&flag) && value.is_none() {
            value = words.next().cloned();
            // Bash splits `--team=x` and makes the sign a word.
            if value.as_ref().is_some_and(|value| value == "=") {
                value = words.next().cloned();
            }
        }
        let name = || value.clone().and_then(|value| value.into_string().ok());
        match flag {
            "--team" => asked.team = name(),
            "--list" => asked.list = name(),
            "--as" => asked.agent = name(),
            "--board" => asked.board = name(),
            "--home" => asked.home = value.map(PathBuf::from),
            "-C" => asked.directory = value.map(PathBuf::from),
            "--" => break,
            _ => {}
        }
        next = words.next();
    }
    let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    asked.team = asked.team.take().filter(|team| !team.is_empty());
    if !filled(&asked.list) {
        asked.list = None;
    }
    if !filled(&asked.agent) {
        asked.agent = None;
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects every argument of every command with the kind of thing it names.
    fn arguments(command: &Command, path: &mut Vec<String>, found: &mut Vec<(String, String)>) {
        for arg in command.get_arguments().filter(|arg| !arg.is_global_set()) {
            if kind_of(path, arg).is_none() {
                let name = arg.get_value_names().and_then(|names| names.first());
                let name = name.map(ToString::to_string).unwrap_or_default();
                found.push((format!("{} {}", path.join(" "), arg.get_id()), name));
            }
        }
        for inner in command.get_subcommands() {
            path.push(inner.get_name().to_owned());
            arguments(inner, path, found);
            path.pop();
        }
    }

    #[test]
    fn whatever_can_be_listed_is_completed() {
        let mut without = Vec::new();
        arguments(&Cli::command(), &mut Vec::new(), &mut without);
        let listable = ["ID", "AGENT", "TASK", "TYPE", "WORKTREE", "TEAM", "PARENT"];
        // The id of a message, which no person remembers.
        let known = ["mail send reply_to"];
        without.retain(|(path, name)| {
            listable.contains(&name.as_str()) && !known.contains(&path.as_str())
        });
        assert_eq!(without, [], "say in `kind_of` what these name");
    }

    #[test]
    fn flags_before_the_word_say_where_to_look() {
        let line = "ccb -- ccb --team x -C /tmp task show --home=/h --as bob --list  ";
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let asked = asked(&args);
        assert_eq!(asked.team.as_deref(), Some("x"));
        assert_eq!(asked.directory, Some("/tmp".into()));
        assert_eq!(asked.home, Some("/h".into()));
        assert_eq!(asked.agent.as_deref(), Some("bob"));
        assert_eq!(asked.list, None, "nothing is typed yet");
    }

    #[test]
    fn every_shell_gets_a_script() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let script = script(shell).unwrap();
            assert!(
                script.contains(VARIABLE) && script.contains("ccb"),
                "{shell}"
            );
        }
    }
}
