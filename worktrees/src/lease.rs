//! Leases: marks that a process works in a worktree.

use std::time::{Duration, Instant};

use store::lock::FileLock;
use store::tree::touch;

use crate::error::TreeError;
use crate::layout::Layout;
use crate::slug::Slug;

/// Time to wait for the lease: a process that only asks if a worktree is held takes it for a
/// moment.
const PROBE_WAIT: Duration = Duration::from_millis(200);

/// Marks a worktree as in use, until it is dropped or its process ends.
///
/// Any number of processes may hold one for the same worktree; none can while it is removed. The
/// kernel releases it, so a holder that died holds nothing.
#[derive(Debug)]
#[must_use = "the worktree is released when this is dropped"]
pub struct Lease {
    _lock: FileLock,
    /// The holder's agent is in the worktree's private `.git`.
    pub(crate) stay: Option<FileLock>,
}

impl Lease {
    /// True if the holder's agent has a `.git` of its own in the worktree.
    pub fn is_inside(&self) -> bool {
        self.stay.is_some()
    }

    pub(crate) fn take(layout: &Layout, slug: &Slug) -> Result<Self, TreeError> {
        layout.create_dirs()?;
        let path = layout.lease(slug);
        let deadline = Instant::now() + PROBE_WAIT;
        loop {
            if let Some(lock) = FileLock::try_shared(&path)? {
                touch(&path)?;
                return Ok(Self {
                    _lock: lock,
                    stay: None,
                });
            }
            if Instant::now() >= deadline {
                return Err(held(layout, slug));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Makes sure that no process works in the worktree, and that none begins to.
    pub(crate) fn exclude_holders(layout: &Layout, slug: &Slug) -> Result<FileLock, TreeError> {
        FileLock::try_exclusive(&layout.lease(slug))?.ok_or_else(|| held(layout, slug))
    }
}

fn held(layout: &Layout, slug: &Slug) -> TreeError {
    TreeError::Held {
        name: slug.to_string(),
        holder: FileLock::describe_holder(&layout.lease(slug)),
    }
}
