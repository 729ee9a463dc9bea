//! The host: supervises one agent from its start to its end.
//!
//! One thread waits for everything at once: what the agent says, mail, somebody who wants the
//! run to end, the guard's death. Whatever happens, at the end everything the agent started is
//! ended, and the run is finished.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use store::fault::reached;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::guard::{RESULT_WRITTEN, stop_words};
use super::life::Life;
use super::life_hooks::{Hooking, Said};
use super::ports::{PortError, Ports};
use super::required;
use super::run_dir::{RunDir, RunError};
use super::stop::Why;
use crate::fault;
use crate::process::{Processes, end_descendants};
use crate::redact::Secrets;
use crate::runtime::{Agent, Event, Launch, LaunchError, Runtime};

/// How often a host looks at what nobody tells it: whether the task is still its own, whether
/// the agent seems stuck.
const TICK: Duration = Duration::from_secs(5);
/// How long those that are killed may take to die.
const DYING: Duration = Duration::from_secs(5);

/// How a host behaves.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// How long an agent may take to end by itself when it is stopped.
    pub grace: Duration,
    /// How much of what it prints is kept.
    pub output_limit: u64,
    /// After how long without a sign of life an agent that seems to wait for input is
    /// reported.
    pub stuck_after: Duration,
    /// How long a question waits for its answer.
    pub permission_deadline: Duration,
    /// What must not be written down.
    pub secrets: Arc<Secrets>,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5),
            output_limit: 8 * 1024 * 1024,
            stuck_after: Duration::from_secs(45),
            permission_deadline: Duration::from_secs(120),
            secrets: Arc::new(Secrets::new(Vec::<Vec<u8>>::new())),
        }
    }
}

