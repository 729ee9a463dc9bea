//! A member who is alive, and the evidence for it.

store::words! {
    /// How it is known that somebody is alive.
    #[derive(PartialOrd, Ord)]
    pub enum Life {
        /// Its run holds its lock.
        Running = "running",
        /// Somebody is attached to its inbox.
        Reading = "reading",
        /// It joined as active, has no run of ours, and has not left.
        Joined = "joined",
    }
}

impl Life {
    /// What comes after a name in a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Running => "(its run goes on)",
            Self::Reading => "(its inbox is being read)",
            Self::Joined => "(joined and has not left)",
        }
    }
}

/// Somebody who is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Living {
    /// A member's name, or that of a run or an inbox that belongs to no member.
    pub name: String,
    /// How that is known.
    pub why: Life,
}
