//! Changes that others make to the board.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::setup::Setup;
use super::work::Said;

/// Minimum time between two reads of the changes: the director knows its own changes already.
const AT_MOST_EVERY: Duration = Duration::from_millis(50);
/// Longest wait for a change before the watcher checks whether to end.
const PATIENCE: Duration = Duration::from_millis(100);
/// Poll interval for tasks whose machines are silent.
const OVERDUE_EVERY: Duration = Duration::from_millis(500);

/// Returns the tasks of silent machines, which no other machine does while nothing changes, and
/// finishes runs that ended here while the board was unreachable.
fn see_to_the_silent(setup: &Setup) {
    if let Err(error) = setup.board().return_overdue() {
        tracing::warn!(%error, "tasks of machines that are silent stay theirs");
    }
    if let Err(error) = setup.agents.reconcile() {
        tracing::warn!(%error, "runs that ended are not settled");
    }
}

/// Watches the board for changes by others, until it is dropped.
pub(super) struct Watching {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watching {
    /// Reports every change after number `seen`.
    pub(super) fn start(setup: &Arc<Setup>, seen: u64, said: Sender<Said>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (setup, stop) = (Arc::clone(setup), Arc::clone(&over));
        let thread = thread::spawn(move || {
            let board = setup.board();
            let mut watch = loop {
                match board.watch(Some(seen)) {
                    Ok(watch) => break watch,
                    Err(error) => tracing::warn!(%error, "changes others make are not seen"),
                }
                if stop.load(Ordering::SeqCst) || setup.agents.shared().is_none() {
                    return;
                }
                thread::sleep(OVERDUE_EVERY);
            };
            let mut looked = Instant::now();
            let mut workers = None;
            while !stop.load(Ordering::SeqCst) {
                match watch.poll() {
                    Ok(changes) if !changes.is_empty() => {
                        let ids = changes.iter().map(|change| change.id).collect();
                        if said.send(Said::Changed(ids)).is_err() {
                            return;
                        }
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "the board cannot be followed"),
                }
                if setup.agents.shared().is_some() && looked.elapsed() >= OVERDUE_EVERY {
                    looked = Instant::now();
                    see_to_the_silent(&setup);
                    if let Ok(now) = setup.agents.workers()
                        && workers.as_ref() != Some(&now)
                    {
                        workers = Some(now.clone());
                        said.send(Said::Workers(now)).ok();
                    }
                }
                thread::sleep(AT_MOST_EVERY);
                watch.wait(PATIENCE);
            }
        });
        Self {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
