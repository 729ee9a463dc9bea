//! A host that shares its process with others and whose agent sleeps lets go of its thread and of
//! nearly all it knows: what is left waits for somebody to ring, and the next host goes on with it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::life::park::Rest;
use crate::runtime::Known;

/// How long nobody looks at an agent for which nobody rings: a ring can be lost with its FIFO.
const LOOK: Duration = Duration::from_secs(60);

/// How a host's work ended.
#[derive(Debug)]
pub enum Hosted {
    /// Everything is done.
    Finished,
    /// Its agent sleeps.
    Parked(Box<Parked>),
}

/// An agent that sleeps, and has no host until somebody rings.
#[derive(Debug)]
pub struct Parked {
    pub(super) rest: Rest,
    /// What its next host listens to, too.
    pub(super) bells: Vec<OwnedFd>,
    /// When something has to be done that nobody rings for.
    pub(super) due: Option<Instant>,
    /// The process was asked to end meanwhile.
    pub(super) terminated: bool,
}

impl Parked {
    /// Waits until it needs a host. The next one hears the mail's bell itself, and looks at what the
    /// other one may have been rung for.
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

    /// What its agent knows, for the runtime that goes on with it.
    pub fn known(&self) -> Known {
        self.rest.known.clone()
    }
}

/// What all agents hear that have no host.
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

    /// Has everybody looked after, now and from now on: who waits after this is called at once.
    pub fn call_all(&self) {
        self.calls.send_replace(Call::Look);
    }
}
