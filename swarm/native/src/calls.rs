//! Doing what the model asks for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use super::agent::{Agent, Halt, Step};
use super::link::{Heard, excerpt, shown};
use super::model::{Answer, Block, Stop};
use super::permission::Decision;
use super::protocol::Say;
use super::repeats::Repeats;
use super::tools::{Call, Cancel, ToolOutput};

/// Maximum time for a call that is broken off to clean up.
const CLEAN_UP: Duration = Duration::from_secs(5);

const NOT_RUN: &str = "[Not run: the user interrupted you before.]";

/// A call the model makes.
#[derive(Debug, Clone)]
struct Wanted {
    id: String,
    name: String,
    input: Value,
    /// The reason why its input cannot be used.
    malformed: Option<String>,
}

/// A call that is over.
type Finished = (Wanted, ToolOutput);

impl Agent {
    /// Makes all calls of an answer: beside each other if none of them changes anything, else
    /// one after the other.
    pub(super) async fn run_calls(
        &mut self,
        answer: Answer,
        repeats: &mut Repeats,
    ) -> Result<Step<()>, Halt> {
        let calls = wanted(answer);
        let harmless =
            |call: &Wanted| call.malformed.is_none() && self.tools.reads_only(&call.name);
        let beside = calls.iter().all(harmless);
        let groups: Vec<Vec<Wanted>> = match beside {
            true => vec![calls],
            false => calls.into_iter().map(|call| vec![call]).collect(),
        };
        for group in groups {
            match self.run_group(group, repeats).await? {
                Step::Done(()) => {}
                broken => {
                    self.conversation.answer_the_rest(NOT_RUN)?;
                    return Ok(broken);
                }
            }
        }
        Ok(Step::Done(()))
    }

    async fn run_group(
        &mut self,
        calls: Vec<Wanted>,
        repeats: &mut Repeats,
    ) -> Result<Step<()>, Halt> {
        let cancel = Cancel::default();
        let mut running: JoinSet<Finished> = JoinSet::new();
        for call in calls {
            self.out
                .say(&Say::Tool {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    input: shown(&call.input),
                })
                .await?;
            let refused = match &call.malformed {
                Some(why) => Some(why.clone()),
                None => match self.may(&call).await? {
                    Step::Done(refused) => refused,
                    Step::Interrupted => return Ok(Step::Interrupted),
                    Step::Urgent => return Ok(Step::Urgent),
                },
            };
            if let Some(why) = refused {
                let refused = ToolOutput::error(why);
                self.finished((call, refused), repeats).await?;
                continue;
            }
            let tools = Arc::clone(&self.tools);
            let cancel = cancel.clone();
            running.spawn(async move {
                let given = Call {
                    cancel,
                    ..Call::new(call.id.clone())
                };
                let output = tools.call(&call.name, call.input.clone(), &given).await;
                (call, output)
            });
        }
        self.wait_for(running, &cancel, repeats).await
    }

