//! Messages between agents: nothing late, nothing lost, nothing twice.
//!
//! Every agent has an inbox, an append-only log that any process may append to and one
//! process at a time reads. The log is the truth; everything else says how far somebody has
//! got with it.
//!
//! # States of a message
//!
//! ```text
//! queued ──take──▶ handed over ──delivered──▶ delivered ──ack──▶ acknowledged ──▶ archive
//!    ▲                  │                        │
//!    └──the reader dies─┴────────────────────────┘  handed over again, `redelivered`
//! ```
//!
//! * Numbers (`seq`) count up by one per inbox, under its lock.
//! * Handed over at least once, acknowledged exactly once.
//! * A message whose id the sender gave is there once, however often it is sent, also after
//!   it was acknowledged and archived.
//! * What is over the limit is refused; nothing that waits is dropped.
//!
//! # Where it is kept
//!
//! In files, or with the feature `postgres` in a database (`Mailbox::on`; see `database`). What
//! a message, a request or a cursor means is the same in both and exists once; `files`, `inbox`
//! and `database` are the places. `tests/contract` is what both have to keep.
//!
//! # Files
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
//! # What is not here
//!
//! No processes, no roster, no printing, no environment: senders and recipients are names
//! that the caller vouches for.

#[path = "files/activity.rs"]
mod activity;
#[path = "files/broadcast.rs"]
mod broadcast;
mod consumer;
mod cursor;
#[cfg(feature = "postgres")]
mod database;
mod error;
mod fault;
#[path = "files/reader.rs"]
mod file_source;
#[path = "files/team.rs"]
mod files;
#[doc(hidden)]
pub mod fuzz;
#[path = "files/inbox.rs"]
mod inbox;
mod line;
mod mailbox;
mod message;
mod notification;
mod options;
#[path = "files/look.rs"]
mod peek;
#[path = "inbox.rs"]
mod place;
mod protocol;
mod ranges;
mod render;
mod request;
#[path = "files/requests.rs"]
mod requests;
#[path = "files/rotate.rs"]
mod rotate;
#[path = "backend.rs"]
mod source;
mod xml;

#[cfg(feature = "postgres")]
pub use self::database::{MIGRATIONS, Passing, PrunedMail, delete_all, inboxes_being_read, prune};
pub use broadcast::Broadcast;
pub use consumer::{Acked, Batch, Consumer};
pub use error::{MailError, Result};
pub use fault::FAULT_POINTS;
pub use inbox::Posted;
pub use line::read_line;
pub use mailbox::Mailbox;
pub use message::{Body, Draft, MAX_BODY, MAX_SUMMARY, MAX_TEXT, Message, Priority};
pub use notification::{RunStatus, TaskNotification, Usage, WorktreeLeft, notification_id};
pub use options::{Limits, MailOptions};
pub use peek::{Listing, MessageState};
pub use place::{Follow, Inbox};
pub use protocol::{
    AllowedPrompt, Answered, Asked, IdleNotification, IdleReason, KINDS, Mode, Permission, Plan,
    Protocol, Question, Shutdown, TaskAssignment, TeammateTerminated,
};
pub use render::{render, render_parts};
pub use request::{Answer, Reply, Request, RequestState};
pub use requests::{DEFAULT_DEADLINE, Requests};

#[cfg(test)]
mod tests;
