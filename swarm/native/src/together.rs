//! Several agents in one process, kept apart from each other. Their common state is in `shared.rs`.
//!
//! Each has a thread of its own with a scheduler of its own, so one that hangs stops no other; an
//! idle one gives its thread back and sleeps (`sleep.rs`). They speak with their hosts through
//! pipes, like an agent with a process of its own: everything behind that is the same.

use std::any::Any;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use swarm::process::{Child, Ending, Processes};
use swarm::runtime::{
    Abilities, Agent, Keys, Known, Launch, LaunchError, NativeRuntime, Opening, Pulse, Runtime,
    SharedLoop, drive_lines,
};
use swarm::scope::{self, Scope};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::agent::Kept;
use super::shared::Together;
use super::sleep::{Call, Sleeper};
use super::{Lived, Options, run};

/// The stack of an agent's thread. Most of it is never touched, and what is not costs nothing.
const STACK: usize = 2 * 1024 * 1024;

/// Runs our own loop on a thread of this process.
#[derive(Debug, Clone)]
pub struct SharedNative {
    together: Together,
    known: Option<Known>,
}

impl SharedNative {
    /// Loops that share `together`.
    pub fn new(together: Together) -> Self {
        Self {
            together,
            known: None,
        }
    }

    /// The same for an agent that continues where another one fell asleep.
    #[must_use]
    pub fn knowing(mut self, known: Option<Known>) -> Self {
        self.known = known;
        self
    }

    fn kept(&self) -> Option<Kept> {
        let known = self.known.as_ref()?.take()?;
        known.downcast().ok().map(|kept| *kept)
    }
}

impl SharedLoop for Together {
    fn runtime(&self, max_bytes: u64, known: Option<Known>) -> Box<dyn Runtime> {
        Box::new(SharedNative::new(self.with_limit(max_bytes)).knowing(known))
    }
}

/// Reports the end once: the thread itself does, or the code that gives the thread up.
type End = Arc<Mutex<Option<oneshot::Sender<Ending>>>>;

fn end(tell: &End, ending: Ending) -> bool {
    let tell = tell.lock().unwrap_or_else(PoisonError::into_inner).take();
    tell.is_some_and(|tell| tell.send(ending).is_ok())
}

impl Runtime for SharedNative {
    fn abilities(&self) -> Abilities {
        NativeRuntime::new(Vec::new()).abilities()
    }

    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError> {
        let failed = |source: io::Error| LaunchError::Program {
            program: "the agent's thread".to_owned(),
            source,
        };
        let (its_input, to_it) = io::pipe().map_err(failed)?;
        let (from_it, its_output) = io::pipe().map_err(failed)?;
        let options = Options {
            env: launch.env.clone(),
            ports: self.together.ports.clone(),
            processes: Some(processes.clone()),
            together: Some(self.together.clone()),
        };
        let scope = Arc::new(Scope {
            env: launch.env.clone(),
            dir: launch.cwd.clone(),
        });
        let opening = json!(Opening::of(launch, Keys::default()));
        let (tell, ended) = oneshot::channel();
        let tell: End = Arc::new(Mutex::new(Some(tell)));
        let pulse = Pulse::default();
        let mate = Mate {
            scope,
            net: self.together.net.clone(),
            asleep: Arc::clone(&self.together.asleep),
            pulse: pulse.clone(),
            tell: Arc::clone(&tell),
        };
        let whole = Part::Whole(options, its_input.into(), its_output.into(), self.kept());
        mate.give_thread(whole).map_err(failed)?;
        let (given_up, felt) = (Arc::clone(&self.together.given_up), pulse.clone());
        processes.on_kill(move || {
            // A thread cannot be killed: from here on its reports are dropped.
            if end(&tell, Ending::Signaled(9)) && !felt.is_at_rest() {
                given_up();
            }
        });
        let child = Child {
            pid: rustix::process::getpid(),
            stdin: Some(pipe::Sender::from_owned_fd(to_it.into()).map_err(failed)?),
            stdout: Some(pipe::Receiver::from_owned_fd(from_it.into()).map_err(failed)?),
            stderr: None,
            ended,
        };
        let mut agent = drive_lines(child, opening);
        agent.pulse = Some(pulse);
        Ok(agent)
    }
}

/// The part of a loop that a thread runs.
enum Part {
    /// All of it, by one who may know something.
    Whole(Options, OwnedFd, OwnedFd, Option<Kept>),
    /// The part after it slept.
    Rest(Box<Sleeper>),
}

/// An agent of this process, awake or asleep.
struct Mate {
    scope: Arc<Scope>,
    net: Handle,
    asleep: Arc<Notify>,
    pulse: Pulse,
    tell: End,
}

impl Mate {
    /// Runs on a thread of its own until it is over or falls asleep.
    fn give_thread(self, part: Part) -> io::Result<()> {
        std::thread::Builder::new()
            .name("mate".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                scope::enter(Some(Arc::clone(&self.scope)));
                match live(part, &self.pulse) {
                    Ok(Lived::Asleep(mut sleeper)) => {
                        self.pulse.rest(Box::new(sleeper.give_kept()));
                        self.asleep.notify_one();
                        self.net.clone().spawn(self.sleep(*sleeper));
                    }
                    Ok(Lived::Over(code)) => self.is_over(i32::from(code)),
                    Err(code) => self.is_over(code),
                }
            })?;
        Ok(())
    }

    /// Sleeps without a thread until the host sends a line.
    async fn sleep(self, sleeper: Sleeper) {
        let tell = Arc::clone(&self.tell);
        let woken = match sleeper.until_called().await {
            Ok((_, Call::Nobody)) => return self.is_over(0),
            Ok((sleeper, Call::Spoken)) => {
                let kept = self.pulse.wake().and_then(|kept| kept.downcast().ok());
                let Some(kept) = kept else {
                    // Its host has let go of it.
                    return self.is_over(0);
                };
                self.give_thread(Part::Rest(Box::new(sleeper.knowing(*kept))))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = woken {
            tracing::error!(%error, "an agent that slept cannot be woken");
            end(&tell, Ending::Exited(1));
        }
    }

    fn is_over(&self, code: i32) {
        end(&self.tell, Ending::Exited(code));
    }
}

/// Runs a loop until it is over or falls asleep; the exit code if it panics.
fn live(part: Part, pulse: &Pulse) -> Result<Lived, i32> {
    let last_words = match &part {
        Part::Whole(_, _, output, _) => output.try_clone(),
        Part::Rest(sleeper) => sleeper.output().try_clone(),
    };
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(%error, "the agent cannot begin");
                return Lived::Over(1);
            }
        };
        let beating = pulse.clone();
        runtime.spawn(async move {
            loop {
                beating.beat();
                tokio::time::sleep(Pulse::BEAT).await;
            }
        });
        let lived = match part {
            Part::Whole(options, input, output, kept) => {
                runtime.block_on(run(options, input, output, false, kept))
            }
            Part::Rest(sleeper) => runtime.block_on(sleeper.wake()),
        };
        runtime.shutdown_background();
        lived
    }));
    lived.map_err(|panic| {
        let why = format!("a bug in ccb ended the agent's loop: {}", words(&*panic));
        tracing::error!("{why}");
        let line = json!({ "type": "result", "status": "failed", "error": why });
        if let Ok(output) = last_words {
            rustix::io::write(&output, format!("{line}\n").as_bytes()).ok();
        }
        101
    })
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason is known")
}
