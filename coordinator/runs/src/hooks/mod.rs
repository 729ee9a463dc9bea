//! When hooks run, and the effect of their answers.
//!
//! `swarm` finds hooks, runs them and understands their answers. This module applies the answers:
//! on tasks ([`BoardHooks`]), on worktrees ([`TreeHooks`]) and, in the host of a run, on agents. A
//! change of the board or a new worktree is a short command, so a process of its own runs its hooks
//! ([`crate::run::hooks_main`]); an agent's host runs those of its agent itself, where they end
//! with it.

mod board;
mod trees;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::home::Home;
use swarm::hooks::{Done, Hook, HookEvent, HookFiles, HookInput, Hooks, Job, Outcome};
use swarm::process::MARKER;
use swarm::starter::Starter;
use swarm::trust::{Item, Places, Trust};
use worktrees::Repository;

pub use board::BoardHooks;
pub use trees::{TreeHookError, TreeHooks};

use crate::env::OWN_PROGRAM;

/// The name of a process that runs hooks for another.
pub const WORKER: &str = "__hooks";

/// The sources of hooks, and the agent that they run for.
#[derive(Debug, Clone)]
pub struct HookSource {
    /// All state; the user's own settings are there.
    pub home: Home,
    /// The directory the caller works in, where hooks run.
    pub directory: PathBuf,
    /// The session it is part of; `None` outside a session.
    pub session: Option<String>,
    /// The team it acts in.
    pub team: String,
    /// The acting agent.
    pub agent: String,
    /// The run it is part of; `None` outside a run.
    pub run: Option<String>,
    /// Maximum time to wait for a lock.
    pub lock_timeout: Duration,
    /// True if the caller is a hook itself: then no hook runs.
    pub in_hook: bool,
    /// The process whose environment hooks get.
    pub starter: Starter,
}

/// The receiver of the output of asynchronous hooks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tell {
    /// The home that holds all state.
    pub home: PathBuf,
    pub team: String,
    /// The agent that caused the event.
    pub agent: String,
    pub run: Option<String>,
}

/// The hooks to run at an event.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) run: Vec<Hook>,
    /// The hooks the repository would run if it were trusted, in words.
    pub(crate) untrusted: Vec<String>,
}

/// The message about hooks that are left out.
pub(crate) fn not_trusted_words(what: &[String]) -> String {
    format!(
        "{} of this repository is not trusted and was not run; look at it and run `ccb trust`",
        what.join(", ")
    )
}

/// The repository around a directory, as hooks see it.
#[derive(Debug, Clone)]
pub(crate) struct Surrounding {
    /// The value of `CLAUDE_PROJECT_DIR`.
    pub(crate) project: PathBuf,
    /// The worktree the directory is in.
    pub(crate) tree: PathBuf,
    /// The repository's key in the trust file; `None` outside a repository.
    pub(crate) repository: Option<String>,
}

impl Surrounding {
    pub(crate) fn of(directory: &Path) -> Self {
        let repository = Repository::discover(directory);
        let common_dir = repository.as_ref().and_then(|it| it.common_dir.to_str());
        let main = repository.as_ref().and_then(|it| it.main_tree.clone());
        let root = directory
            .ancestors()
            .find(|dir| dir.join(".git").exists())
            .filter(|_| repository.is_some());
        Self {
            project: main.unwrap_or_else(|| directory.to_owned()),
            tree: root.unwrap_or(directory).to_owned(),
            repository: common_dir.map(str::to_owned),
        }
    }

    pub(crate) fn places(&self) -> Places<'_> {
        Places {
            tree: &self.tree,
            project: &self.project,
        }
    }

    /// The hooks of the user's settings and the repository's.
    pub(crate) fn hooks(&self, home: &Home) -> Hooks {
        let inside = |name: &str| {
            let of_repository = self.repository.is_some();
            of_repository.then(|| self.project.join(".claude").join(name))
        };
        Hooks::load(&HookFiles {
            user: Some(home.path().join("settings.json")),
            project: inside("settings.json"),
            local: inside("settings.local.json"),
        })
    }

    /// The ids of everything of the repository that the user trusts. Nothing is trusted if that
    /// cannot be read.
    pub(crate) fn granted(&self, home: &Home, lock_timeout: Duration) -> Vec<String> {
        let Some(repository) = &self.repository else {
            return Vec::new();
        };
        let trust = Trust::new(home, repository, lock_timeout);
        trust.granted().unwrap_or_else(|error| {
            tracing::warn!(%error, "nothing of the repository is trusted");
            Vec::new()
        })
    }

    /// The hooks for `event`, each as it is in this very worktree now.
    pub(crate) fn choose(
        &self,
        hooks: &Hooks,
        event: HookEvent,
        agent_type: Option<&str>,
        granted: &[String],
    ) -> Chosen {
        let trusted = |hook: &Hook| granted.contains(&Item::hook(hook, self.places()).id());
        let selection = hooks.select(event, agent_type, trusted);
        let words = |hook: &&Hook| format!("the {} hook `{}`", event.as_str(), hook.command);
        Chosen {
            run: selection.run.into_iter().cloned().collect(),
            untrusted: selection.untrusted.iter().map(words).collect(),
        }
    }
}

