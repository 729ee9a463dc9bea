//! Tasks that pause for a moment, because the same obstacle may stop them again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use taskboard::TaskId;

/// The first pause, which doubles each time, and the longest one.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum starts of a task that an obstacle stops every time: about two minutes.
const MOST: u32 = 12;

/// The paused tasks, with the number of consecutive obstacles and the end of the pause.
#[derive(Debug, Default)]
pub(super) struct Rests {
    hindered: BTreeMap<TaskId, (u32, Instant)>,
}

impl Rests {
    /// Records another obstacle and returns the pause. `None` after too many.
    pub(super) fn again(&mut self, task: TaskId, now: Instant) -> Option<Duration> {
        let (times, until) = self.hindered.entry(task).or_insert((0, now));
        *times += 1;
        if *times >= MOST {
            self.hindered.remove(&task);
            return None;
        }
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(*times - 1));
        let pause = pause.min(LONGEST);
        *until = now + pause;
        Some(pause)
    }

    /// Forgets the obstacles of a task that was not stopped this time.
    pub(super) fn over(&mut self, task: TaskId) {
        self.hindered.remove(&task);
    }

    /// The tasks that are paused now.
    pub(super) fn now(&self, now: Instant) -> BTreeSet<TaskId> {
        let resting = self.hindered.iter().filter(|(_, (_, until))| *until > now);
        resting.map(|(task, _)| *task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_left_alone_longer_each_time_and_given_up_after_minutes() {
        let begin = Instant::now();
        let (one, other) = (TaskId::new(1).unwrap(), TaskId::new(2).unwrap());
        let mut rests = Rests::default();
        assert_eq!(rests.again(one, begin), Some(FIRST));
        assert_eq!(rests.now(begin), BTreeSet::from([one]));
        assert_eq!(rests.now(begin + FIRST), BTreeSet::new());
        assert_eq!(rests.again(one, begin), Some(FIRST * 2));
        assert_eq!(rests.again(other, begin), Some(FIRST), "each for itself");
        rests.over(one);
        let mut all = Duration::ZERO;
        while let Some(pause) = rests.again(one, begin) {
            all += pause;
        }
        assert!(all > Duration::from_secs(90), "{all:?}");
        assert_eq!(rests.now(begin), BTreeSet::from([other]));
    }
}
