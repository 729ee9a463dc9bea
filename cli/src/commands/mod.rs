//! One file per command: its arguments and what it does.

pub(crate) mod agent;
mod board;
mod cd;
mod clean;
pub(crate) mod completion;
mod completions;
mod demo;
mod diff;
mod doctor;
pub(crate) mod fanout;
mod land;
mod mail;
mod man;
pub(crate) mod mcp;
mod reject;
mod report;
mod runs;
mod shell_init;
mod status;
mod task;
mod team;
mod top;
mod trust;
mod undo;
mod watch;
mod web;
mod worker;
pub(crate) mod worktree;

use clap::{CommandFactory, Parser, Subcommand};
use store::Failure;

use crate::args::Global;
use crate::context::Context;
use crate::exit::Exit;
use crate::session;
use crate::session::SessionArgs;
use crate::signals;

/// Run many coding agents on one git repository at once
#[derive(Debug, Parser)]
#[command(name = "ccb", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The commands of `ccb`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create, claim, complete and watch tasks
    #[command(subcommand, visible_alias = "tasks")]
    Task(Box<task::TaskCommand>),
    /// Create, join and delete teams
    #[command(subcommand, visible_alias = "teams")]
    Team(team::TeamCommand),
    /// Send and read messages, answer requests
    #[command(subcommand)]
    Mail(Box<mail::MailCommand>),
    /// Create, inspect, merge, remove and restore git worktrees
    #[command(subcommand, visible_aliases = ["worktrees", "wt"])]
    Worktree(Box<worktree::WorktreeCommand>),
    /// Start, watch, message, stop and resume agents
    #[command(visible_alias = "agents")]
    Agent(Box<agent::AgentArgs>),
    /// Run a plan of many tasks: every result is checked, one report
    Fanout(Box<fanout::FanoutArgs>),
    /// Work on a board that several machines share, with this machine's agents
    ///
    /// It takes tasks it can do, runs each in a worktree, checks the result and sends it to the git
    /// remote before the task is completed. The first SIGTERM or Ctrl-C lets running tasks finish, the
    /// second stops them: their tasks are free again.
    Worker(Box<worker::WorkerArgs>),
    /// Show where the board is kept, and prepare a database for it
    #[command(subcommand)]
    Board(board::BoardCommand),
    /// Serve the board, mail and agents as MCP tools to one client
    Mcp(mcp::McpArgs),
    /// Show what was changed for a task, by an agent or in a worktree
    Diff(diff::DiffArgs),
    /// Put the work on tasks onto a branch, checked
    ///
    /// Work that conflicts, or does not pass its check on the merged result, moves nothing (exit 8, 1).
    /// `ccb undo` takes a landing back.
    Land(land::LandArgs),
    /// Send a task's result back with feedback for its next attempt
    ///
    /// The next attempt starts from the work as it is: an agent that is a model resumes in its
    /// worktree, otherwise a new attempt begins with that work.
    Reject(reject::RejectArgs),
    /// Take a landing off its branch again
    ///
    /// The branch goes back to where it stood if nothing is on top and no other branch, tag or remote
    /// has the commit. Otherwise a revert commit lands, if it passes the session's --verify, --check and
    /// the checks of everything that landed later. The task stays completed, marked as undone: `ccb land`
    /// lands it again, `ccb reject` sends it back.
    Undo(undo::UndoArgs),
    /// Show how everything stands: session, tasks, agents, requests, worktrees
    Status(status::StatusArgs),
    /// Watch and steer everything that runs here, live: agents, board, transcripts, what needs you
    ///
    /// Any number of people can watch; another process may direct what is shown. Press ? for the keys.
    Top(top::TopArgs),
    /// Report on a session, a plan or an agent: figures, timeline, tasks, diffs, cost
    ///
    /// It is read from what is on disk, while something runs and after. `--html` writes one file that
    /// opens anywhere: it asks for nothing, runs no script, and has no secrets that ccb knows of.
    Report(report::ReportArgs),
    /// List sessions and plans that have ended, with what each cost and landed
    Runs(runs::RunsArgs),
    /// Show everything that runs here in a browser: board, agents, diffs, answers
    ///
    /// The page is served to this machine alone and needs the token in the address it prints. It does
    /// nothing that commands cannot do.
    Web(web::WebArgs),
    /// List and remove what ccb left in this repository, keeping work that has not landed
    ///
    /// Work that has not landed and tasks that are not done stay without --all; what is in use always
    /// stays. After --all nothing can be brought back by `ccb undo` and `ccb worktree undo`.
    Clean(clean::CleanArgs),
    /// Find damage (tasks, worktrees, runs, rosters, mail), and repair it with --fix
    Doctor(doctor::DoctorArgs),
    /// Allow this repository's hooks, setup, runtimes and MCP servers to run
    Trust(trust::TrustArgs),
    /// See ccb work: agents repair a small repository (no key, no network)
    Demo(demo::DemoArgs),
    /// Change into a worktree, or back to the main one (after `ccb shell-init`)
    Cd(cd::CdArgs),
    /// Print what your shell needs for `ccb cd` and completions
    ShellInit(shell_init::ShellInitArgs),
    /// Print only the completions for your shell
    Completions(completions::CompletionsArgs),
    /// Print the manual as a man page, or write one page per command
    Man(man::ManArgs),
}

