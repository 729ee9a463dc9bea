//! Ending a director from outside.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// How much a director is to hurry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It goes on.
    GoOn,
    /// What is running may finish; nothing new is begun.
    Finish,
    /// Everybody is asked to stop; tasks are free again.
    Stop,
    /// Everybody is ended at once.
    Force,
}

/// Tells a director what is wanted of it; shared with whoever listens to signals and people.
#[derive(Debug, Default)]
pub struct Control {
    level: AtomicU8,
    why: Mutex<String>,
}

impl Control {
    /// Wants `level`, unless more is wanted already.
    pub fn want(&self, level: Level, why: &str) {
        let before = self.level.fetch_max(level as u8, Ordering::SeqCst);
        if before < level as u8 {
            let mut reason = self.why.lock().unwrap_or_else(PoisonError::into_inner);
            why.clone_into(&mut reason);
        }
    }

    /// Wants everybody to stop, and at once if that was wanted before; says which.
    pub fn interrupt(&self) -> Level {
        let level = match self.level() {
            Level::GoOn | Level::Finish => Level::Stop,
            Level::Stop | Level::Force => Level::Force,
        };
        self.want(level, "interrupted");
        level
    }

    /// What is wanted.
    pub fn level(&self) -> Level {
        match self.level.load(Ordering::SeqCst) {
            0 => Level::GoOn,
            1 => Level::Finish,
            2 => Level::Stop,
            _ => Level::Force,
        }
    }

    /// Why.
    pub(crate) fn why(&self) -> String {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone()
    }
}
