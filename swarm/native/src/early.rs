//! The first request of a copy starts at once: everything in it is known when the conversation was
//! read. While the model thinks, the agent's servers start.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::conversation::Conversation;
use super::limits::Limits;
use super::link::Outbox;
use super::model::{Answer, Model, ModelError};
use super::protocol::Say;

/// A request that is under way. Dropping it breaks it off.
#[derive(Debug)]
pub(super) struct Early {
    body: Bytes,
    asked: JoinHandle<Result<Answer, ModelError>>,
}

impl Early {
    /// Sends the agent's first request to the model; `None` if its limits forbid that.
    pub(super) fn ask(
        model: Arc<dyn Model>,
        conversation: &Conversation,
        head: &[u8],
        limits: &Limits,
        out: &Outbox,
    ) -> Option<Self> {
        let none_left = limits.turns == Some(0)
            || limits.cost_usd.is_some_and(|most| most <= 0.0)
            || limits
                .bytes
                .is_some_and(|most| conversation.kept_bytes() > most);
        let new = u64::try_from(conversation.unanswered_bytes() / 4).unwrap_or(u64::MAX);
        if none_left || new > limits.context {
            return None;
        }
        let body = conversation.request(head, None);
        let (asks, out) = (body.clone(), out.clone());
        let asked = tokio::spawn(async move {
            let stalled = move |why: String| out.mention(&Say::Stalled { why });
            model.ask(asks, &stalled).await
        });
        Some(Self { body, asked })
    }

    /// True if it asks just this.
    pub(super) fn is(&self, body: &Bytes) -> bool {
        self.body == *body
    }

    /// The model's answer.
    pub(super) async fn answer(mut self) -> Result<Answer, ModelError> {
        (&mut self.asked).await.unwrap_or_else(|error| {
            let words = format!("a bug in ccb ended the request: {error}");
            Err(ModelError::Refused { words })
        })
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.asked.abort();
    }
}
