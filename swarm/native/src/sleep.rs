//! Agents that have nothing to do and share a process give up what they keep in memory.
//!
//! What is left is their pipes, who they are, and what their conversation's file does not say. The
//! next line of the host wakes them: they read their conversation again and go on, with the same
//! first bytes in each request, so that the service's cache still knows them.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use super::agent::{Agent, Kept};
use super::link::{Heard, Inbox, Outbox};
use super::{Awake, Lived, Opening, Options, live};

/// How long an agent waits before it falls asleep.
pub(super) const SLEEPS_AFTER: Duration = Duration::from_secs(5);

/// An agent that sleeps.
#[derive(Debug)]
pub(super) struct Sleeper {
    opening: Opening,
    options: Options,
    input: OwnedFd,
    output: OwnedFd,
    kept: Kept,
}

/// What ended its sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Somebody said something.
    Spoken,
    /// Nobody will say anything any more.
    Nobody,
}

/// Puts an agent to sleep that has nothing to do.
pub(super) async fn fall_asleep(
    agent: Agent,
    mut opening: Opening,
    options: Options,
    written: JoinHandle<Option<OwnedFd>>,
) -> Lived {
    opening.session = Some(agent.conversation.session());
    opening.fork = false;
    opening.fork_at = None;
    opening.text = String::new();
    opening.permission_mode = Some(agent.permissions.mode().as_str().to_owned());
    let (inbox, kept) = agent.into_kept();
    let output = written.await.ok().flatten();
    match (inbox.into_pipe(), output) {
        (Ok(input), Some(output)) => Lived::Asleep(Box::new(Sleeper {
            opening,
            options,
            input,
            output,
            kept,
        })),
        _ => Lived::Over(1),
    }
}

impl Sleeper {
    /// Waits until there is something to hear. Needs a scheduler, and no thread of its own.
    pub(super) async fn until_called(self) -> std::io::Result<(Self, Call)> {
        let pipe = pipe::Receiver::from_owned_fd(self.input)?;
        pipe.readable().await?;
        let waiting = rustix::io::ioctl_fionread(&pipe)?;
        let call = match waiting {
            0 => Call::Nobody,
            _ => Call::Spoken,
        };
        let input = pipe.into_nonblocking_fd()?;
        Ok((Self { input, ..self }, call))
    }

    /// What it knows, for whoever wakes it.
    pub(super) fn give_kept(&mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }

    /// The same for one that knows this.
    pub(super) fn knowing(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }

    /// Where it says things.
    pub(super) fn output(&self) -> &OwnedFd {
        &self.output
    }

    /// Goes on where it fell asleep.
    pub(super) async fn wake(self) -> Lived {
        let Self {
            opening,
            options,
            input,
            output,
            mut kept,
        } = self;
        let opened = Outbox::new(output).and_then(|out| Ok((out, Inbox::again(input)?)));
        let ((out, written), mut inbox) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!(%error, "the agent cannot wake");
                return Lived::Over(1);
            }
        };
        // Whoever is only told to end need not be made anew for that.
        match inbox.hear().await {
            Heard::Stop | Heard::Closed => return Lived::Over(0),
            Heard::Mode(mode) => kept.mode = Some(mode),
            Heard::Mail | Heard::Urgent | Heard::Interrupt | Heard::Answer => {}
        }
        let awake = Awake {
            opening,
            options,
            out,
            written,
            inbox,
            kept: Some(kept),
        };
        live(awake).await
    }
}
