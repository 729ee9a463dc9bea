//! Reading what a program printed, also when something it left behind keeps its streams open.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::process::Ending;

/// After the end of a program its streams are read until nothing comes for this long.
const QUIET: Duration = Duration::from_millis(50);
/// Maximum time of the reads, as a rule: processes it left behind may print for ever.
const LONGEST: Duration = Duration::from_secs(2);
/// Maximum reads later than that, of output that is there already. It is the program's own output
/// if the reader was slow; no pipe holds more lines of a message's length.
const LATE: u32 = 8192;

/// Tells if the program still runs.
#[derive(Debug, Clone)]
pub struct EndWatch {
    end: watch::Receiver<Option<(Ending, Instant)>>,
    /// The number of late reads.
    late: u32,
}

impl EndWatch {
    /// Waits for the program's end in the background.
    pub fn new(ended: oneshot::Receiver<Ending>) -> Self {
        let (sender, end) = watch::channel(None);
        tokio::spawn(async move {
            let ending = ended.await.unwrap_or(Ending::Unknown);
            sender.send(Some((ending, Instant::now()))).ok();
        });
        Self { end, late: 0 }
    }

    /// The program's end.
    pub async fn ending(&mut self) -> Ending {
        match self.end.wait_for(Option::is_some).await.as_deref() {
            Ok(Some((ending, _))) => *ending,
            _ => Ending::Unknown,
        }
    }

    /// The time at which the program ended; `None` if it has not.
    fn since(&self) -> Option<Instant> {
        self.end.borrow().map(|(_, since)| since)
    }

    /// Waits for `next`, which reads from a stream and can be given up; once the program has ended only as long
    /// as something comes.
    pub async fn read<T>(&mut self, next: impl Future<Output = T>) -> Option<T> {
        if self.since().is_some_and(|since| since.elapsed() > LONGEST) {
            self.late += 1;
            if self.late > LATE {
                return None;
            }
        }
        tokio::pin!(next);
        let since = tokio::select! {
            biased;
            value = &mut next => return Some(value),
            since = self.end.wait_for(Option::is_some) => match since.as_deref() {
                Ok(Some((_, since))) => *since,
                _ => Instant::now(),
            },
        };
        let until = (since + LONGEST).min(Instant::now() + QUIET);
        tokio::time::timeout_at(until, next).await.ok()
    }
}
