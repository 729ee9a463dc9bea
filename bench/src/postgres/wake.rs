//! The time until a waiting process sees a new task.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::Serialize;
use taskboard::NewTask;

use super::site::Site;
use crate::stats::Spread;
use crate::table::{Table, ms};
use crate::{Failure, check_interrupted};

/// Time until the watcher of a list has a change.
#[derive(Debug, Serialize)]
pub(crate) struct Wake {
    count: usize,
    /// From before the call that creates the task, and from its return; p50 and p99.
    from_call: (Duration, Duration),
    from_return: (Duration, Duration),
}

/// Long enough for the watcher to sleep again.
const PAUSE: Duration = Duration::from_millis(15);
const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn measure(site: &Site, count: usize) -> Result<Wake, Failure> {
    let board = site.board("wake")?;
    let new = || NewTask {
        subject: "a watcher waits for this".into(),
        ..NewTask::default()
    };
    board.create(&[new()], None)?;
    let watched = site.board("wake")?;
    let (seen, sightings) = mpsc::channel();
    let (tell, ready) = mpsc::channel();
    let watcher = std::thread::spawn(move || {
        let Ok(mut watch) = watched.watch(None) else {
            return;
        };
        tell.send(()).ok();
        // Ends when the receiver is gone.
        loop {
            watch.wait(Duration::from_millis(500));
            match watch.poll() {
                Ok(changes) => {
                    let at = Instant::now();
                    for change in changes {
                        if seen.send((change.id, at)).is_err() {
                            return;
                        }
                    }
                }
                Err(_) => return,
            }
        }
    });
    ready.recv_timeout(LIMIT)?;
    let (mut calls, mut returns) = (Vec::new(), Vec::new());
    // The first ones include the making of plans and connections.
    for n in 0..count + 10 {
        check_interrupted()?;
        std::thread::sleep(PAUSE);
        let called = Instant::now();
        let id = board.create(&[new()], None)?[0].id;
        let returned = Instant::now();
        let at = loop {
            let (which, at) = sightings.recv_timeout(LIMIT)?;
            if which == id {
                break at;
            }
        };
        if n >= 10 {
            calls.push(at.saturating_duration_since(called));
            returns.push(at.saturating_duration_since(returned));
        }
    }
    drop(sightings);
    board.create(&[new()], None)?;
    drop(watcher.join());
    let spread = |samples| {
        let spread = Spread::of(samples);
        (spread.p50, spread.p99)
    };
    Ok(Wake {
        count,
        from_call: spread(calls),
        from_return: spread(returns),
    })
}

impl Wake {
    pub(super) fn print(&self) {
        println!("### From creating a task to the watcher of the list\n");
        let mut table = Table::new(1, ["since", "p50 ms", "p99 ms"]);
        for (since, (p50, p99)) in [
            ("the call that creates it", self.from_call),
            ("its return", self.from_return),
        ] {
            table.row(vec![since.into(), ms(p50), ms(p99)]);
        }
        println!("{table}\n{} tasks, one at a time.\n", self.count);
    }
}
