//! All tools of one agent.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use swarm::definitions::PermissionMode;
use swarm::process::Processes;
use swarm::sandbox::{self, Confinement, Sandbox, tree_around};
use swarm::tools::{EDITING, OWN_SERVER, Reach, SHELL, ToolFilter};

use super::bash::{self, Background, Shell};
use super::files::{FileTool, FoundBelow, OnFiles};
use super::places::{Denied, Places};
use super::seen::Seen;
use super::web_fetch::{self, WebFetch};
use super::{Call, Tool, ToolOutput, ToolSpec, bounded, edit, glob, grep, read};
use crate::permission::Rules;

/// The options from which an agent's tools are made.
#[derive(Debug, Clone, Default)]
pub struct ToolboxOptions {
    /// Its working directory: commands start and relative paths begin there.
    pub cwd: PathBuf,
    /// The tools it gets.
    pub filter: ToolFilter,
    /// The access that the tools have to files.
    pub reach: Reach,
    /// The whole environment of its commands. Keys of the model have no place here; see
    /// [`environment::for_commands`](swarm::environment::for_commands).
    pub env: Vec<(OsString, OsString)>,
    /// Its temporary directory.
    pub tmp: PathBuf,
    /// The notes its team shares.
    pub scratchpad: Option<PathBuf>,
    /// Directories it may also write to, such as its memory.
    pub also_write: Vec<PathBuf>,
    /// Directories it may also read, such as those of its skills.
    pub also_read: Vec<PathBuf>,
    /// The rules of settings files; files that they deny are denied by where they really are.
    pub rules: Rules,
    /// The confinement of commands; `None` if they are not confined.
    pub sandbox: Option<Sandbox>,
    /// The ccb that confines them; `None` for this very program.
    pub helper: Option<PathBuf>,
    /// The process that starts commands; `None` if this one does.
    pub processes: Option<Processes>,
    /// Files that the model has seen before.
    pub seen: Seen,
}

/// The tools of one agent, in an order that never changes, because it is part of each request.
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    /// A copy is offered its original's tools; those it does not have itself.
    not_here: Vec<String>,
    shell: Arc<Shell>,
    confined: Result<(), String>,
    always_reads: bool,
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.tools.iter().map(|tool| &tool.spec().name);
        f.debug_list().entries(names).finish()
    }
}

impl Toolbox {
    /// The built-in tools that the filter lets through, then those of `extra` (servers' tools,
    /// Skill), sorted by name. Of two tools with one name the first counts.
    pub fn new(options: &ToolboxOptions, extra: Vec<Arc<dyn Tool>>) -> Self {
        Self::telling(options, extra, None)
    }

    /// The same; `found_below` is called with the directory in which a file was read.
    pub fn telling(
        options: &ToolboxOptions,
        mut extra: Vec<Arc<dyn Tool>>,
        found_below: Option<FoundBelow>,
    ) -> Self {
        let tree = tree_around(&options.cwd);
        let mut write = vec![options.tmp.clone()];
        write.extend(options.scratchpad.clone());
        write.extend(options.also_write.iter().cloned());
        let (read, locked) = options.rules.denied_paths();
        let denied = Denied {
            read,
            write: locked,
        };
        let places = Places::new(&options.cwd, &tree, &write, &options.also_read, denied);
        let files = FileTool::new(places, options.seen.clone(), found_below);
        let always_reads = options.reach == Reach::Reads;
        let (shell, confined) = shell(options, &tree, write, always_reads);
        let shell = Arc::new(shell);
        if fetches(options) {
            extra.push(Arc::new(WebFetch::new()));
        }
        extra.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in built_in(&files, &shell).into_iter().chain(extra) {
            let name = tool.spec().name.clone();
            let known = tools.iter().any(|other| other.spec().name == name);
            if !known && permits(&options.filter, &name) && within(options.reach, &name) {
                tools.push(tool);
            }
        }
        Self {
            tools,
            not_here: Vec::new(),
            shell,
            confined,
            always_reads,
        }
    }

    /// An error if commands are not confined although they should be; it says why.
    pub fn confined(&self) -> Result<(), &str> {
        self.confined.as_ref().copied().map_err(String::as_str)
    }

    /// True if a command was started in the background, whose output can still be asked for.
    pub(crate) fn has_background(&self) -> bool {
        self.shell.background.is_used()
    }

    /// In plan mode commands cannot change the worktree, as far as they can be confined at all.
    pub fn set_mode(&self, mode: PermissionMode) {
        let reads = self.always_reads || mode == PermissionMode::Plan;
        self.shell.read_only.store(reads, Ordering::Relaxed);
    }

    /// The model's view of the tools. The same bytes each time.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let specs = self.tools.iter().map(|tool| tool.spec().clone());
        specs.collect()
    }

    /// Requests offer these instead of its own: a copy's are those of its original.
    pub(crate) fn offer(&mut self, offered: impl Iterator<Item = ToolSpec>) {
        let names = offered.map(|tool| tool.name);
        self.not_here = names.filter(|name| self.find(name).is_none()).collect();
    }

    /// True if the tool changes nothing; `false` if there is no such tool.
    pub fn reads_only(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| tool.spec().reads_only)
    }

    /// Calls a tool. An error is a result that says so.
    pub async fn call(&self, name: &str, input: Value, call: &Call) -> ToolOutput {
        let Some(tool) = self.find(name) else {
            return self.unknown(name);
        };
        if !input.is_object() {
            let why = format!("The input of {name} must be a JSON object. Call it again.");
            return ToolOutput::error(why);
        }
        let output = tokio::select! {
            biased;
            () = call.cancel.cancelled() => {
                return ToolOutput::error(format!("{name} was cancelled before it finished."));
            }
            output = tool.call(input, call) => output,
        };
        ToolOutput {
            text: bounded(output.text),
            ..output
        }
    }

    fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    fn unknown(&self, name: &str) -> ToolOutput {
        if self.not_here.iter().any(|known| known == name) {
            return ToolOutput::error(format!(
                "{name} is for the agent that you are a copy of, not for you. Do without it, or say \
                 in your report what that agent has to do with it."
            ));
        }
        let names: Vec<&str> = self
            .tools
            .iter()
            .map(|tool| tool.spec().name.as_str())
            .collect();
        let hint = store::did_you_mean(
            name,
            names.iter().copied(),
            format!("You have: {}.", names.join(", ")),
        );
        ToolOutput::error(format!("There is no tool {name:?}; {hint}"))
    }
}

