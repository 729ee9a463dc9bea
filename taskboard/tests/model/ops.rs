//! The operations.

use serde_json::{Map, Value};
use taskboard::{LeaseTerm, Status};

/// One operation on the board. Ids are raw numbers until [`Op::settle`] has made them ones that
/// make sense on the board as it is.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Create {
        batch: Vec<Draft>,
        hook: Hook,
    },
    Claim {
        id: u64,
        terms: Terms,
    },
    Next {
        terms: Terms,
    },
    Release {
        id: u64,
        by: Actor,
    },
    Complete {
        id: u64,
        by: Actor,
        hook: Hook,
    },
    Delete {
        id: u64,
        by: Actor,
    },
    Block {
        blocker: u64,
        dependent: u64,
    },
    Unblock {
        blocker: u64,
        dependent: u64,
    },
    Update {
        id: u64,
        by: Actor,
        change: Change,
        hook: Hook,
    },
    Reset {
        force: bool,
    },
    Unassign {
        agent: &'static str,
    },
    UnassignRun {
        run: &'static str,
    },
    /// The clock jumps, forwards or backwards.
    Clock {
        by_ms: i64,
    },
    /// Another tool writes the task's file, then any `ccb` reads the list.
    Foreign {
        id: u64,
        edit: ForeignEdit,
    },
}

/// A task to be created.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) key: Option<&'static str>,
    pub(crate) subject: &'static str,
    pub(crate) blocked_by: Vec<Ref>,
    pub(crate) blocks: Vec<Ref>,
    pub(crate) metadata: Map<String, Value>,
}

#[derive(Debug, Clone)]
pub(crate) enum Ref {
    Id(u64),
    Key(&'static str),
}

/// The claiming agent, and the terms of its claim.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) agent: &'static str,
    pub(crate) check_busy: bool,
    pub(crate) lease: Option<LeaseTerm>,
}

/// The agent or user that changes a task.
#[derive(Debug, Clone)]
pub(crate) struct Actor {
    pub(crate) agent: &'static str,
    pub(crate) force: bool,
    pub(crate) shows: Shows,
    /// The value that `shows` has for the task at hand, filled in by [`Op::settle`].
    pub(crate) token: Option<u64>,
}

/// Which lease token the caller shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shows {
    Nothing,
    Latest,
    Stale,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) subject: Option<&'static str>,
    pub(crate) owner: Option<Option<&'static str>>,
    pub(crate) status: Option<Status>,
    pub(crate) metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Hook {
    Absent,
    Allows,
    /// Allows, and returns a result to be kept.
    Proves,
    Vetoes,
}

#[derive(Debug, Clone)]
pub(crate) enum ForeignEdit {
    Park(Value),
    /// Written into `blockedBy` of the task, not into `blocks` of the other one.
    BlockedBy(u64),
    /// Written into `blocks` of the task, not into `blockedBy` of the other one.
    Blocks(u64),
    TakeOver(&'static str),
    Complete,
}

/// The facts about the board that [`Op::settle`] needs.
pub(crate) trait Situation {
    /// An id that probably, but not certainly, is on the board.
    fn settle_id(&self, raw: u64) -> u64;
    /// The last token given out for the task, 0 if none was.
    fn last_token(&self, id: u64) -> u64;
}

impl Op {
    /// Turns raw numbers into ids and tokens of the board as it is.
    pub(crate) fn settle(&mut self, board: &dyn Situation) {
        for raw in self.ids_mut() {
            *raw = board.settle_id(*raw);
        }
        if let Self::Release { id, by }
        | Self::Complete { id, by, .. }
        | Self::Delete { id, by }
        | Self::Update { id, by, .. } = self
        {
            let last = board.last_token(*id);
            by.token = match by.shows {
                Shows::Latest if last > 0 => Some(last),
                Shows::Stale => Some(last.saturating_sub(1)),
                Shows::Nothing | Shows::Latest => None,
            };
        }
    }

    fn ids_mut(&mut self) -> Vec<&mut u64> {
        match self {
            Self::Create { batch, .. } => batch
                .iter_mut()
                .flat_map(|draft| draft.blocked_by.iter_mut().chain(&mut draft.blocks))
                .filter_map(|reference| match reference {
                    Ref::Id(id) => Some(id),
                    Ref::Key(_) => None,
                })
                .collect(),
            Self::Claim { id, .. }
            | Self::Release { id, .. }
            | Self::Complete { id, .. }
            | Self::Delete { id, .. }
            | Self::Update { id, .. } => vec![id],
            Self::Block { blocker, dependent } | Self::Unblock { blocker, dependent } => {
                vec![blocker, dependent]
            }
            Self::Foreign { id, edit } => match edit {
                ForeignEdit::BlockedBy(other) | ForeignEdit::Blocks(other) => vec![id, other],
                ForeignEdit::Park(_) | ForeignEdit::TakeOver(_) | ForeignEdit::Complete => vec![id],
            },
            Self::Next { .. }
            | Self::Reset { .. }
            | Self::Unassign { .. }
            | Self::UnassignRun { .. }
            | Self::Clock { .. } => Vec::new(),
        }
    }
}
