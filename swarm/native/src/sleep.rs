//! Idle agents that share a process give up the memory they hold.
//!
//! Only their pipes, their identity and the state that their conversation's file does not hold are
//! left. The next line of the host wakes them: they read their conversation again and resume, with
//! the same first bytes in each request, so that the service's cache still knows them.

use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use super::agent::{Agent, Kept};
use super::link::{Heard, Inbox, Outbox};
use super::{Awake, Lived, Opening, Options, live};

/// Idle time before an agent falls asleep.
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

/// The reason why its sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// The host sent a line.
    Spoken,
    /// The host closed the pipe.
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

    /// The state for the thread that wakes it.
    pub(super) fn give_kept(&mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }

    /// The same for one that knows this.
    pub(super) fn knowing(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }

    /// The pipe to its host.
    pub(super) fn output(&self) -> &OwnedFd {
        &self.output
    }

    /// Continues where it fell asleep.
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
        // An agent that only has to end need not be built anew for that.
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
