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

mod activity;
mod broadcast;
mod inbox;
mod live;
mod look;
pub(crate) mod marks;
mod reader;
mod requests;
mod rotate;
mod team;

pub(crate) use team::FileMail;
