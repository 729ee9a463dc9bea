//! An inbox, wherever it is kept.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::name::Name;

use crate::consumer::Consumer;
#[cfg(feature = "postgres")]
use crate::database::{DatabaseFollow, DatabaseInbox};
use crate::error::Result;
use crate::inbox::FileInbox;
use crate::message::Message;
use crate::peek::{FileFollow, Listing};

/// One agent's inbox.
#[derive(Debug)]
pub struct Inbox {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Files(Arc<FileInbox>),
    #[cfg(feature = "postgres")]
    Database(Arc<DatabaseInbox>),
}

/// Calls the same function wherever the inbox is kept.
macro_rules! on {
    ($inbox:expr, $at:ident => $call:expr) => {
        match &$inbox.place {
            Place::Files($at) => $call,
            #[cfg(feature = "postgres")]
            Place::Database($at) => $call,
        }
    };
}

impl From<Arc<FileInbox>> for Inbox {
    fn from(inbox: Arc<FileInbox>) -> Self {
        Self {
            place: Place::Files(inbox),
        }
    }
}

#[cfg(feature = "postgres")]
impl From<Arc<DatabaseInbox>> for Inbox {
    fn from(inbox: Arc<DatabaseInbox>) -> Self {
        Self {
            place: Place::Database(inbox),
        }
    }
}

impl Inbox {
    /// Whose inbox it is.
    pub fn name(&self) -> &Name {
        on!(self, at => at.name())
    }

    /// Its directory. An inbox that is kept in a database has nothing there.
    pub fn dir(&self) -> &Path {
        on!(self, at => at.dir())
    }

    /// Whether anything was ever sent here, or somebody read it.
    ///
    /// If a database cannot be asked, the answer is yes: what is done next says why.
    pub fn exists(&self) -> bool {
        on!(self, at => at.exists())
    }

    /// Whether somebody is reading it now.
    pub fn has_reader(&self) -> Result<bool> {
        on!(self, at => at.has_reader())
    }

    /// Becomes the inbox's reader; refused while another process is.
    pub fn consumer(&self) -> Result<Consumer> {
        on!(self, at => at.consumer())
    }

    /// The messages that wait; with `all` also those that are acknowledged or expired, as far
    /// back as they are kept.
    pub fn list(&self, all: bool) -> Result<Listing> {
        on!(self, at => at.list(all))
    }

    /// Follows what arrives from now on, or after message number `since`.
    pub fn follow(&self, since: Option<u64>) -> Result<Follow> {
        on!(self, at => Ok(Follow::from(at.follow(since)?)))
    }
}

/// A stream of messages as they arrive. Does not count as reading them.
#[derive(Debug)]
pub struct Follow {
    from: Followed,
}

#[derive(Debug)]
enum Followed {
    Files(Box<FileFollow>),
    #[cfg(feature = "postgres")]
    Database(Box<DatabaseFollow>),
}

impl From<FileFollow> for Follow {
    fn from(follow: FileFollow) -> Self {
        Self {
            from: Followed::Files(Box::new(follow)),
        }
    }
}

#[cfg(feature = "postgres")]
impl From<DatabaseFollow> for Follow {
    fn from(follow: DatabaseFollow) -> Self {
        Self {
            from: Followed::Database(Box::new(follow)),
        }
    }
}

impl Follow {
    /// What arrived since the last call.
    pub fn poll(&mut self) -> Result<Vec<Message>> {
        match &mut self.from {
            Followed::Files(follow) => follow.poll(),
            #[cfg(feature = "postgres")]
            Followed::Database(follow) => follow.poll(),
        }
    }

    /// Waits until something may have arrived, at most `limit`.
    pub fn wait(&mut self, limit: Duration) {
        match &mut self.from {
            Followed::Files(follow) => follow.wait(limit),
            #[cfg(feature = "postgres")]
            Followed::Database(follow) => follow.wait(limit),
        }
    }

    /// The number of the last message returned.
    pub fn last(&self) -> u64 {
        match &self.from {
            Followed::Files(follow) => follow.last(),
            #[cfg(feature = "postgres")]
            Followed::Database(follow) => follow.last(),
        }
    }
}
