//! Something that cannot be read or written: a full disk, a home that is gone. It is tried again,
//! because somebody may repair it, but not for ever, and it is not said every time.

use std::time::{Duration, Instant};

/// How often it is said.
const SAY_AGAIN: Duration = Duration::from_secs(30);
/// How long nobody repairs it before it is given up.
const NOBODY_REPAIRS_IT: Duration = Duration::from_secs(120);

/// What to do about trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Somebody should know.
    Say,
    /// It was said, and may still be repaired.
    Wait,
    /// It has lasted too long.
    GiveUp,
}

/// Trouble that lasts.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Since when, and when it was last said.
    lasts: Option<(Instant, Instant)>,
}

impl Trouble {
    /// There it is again.
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

    /// Something worked.
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
