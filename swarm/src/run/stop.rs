//! Ending a run step by step: ask, SIGTERM, SIGKILL.

use std::time::Duration;

use tokio::time::Instant;

use super::exit::ExitReason;

/// How long an agent may take to end after it was asked in its own protocol, at most; less if
/// the whole grace is shorter.
const ASKING: Duration = Duration::from_secs(2);

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask by protocol.
    Ask,
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL to everything.
    Kill,
}

/// Why and how a run is being ended.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    why: Option<Why>,
    /// How long it may take to end after SIGTERM.
    grace: Duration,
    next: Option<(Step, Instant)>,
}

/// Why a run is being ended by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody asked for it.
    Asked(String),
    /// Nobody watches over it any more.
    GuardDied,
    /// Its task is no longer its own.
    LostTask(String),
    /// It could go on, and may not or cannot.
    Over(ExitReason, String),
    /// It cannot go on: its thread does not come back.
    Broken(String),
}

impl Stopping {
    /// Begins to end the run; says what is to be done now. A second reason changes nothing,
    /// unless it is more urgent.
    pub(super) fn begin(&mut self, why: Why, grace: Duration, can_ask: bool) -> Option<Step> {
        if why == Why::GuardDied {
            // Nobody would end what is left over now, so it is killed at once.
            self.why.get_or_insert(why);
            self.next = None;
            return Some(Step::Kill);
        }
        if self.why.is_some() {
            return None;
        }
        self.why = Some(why);
        self.grace = grace;
        let now = Instant::now();
        if can_ask {
            let asking = ASKING.min(grace / 2);
            self.next = Some((Step::Terminate, now + asking));
            return Some(Step::Ask);
        }
        self.next = Some((Step::Kill, now + grace));
        Some(Step::Terminate)
    }

    /// When the next step is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next.map(|(_, at)| at)
    }

    /// The step that is due.
    pub(super) fn step(&mut self) -> Option<Step> {
        let (step, _) = self.next.take()?;
        let now = Instant::now();
        self.next = match step {
            Step::Ask | Step::Terminate => Some((Step::Kill, now + self.grace)),
            // Until it is dead: a new process may have come in between.
            Step::Kill => Some((Step::Kill, now + Duration::from_millis(100))),
        };
        Some(step)
    }

    /// Why the run is being ended, if it is.
    pub(super) fn why(&self) -> Option<&Why> {
        self.why.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_step_has_the_time_it_was_given() {
        let grace = Duration::from_millis(100);
        let begun = Instant::now();
        let mut stopping = Stopping::default();
        let why = || Why::Asked("enough".into());
        assert_eq!(stopping.begin(why(), grace, true), Some(Step::Ask));
        assert_eq!(stopping.begin(why(), grace, true), None, "once is enough");
        assert_eq!(stopping.due(), Some(begun + grace / 2));
        assert_eq!(stopping.step(), Some(Step::Terminate));
        assert_eq!(stopping.due(), Some(begun + grace));
        assert_eq!(stopping.step(), Some(Step::Kill));
        assert!(stopping.due().is_some(), "until it is dead");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_asked_is_terminated_and_what_nobody_guards_is_killed() {
        let mut stopping = Stopping::default();
        let why = Why::LostTask("gone".into());
        let grace = Duration::from_secs(5);
        assert_eq!(stopping.begin(why, grace, false), Some(Step::Terminate));
        assert_eq!(stopping.due(), Some(Instant::now() + grace));
        let now = stopping.begin(Why::GuardDied, grace, false);
        assert_eq!(now, Some(Step::Kill), "it is killed at once");
        assert!(matches!(stopping.why(), Some(Why::LostTask(_))));
    }
}