/// True if the command first settles dead runs.
fn looks_at_runs(cli: &Cli) -> bool {
    matches!(
        &cli.command,
        Some(
            Command::Mcp(_)
                | Command::Task(_)
                | Command::Team(_)
                | Command::Mail(_)
                | Command::Worktree(_)
                | Command::Agent(_)
                | Command::Status(_)
                | Command::Top(_)
                | Command::Diff(_)
                | Command::Land(_)
                | Command::Reject(_)
                | Command::Undo(_)
                | Command::Clean(_)
                | Command::Report(_)
        )
    )
}

/// True if the command may start git and is ended by a signal in the usual way.
fn starts_git(cli: &Cli) -> bool {
    matches!(
        &cli.command,
        Some(
            Command::Worktree(_)
                | Command::Agent(_)
                | Command::Team(_)
                | Command::Mcp(_)
                | Command::Diff(_)
                | Command::Land(_)
                | Command::Reject(_)
                | Command::Undo(_)
                | Command::Report(_)
                | Command::Clean(_)
                | Command::Doctor(_)
                | Command::Trust(_)
        )
    )
}

impl Cli {
    /// True if the command repairs things.
    pub(crate) fn repairs(&self) -> bool {
        matches!(self.command, Some(Command::Doctor(_) | Command::Board(_)))
    }
}

/// Runs the command, which the table of rights calls `name`.
pub(crate) fn run(cli: &Cli, name: &str, context: &mut Context) -> Result<Exit, Failure> {
    if cli.command.is_some() {
        project::rights::check(name, context)?;
    }
    if starts_git(cli) {
        signals::end_programs_first();
    }
    if looks_at_runs(cli) {
        context.settle_dead_runs();
    }
    check_board(cli, context)?;
    if cli.command.is_some() && !cli.session.is_empty() {
        return Err(misplaced(&cli.session, name));
    }
    match &cli.command {
        Some(Command::Task(command)) => task::run(command, context),
        Some(Command::Board(command)) => board::run(command, context),
        Some(Command::Team(command)) => team::run(command, context),
        Some(Command::Mail(command)) => mail::run(command, context),
        Some(Command::Worktree(command)) => worktree::run(command, context),
        Some(Command::Agent(args)) => agent::run(args, context),
        Some(Command::Fanout(args)) => fanout::run(args, context),
        Some(Command::Worker(args)) => worker::run(args, context),
        Some(Command::Mcp(args)) => mcp::run(args, context),
        Some(Command::Clean(args)) => clean::run(args, context),
        Some(Command::Diff(args)) => diff::run(args, context),
        Some(Command::Land(args)) => land::run(args, context),
        Some(Command::Reject(args)) => reject::run(args, context),
        Some(Command::Undo(args)) => undo::run(args, context),
        Some(Command::Status(args)) => status::run(args, context),
        Some(Command::Top(args)) => top::run(args, context),
        Some(Command::Web(args)) => web::run(args, context),
        Some(Command::Report(args)) => report::run(args, context),
        Some(Command::Runs(args)) => runs::run(args, context),
        Some(Command::Man(args)) => man::run(args, context),
        Some(Command::Doctor(args)) => doctor::run(args, context),
        Some(Command::Trust(args)) => trust::run(args, context),
        Some(Command::Demo(args)) => demo::run(args, context),
        Some(Command::Cd(args)) => cd::run(args, context),
        Some(Command::ShellInit(args)) => shell_init::run(args, context),
        Some(Command::Completions(args)) => completions::run(args, context),
        None => {
            let named = cli.global.team.is_some() || cli.session.coordinates();
            // A prompt is a sentence; a word that is nearly a command was meant as one.
            if let Some(word) = cli.session.prompt.first()
                && !is_sentence(&cli.session.prompt)
                && (!named || nearly_a_command(word))
            {
                return Err(unknown(&cli.session.prompt));
            }
            if named || !cli.session.prompt.is_empty() {
                project::rights::check(name, context)?;
                return session::run(&cli.session, context);
            }
            if !cli.session.is_empty() {
                let error = Failure::usage("usage", "a session needs a team");
                return Err(error.with_hint("`ccb --team NAME [PROMPT]` starts or resumes one"));
            }
            let message = "say what to do";
            if !context.out.is_json() {
                context
                    .out
                    .note(&Cli::command().render_help().ansi().to_string());
            }
            Err(Failure::usage("usage", message).with_hint("for example `ccb task list`"))
        }
    }
}

