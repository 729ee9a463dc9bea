//! Ending a run step by step: ask, SIGTERM, SIGKILL.

use std::time::Duration;

use tokio::time::Instant;

use super::exit::ExitReason;

/// Maximum time for an agent to end after a request in its own protocol; less if the whole grace is
/// shorter.
const ASKING: Duration = Duration::from_secs(2);

/// The next step to end an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask by protocol.
    Ask,
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL to everything.
    Kill,
}

/// The reason and the stage of a run's end.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    why: Option<Why>,
    /// Time between SIGTERM and SIGKILL.
    grace: Duration,
    next: Option<(Step, Instant)>,
}

/// The reason why we end a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// A user or an agent asked for it.
    Asked(String),
    /// The guard has died, and nothing supervises the host any more.
    GuardDied,
    /// Its task is no longer its own.
    LostTask(String),
    /// It could continue, and may not or cannot.
    Over(ExitReason, String),
    /// It cannot continue: its thread does not come back.
    Broken(String),
}

impl Stopping {
    /// Begins to end the run; says what is to be done now. A second reason changes nothing,
    /// unless it is more urgent.
    pub(super) fn begin(&mut self, why: Why, grace: Duration, can_ask: bool) -> Option<Step> {
        if why == Why::GuardDied {
            // No guard would end the processes that are left over now, so they are killed at once.
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

    /// The time of the next step.
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

    /// The reason why the run is being ended; `None` if it is not.
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
