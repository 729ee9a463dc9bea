//! Handing mail to a running agent.

use store::fault::reached;
use tokio::sync::mpsc::Sender;
use uuid::Uuid;

use super::Life;
use super::mail_queue::MailQueue;
use crate::fault;
use crate::run::meta::RunState;
use crate::runtime::{Message, Messages, Order};

/// The prompt of an agent that is resumed without a message.
pub(crate) const GO_ON: &str = "Go on where you stopped.";

impl Life<'_> {
    /// The first message to an agent that was resumed: the mail it was resumed for. `None` for one
    /// that begins, and for a runtime that takes in no messages.
    pub(crate) fn next_prompt(&mut self) -> Option<String> {
        if !self.meta.goes_on() {
            return None;
        }
        let queue = self.mail_queue.as_mut()?;
        let for_host = queue.fetch(&self.run).unwrap_or_else(|error| {
            tracing::warn!(%error, "the mail cannot be read");
            Vec::new()
        });
        // Its program is not up yet, so it starts with the mode.
        for order in for_host.into_iter().filter_map(|message| message.mode) {
            self.start_in_mode(order);
        }
        let queue = self.mail_queue.as_mut()?;
        let mut texts = Vec::new();
        while let Some(message) = queue.give() {
            texts.push(message.text);
            self.in_prompt.push(message.id);
        }
        if texts.is_empty() {
            if self.rested {
                // It was idle when its process ended, and is idle now.
                self.busy = false;
                self.look_at_children_soon();
                return Some(String::new());
            }
            texts.push(GO_ON.into());
        }
        Some(texts.join("\n"))
    }

    /// Fetches mail, and gives it to the agent if it can take it in now.
    pub(crate) async fn fetch_mail(&mut self, orders: &Sender<Order>) {
        let Some(queue) = &mut self.mail_queue else {
            return;
        };
        let answers = match queue.fetch(&self.run) {
            Ok(answers) => answers,
            Err(error) => {
                tracing::warn!(%error, "the mail cannot be read");
                return;
            }
        };
        for message in answers {
            if let Some(answer) = message.answer {
                self.answer(&answer.request, answer.allow, answer.reason, orders);
            }
            if let Some(order) = message.mode {
                self.set_mode(order, orders).await;
            }
        }
        let urgent = self.mail_queue.as_ref().is_some_and(MailQueue::urgent);
        match self.abilities.messages {
            Messages::AnyTime => self.give_mail(orders).await,
            _ if !self.busy => self.give_mail(orders).await,
            _ if urgent && self.abilities.interrupt && !self.interrupted => {
                self.interrupted = true;
                orders.send(Order::Interrupt).await.ok();
            }
            _ => {}
        }
    }

    pub(crate) async fn give_mail(&mut self, orders: &Sender<Order>) {
        if self.gone || self.stopping.why().is_some() || self.meta.state == RunState::Ending {
            return;
        }
        let waits = self.mail_queue.as_ref().is_some_and(MailQueue::waiting);
        if waits && !self.busy && !self.may_begin() {
            return;
        }
        while let Some(mailed) = self.mail_queue.as_mut().and_then(MailQueue::give) {
            self.at_work();
            let message = Message {
                id: mailed.id,
                text: mailed.text,
                now: mailed.now,
            };
            orders.send(Order::Send(message)).await.ok();
        }
    }

    /// From here on a turn is under way.
    pub(crate) fn at_work(&mut self) {
        if !self.busy {
            self.hooking.forget();
            self.busy = true;
            self.meta.state = RunState::Running;
            self.write_meta();
            self.note_idle(false);
        }
    }

    pub(crate) fn taken_in(&mut self, id: Uuid) {
        let taken = self
            .mail_queue
            .as_mut()
            .and_then(|queue| queue.taken_in(id));
        let Some((seq, text)) = taken else {
            return;
        };
        // A message that the turn before did not take in any more begins the next one.
        self.at_work();
        // First into the transcript: a resume after a crash reads it there.
        self.record.message(id, &text);
        reached(fault::RUN_HANDED);
        if let Some(queue) = &mut self.mail_queue
            && let Err(error) = queue.done(seq)
        {
            tracing::warn!(%error, "a message will be handed over again");
        }
    }
}