/// Why a host gave up. The guard finishes the run then.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A file of the run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The system.
    #[error("cannot supervise: {0}")]
    Io(#[from] io::Error),
    /// The rest of the engine.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Supervises the agent of `run` until it has ended and everything is done. Standard input is
/// the run's `alive.lock`; standard output leads to the guard.
pub fn host(
    run: &RunDir,
    runtime: &dyn Runtime,
    mut launch: Launch,
    ports: &mut dyn Ports,
    options: &HostOptions,
) -> Result<(), HostError> {
    // In case the guard dies before its end of the pipe is watched.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(io::Error::from)?;
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    reached(fault::RUN_HOSTED);
    let exit = tokio.block_on(async {
        let processes = Processes::adopting()?;
        let (hooking, said) = Hooking::new(&processes);
        let mut life = Life::begin(run.clone(), runtime.abilities(), ports, options, hooking)?;
        if let Some(prompt) = life.next_prompt() {
            launch.prompt = prompt;
            launch
                .permission_mode
                .clone_from(&life.meta.permission_mode);
        }
        let mut terminate = signal(SignalKind::terminate())?;
        if may_start(&mut life, &mut launch, &processes, &mut terminate).await? {
            life.prompt(&launch.prompt);
            let others = processes.running();
            match runtime.launch(launch, &processes) {
                Ok(agent) => {
                    reached(fault::RUN_LAUNCHED);
                    life.launched(&processes, &others);
                    let heard = Heard { said, terminate };
                    live(&mut life, agent, &processes, heard).await?;
                }
                Err(error) => life.not_launched(&launch_words(&error)),
            }
        }
        reached(fault::RUN_OVER);
        let left = end_descendants(DYING);
        life.swept(&left);
        Ok::<_, HostError>(life.exit())
    })?;
    let mut written = || {
        let stdout = io::stdout();
        rustix::io::write(stdout.as_fd(), &[RESULT_WRITTEN]).ok();
    };
    Ok(ports.finish(&exit, &mut written)?)
}

fn launch_words(error: &LaunchError) -> String {
    match error {
        LaunchError::Program { program, source } if source.kind() == io::ErrorKind::NotFound => {
            format!("cannot start {program:?}: there is no such program, or its directory is gone")
        }
        other => other.to_string(),
    }
}

/// What a host hears besides its agent.
struct Heard {
    said: UnboundedReceiver<Said>,
    terminate: Signal,
}

/// Looks for the servers the agent needs and lets hooks have their say on the start; what they want the agent to know is added to its
/// prompt. Whoever wants the run to end does not have to wait for them.
async fn may_start(
    life: &mut Life<'_>,
    launch: &mut Launch,
    processes: &Processes,
    terminate: &mut Signal,
) -> Result<bool, HostError> {
    let control = life.run.bell()?;
    let control = pipe::Receiver::from_owned_fd(control.as_fd().try_clone_to_owned()?)?;
    let run = life.run.clone();
    let (life_number, grace) = (life.meta.life, life.options.grace);
    let stopped = async {
        loop {
            if let Ok(Some(stop)) = run.stop_request(life_number) {
                return Why::Asked(stop_words(&stop.by, stop.reason));
            }
            tokio::select! {
                heard = rung(Some(&control)) => {
                    if heard.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                _ = terminate.recv() => return match guard_is_dead() {
                    true => Why::GuardDied,
                    false => Why::Asked("its host got SIGTERM".into()),
                },
            }
        }
    };
    let answer = tokio::select! {
        biased;
        answer = async {
            required::servers(launch, processes).await?;
            life.ask_to_start().await
        } => answer,
        why = stopped => {
            life.stopping.begin(why, grace, false);
            return Ok(false);
        }
    };
    match answer {
        Ok(context) if context.is_empty() => Ok(true),
        Ok(context) => {
            if life.meta.runtime.kind == "shell" {
                // Its prompt is a command.
                life.record.note("a command cannot be given context");
            } else {
                launch.prompt = format!("{}\n\n{}", launch.prompt, context.join("\n\n"));
            }
            Ok(true)
        }
        Err(why) => {
            life.not_launched(&why);
            Ok(false)
        }
    }
}

/// Takes part in the agent's life until it has ended.
async fn live(
    life: &mut Life<'_>,
    mut agent: Agent,
    processes: &Processes,
    heard: Heard,
) -> Result<(), HostError> {
    let control = life.run.bell()?;
    let control = pipe::Receiver::from_owned_fd(control.as_fd().try_clone_to_owned()?)?;
    let mail = match life.mail_bell() {
        Some(bell) => Some(pipe::Receiver::from_owned_fd(bell?)?),
        None => None,
    };
    let guard = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
    let Heard {
        mut said,
        mut terminate,
    } = heard;
    let mut tick = interval_at(Instant::now() + TICK, TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    life.look_for_stop(&agent.orders, processes);
    life.fetch_mail(&agent.orders).await;
    let mut guarded = true;
    let mut over = false;
    loop {
        // A program that has ended may still wait for what hooks say about its end.
        if over && (life.stopping.why().is_some() || !life.hooking.pending()) {
            return Ok(());
        }
        let due = life.next_due();
        tokio::select! {
            event = agent.events.recv(), if !over => match event {
                None => {
                    life.ended(None);
                    over = true;
                }
                Some(Event::Ended(ending)) => {
                    life.ended(Some(ending));
                    over = true;
                }
                Some(event) => life.event(event, &agent.orders).await,
            },
            Some(said) = said.recv() => life.hooks_said(said, &agent.orders).await,
            heard = rung(Some(&control)) => {
                heard?;
                life.look_for_stop(&agent.orders, processes);
            }
            heard = rung(mail.as_ref()) => {
                heard?;
                life.fetch_mail(&agent.orders).await;
            }
            ready = guard.ready(Interest::ERROR), if guarded => {
                ready?;
                guarded = false;
                life.stop(Why::GuardDied, &agent.orders, processes);
            }
            _ = terminate.recv() => {
                // Either somebody wants us to end, or the guard has died.
                let why = if guard_is_dead() {
                    Why::GuardDied
                } else {
                    Why::Asked("its host got SIGTERM".into())
                };
                life.stop(why, &agent.orders, processes);
            }
            () = at(due) => life.due(&agent.orders, processes),
            _ = tick.tick() => life.tick(&agent.orders, processes),
        }
    }
}

/// Waits for a bell that need not be there, and takes in all its rings.
async fn rung(bell: Option<&pipe::Receiver>) -> io::Result<()> {
    let Some(bell) = bell else {
        return std::future::pending().await;
    };
    loop {
        bell.readable().await?;
        let mut rings = [0; 1024];
        let mut heard = false;
        while matches!(bell.try_read(&mut rings), Ok(1..)) {
            heard = true;
        }
        if heard {
            return Ok(());
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Whoever dies leaves its children to another subreaper, or to init.
fn guard_is_dead() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec};
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
}
