//! A member who is alive, and the evidence for it.

store::words! {
    /// The sign by which a member counts as alive.
    #[derive(PartialOrd, Ord)]
    pub enum Life {
        /// Its run holds its lock.
        Running = "running",
        /// A reader is attached to its inbox.
        Reading = "reading",
        /// It joined as active, has no run of ours, and has not left.
        Joined = "joined",
    }
}

impl Life {
    /// The words after a name in a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Running => "(its run goes on)",
            Self::Reading => "(its inbox is being read)",
            Self::Joined => "(joined and has not left)",
        }
    }
}

/// A member that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Living {
    /// A member's name, or that of a run or an inbox that belongs to no member.
    pub name: String,
    /// The sign of that.
    pub why: Life,
}
