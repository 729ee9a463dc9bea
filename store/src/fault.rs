//! Named points at which a test can crash the process or make a write fail.
//!
//! Every step that changes a file passes a point. Points are declared with
//! [`fault_points!`](crate::fault_points), which also builds the crate's list of them, so a
//! test can visit every point there is, including those added after the test was written:
//! a point that is not in the list cannot be passed, and one that is never passed is dead
//! code the compiler reports.
//!
//! Without the `fault-injection` feature [`pass`] is an empty inline function. With it:
//!
//! * `CCB_FAULT=crash:NAME:N` aborts the process at its N-th pass of NAME (from 1), without
//!   running destructors, as `kill -9` would.
//! * `CCB_FAULT=enospc:NAME:N` (also `eio`, `erofs`) makes that pass return the error, where
//!   the point stands before a step that can fail.
//! * `CCB_FAULT=panic:NAME:N` panics there, and `hang` never comes back: what a bug would do to
//!   one thread of a process.
//! * `CCB_FAULT_TRACE=FILE` appends the name of every point passed.
//! * `CCB_FAULT_HASTE=N` makes the waits that go through [`hasten`] N times shorter.

#[cfg(not(feature = "fault-injection"))]
use std::time::Duration;

/// A named write point. Only [`fault_points!`](crate::fault_points) makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(&'static str);

impl Point {
    /// Used by [`fault_points!`](crate::fault_points); declare points with the macro.
    #[doc(hidden)]
    pub const fn declare(name: &'static str) -> Self {
        Self(name)
    }

    /// The name tests use.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Declares a crate's write points and `FAULT_POINTS`, the list of all of them.
#[macro_export]
macro_rules! fault_points {
    ($($(#[$doc:meta])* $NAME:ident = $name:literal;)*) => {
        $($(#[$doc])* pub(crate) const $NAME: $crate::fault::Point =
            $crate::fault::Point::declare($name);)*
        /// Every write point of this crate, for tests that visit all of them.
        pub const FAULT_POINTS: &[$crate::fault::Point] = &[$($NAME),*];
    };
}

crate::fault_points! {
    /// A temporary file exists and is empty.
    STAGE_OPENED = "stage.opened";
    /// Its content is written but not yet on disk.
    STAGE_WRITTEN = "stage.written";
    /// Its content is on disk; its name is temporary.
    STAGE_SYNCED = "stage.synced";
    /// It has taken the place of the old file.
    PUBLISH_REPLACED = "publish.replaced";
    /// It has appeared under a new name.
    PUBLISH_CREATED = "publish.created";
    /// A file is gone from its directory.
    REMOVED = "remove.done";
    /// The directory itself is about to be written to disk.
    DIR_SYNC = "dir.sync";
    /// A whole file system is about to be written to disk.
    FILE_SYSTEM_SYNC = "file-system.sync";
    /// A torn tail is about to be cut off a log.
    LOG_CUT = "log.cut";
    /// Half of an append has reached the log.
    LOG_HALF = "log.half";
    /// An append is complete.
    LOG_APPENDED = "log.appended";
    /// A lock directory is recorded but not yet published.
    LOCKDIR_RECORDED = "lockdir.recorded";
    /// A lock directory is in place.
    LOCKDIR_TAKEN = "lockdir.taken";
    /// A lock directory is gone, its record still there.
    LOCKDIR_RELEASED = "lockdir.released";
}

/// Marks that the process is about to do something that can fail.
///
/// Returns an error, or does not return, only if a test asked for it.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn pass(_point: Point) -> std::io::Result<()> {
    Ok(())
}

#[cfg(feature = "fault-injection")]
pub use injection::pass;

/// Marks that the process did something irreversible; a test can only ask for a crash here.
#[inline]
pub fn reached(point: Point) {
    if let Err(error) = pass(point) {
        tracing::debug!(point = point.name(), %error, "an error makes no sense here, ignored");
    }
}

/// How long the process waits that would wait for `usual`: shorter only when a test asked for it.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn hasten(usual: Duration) -> Duration {
    usual
}

#[cfg(feature = "fault-injection")]
pub use injection::hasten;

#[cfg(feature = "fault-injection")]
mod injection {
    use std::collections::HashMap;
    use std::fs::OpenOptions;
    use std::io::{self, Write};
    use std::sync::{LazyLock, Mutex};
    use std::time::Duration;

    use super::Point;

    enum What {
        Abort,
        Panic,
        Hang,
        Fail(i32),
    }

    struct Plan {
        what: What,
        point: String,
        nth: u32,
    }

    static PLAN: LazyLock<Option<Plan>> = LazyLock::new(|| {
        let text = std::env::var("CCB_FAULT").ok()?;
        let mut parts = text.splitn(3, ':');
        let what = match parts.next()? {
            "crash" => What::Abort,
            "panic" => What::Panic,
            "hang" => What::Hang,
            "enospc" => What::Fail(rustix::io::Errno::NOSPC.raw_os_error()),
            "eio" => What::Fail(rustix::io::Errno::IO.raw_os_error()),
            "erofs" => What::Fail(rustix::io::Errno::ROFS.raw_os_error()),
            _ => return None,
        };
        let point = parts.next()?.to_owned();
        Some(Plan {
            what,
            point,
            nth: parts.next()?.parse().ok()?,
        })
    });
    static TRACE: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("CCB_FAULT_TRACE").ok());
    static HASTE: LazyLock<Option<u32>> =
        LazyLock::new(|| std::env::var("CCB_FAULT_HASTE").ok()?.parse().ok());
    static PASSES: LazyLock<Mutex<HashMap<Point, u32>>> = LazyLock::new(Mutex::default);

    /// Makes a wait shorter; see the module.
    pub fn hasten(usual: Duration) -> Duration {
        let haste = HASTE.filter(|haste| *haste > 0);
        haste.map_or(usual, |haste| usual / haste)
    }

    /// Marks that the process has reached `point`; see the module.
    pub fn pass(point: Point) -> io::Result<()> {
        if let Some(path) = &*TRACE {
            let mut trace = OpenOptions::new().create(true).append(true).open(path)?;
            trace.write_all(format!("{}\n", point.name()).as_bytes())?;
        }
        let Some(plan) = &*PLAN else { return Ok(()) };
        if plan.point != point.name() {
            return Ok(());
        }
        let mut passes = PASSES.lock().map_err(|_| io::Error::other("poisoned"))?;
        let count = passes.entry(point).or_default();
        *count += 1;
        if *count != plan.nth {
            return Ok(());
        }
        // Other threads pass it, too.
        drop(passes);
        match plan.what {
            What::Abort => std::process::abort(),
            What::Panic => std::panic::resume_unwind(Box::new("a test asked for a panic")),
            What::Hang => loop {
                std::thread::park();
            },
            What::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn point_names_are_unique() {
        let mut names: Vec<_> = super::FAULT_POINTS.iter().map(|p| p.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), super::FAULT_POINTS.len());
    }
}
