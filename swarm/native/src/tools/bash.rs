//! Bash: commands, at once or in the background.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use swarm::process::Processes;

use super::captured::Captured;
use super::input::Input;
use super::process::{Next, Running};
use super::{BoxFuture, Call, Cancel, Tool, ToolOutput, ToolSpec};

const USUAL_MS: u64 = 120_000;
const MOST_MS: u64 = 600_000;
/// The kernel passes no longer argument on.
const MAX_COMMAND: usize = 100 * 1024;
/// Maximum commands in the background at once.
const MOST_BACKGROUND: usize = 16;

/// Runs commands of one agent.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) cwd: PathBuf,
    /// The shell.
    pub(super) program: OsString,
    pub(super) env: Vec<(OsString, OsString)>,
    /// The words before a command that confine it; or the reason why no command may run.
    pub(super) confined: Result<Vec<OsString>, String>,
    /// The same for one that changes nothing in the worktree.
    pub(super) reading: Result<Vec<OsString>, String>,
    /// True if commands must not change the worktree now.
    pub(super) read_only: AtomicBool,
    pub(super) background: Background,
    /// The process that starts commands; `None` if this one does.
    pub(super) processes: Option<Processes>,
}

/// Commands that run beside the conversation.
#[derive(Debug, Default)]
pub(super) struct Background {
    count: AtomicU64,
    commands: Mutex<BTreeMap<u64, Arc<Command>>>,
}

#[derive(Debug)]
struct Command {
    line: String,
    stop: Cancel,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    output: Captured,
    ended: Option<String>,
}

impl Command {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Background {
    /// True if there was ever one.
    pub(super) fn is_used(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for command in self.commands().values() {
            command.stop.cancel();
        }
    }
}

impl Background {
    fn commands(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Command>>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Result<Arc<Command>, String> {
        let number = id.strip_prefix("bash_").unwrap_or(id).parse().ok();
        let commands = self.commands();
        let found = number.and_then(|number: u64| commands.get(&number));
        found.cloned().ok_or_else(|| {
            let known: Vec<String> = commands.keys().map(|n| format!("bash_{n}")).collect();
            match known.is_empty() {
                true => format!("There is no background command {id:?}; none was started."),
                false => format!(
                    "There is no background command {id:?}; there are: {}.",
                    known.join(", ")
                ),
            }
        })
    }
}

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "Bash".into(),
        description: format!(
            "Runs a command with bash in the working directory, without a terminal or input. Each \
             call starts anew: cd and variables do not last. timeout is in ms (default {USUAL_MS}, at \
             most {MOST_MS}). With run_in_background it returns at once: read its output with \
             BashOutput, end it with KillShell. Use the file tools to read, search and edit files."
        ),
        input_schema: json!({
            "type": "object",
            "properties": {
                "command": { "type": "string" },
                "timeout": { "type": "integer" },
                "description": { "type": "string", "description": "what it does, in 5 to 10 words" },
                "run_in_background": { "type": "boolean" },
            },
            "required": ["command"],
        }),
        reads_only: false,
    }
}

fn output_spec() -> ToolSpec {
    ToolSpec {
        name: "BashOutput".into(),
        description:
            "Shows what a background command has printed since the last call, and whether it \
                      still runs."
                .into(),
        input_schema: json!({
            "type": "object",
            "properties": { "bash_id": { "type": "string" } },
            "required": ["bash_id"],
        }),
        reads_only: true,
    }
}

fn kill_spec() -> ToolSpec {
    ToolSpec {
        name: "KillShell".into(),
        description: "Ends a background command.".into(),
        input_schema: json!({
            "type": "object",
            "properties": { "shell_id": { "type": "string" } },
            "required": ["shell_id"],
        }),
        reads_only: false,
    }
}

/// The tools that run commands.
pub(super) fn tools(shell: &Arc<Shell>) -> Vec<Arc<dyn Tool>> {
    let tool = |spec, kind| {
        let shell = Arc::clone(shell);
        Arc::new(ShellTool { spec, kind, shell }) as Arc<dyn Tool>
    };
    vec![
        tool(spec(), Kind::Run),
        tool(output_spec(), Kind::Output),
        tool(kill_spec(), Kind::Kill),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Run,
    Output,
    Kill,
}

struct ShellTool {
    spec: ToolSpec,
    kind: Kind,
    shell: Arc<Shell>,
}

impl Tool for ShellTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, call: &'a Call) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let done = match self.kind {
                Kind::Run => self.shell.run(input, call).await,
                Kind::Output => self.shell.output(input),
                Kind::Kill => self.shell.kill(input),
            };
            done.unwrap_or_else(ToolOutput::error)
        })
    }
}