/// Refuses a command that does not work on a board in a database yet, rather than working on this
/// machine's files.
fn check_board(cli: &Cli, context: &Context) -> Result<(), Failure> {
    let refused = matches!(&cli.command, Some(Command::Clean(_) | Command::Demo(_)));
    if !refused || !context.is_in_database() {
        return Ok(());
    }
    let message = "this command does not work on a board in a database yet";
    Err(Failure::usage("board_not_supported", message)
        .with_hint("use the files of this machine with --board files"))
}

/// The error for a session's flags before a command, which does not take them.
fn misplaced(session: &SessionArgs, command: &str) -> Failure {
    let given = session.given();
    let mut cli = Cli::command();
    cli.build();
    let mut inner = &cli;
    for word in command.split_whitespace() {
        inner = inner.find_subcommand(word).unwrap_or(inner);
    }
    let own = |flag: &&&str| {
        let long = flag.trim_start_matches("--");
        inner
            .get_arguments()
            .any(|arg| arg.get_long() == Some(long))
    };
    let command = command.split(" --").next().unwrap_or(command);
    let verb = if given.len() == 1 {
        "belongs"
    } else {
        "belong"
    };
    let flags = given.join(", ");
    let message = format!("{flags} before `{command}` {verb} to a session, not to a command");
    let hint = match given.iter().find(own) {
        Some(flag) => format!("put it after the command: `ccb {command} {flag} …`"),
        None => {
            "leave it out; `ccb --team NAME [PROMPT]` without a command starts a session".into()
        }
    };
    Failure::usage("usage", message).with_hint(hint)
}

/// True if these arguments are one prompt: one argument of several words.
fn is_sentence(arguments: &[String]) -> bool {
    matches!(arguments, [one] if one.trim().contains(char::is_whitespace))
}

/// The error for words that are no command, and no prompt either because there is no team.
fn unknown(words: &[String]) -> Failure {
    let word = words.first().map(String::as_str).unwrap_or_default();
    let message = format!("there is no command {word:?}");
    let hint = match nearest_command(word) {
        Some(near) => format!("did you mean `ccb {near}`?"),
        None if words.len() > 1 => {
            format!("a prompt goes in quotes: ccb {:?}", words.join(" "))
        }
        None => {
            "`ccb --help` lists the commands; `ccb \"make the tests pass\"` starts a session".into()
        }
    };
    Failure::usage("usage", message).with_hint(hint)
}

fn nearly_a_command(word: &str) -> bool {
    !word.contains(char::is_whitespace) && nearest_command(word).is_some()
}

fn nearest_command(word: &str) -> Option<String> {
    let cli = Cli::command();
    let known: Vec<&str> = cli
        .get_subcommands()
        .flat_map(|command| command.get_name_and_visible_aliases())
        .collect();
    store::nearest(word, known).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
