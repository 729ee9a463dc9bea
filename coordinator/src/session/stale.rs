//! Old unneeded worktrees of agents: a session removes them now and then, so that they do not
//! accumulate for a user who never runs `ccb worktree gc`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use worktrees::{Entry, GcCandidate, GcVerdict, Slug, TreeError, Trees};

use super::{SessionEvent, SessionUi};
use crate::Finding;

/// Interval between two searches in a long session.
const EVERY: Duration = Duration::from_hours(24);

/// Searches for stale worktrees, on a thread of its own, because git may be slow.
pub(super) struct StaleTrees {
    trees: Arc<Trees>,
    ui: Arc<dyn SessionUi>,
    next: Instant,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for StaleTrees {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaleTrees").finish_non_exhaustive()
    }
}

impl StaleTrees {
    /// The first search is due at once.
    pub(super) fn new(trees: Trees, ui: Arc<dyn SessionUi>) -> Self {
        Self {
            trees: Arc::new(trees),
            ui,
            next: Instant::now(),
            over: Arc::default(),
            thread: None,
        }
    }

    /// Starts a search if it is time. Never waits.
    pub(super) fn look(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let (trees, ui, over) = (
            Arc::clone(&self.trees),
            Arc::clone(&self.ui),
            Arc::clone(&self.over),
        );
        self.thread = Some(std::thread::spawn(move || {
            if let Err(error) = collect(&trees, &*ui, &over) {
                tracing::warn!(%error, "cannot look for worktrees that nobody needs");
            }
        }));
    }
}

impl Drop for StaleTrees {
    /// A removal that has begun is finished.
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Removes what `ccb worktree gc --yes` would remove of the worktrees that agents had.
fn collect(trees: &Trees, ui: &dyn SessionUi, over: &AtomicBool) -> Result<(), TreeError> {
    let candidates = trees.gc_candidates()?.into_iter();
    for candidate in candidates.filter(|candidate| is_of_agent(&candidate.entry)) {
        if over.load(Ordering::SeqCst) {
            return Ok(());
        }
        let GcCandidate { entry, verdict } = candidate;
        let why = match verdict {
            GcVerdict::Unchanged => "nothing was changed in it".to_owned(),
            GcVerdict::Merged { into } => format!("its work is part of {into}"),
            GcVerdict::Stays(_) => continue,
        };
        let name = &entry.name;
        if trees.collect(&Slug::new(name)?)?.is_some() {
            ui.show(&SessionEvent::Finding(&Finding {
                kind: "stale_worktree",
                message: format!("nobody has used worktree {name} for long, and {why}"),
                fixed: Some(format!(
                    "removed; `ccb worktree undo {name}` brings it back"
                )),
            }));
        }
    }
    Ok(())
}

/// True if the starter of an agent made it for that agent. A worktree that a person or a lead made
/// under a chosen name is theirs to remove.
fn is_of_agent(entry: &Entry) -> bool {
    let own = entry.agent.as_deref().map(Slug::of_agent);
    own.is_some_and(|own| own.is_ok_and(|own| own.as_str() == entry.name))
}
