//! Ending a director from outside.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// How urgently the director stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The director continues.
    GoOn,
    /// Running agents may finish; nothing new starts.
    Finish,
    /// All agents are asked to stop; their tasks are free again.
    Stop,
    /// All agents are ended at once.
    Force,
}

/// Gives a director its stop level; shared with the code that listens to signals and people.
#[derive(Debug, Default)]
pub struct Control {
    level: AtomicU8,
    why: Mutex<String>,
}

impl Control {
    /// Raises the level to `level`; never lowers it.
    pub fn want(&self, level: Level, why: &str) {
        let before = self.level.fetch_max(level as u8, Ordering::SeqCst);
        if before < level as u8 {
            let mut reason = self.why.lock().unwrap_or_else(PoisonError::into_inner);
            why.clone_into(&mut reason);
        }
    }

    /// Asks all agents to stop, or ends them if they were asked already; returns the new level.
    pub fn interrupt(&self) -> Level {
        let level = match self.level() {
            Level::GoOn | Level::Finish => Level::Stop,
            Level::Stop | Level::Force => Level::Force,
        };
        self.want(level, "interrupted");
        level
    }

    /// The current stop level.
    pub fn level(&self) -> Level {
        match self.level.load(Ordering::SeqCst) {
            0 => Level::GoOn,
            1 => Level::Finish,
            2 => Level::Stop,
            _ => Level::Force,
        }
    }

    /// The reason for the current level.
    pub(crate) fn why(&self) -> String {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone()
    }
}
