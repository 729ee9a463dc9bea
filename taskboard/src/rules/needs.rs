//! What the rules look at when one task is changed, besides the task and what it waits for.

use crate::id::TaskId;
use crate::section::ListDir;

/// What an edit has to know. Files are in the index anyway; a database is asked for it.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "only a database is asked")
)]
pub(crate) struct Needs<'a> {
    /// Whether other tools are to be kept from the whole list.
    pub(crate) list: ListDir,
    /// Everything unfinished this agent has.
    pub(crate) agent: Option<&'a str>,
    /// Edges that are to be made, as (blocker, dependent).
    pub(crate) edges: Vec<(TaskId, TaskId)>,
}

impl<'a> Needs<'a> {
    /// Nothing else.
    pub(crate) fn nothing() -> Self {
        Self {
            list: ListDir::Leave,
            agent: None,
            edges: Vec::new(),
        }
    }

    /// Whether `agent` is busy, if that is to be checked.
    pub(crate) fn busy(check: bool, agent: &'a str) -> Self {
        match check {
            true => Self {
                list: ListDir::Take,
                agent: Some(agent),
                edges: Vec::new(),
            },
            false => Self::nothing(),
        }
    }

    /// For new edges.
    #[cfg(feature = "postgres")]
    pub(crate) fn edges(edges: impl Iterator<Item = (TaskId, TaskId)>) -> Self {
        Self {
            edges: edges.collect(),
            ..Self::nothing()
        }
    }
}
