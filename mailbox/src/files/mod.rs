//! A team's mail in its directory: the default.
//!
//! ```text
//! <team>/inboxes/<agent>/   the name in lower case
//!     log.jsonl         the messages          archive-N.jsonl   acknowledged ones, from N on
//!     cursor.json       how far it was read   lock              held while something changes
//!     wake              FIFO of the reader    consumer.lock     held by the reader
//!     marks.jsonl       broadcasts copied, ids used; see `marks`
//!     rejected.jsonl    damaged lines         activity.json     busy or idle
//!     tmp/              files on their way
//! <team>/broadcast.jsonl    what was sent to everyone; see `broadcast`
//! <team>/.ccb/tmp/          files on their way
//! <team>/requests/<id>.json questions that wait for an answer; see `requests`
//! ```
//!
//! # Lock order
//!
//! `broadcast.lock` or `consumer.lock`, then an inbox's `lock`. Nothing holds the locks of
//! two inboxes, or `requests/lock` together with another.
//!
//! # Sending and reading mail
//!
//! 1. The line is made, but for its number, before the lock is taken.
//! 2. Take the inbox's `lock`. Look at the log's length; if others wrote, read the number of its last line.
//! 3. Look at the length of the team's `broadcast.jsonl`; copy and number what this inbox does not have yet.
//! 4. Append the line with one write, unlock, ring the FIFO `wake`, sync. The kernel merges the syncs of all senders.
//!
//! A reader holds `consumer.lock` as long as it reads, so there is one. It notes what it is about to hand over in `cursor.json`
//! (after the log is synced), hands it over, and notes what is acknowledged. The next reader hands over again what was not, and
//! knows from the note which of it may have been seen.
//!
//! The log only shrinks by being replaced: acknowledged messages are written to an archive first. A broadcast's number in its copy,
//! and `once` in a message whose sender gave the id, are what `marks.jsonl` lists; whatever is not listed yet is found in the log, so
//! the order "append, then list" loses nothing.

mod activity;
mod broadcast;
mod inbox;
mod live;
mod look;
pub(crate) mod marks;
mod passing;
mod reader;
mod requests;
mod rotate;
mod team;

pub(crate) use team::FileMail;
