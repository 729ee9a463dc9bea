//! The host: supervises one agent from its start to its end.
//!
//! One thread waits for everything at once: the agent's output, mail, requests to end the run, the
//! guard's death. Whatever happens, at the end everything the agent started is ended, and the run
//! is finished.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use store::fault::{hasten, reached};
use store::settings::{AgentLimits, QuotaSettings};
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::exit::{Exit, ExitStatus};
use super::guard::{FINISHED, RESULT_WRITTEN, stop_words};
use super::life::Life;
use super::life::hooks::{Hooking, Said};
use super::life::park::Woken;
use super::meta::RunState;
use super::parked::{Hosted, Parked};
use super::prove::prove;
use super::relay::Relay;
use super::required;
use super::run_dir::{RunDir, RunError};
use super::services::{HostServices, ServiceError};
use super::stop::Why;
use crate::fault;
use crate::process::{Keeper, Processes};
use crate::redact::Secrets;
use crate::runtime::{Agent, Event, Known, Launch, LaunchError, Runtime, Start};

/// Poll interval for changes that send no event: the claim of the task, an agent that seems stuck.
const TICK: Duration = Duration::from_secs(5);
/// Maximum time for killed processes to die.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The options of a host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Maximum time for a stopped agent to end by itself.
    pub grace: Duration,
    /// Maximum bytes of its output that are kept.
    pub output_limit: u64,
    /// Silence after which an agent that seems to wait for input is reported.
    pub stuck_after: Duration,
    /// Maximum time for a question to be answered.
    pub permission_deadline: Duration,
    /// The agent's limits.
    pub limits: AgentLimits,
    /// Time without an answer of the provider after which it ends.
    pub give_up: Duration,
    /// The secrets that must not be written down.
    pub secrets: Arc<Secrets>,
    /// Silence after which the loop of an agent in this process is given up.
    pub blocked_after: Duration,
    /// Poll interval for changes that send no event, such as the claim of the task.
    pub look_every: Duration,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5),
            output_limit: 8 * 1024 * 1024,
            stuck_after: Duration::from_secs(45),
            permission_deadline: Duration::from_secs(120),
            limits: AgentLimits::default(),
            give_up: QuotaSettings::default().give_up,
            secrets: Arc::new(Secrets::new(Vec::<Vec<u8>>::new())),
            blocked_after: Duration::from_secs(60),
            look_every: hasten(TICK),
        }
    }
}

/// The keeper of a host, its word to the guard, and the earlier state of its agent.
pub struct Premises<'a> {
    /// The keeper that starts the agent's programs, in a process that is the host of several
    /// agents.
    pub keeper: Option<Arc<Keeper>>,
    /// Tells the guard that it is written down how the run ended.
    pub result_written: &'a mut dyn FnMut(),
    /// The state of an agent that has slept without a host.
    pub parked: Option<Parked>,
}

/// The reason why a host gave up. The guard finishes the run then.
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
    Service(#[from] ServiceError),
}

impl std::fmt::Debug for Premises<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Premises").finish_non_exhaustive()
    }
}

/// Supervises the agent of `run` until it has ended and everything is done, in a process that does
/// nothing else meanwhile. The caller holds the run's `alive.lock`; standard output leads to the guard.
pub fn host(
    run: &RunDir,
    runtime: &dyn Runtime,
    launch: Launch,
    services: &mut dyn HostServices,
    options: &HostOptions,
) -> Result<(), HostError> {
    // In case the guard dies before its end of the pipe is watched.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(io::Error::from)?;
    let mut written = || tell_guard(RESULT_WRITTEN);
    let premises = Premises {
        keeper: None,
        result_written: &mut written,
        parked: None,
    };
    // A host with a process of its own never lets go of its agent.
    host_in(run, runtime, launch, services, options, premises).map(drop)
}

/// Says that everything is done for a run, and that this process waits for the next one.
pub fn host_finished() {
    tell_guard(FINISHED);
}

fn tell_guard(what: u8) {
    let stdout = io::stdout();
    // A guard that is gone hears nothing; others notice that it is gone.
    rustix::io::write(stdout.as_fd(), &[what]).ok();
}