impl Shell {
    async fn run(&self, input: Value, call: &Call) -> Result<ToolOutput, String> {
        let known = ["command", "timeout", "description", "run_in_background"];
        let input = Input::new(input, &known)?;
        let line = input.needed("command")?;
        if line.trim().is_empty() || line.contains('\0') {
            return Err("command is empty or contains a NUL byte.".into());
        }
        if line.len() > MAX_COMMAND {
            return Err(format!(
                "command is longer than {MAX_COMMAND} bytes. Write a script with Write and run that."
            ));
        }
        let limit = input
            .number("timeout")?
            .unwrap_or(USUAL_MS)
            .clamp(1, MOST_MS);
        let background = input.flag("run_in_background")?;
        let running = self.start(line)?;
        match background {
            true => self.leave(line, running),
            false => {
                call.say(line);
                Ok(watch(running, Duration::from_millis(limit)).await)
            }
        }
    }

    fn start(&self, line: &str) -> Result<Running, String> {
        let before = match self.read_only.load(Ordering::Relaxed) {
            true => &self.reading,
            false => &self.confined,
        };
        let mut words = before
            .clone()
            .map_err(|why| format!("Cannot run it: {why}."))?;
        words.extend([self.program.clone(), "-c".into(), line.into()]);
        let started = Running::start(&words, &self.cwd, &self.env, self.processes.as_ref());
        started.map_err(|error| format!("Cannot run it in {}: {error}.", self.cwd.display()))
    }

    fn leave(&self, line: &str, running: Running) -> Result<ToolOutput, String> {
        let mut commands = self.background.commands();
        let alive = |command: &&Arc<Command>| command.state().ended.is_none();
        if commands.values().filter(alive).count() >= MOST_BACKGROUND {
            return Err(format!(
                "{MOST_BACKGROUND} background commands run already. End one with KillShell."
            ));
        }
        let number = self.background.count.fetch_add(1, Ordering::Relaxed) + 1;
        let command = Arc::new(Command {
            line: line.to_owned(),
            stop: Cancel::default(),
            state: Mutex::default(),
        });
        commands.insert(number, Arc::clone(&command));
        tokio::spawn(follow(running, command));
        Ok(ToolOutput::ok(format!(
            "Started in the background as bash_{number}."
        )))
    }

    fn output(&self, input: Value) -> Result<ToolOutput, String> {
        let input = Input::new(input, &["bash_id"])?;
        let command = self.background.find(input.needed("bash_id")?)?;
        let mut state = command.state();
        let printed = state.output.take();
        let status = state.ended.as_deref().unwrap_or("It still runs.");
        let printed = match printed.trim_end() {
            "" => "[no new output]",
            text => text,
        };
        Ok(ToolOutput::ok(format!("{printed}\n[{status}]")))
    }

    fn kill(&self, input: Value) -> Result<ToolOutput, String> {
        let input = Input::new(input, &["shell_id"])?;
        let command = self.background.find(input.needed("shell_id")?)?;
        if let Some(ended) = &command.state().ended {
            return Ok(ToolOutput::ok(format!("It has ended before. {ended}")));
        }
        command.stop.cancel();
        let line: String = command.line.chars().take(200).collect();
        Ok(ToolOutput::ok(format!("Ended: {line}")))
    }
}

/// Waits for a command whose output is wanted.
async fn watch(mut running: Running, limit: Duration) -> ToolOutput {
    let mut output = Captured::default();
    let until = tokio::time::Instant::now() + limit;
    loop {
        let next = tokio::time::timeout_at(until, running.next()).await;
        match next {
            Ok(Ok(Next::Output(bytes))) => output.push(&bytes),
            Ok(Ok(Next::Ended(status))) => return ended(&mut output, status),
            Ok(Err(error)) => return ToolOutput::error(format!("Cannot follow it: {error}.")),
            Err(_) => {
                running.end().await;
                let text = output.take();
                return ToolOutput::error(format!(
                    "{}\n[It was ended after {} ms. Give a longer timeout, or run it in the \
                     background.]",
                    text.trim_end(),
                    limit.as_millis()
                ));
            }
        }
    }
}

fn ended(output: &mut Captured, status: ExitStatus) -> ToolOutput {
    let text = output.take();
    let text = text.trim_end();
    match (status.success(), text) {
        (true, "") => ToolOutput::ok("[It printed nothing.]"),
        (true, text) => ToolOutput::ok(text),
        (false, "") => ToolOutput::error(format!("[{}]", in_words(status))),
        (false, text) => ToolOutput::error(format!("{text}\n[{}]", in_words(status))),
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("Exit code {code}."),
        (None, Some(signal)) => format!("Ended by signal {signal}."),
        (None, None) => "It is gone.".into(),
    }
}

/// Takes in what a background command prints, until it ends or is ended.
async fn follow(mut running: Running, command: Arc<Command>) {
    let ended = loop {
        let next = tokio::select! {
            biased;
            () = command.stop.cancelled() => {
                running.end().await;
                break "Ended by KillShell.".to_owned();
            }
            next = running.next() => next,
        };
        match next {
            Ok(Next::Output(bytes)) => command.state().output.push(&bytes),
            Ok(Next::Ended(status)) => break in_words(status),
            Err(error) => break format!("Its output cannot be read: {error}."),
        }
    };
    command.state().ended = Some(ended);
}