impl HookSource {
    /// The hooks for an event that is not about one type of agent. An error says that the hooks are
    /// unknown.
    fn choose(&self, event: HookEvent) -> Result<(Surrounding, Chosen), String> {
        let around = Surrounding::of(&self.directory);
        if self.in_hook {
            return Ok((around, Chosen::default()));
        }
        let hooks = around.hooks(&self.home);
        if let Some(problem) = hooks.unreadable() {
            return Err(format!(
                "{problem}; ccb cannot tell whether it has a {} hook",
                event.as_str()
            ));
        }
        for problem in &hooks.problems {
            tracing::warn!("{problem}");
        }
        let of_event = |hook: &Hook| hook.event == event;
        if !hooks.all.iter().any(of_event) {
            return Ok((around, Chosen::default()));
        }
        let granted = around.granted(&self.home, self.lock_timeout);
        let chosen = around.choose(&hooks, event, None, &granted);
        Ok((around, chosen))
    }

    /// The input of every hook.
    fn input(&self, around: &Surrounding) -> HookInput {
        HookInput {
            cwd: self.directory.clone(),
            project: around.project.clone(),
            session_id: self.session.clone(),
            agent_id: self.run.clone(),
            team_name: Some(self.team.clone()),
            ..HookInput::default()
        }
    }

    /// Lets another process run `hooks` and waits for what they say.
    fn run(&self, event: HookEvent, hooks: Vec<Hook>, input: HookInput) -> Result<Outcome, String> {
        let job = Job {
            event,
            hooks,
            input,
            tell: Tell {
                home: self.home.path().to_owned(),
                team: self.team.clone(),
                agent: self.agent.clone(),
                run: self.run.clone(),
            },
        };
        let outcome = start(&job, &self.home, &self.starter)
            .map_err(|error| format!("the {} hooks could not be run: {error}", event.as_str()))?;
        for (command, why) in &outcome.failures {
            tracing::warn!("the {} hook `{command}` failed: {why}", event.as_str());
        }
        for message in &outcome.messages {
            tracing::warn!("{message}");
        }
        Ok(outcome)
    }
}

/// Starts the other process and reads its answer.
fn start(job: &Job<Tell>, home: &Home, starter: &Starter) -> std::io::Result<Outcome> {
    let mut command = Command::new(OWN_PROGRAM);
    command
        .args([WORKER, "-"])
        .current_dir("/")
        // Hooks are the user's commands: they get the environment of the process that acts.
        .env_clear()
        .envs(starter.environment())
        .env("CCB_HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(run) = &job.tell.run {
        // So that ccb finds what hooks leave behind when the run has ended.
        command.env(MARKER, run);
    }
    let mut worker = command.spawn()?;
    let mut line = serde_json::to_vec(job)?;
    line.push(b'\n');
    // It stays open: if this process dies, the other end sees it.
    let mut stdin = worker.stdin.take();
    if let Some(stdin) = &mut stdin {
        stdin.write_all(&line)?;
    }
    let mut said = String::new();
    if let Some(stdout) = worker.stdout.take() {
        BufReader::new(stdout).read_line(&mut said)?;
    }
    let done: Done = match serde_json::from_str(&said) {
        Ok(done) => done,
        Err(_) => {
            let how = worker.wait()?;
            return Err(std::io::Error::other(format!("no answer ({how})")));
        }
    };
    drop(stdin);
    if done.more {
        std::thread::spawn(move || worker.wait());
    } else {
        worker.wait()?;
    }
    Ok(done.outcome)
}