/// The same on a thread of a process that may have more of them. Standard output leads to the
/// guard; another process holds the run's `alive.lock`. If the agent sleeps and the host has a
/// keeper, this may return before the run has ended.
pub fn host_in(
    run: &RunDir,
    runtime: &dyn Runtime,
    mut launch: Launch,
    services: &mut dyn HostServices,
    options: &HostOptions,
    premises: Premises<'_>,
) -> Result<Hosted, HostError> {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    reached(fault::RUN_HOSTED);
    launch.records = Some(run.path().to_owned());
    let check = Launch {
        cwd: launch.cwd.clone(),
        env: launch.env.clone(),
        scratch: launch.scratch.clone(),
        ..Launch::default()
    };
    let ended = tokio.block_on(async {
        let parks = premises.keeper.is_some();
        let processes = match premises.keeper {
            Some(keeper) => Processes::kept(keeper),
            None => Processes::adopting()?,
        };
        let (hooking, said) = Hooking::new(&processes);
        let terminated = premises.parked.as_ref().is_some_and(|it| it.terminated);
        let slept = premises.parked.as_ref().map(Parked::known);
        let rest = premises.parked.map(|parked| parked.rest);
        let abilities = runtime.abilities();
        let mut life = Life::begin(run.clone(), abilities, services, options, hooking, rest)?;
        let mut inputs = HostInputs::new(&life)?;
        let kind = life.meta.runtime.kind;
        let relay = Relay::start(&mut launch, kind, &processes)?;
        let may = match slept {
            None => {
                take_up(&mut life, &mut launch);
                inputs.wait_for_turn(&mut life).await?
                    && may_start(&mut life, &mut launch, &processes, &mut inputs).await?
            }
            Some(known) => match woken(&mut life, &mut launch, &inputs, terminated) {
                Woken::ForNothing => return park(life, inputs, known).map(Ended::Parked),
                woken => woken == Woken::ToWork,
            },
        };
        if may {
            life.prompt(&launch.prompt);
            life.about_to_launch();
            let others = processes.running();
            match runtime.launch(launch, &processes) {
                Ok(agent) => {
                    reached(fault::RUN_LAUNCHED);
                    life.launched(&processes, &others);
                    let known = live(&mut life, agent, &processes, &mut inputs, said, parks);
                    if let Some(known) = known.await? {
                        return park(life, inputs, known).map(Ended::Parked);
                    }
                }
                Err(error) => life.not_launched(&launch_words(&error)),
            }
        }
        reached(fault::RUN_OVER);
        life.children_have_ended(options.grace).await;
        if let Some(relay) = relay {
            relay.end().await;
        }
        let left = processes.end_all(KILL_TIMEOUT);
        life.swept(&left);
        let mut exit = life.exit();
        if exit.status == ExitStatus::Completed {
            prove(run, &mut exit, &check, services, options, &processes).await?;
        }
        services.judge(&mut exit);
        Ok::<_, HostError>(Ended::Over(Box::new(exit)))
    })?;
    match ended {
        Ended::Over(exit) => {
            services.finish(&exit, premises.result_written)?;
            Ok(Hosted::Finished)
        }
        Ended::Parked(parked) => Ok(Hosted::Parked(parked)),
    }
}

/// The result of a host's work.
enum Ended {
    /// The run is over.
    Over(Box<Exit>),
    /// The agent sleeps.
    Parked(Box<Parked>),
}

/// Lets an agent that was resumed begin with what it was resumed for.
fn take_up(life: &mut Life<'_>, launch: &mut Launch) {
    if let Some(prompt) = life.next_prompt() {
        launch.prompt = prompt;
        let mode = &life.meta.permission_mode;
        launch.permission_mode.clone_from(mode);
    }
}

/// Prepares the launch of an agent that slept without a host, so that it resumes its conversation,
/// and says what to do.
fn woken(life: &mut Life<'_>, launch: &mut Launch, inputs: &HostInputs, by_signal: bool) -> Woken {
    // First the bell, then the look: what is rung for in between is heard again.
    inputs.hush();
    if by_signal || guard_is_dead() {
        life.stop_before_start(terminated());
    }
    let woken = life.woken();
    launch.prompt.clear();
    let mode = &life.meta.permission_mode;
    launch.permission_mode.clone_from(mode);
    if let Some(session) = life.meta.session.clone() {
        launch.start = Start::Resume { session };
    }
    woken
}

/// Lets go of everything but what the next host needs.
fn park(life: Life<'_>, inputs: HostInputs, known: Known) -> Result<Box<Parked>, HostError> {
    let due = life.limits_due().map(Instant::into_std);
    Ok(Box::new(Parked {
        bells: inputs.into_bells()?,
        due,
        rest: life.into_rest(known),
        terminated: false,
    }))
}

fn launch_words(error: &LaunchError) -> String {
    match error {
        LaunchError::Program { program, source } if source.kind() == io::ErrorKind::NotFound => {
            format!("cannot start {program:?}: there is no such program, or its directory is gone")
        }
        other => other.to_string(),
    }
}

/// The host's inputs besides its agent.
struct HostInputs {
    control: pipe::Receiver,
    mail: Option<pipe::Receiver>,
    guard: pipe::Sender,
    /// True if the guard's end of the pipe is watched.
    guarded: bool,
    terminate: Signals,
}

