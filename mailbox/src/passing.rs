//! A team's messages as they pass, for views.

use std::fmt::Debug;

use crate::error::Result;
use crate::message::Message;

/// The messages of one team, for all recipients. Looking takes no lock and hands nothing over.
#[derive(Debug)]
pub struct Passing(pub(crate) Box<dyn Passes>);

impl Passing {
    /// The messages since the last call; the first call returns the last messages of every inbox. A
    /// broadcast is to `*`; it may be there more than once, with the same id.
    pub fn look(&mut self) -> Result<Vec<Message>> {
        self.0.look()
    }
}

/// The part of [`Passing`] that a backend does.
pub(crate) trait Passes: Debug + Send + Sync {
    fn look(&mut self) -> Result<Vec<Message>>;
}

/// The message as a view shows it: the copies of a broadcast are to everyone.
pub(crate) fn shown(message: Message) -> Message {
    match message.broadcast {
        Some(_) => Message {
            to: "*".into(),
            ..message
        },
        None => message,
    }
}
