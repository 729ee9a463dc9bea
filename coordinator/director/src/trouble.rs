//! Something that cannot be read or written, such as a full disk or a missing home. The director
//! retries, because a person may repair it, but not for ever, and does not report it every time.

use std::time::{Duration, Instant};

/// Interval between two reports.
const SAY_AGAIN: Duration = Duration::from_secs(30);
/// Time without a repair after which the director gives up.
const NOBODY_REPAIRS_IT: Duration = Duration::from_secs(120);

/// The reaction to trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// A report is due.
    Say,
    /// It was reported, and may still be repaired.
    Wait,
    /// It has lasted too long.
    GiveUp,
}

/// Trouble that lasts.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// The start, and the time of the last report.
    lasts: Option<(Instant, Instant)>,
}

impl Trouble {
    /// Records another failure.
    pub(super) fn again(&mut self, now: Instant) -> Then {
        let Some((since, said)) = &mut self.lasts else {
            self.lasts = Some((now, now));
            return Then::Say;
        };
        if now.duration_since(*since) >= NOBODY_REPAIRS_IT {
            return Then::GiveUp;
        }
        if now.duration_since(*said) < SAY_AGAIN {
            return Then::Wait;
        }
        *said = now;
        Then::Say
    }

    /// Records a success.
    pub(super) fn over(&mut self) {
        self.lasts = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_now_and_then_given_up_in_the_end_and_forgotten_when_it_is_over() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut trouble = Trouble::default();
        for (seconds, then) in [
            (0, Then::Say),
            (1, Then::Wait),
            (29, Then::Wait),
            (30, Then::Say),
            (59, Then::Wait),
            (61, Then::Say),
            (119, Then::Say),
            (120, Then::GiveUp),
            (500, Then::GiveUp),
        ] {
            assert_eq!(trouble.again(at(seconds)), then, "after {seconds} s");
        }
        trouble.over();
        assert_eq!(trouble.again(at(501)), Then::Say);
        assert_eq!(trouble.again(at(620)), Then::Say);
        assert_eq!(trouble.again(at(621)), Then::GiveUp);
    }
}
