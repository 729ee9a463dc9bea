//! A board in one directory.
//!
//! One human-readable JSON file per task, in the format Claude Code reads and writes, is the truth.
//! Every change goes through one lock section (`section`); readers take no lock (`read`).
//!
//! ```text
//! <list>/<id>.json        a task           .lock             locked while the list changes
//! <list>/.highwatermark   the highest id   .ccb/             of ccb, see below
//! .ccb/log.jsonl          numbered changes (log.1.jsonl: the ones before)
//! .ccb/index              the index at some point of the log; saves reading everything
//! .ccb/slots, workers/    who waits for a task; see `slots` and `serve`
//! .ccb/intent.json        a change of several files that is being made
//! .ccb/held               lock directories ccb holds
//! .ccb/tmp/               files on their way; .ccb/corrupt/: files the doctor set aside
//! ```
//!
//! Losing `.ccb` loses history and a change that was being made, never a task.
//!
//! # A lock section
//!
//! 1. Take the list's lock (`.lock`), blocking in the kernel, with a limit. A process that has had its turn takes it past a queue (`.ccb/queue`), so that
//!    no process is passed again and again.
//! 2. Remove lock directories a dead ccb process left; carry out an intent it left.
//! 3. Bring the index up to date from the change log. If the directory's mtime is not the one the last section left, compare every
//!    file with the index and give numbers to the changes of other tools.
//! 4. Return tasks whose lease ran out; park those whose check was changed by other means than the board; complete half edges.
//! 5. The operation: read the file it is about, and those of its blockers where they changed; check the rules; write.
//! 6. Append to the change log, note the directory's mtime, unlock, yield now and then.
//! 7. Outside the lock: sync the directory.
//!
//! If a lock directory of another tool is in the way, nothing has been written yet: everything is released, and the section starts
//! again after a pause, so that one task in another tool's hands does not stop work on the others.
//!
//! A durable change of one task takes two sections, with the sync of the new file between them: choose and check, write the new file
//! aside, check again and rename. If the task changed meanwhile, it starts over, and this time writes in one section with the task's lock directory
//! taken first, so that a process that changes it without a pause cannot win every time.
//!
//! Processes that ask for the next task do not queue for the lock. Each writes what it wants into its slot (`.ccb/slots`); the process
//! that has the lock serves all of them before it unlocks, and wakes them (`taskboard/src/files/serve.rs` has the protocol). With syncing, the
//! holder only chooses; the worker writes and syncs the new file outside the lock, and a holder puts the files into place in order of
//! rank, so that the outcome is one that a single process could have produced. A slot is a courtesy: what counts is the check before
//! the rename, and a worker without an answer reads the list itself.
//!
//! # A task's check
//!
//! `.ccb/checks/<id>.json` holds the check of a task, and the fingerprint of the result that the board recorded. It is written when a section first sees the
//! task (its own `create`, another tool's file), and when a change through the board sets another check or result: first with both the old and the new one,
//! then the task's file, then the new one alone, so that a crash in between leaves a task that agrees with its record. A change of the
//! file by other means is compared when a section takes the file in; only then, so a claim reads no record. If the two disagree the task is parked with both
//! checks and the two commands that settle it, and cannot be completed. A caller that is about to use a check (a session, `agent spawn --task`, a landing,
//! `task done --verify`) asks `Board::check_of`, which compares again. ccb makes a lost or unreadable record again from the file.

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