/// The shell for the agent's commands, and its confinement.
fn shell(
    options: &ToolboxOptions,
    tree: &Path,
    write: Vec<PathBuf>,
    read_only: bool,
) -> (Shell, Result<(), String>) {
    let own = PathBuf::from("/proc/self/exe");
    let helper = options.helper.as_ref().unwrap_or(&own);
    let not = || Err("agents.sandbox is off".to_owned());
    let (confined, both) = match &options.sandbox {
        None => (not(), (Ok(Vec::new()), Ok(Vec::new()))),
        Some(sandbox) => {
            let reading = Confinement::writing(write.clone(), sandbox.network);
            let also = write.into_iter().chain(sandbox.write.iter().cloned());
            let usual = Confinement::of_tree(tree, also, sandbox.network);
            match (sandbox::support(), sandbox.network) {
                (Ok(()), _) => {
                    let usual = usual.words(helper);
                    let why = usual.as_ref().err().cloned();
                    let confined = why.map_or(Ok(()), Err);
                    (confined, (usual, reading.words(helper)))
                }
                // No setting forbids the network, so running without confining it is an option.
                (Err(why), true) => (Err(why), (Ok(Vec::new()), Ok(Vec::new()))),
                (Err(why), false) => (Err(why.clone()), (Err(why.clone()), Err(why))),
            }
        }
    };
    let (usual, reading) = both;
    let shell = Shell {
        cwd: options.cwd.clone(),
        program: shell_program(options),
        env: command_env(options),
        confined: usual,
        reading,
        read_only: AtomicBool::new(read_only),
        background: Background::default(),
        processes: options.processes.clone(),
    };
    (shell, confined)
}

/// bash where it is installed, else the system's shell.
fn shell_program(options: &ToolboxOptions) -> OsString {
    let path = options.env.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, path)| path.clone()).unwrap_or_default();
    let usual = ["/bin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    let mut dirs = std::env::split_paths(&path).chain(usual);
    let bash = dirs.find_map(|dir| Some(dir.join("bash")).filter(|file| file.is_file()));
    bash.map_or_else(|| "/bin/sh".into(), PathBuf::into_os_string)
}

/// The environment of commands. A pager, an editor or a prompt would wait for ever.
fn command_env(options: &ToolboxOptions) -> Vec<(OsString, OsString)> {
    let set = [
        ("TMPDIR", options.tmp.as_os_str()),
        ("PAGER", OsStr::new("cat")),
        ("GIT_PAGER", OsStr::new("cat")),
        ("GIT_EDITOR", OsStr::new("true")),
        ("GIT_TERMINAL_PROMPT", OsStr::new("0")),
        ("TERM", OsStr::new("dumb")),
    ];
    let mut env = options.env.clone();
    env.retain(|(name, _)| !set.iter().any(|(known, _)| name == known));
    env.extend(set.map(|(name, value)| (name.into(), value.to_owned())));
    env
}

fn built_in(files: &Arc<FileTool>, shell: &Arc<Shell>) -> Vec<Arc<dyn Tool>> {
    let mut tools = bash::tools(shell);
    tools.extend([
        OnFiles::tool(edit::edit_spec(), files, |files, input, _| {
            edit::edit(files, input)
        }),
        OnFiles::tool(glob::spec(), files, glob::glob),
        OnFiles::tool(grep::spec(), files, grep::grep),
        OnFiles::tool(read::spec(), files, read::read),
        OnFiles::tool(edit::write_spec(), files, |files, input, _| {
            edit::write(files, input)
        }),
    ]);
    tools
}

/// True if the agent may read the web: a rule of the settings or a name in the agent's definition
/// allows that.
fn fetches(options: &ToolboxOptions) -> bool {
    let is_named = |entry: &String| entry.starts_with(web_fetch::NAME);
    let listed = options.filter.allowed().unwrap_or_default();
    options.rules.allow(web_fetch::NAME) || listed.iter().any(is_named)
}

/// True if an agent with this access may have the tool. One that only reads gets no editor,
/// whatever its filter says.
fn within(reach: Reach, tool: &str) -> bool {
    !(reach.is_read_only() && EDITING.contains(&tool))
}

/// True if the filter lets the tool in. The companions of Bash come with it. Our own tools may be
/// named with or without their prefix.
fn permits(filter: &ToolFilter, tool: &str) -> bool {
    let own = tool
        .strip_prefix("mcp__")
        .and_then(|rest| rest.strip_prefix(OWN_SERVER)?.strip_prefix("__"));
    match own {
        _ if matches!(tool, "BashOutput" | "KillShell") => filter.permits(SHELL),
        Some(plain) => filter.permits_own(plain),
        None => filter.permits(tool),
    }
}
