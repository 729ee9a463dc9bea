//! How a running agent gets its mail.

use store::fault::reached;
use tokio::sync::mpsc::Sender;
use uuid::Uuid;

use super::letters::Letters;
use super::life::Life;
use super::meta::RunState;
use crate::fault;
use crate::runtime::{Message, Messages, Order};

/// What an agent is told that is resumed without a message.
pub(super) const GO_ON: &str = "Go on where you stopped.";

impl Life<'_> {
    /// What an agent that was resumed is told first: the mail it was resumed for. None for one
    /// that begins, and for a runtime that takes in no messages.
    pub(super) fn next_prompt(&mut self) -> Option<String> {
        if self.meta.life < 2 {
            return None;
        }
        let letters = self.letters.as_mut()?;
        let for_host = letters.fetch(&self.run).unwrap_or_else(|error| {
            tracing::warn!(%error, "the mail cannot be read");
            Vec::new()
        });
        // Its program is not up yet, so it starts with the mode.
        for order in for_host.into_iter().filter_map(|letter| letter.mode) {
            self.start_in_mode(&order);
        }
        let letters = self.letters.as_mut()?;
        let mut texts = Vec::new();
        while let Some(letter) = letters.give() {
            texts.push(letter.text);
            self.in_prompt.push(letter.id);
        }
        if texts.is_empty() {
            texts.push(GO_ON.into());
        }
        Some(texts.join("\n"))
    }

    /// Fetches mail, and gives it to the agent if it can take it in now.
    pub(super) async fn fetch_mail(&mut self, orders: &Sender<Order>) {
        let Some(letters) = &mut self.letters else {
            return;
        };
        let answers = match letters.fetch(&self.run) {
            Ok(answers) => answers,
            Err(error) => {
                tracing::warn!(%error, "the mail cannot be read");
                return;
            }
        };
        for letter in answers {
            if let Some(answer) = letter.answer {
                self.answer(&answer.request, answer.allow, answer.reason, orders);
            }
            if let Some(order) = letter.mode {
                self.set_mode(order, orders).await;
            }
        }
        let urgent = self.letters.as_ref().is_some_and(Letters::urgent);
        match self.abilities.messages {
            Messages::AnyTime => self.give_letters(orders).await,
            _ if !self.busy => self.give_letters(orders).await,
            _ if urgent && self.abilities.interrupt && !self.interrupted => {
                self.interrupted = true;
                orders.send(Order::Interrupt).await.ok();
            }
            _ => {}
        }
    }

    pub(super) async fn give_letters(&mut self, orders: &Sender<Order>) {
        if self.stopping.why().is_some() || self.meta.state == RunState::Ending {
            return;
        }
        let waits = self.letters.as_ref().is_some_and(Letters::waiting);
        if waits && !self.busy && !self.may_begin() {
            return;
        }
        while let Some(letter) = self.letters.as_mut().and_then(Letters::give) {
            self.at_work();
            let message = Message {
                id: letter.id,
                text: letter.text,
                now: letter.now,
            };
            orders.send(Order::Send(message)).await.ok();
        }
    }

    /// From here on a turn is under way.
    pub(super) fn at_work(&mut self) {
        if !self.busy {
            self.hooking.forget();
            self.busy = true;
            self.meta.state = RunState::Running;
            self.write_meta();
            self.note_idle(false);
        }
    }

    pub(super) fn taken_in(&mut self, id: Uuid) {
        let taken = self
            .letters
            .as_mut()
            .and_then(|letters| letters.taken_in(id));
        let Some((seq, text)) = taken else {
            return;
        };
        // One that the turn before did not take in any more begins the next one.
        self.at_work();
        // First into the transcript: whoever goes on after a crash looks there.
        self.record.message(id, &text);
        reached(fault::RUN_HANDED);
        if let Some(letters) = &mut self.letters
            && let Err(error) = letters.done(seq)
        {
            tracing::warn!(%error, "a message will be handed over again");
        }
    }
}