    /// Waits for calls that run, and listens meanwhile.
    async fn wait_for(
        &mut self,
        mut running: JoinSet<Finished>,
        cancel: &Cancel,
        repeats: &mut Repeats,
    ) -> Result<Step<()>, Halt> {
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.inbox.hear() => heard,
                ended = running.join_next() => match ended {
                    None => return Ok(Step::Done(())),
                    Some(Ok(finished)) => {
                        self.finished(finished, repeats).await?;
                        continue;
                    }
                    Some(Err(error)) => {
                        // A bug of a tool is a result like any other.
                        tracing::error!(%error, "a tool failed");
                        let why = "[The tool itself failed. It may or may not have had its effect.]";
                        if running.is_empty() {
                            self.conversation.answer_the_rest(why)?;
                        }
                        continue;
                    }
                },
            };
            let broken = match heard {
                Heard::Interrupt => Step::Interrupted,
                Heard::Urgent => Step::Urgent,
                Heard::Stop => {
                    self.break_off(running, cancel, repeats).await?;
                    return Err(Halt::Stop);
                }
                Heard::Mode(mode) => {
                    self.set_mode(&mode).await?;
                    continue;
                }
                Heard::Mail | Heard::Answer | Heard::Closed => continue,
            };
            self.break_off(running, cancel, repeats).await?;
            return Ok(broken);
        }
    }

    /// Ends what runs, and notes what came of it.
    async fn break_off(
        &mut self,
        mut running: JoinSet<Finished>,
        cancel: &Cancel,
        repeats: &mut Repeats,
    ) -> Result<(), Halt> {
        cancel.cancel();
        let until = tokio::time::Instant::now() + CLEAN_UP;
        while let Ok(Some(ended)) = tokio::time::timeout_at(until, running.join_next()).await {
            if let Ok(finished) = ended {
                self.finished(finished, repeats).await?;
            }
        }
        running.abort_all();
        Ok(())
    }

    /// Notes the result of a call.
    async fn finished(&mut self, call: Finished, repeats: &mut Repeats) -> Result<(), Halt> {
        let (call, output) = call;
        let mut text = output.text;
        self.secrets.text(&mut text);
        if let Some(told) = repeats.note(&call.name, &call.input, &text) {
            text.push_str("\n\n");
            text.push_str(&told);
        }
        let shown = excerpt(&text);
        let is_error = output.is_error;
        self.conversation.result(&call.id, text, is_error)?;
        Ok(self
            .out
            .say(&Say::ToolResult {
                id: call.id,
                output: shown,
                error: is_error,
            })
            .await?)
    }

    /// Decides if the call may be made; the text says why not.
    async fn may(&mut self, call: &Wanted) -> Result<Step<Option<String>>, Halt> {
        match self.permissions.decide(&call.name, &call.input) {
            Decision::Allow => Ok(Step::Done(None)),
            Decision::Deny(why) => Ok(Step::Done(Some(why))),
            Decision::Ask => self.may_it(call).await,
        }
    }

    /// Asks the host.
    async fn may_it(&mut self, call: &Wanted) -> Result<Step<Option<String>>, Halt> {
        const NOBODY: &str = "This needs permission, and nobody is there to give it.";
        if self.inbox.closed {
            return Ok(Step::Done(Some(NOBODY.to_owned())));
        }
        self.out
            .say(&Say::Permission {
                id: call.id.clone(),
                tool: call.name.clone(),
                input: shown(&call.input),
            })
            .await?;
        loop {
            match self.inbox.hear().await {
                Heard::Answer => {
                    let Some((allow, reason)) = self.inbox.answers.remove(&call.id) else {
                        continue;
                    };
                    let reason = reason.filter(|reason| !reason.trim().is_empty());
                    let why = reason.unwrap_or_else(|| "This was not allowed.".to_owned());
                    return Ok(Step::Done((!allow).then_some(why)));
                }
                Heard::Closed => return Ok(Step::Done(Some(NOBODY.to_owned()))),
                Heard::Interrupt => return Ok(Step::Interrupted),
                Heard::Urgent => return Ok(Step::Urgent),
                Heard::Stop => return Err(Halt::Stop),
                Heard::Mode(mode) => {
                    self.set_mode(&mode).await?;
                    // The host may withdraw the question before it is answered.
                    match self.permissions.decide(&call.name, &call.input) {
                        Decision::Allow => return Ok(Step::Done(None)),
                        Decision::Deny(why) => return Ok(Step::Done(Some(why))),
                        Decision::Ask => {}
                    }
                }
                Heard::Mail => {}
            }
        }
    }
}

/// The calls of an answer.
fn wanted(answer: Answer) -> Vec<Wanted> {
    let cut = answer.stop == Stop::TooLong;
    let malformed = answer.malformed;
    let why = |id: &str| {
        let (_, why) = malformed.iter().find(|(known, _)| known == id)?;
        Some(match cut {
            true => "Not run: your answer reached the greatest length in the middle of this call. \
                     Make it again with less in it."
                .to_owned(),
            false => format!("Not run: the input cannot be used: {why}. Send a JSON object."),
        })
    };
    let calls = answer.blocks.into_iter().filter_map(|block| match block {
        Block::ToolUse { id, name, input } => Some(Wanted {
            malformed: why(&id),
            id,
            name,
            input,
        }),
        _ => None,
    });
    calls.collect()
}
