//! Making a conversation shorter when it fills the model's context.
//!
//! The model writes a summary, which takes the place of the earlier conversation. If that fails,
//! the oldest long results are left out.

use super::agent::{Agent, Halt, Step};
use super::journal::Entry;
use super::model::{Answer, Block};
use super::protocol::Say;

const ASK: &str = "[This conversation is about to be cut to make room. Do not call tools now. Write \
a summary from which you can go on without anything else of it: the task in its own words and every \
later instruction; what is done, and how that is known; decisions, and why; each file touched or \
important, with paths; commands that run in the background, questions and agents that are still \
open; what comes next. Be exact and leave nothing out that you would have to find out again.]";

impl Agent {
    /// Makes the conversation shorter; false if it cannot be.
    pub(super) async fn compact(&mut self) -> Result<Step<bool>, Halt> {
        let why = "the context is full; the model summarizes the conversation, and requests begin \
                   with the summary from then on"
            .to_owned();
        self.out.mention(&Say::Stalled { why });
        let body = self.conversation.request(&self.head, Some(ASK));
        let summary = match self.ask(body).await? {
            Step::Done(Ok(answer)) => {
                self.count(&answer).await?;
                usable(&answer)
            }
            Step::Done(Err(error)) => Err(error.words().to_owned()),
            Step::Interrupted => return Ok(Step::Interrupted),
            Step::Urgent => return Ok(Step::Urgent),
        };
        match summary {
            Ok(summary) => {
                let text = format!(
                    "[The conversation so far was cut to make room. What follows is what you need \
                     of it.]\n\n# The task, as it began\n\n{}\n\n# Your summary\n\n{summary}",
                    self.conversation.task()
                );
                let why = format!("the context was full: {} tokens", self.spent.context);
                self.conversation
                    .happened(Entry::Compaction { text, why })?;
                self.spent.context = 0;
                Ok(Step::Done(true))
            }
            Err(why) => {
                let why = format!(
                    "there is no summary ({why}); dropping the oldest tool results instead"
                );
                self.out.mention(&Say::Stalled { why });
                let dropped = self.conversation.drop_results()?;
                // The room that is left is unknown until the next answer.
                let bytes = self.head.len() + self.conversation.answered_bytes();
                self.spent.context = u64::try_from(bytes / 4).unwrap_or(u64::MAX);
                Ok(Step::Done(dropped))
            }
        }
    }
}

/// The summary in an answer, if it is one.
fn usable(answer: &Answer) -> Result<String, String> {
    let calls = |block: &Block| matches!(block, Block::ToolUse { .. });
    let text = answer.text();
    match () {
        () if text.trim().is_empty() && answer.blocks.iter().any(calls) => {
            Err("the model called a tool instead".to_owned())
        }
        () if text.trim().is_empty() => Err("the model said nothing".to_owned()),
        () => Ok(text),
    }
}
