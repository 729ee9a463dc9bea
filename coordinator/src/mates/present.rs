//! Counts those present, and waits until there are none.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presence(Arc<(Mutex<usize>, Condvar)>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Present(Presence);

impl Presence {
    /// Adds one.
    pub(crate) fn enter(&self) -> Present {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Present(self.clone())
    }

    /// Waits until the count is zero.
    pub(crate) fn await_nobody(&self) {
        let (count, changed) = &*self.0;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let (count, changed) = &*self.0.0;
        *count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        changed.notify_all();
    }
}
