//! A board in one directory.
//!
//! One human-readable JSON file per task, in the format Claude Code reads and writes, is the truth.
//! Everything that changes it goes through one lock section (`section`); everything that only looks
//! takes no lock (`read`).
//!
//! ```text
//! <list>/<id>.json        a task           .lock             locked while the list changes
//! <list>/.highwatermark   the highest id   .ccb/             ours, listed below
//! .ccb/log.jsonl          numbered changes (log.1.jsonl: the ones before)
//! .ccb/index              the index at some point of the log; saves reading everything
//! .ccb/slots, workers/    who waits for a task; see `slots` and `serve`
//! .ccb/intent.json        a change of several files that is being made
//! .ccb/held               lock directories we hold
//! .ccb/tmp/               files on their way; .ccb/corrupt/: files the doctor set aside
//! ```
//!
//! Losing `.ccb` loses history and a change that was being made, never a task.

mod change;
mod checks;
mod create;
mod dir;
mod doctor;
mod glance;
mod ids;
pub(crate) mod index_file;
pub(crate) mod intent;
mod live;
pub(crate) mod log;
mod next;
mod patience;
mod port;
mod prepared;
pub(crate) mod quick;
mod read;
mod repair;
mod section;
mod serve;
pub(crate) mod slot;
mod slots;
mod watch;

pub(crate) use dir::Files;
use dir::records_dir;
