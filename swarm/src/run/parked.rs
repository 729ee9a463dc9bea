//! A host that shares its process with others and whose agent sleeps lets go of its thread and of
//! nearly all its state: the rest waits for a ring, and the next host continues with it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::life::park::Rest;
use crate::runtime::Known;

/// Maximum time between two looks at a sleeping agent without a ring: a ring can be lost with its
/// FIFO.
const LOOK: Duration = Duration::from_secs(60);

/// The end of a host's work.
#[derive(Debug)]
pub enum Hosted {
    /// The run is finished.
    Finished,
    /// Its agent sleeps.
    Parked(Box<Parked>),
}

/// An agent that sleeps, and has no host until the next ring.
#[derive(Debug)]
pub struct Parked {
    pub(super) rest: Rest,
    /// The inputs to which its next host listens, too.
    pub(super) bells: Vec<OwnedFd>,
    /// The time of the next action that no ring starts.
    pub(super) due: Option<Instant>,
    /// True if the process was asked to end meanwhile.
    pub(super) terminated: bool,
}

impl Parked {
    /// Waits until it needs a host. The next host hears the mail's bell itself, and checks
    /// everything this one may have been rung for.
    async fn until_called(&mut self) -> io::Result<()> {
        let look = Instant::now() + LOOK;
        let due = self.due.map_or(look, |due| due.min(look));
        let bells = std::mem::take(&mut self.bells).into_iter();
        let bells: io::Result<Vec<_>> = bells.map(pipe::Receiver::from_owned_fd).collect();
        let bells = bells?;
        let rung = async {
            match &bells[..] {
                [] => std::future::pending().await,
                [one] => one.readable().await,
                [one, other, ..] => tokio::select! {
                    rung = one.readable() => rung,
                    rung = other.readable() => rung,
                },
            }
        };
        tokio::select! {
            rung = rung => rung,
            () = tokio::time::sleep_until(due.into()) => Ok(()),
        }
    }

    /// The agent's state, for the runtime that resumes it.
    pub fn known(&self) -> Known {
        self.rest.known.clone()
    }
}

/// A call to all agents that have no host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Call {
    /// Nothing.
    #[default]
    Nothing,
    /// There may be something to do for every one of them.
    Look,
    /// The process is asked to end.
    Terminate,
}

/// Waits for all agents of a process that have no host.
#[derive(Debug, Clone)]
pub struct Waiting {
    scheduler: Handle,
    calls: watch::Sender<Call>,
}

impl Waiting {
    /// Waits on this scheduler.
    pub fn on(scheduler: Handle) -> Self {
        let calls = watch::Sender::default();
        let told = calls.clone();
        scheduler.spawn(async move {
            // Hosts hear it themselves.
            let Ok(mut terminate) = signal(SignalKind::terminate()) else {
                return;
            };
            while terminate.recv().await.is_some() {
                told.send_replace(Call::Terminate);
            }
        });
        Self { scheduler, calls }
    }

    /// Waits until `parked` needs a host, and calls `then`, which must not take long.
    pub fn add(&self, mut parked: Parked, then: impl FnOnce(Parked) + Send + 'static) {
        let mut calls = self.calls.subscribe();
        self.scheduler.spawn(async move {
            tokio::select! {
                called = calls.wait_for(|call| *call != Call::Nothing) => {
                    parked.terminated = called.is_ok_and(|call| *call == Call::Terminate);
                }
                rung = parked.until_called() => {
                    if let Err(error) = rung {
                        tracing::warn!(%error, "nobody hears whether a run's agent is called");
                    }
                }
            }
            then(parked);
        });
    }

    /// Has all sleeping agents checked, now and from now on: one that waits after this is called at
    /// once.
    pub fn call_all(&self) {
        self.calls.send_replace(Call::Look);
    }
}