impl HostInputs {
    fn new(life: &Life<'_>) -> Result<Self, HostError> {
        let control = life.run.bell()?;
        let mail = life.mail_bell().transpose()?;
        Ok(Self {
            control: pipe::Receiver::from_owned_fd(control.as_fd().try_clone_to_owned()?)?,
            mail: mail.map(pipe::Receiver::from_owned_fd).transpose()?,
            guard: pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?,
            guarded: true,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Takes in what the run's bell was rung for so far; the mail's is taken in with the mail.
    fn hush(&self) {
        let mut rings = [0; 1024];
        while matches!(rustix::io::read(&self.control, &mut rings), Ok(1..)) {}
    }

    /// The descriptors on which a waiter for rings has to listen.
    fn into_bells(self) -> io::Result<Vec<OwnedFd>> {
        let bells = std::iter::once(self.control).chain(self.mail);
        bells.map(pipe::Receiver::into_nonblocking_fd).collect()
    }

    /// Waits until the first turn may begin; false if the run is to end before it does.
    async fn wait_for_turn(&mut self, life: &mut Life<'_>) -> Result<bool, HostError> {
        loop {
            if life.may_begin() {
                return Ok(true);
            }
            life.look_for_stop_before_start();
            if life.end_before_start() {
                return Ok(false);
            }
            let due = life.limits_due();
            tokio::select! {
                heard = rung(Some(&self.control)) => {
                    heard?;
                    life.look_for_stop_before_start();
                }
                ready = self.guard.ready(Interest::ERROR), if self.guarded => {
                    ready?;
                    self.guarded = false;
                    life.stop_before_start(Why::GuardDied);
                }
                _ = self.terminate.recv() => life.stop_before_start(terminated()),
                () = at(due) => drop(life.end_if_late()),
            }
            if life.end_before_start() {
                return Ok(false);
            }
        }
    }

    /// Waits until the run shall end before it has begun.
    async fn stopped(&mut self, run: &RunDir, life: u32) -> Why {
        loop {
            if let Ok(Some(stop)) = run.stop_request(life) {
                return Why::Asked(stop_words(&stop.by, stop.reason));
            }
            tokio::select! {
                heard = rung(Some(&self.control)) => {
                    if heard.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                _ = self.terminate.recv() => return terminated(),
            }
        }
    }
}

/// Waits for the servers the agent needs and for the hooks of the start; texts of the hooks are
/// added to the prompt. A request to end the run does not wait for them.
async fn may_start(
    life: &mut Life<'_>,
    launch: &mut Launch,
    processes: &Processes,
    inputs: &mut HostInputs,
) -> Result<bool, HostError> {
    let run = life.run.clone();
    let (number, grace) = (life.meta.life, life.options.grace);
    let answer = tokio::select! {
        biased;
        answer = async {
            required::servers(launch, processes).await?;
            life.ask_to_start().await
        } => answer,
        why = inputs.stopped(&run, number) => {
            life.stopping.begin(why, grace, false);
            return Ok(false);
        }
    };
    match answer {
        Ok(context) if context.is_empty() => Ok(true),
        Ok(context) => {
            if !life.meta.runtime.kind.has_model() {
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

/// The reason to end after a signal: a request, or the guard's death.
fn terminated() -> Why {
    if guard_is_dead() {
        Why::GuardDied
    } else {
        Why::Asked("its host got SIGTERM".into())
    }
}

/// Takes part in the agent's life until it has ended; or, if the host may do without a thread
/// (`parks`), until it sleeps: then what it knows is returned.
async fn live(
    life: &mut Life<'_>,
    mut agent: Agent,
    processes: &Processes,
    inputs: &mut HostInputs,
    mut said: UnboundedReceiver<Said>,
    parks: bool,
) -> Result<Option<Known>, HostError> {
    let often = life.options.look_every.min(life.options.blocked_after);
    let mut tick = interval_at(Instant::now() + often, often);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    life.look_for_stop(&agent.orders, processes);
    life.fetch_mail(&agent.orders).await;
    life.leave_if_agreed(&agent.orders).await;
    let mut over = false;
    loop {
        life.end_if_over(&agent.orders, processes);
        // A program that has ended may still wait for what hooks say about its end.
        let waits = || life.hooking.pending();
        if over && (life.stopping.why().is_some() || (!waits() && !life.waits_for_children())) {
            return Ok(None);
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
            heard = rung(Some(&inputs.control)) => {
                heard?;
                life.look_for_stop(&agent.orders, processes);
                life.look_at_gate(&agent.orders).await;
                life.leave_if_agreed(&agent.orders).await;
            }
            heard = rung(inputs.mail.as_ref()) => {
                heard?;
                life.fetch_mail(&agent.orders).await;
            }
            ready = inputs.guard.ready(Interest::ERROR), if inputs.guarded => {
                ready?;
                inputs.guarded = false;
                life.stop(Why::GuardDied, &agent.orders, processes);
            }
            _ = inputs.terminate.recv() => life.stop(terminated(), &agent.orders, processes),
            () = at(due) => life.due(&agent.orders, processes).await,
            _ = tick.tick() => {
                life.look_at_pulse(agent.pulse.as_ref(), &agent.orders, processes);
                life.tick(&agent.orders, processes);
                life.leave_if_agreed(&agent.orders).await;
                if life.meta.state == RunState::Idle {
                    let nothing_runs = processes.rest();
                    life.rest();
                    if parks && !over && nothing_runs && let Some(known) = life.may_park(&agent) {
                        return Ok(Some(known));
                    }
                }
            }
        }
    }
}

/// Waits for a bell that need not be there, and takes in all its rings.
pub(super) async fn rung(bell: Option<&pipe::Receiver>) -> io::Result<()> {
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

pub(super) async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// True if the guard is dead. Its children then pass to another subreaper, or to init.
fn guard_is_dead() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec};
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
}
