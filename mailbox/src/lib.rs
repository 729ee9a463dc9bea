//! Messages between agents: nothing late, nothing lost, nothing twice.
#![allow(unused, missing_docs)]
mod broadcast;
mod consumer;
mod cursor;
mod error;
mod fault;
mod inbox;
mod line;
mod mailbox;
mod marks;
mod message;
mod notification;
mod protocol;
mod ranges;
mod rotate;
mod xml;

pub use broadcast::Broadcast;
pub use consumer::{Acked, Batch, Consumer};
pub use error::{Category, MailError, Result};
pub use fault::FAULT_POINTS;
pub use inbox::{Inbox, Posted};
pub use mailbox::{Limits, MailOptions, Mailbox};
pub use message::{Body, Draft, MAX_BODY, MAX_SUMMARY, MAX_TEXT, Message, Priority};
pub use notification::*;
pub use protocol::*;

#[cfg(test)]
mod tests;
