//! Renews the lease of a run whose board is in a database, because the board cannot see if the run
//! is alive. A run that is cut off stops before its tasks are given to others.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use taskboard::{Board, TaskId};

/// Number of renewals within a lease.
const TIMES: u32 = 4;
/// The last part of a lease is for stopping: one in so many.
const TO_STOP: u32 = 3;

/// Renews the leases of one holder until it is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    held: Arc<Mutex<Held>>,
    lease: Duration,
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The board's last answer.
#[derive(Debug)]
struct Held {
    /// The end of the answer's validity, by a clock that does not stop when the machine sleeps.
    until: Duration,
    /// The tasks and their tokens; `None` before the first answer.
    tasks: Option<Vec<(TaskId, u64)>>,
    /// The error of the last failed requests; `None` if the last one succeeded.
    trouble: Option<String>,
}

/// The state of a task that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is the holder's.
    Held,
    /// The board no longer records the claim; the task may be done.
    NotHeld,
    /// The board does not answer, and soon another agent may have the task.
    CutOff(String),
}

impl Heartbeat {
    /// Renews what `holder` has claimed on `board`, from a claim that was made just now.
    pub(super) fn start(board: &Arc<Board>, holder: &str, lease: Duration) -> Self {
        let held = Arc::new(Mutex::new(Held {
            until: now() + lease,
            tasks: None,
            trouble: None,
        }));
        let (over, ended) = mpsc::channel();
        let (board, holder, state) = (Arc::clone(board), holder.to_owned(), Arc::clone(&held));
        let beats = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(lease / TIMES) {
                beat(&board, &holder, lease, &state);
            }
        };
        let thread = std::thread::Builder::new()
            .name("heartbeat".into())
            .stack_size(512 * 1024)
            .spawn(beats);
        if let Err(error) = &thread {
            tracing::error!(%error, "leases are not renewed");
        }
        Self {
            held,
            lease,
            over: Some(over),
            thread: thread.ok(),
        }
    }

    /// The state of a task that was claimed with this token.
    pub(super) fn standing(&self, id: TaskId, token: u64) -> Standing {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if now() + self.lease / TO_STOP >= held.until {
            let trouble = held.trouble.clone();
            let why = trouble.unwrap_or_else(|| "it did not answer in time".into());
            return Standing::CutOff(why);
        }
        match &held.tasks {
            Some(tasks) if !tasks.contains(&(id, token)) => Standing::NotHeld,
            _ => Standing::Held,
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.over = None;
        // The thread may be waiting for a database that does not answer, and the end of the run
        // must not wait for it.
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            thread.join().ok();
        }
    }
}

fn beat(board: &Board, holder: &str, lease: Duration, state: &Mutex<Held>) {
    // The lease counts from before the request, because the time the request took is unknown.
    let asked = now();
    let milliseconds = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    let renewed = board.renew(holder, milliseconds);
    let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
    match renewed {
        Ok(tasks) => {
            *held = Held {
                until: asked + lease,
                tasks: Some(tasks),
                trouble: None,
            };
        }
        Err(error) => {
            tracing::warn!(%error, holder, "leases are not renewed");
            held.trouble = Some(error.to_string());
        }
    }
}

/// Time since the machine started, with the time it slept.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
