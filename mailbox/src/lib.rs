//! Messages between agents: no message late, lost or doubled.
//!
//! # What this room knows
//!
//! Messages and their states, broadcasts, questions with one answer, the position up to which an
//! inbox is read, and which agent is busy. Mail is kept by one of three backends behind one port
//! (`backend`): files, the tables of PostgreSQL ([`Mailbox::new`], `Mailbox::on`), or memory.
//! `tests/contract` holds all of them to the same promises.
//!
//! ```text
//! queued ──take──▶ handed over ──delivered──▶ delivered ──ack──▶ acknowledged ──▶ archive
//!    ▲                  │                        │
//!    └──the reader dies─┴────────────────────────┘  handed over again, `redelivered`
//! ```
//!
//! * Numbers (`seq`) count up by one per inbox.
//! * Handed over at least once, acknowledged exactly once.
//! * A message whose id the sender gave is there once, however often it is sent, also after it was
//!   acknowledged and archived.
//! * A message that is over the limit is refused; nothing that waits is dropped.
//!
//! # What it must not know (and where to go instead)
//!
//! No processes, no roster (`swarm`), no tasks (`taskboard`), no printing, no environment: senders
//! and recipients are names that the caller vouches for.
//!
//! # The way through
//!
//! 1. [`Mailbox`] checks each message and takes out secrets; the constructor chose the backend.
//! 2. The backend gives the message its number: under the inbox's lock (`files::inbox`), in a
//!    transaction (`database`), or under a mutex (`memory`). Then it rings for the reader.
//! 3. A [`Consumer`] fetches through its `Source`, hands over by priority, and writes its cursor
//!    before a message counts as handed over or acknowledged.
//! 4. Onlookers take no lock: [`Inbox::list`], [`Inbox::follow`], [`Mailbox::follow`],
//!    [`Mailbox::waiting_requests`].
//!
//! # Crash points
//!
//! [`FAULT_POINTS`] names the points at which a process on files may die: while an inbox is made,
//! after a broadcast is committed or copied, between a request and the message that tells of it, and
//! around archives. The next process that opens the inbox, or looks at the requests, finishes the work.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change what mail means, wherever it is kept | `mailbox/src/mailbox.rs`, `mailbox/src/backend.rs` (the port), `mailbox/src/request.rs`, `mailbox/src/consumer.rs`; what both places must keep: `mailbox/tests/contract/suite/mod.rs` |
//! | change mail in PostgreSQL | `mailbox/src/database/mod.rs`, `mailbox/migrations/001.sql`; who reads: `mailbox/src/database/reader.rs`; links that break: `mailbox/tests/database/faults.rs` |
//! | see what happens when a message is sent | `mailbox/src/files/inbox.rs` (the section), `live.rs`, `store/src/shared_log.rs` |
//! | see how a message is handed over, acknowledged, archived | `mailbox/src/consumer.rs`, `mailbox/src/cursor.rs`, `mailbox/src/files/rotate.rs` |
//! | see how a broadcast reaches every inbox, and an id is used once | `mailbox/src/files/broadcast.rs`, `mailbox/src/files/marks.rs` |
//! | add a kind of message | `mailbox/src/protocol.rs` |
//! | change what a model sees of mail | `mailbox/src/render.rs`, `mailbox/src/notification.rs`, `mailbox/src/xml.rs` |
//! | see how requests get one answer | `mailbox/src/files/requests.rs` |

mod activity;
mod backend;
mod broadcast;
mod consumer;
mod cursor;
#[cfg(feature = "postgres")]
mod database;
mod error;
mod fault;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod inbox;
mod line;
mod listing;
mod mailbox;
mod memory;
mod message;
mod notification;
mod options;
mod passing;
mod protocol;
mod ranges;
mod render;
mod request;
mod requests;
mod source;
mod xml;

#[cfg(feature = "postgres")]
pub use self::database::{MIGRATIONS, PrunedMail, delete_all, inboxes_being_read, prune};
pub use broadcast::Broadcast;
pub use consumer::{Acked, Batch, Consumer};
pub use error::{MailError, Result};
pub use fault::FAULT_POINTS;
pub use inbox::{Follow, Inbox};
pub use line::read_line;
pub use listing::{Listing, MessageState};
pub use mailbox::Mailbox;
pub use memory::Memory;
pub use message::{Body, Draft, MAX_BODY, MAX_SUMMARY, MAX_TEXT, Message, Posted, Priority};
pub use notification::{RunStatus, TaskNotification, Usage, WorktreeLeft, notification_id};
pub use options::{Limits, MailOptions};
pub use passing::Passing;
pub use protocol::{
    AllowedPrompt, Answered, Asked, IdleNotification, IdleReason, KINDS, Mode, Permission, Plan,
    Protocol, Question, Shutdown, TaskAssignment, TeammateTerminated,
};
pub use render::{in_short, render, render_parts, short_id};
pub use request::{Answer, Reply, Request, RequestState};
pub use requests::{DEFAULT_DEADLINE, Requests};

#[cfg(test)]
mod tests;
