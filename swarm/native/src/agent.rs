//! One agent: its conversation, its model, its tools, and its permissions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use store::fault::reached;
use store::secret_filter::SecretFilter;
use swarm::definitions::PermissionMode;
use swarm::runtime::Usage;

use super::conversation::Conversation;
use super::early::Early;
use super::journal::{Entry, JournalError};
use super::limits::Limits;
use super::link::{Gone, Heard, Inbox, Outbox, excerpt};
use super::mcp::Mcp;
use super::model::{Answer, Block, Model, ModelError, Rates, Stop};
use super::permission::Permissions;
use super::protocol::Say;
use super::repeats::Repeats;
use super::tools::{BoxFuture, Seen, Toolbox};
use crate::fault;

/// Maximum requests to the model within one turn.
const ENDLESS: u32 = 1000;
/// Maximum empty or cut-off answers of the model in a row.
const PATIENCE: u32 = 3;
const MEGABYTE: u64 = 1024 * 1024;

const EMPTY: &str = "[Your answer was empty. Go on with the task, or say what came of it.]";
const TOO_LONG: &str = "[Your answer reached the greatest length and was cut off here. Go on where \
                        it stops, in smaller steps.]";
const BROKEN_OFF: &str = "[The user interrupted you here.]";

/// The reason why the loop ends before its turn does.
#[derive(Debug)]
pub(super) enum Halt {
    /// The host told it to stop.
    Stop,
    /// It was idle for so long that it gives up the memory it holds.
    Asleep,
    /// The host closed the pipe.
    Gone,
    /// The conversation cannot be kept.
    Journal(JournalError),
}

impl From<Gone> for Halt {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnEnd {
    pub status: &'static str,
    pub text: String,
    pub error: Option<String>,
}

impl TurnEnd {
    pub(super) fn failed(text: String, why: impl Into<String>) -> Self {
        Self {
            status: "failed",
            text,
            error: Some(why.into()),
        }
    }

    fn limit(text: String, why: String) -> Self {
        Self {
            status: "limit",
            text,
            error: Some(why),
        }
    }
}

/// The outcome of a step that can be broken off.
#[derive(Debug)]
pub(super) enum Step<T> {
    Done(T),
    /// The turn is over.
    Interrupted,
    /// There is a message that does not wait.
    Urgent,
}

/// The parts of an agent.
pub(super) struct Agent {
    pub out: Outbox,
    pub inbox: Inbox,
    pub conversation: Conversation,
    pub model: Arc<dyn Model>,
    /// Its first request, if that is under way.
    pub early: Option<Early>,
    pub tools: Arc<Toolbox>,
    pub permissions: Permissions,
    /// The bytes that every request begins with.
    pub head: Vec<u8>,
    /// The same for a model that does not know how to think harder, until that is known.
    pub plain_head: Option<Vec<u8>>,
    /// The model's prices; `None` if they are unknown.
    pub rates: Option<Rates>,
    pub limits: Limits,
    /// Takes out of results what must be in none: keys.
    pub secrets: SecretFilter,
    pub spent: Spent,
    /// The files its model has seen.
    pub seen: Seen,
    /// Its servers, as long as it needs them.
    pub mcp: Option<Mcp>,
    /// True if it begins by waiting.
    pub rested: bool,
    /// Idle time after which it falls asleep; `None` if it never does.
    pub sleeps_after: Option<Duration>,
}

/// The usage so far.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// The number of requests to the model.
    pub requests: u32,
    pub cost_usd: f64,
    /// Tokens of the conversation up to the last answer.
    pub context: u64,
    /// True if the tokens that a copy shares with its original are counted.
    pub forked: bool,
}

/// State of an agent that its conversation's file does not hold.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub spent: Spent,
    /// The files its model has seen.
    pub seen: Seen,
    /// A mode that the host set while it slept; `None` if the host set none.
    pub mode: Option<String>,
}

/// The state of a turn so far.
#[derive(Debug, Default)]
struct Progress {
    requests: u32,
    /// The model's last text.
    text: String,
    empty: u32,
    too_long: u32,
    /// The number of times in a row that room was made without an answer.
    made_room: u32,
    repeats: Repeats,
}

impl Agent {
    /// Works, then ends what it has started.
    pub(super) async fn run(&mut self) -> Result<(), Halt> {
        let worked = self.work().await;
        if let Some(mcp) = self.mcp.take() {
            mcp.close().await;
        }
        worked
    }

    /// The state that is left if the agent is dropped.
    pub(super) fn into_kept(self) -> (Inbox, Kept) {
        let kept = Kept {
            spent: self.spent,
            seen: self.seen,
            mode: None,
        };
        (self.inbox, kept)
    }

    /// Works until nothing more is to be done; the first message is in the conversation.
    async fn work(&mut self) -> Result<(), Halt> {
        if self.rested && !self.rest().await? {
            return Ok(());
        }
        loop {
            let end = self.turn().await?;
            self.tell_end(end).await?;
            if !self.rest().await? {
                return Ok(());
            }
        }
    }

    /// Says how a turn ended, and keeps nothing of it: what comes next may take long.
    async fn tell_end(&mut self, end: TurnEnd) -> Result<(), Halt> {
        self.conversation.happened(Entry::Turn {
            status: end.status.to_owned(),
            error: end.error.clone(),
        })?;
        let said = Say::Result {
            status: end.status,
            text: excerpt(&end.text),
            error: end.error,
        };
        Ok(self.out.say(&said).await?)
    }

    /// Waits for something to do; false if there will be nothing.
    async fn rest(&mut self) -> Result<bool, Halt> {
        while self.inbox.mail.is_empty() {
            if self.inbox.closed {
                return Ok(false);
            }
            let sleeps_after = self.sleeps_after.filter(|_| self.may_sleep());
            let heard = match sleeps_after {
                None => self.inbox.hear().await,
                Some(limit) => match tokio::time::timeout(limit, self.inbox.hear()).await {
                    Ok(heard) => heard,
                    Err(_) if self.inbox.is_quiet() => return Err(Halt::Asleep),
                    Err(_) => continue,
                },
            };
            match heard {
                Heard::Stop => return Err(Halt::Stop),
                Heard::Mode(mode) => self.set_mode(&mode).await?,
                Heard::Mail | Heard::Urgent | Heard::Interrupt | Heard::Answer | Heard::Closed => {}
            }
        }
        Ok(true)
    }

    /// True if nothing is lost if all but its conversation is made anew later.
    fn may_sleep(&self) -> bool {
        let only_ours = self.mcp.as_ref().is_none_or(Mcp::is_only_ours);
        only_ours && !self.tools.has_background()
    }

    /// Makes the messages that wait part of the conversation.
    async fn take_in_mail(&mut self) -> Result<(), Halt> {
        while let Some(mail) = self.inbox.mail.pop_front() {
            // A message that was taken in before the process was killed comes again.
            if !self.conversation.has_taken(&mail.id) {
                self.conversation.say(&mail.text, Some(mail.id))?;
            }
            self.out.say(&Say::Accepted { id: mail.id }).await?;
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<TurnEnd, Halt> {
        let mut progress = Progress::default();
        loop {
            self.take_in_mail().await?;
            reached(fault::MATE_STEP);
            if let Some(end) = self.too_much(&progress) {
                return Ok(end);
            }
            if self.is_full() {
                match self.make_room(&mut progress).await? {
                    Step::Done(None) => continue,
                    Step::Done(Some(end)) => return Ok(end),
                    Step::Urgent => continue,
                    Step::Interrupted => return self.interrupted(&progress),
                }
            }
            let body = self.conversation.request(&self.head, None);
            let asked = self.ask(body).await?;
            let answer = match asked {
                Step::Done(Ok(answer)) => answer,
                Step::Done(Err(error)) => match self.refused(error, &mut progress).await? {
                    Some(end) => return Ok(end),
                    None => continue,
                },
                Step::Urgent => {
                    self.conversation.say(BROKEN_OFF, None)?;
                    continue;
                }
                Step::Interrupted => return self.interrupted(&progress),
            };
            if let Some(end) = self.take_in(answer, &mut progress).await? {
                return Ok(end);
            }
        }
    }

    /// The limit that prevents another request to the model; `None` if there is none.
    fn too_much(&self, progress: &Progress) -> Option<TurnEnd> {
        let text = || progress.text.clone();
        let spent = &self.spent;
        if let Some(most) = self.limits.turns.filter(|most| spent.requests >= *most) {
            let why = format!("it has reached its limit of {most} turns");
            return Some(TurnEnd::limit(text(), why));
        }
        let cost = spent.cost_usd;
        if let Some(most) = self.limits.cost_usd.filter(|most| cost >= *most) {
            let why = format!("it has reached its limit of ${most:.2}: ${cost:.2} are spent");
            return Some(TurnEnd::limit(text(), why));
        }
        let kept = self.conversation.kept_bytes();
        if let Some(most) = self.limits.bytes.filter(|most| kept > *most) {
            let why = format!(
                "its conversation takes {} MB of memory, more than the {} MB an agent may keep in a \
                 process it shares. Raise agents.mateMaxBytes in ccb.json, or use --mates-in own",
                kept / MEGABYTE,
                most / MEGABYTE
            );
            return Some(TurnEnd::failed(text(), why));
        }
        (progress.requests >= ENDLESS).then(|| {
            let why = format!("the turn did not end within {ENDLESS} requests");
            TurnEnd::limit(text(), why)
        })
    }

    /// Asks the model, and listens meanwhile.
    pub(super) async fn ask(
        &mut self,
        body: Bytes,
    ) -> Result<Step<Result<Answer, ModelError>>, Halt> {
        let model = Arc::clone(&self.model);
        let out = self.out.clone();
        let stalled = move |why: String| out.mention(&Say::Stalled { why });
        // Messages that arrived since then belong into another request.
        let mut asked = match self.early.take().filter(|early| early.is(&body)) {
            Some(early) => Box::pin(early.answer()) as BoxFuture<'_, _>,
            None => model.ask(body, &stalled),
        };
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.inbox.hear() => heard,
                answer = &mut asked => {
                    self.spent.requests += 1;
                    return Ok(Step::Done(answer));
                }
            };
            match heard {
                Heard::Interrupt => return Ok(Step::Interrupted),
                Heard::Urgent => return Ok(Step::Urgent),
                Heard::Stop => return Err(Halt::Stop),
                Heard::Mode(mode) => self.set_mode(&mode).await?,
                // It waits until the present step is over.
                Heard::Mail | Heard::Answer | Heard::Closed => {}
            }
        }
    }

    /// Handles a request without an answer: it ends the turn or tries again.
    async fn refused(
        &mut self,
        error: ModelError,
        progress: &mut Progress,
    ) -> Result<Option<TurnEnd>, Halt> {
        let words = error.words().to_owned();
        let text = progress.text.clone();
        match error {
            ModelError::Quota { .. } => Ok(Some(TurnEnd {
                status: "quota",
                text,
                error: Some(words),
            })),
            ModelError::Option { .. } if self.plain_head.is_some() => {
                let why = format!("{words}; retrying without `effort`");
                self.out.mention(&Say::Stalled { why });
                self.head = self.plain_head.take().unwrap_or_default();
                self.conversation.is_plain()?;
                Ok(None)
            }
            ModelError::TooMuch { .. } => match self.make_room(progress).await? {
                Step::Done(None) | Step::Urgent => Ok(None),
                Step::Done(Some(end)) => Ok(Some(end)),
                Step::Interrupted => self.interrupted(progress).map(Some),
            },
            _ => Ok(Some(TurnEnd::failed(text, words))),
        }
    }

    /// Counts an answer in and does what it asks for; the end of the turn if it has come.
    async fn take_in(
        &mut self,
        answer: Answer,
        progress: &mut Progress,
    ) -> Result<Option<TurnEnd>, Halt> {
        progress.requests += 1;
        self.count(&answer).await?;
        if answer.stop == Stop::ContextFull {
            return match self.make_room(progress).await? {
                Step::Done(None) | Step::Urgent => Ok(None),
                Step::Done(Some(end)) => Ok(Some(end)),
                Step::Interrupted => self.interrupted(progress).map(Some),
            };
        }
        progress.made_room = 0;
        self.conversation.answered(&answer)?;
        let text = answer.text();
        if !text.trim().is_empty() {
            progress.text.clone_from(&text);
            let text = excerpt(&text);
            self.out.say(&Say::Text { text }).await?;
        }
        if answer
            .blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse { .. }))
        {
            return self.use_tools(answer, progress).await;
        }
        self.without_calls(&answer, &text, progress)
    }

    fn without_calls(
        &mut self,
        answer: &Answer,
        text: &str,
        progress: &mut Progress,
    ) -> Result<Option<TurnEnd>, Halt> {
        match &answer.stop {
            Stop::Refused(words) => {
                let why = format!("the model refused to continue: {words}");
                Ok(Some(TurnEnd::failed(progress.text.clone(), why)))
            }
            Stop::TooLong => {
                progress.too_long += 1;
                if progress.too_long >= PATIENCE {
                    let why = format!(
                        "the model's answer reached the length limit {PATIENCE} times in a row. Raise \
                         `maxOutput` of the provider in ccb.json"
                    );
                    return Ok(Some(TurnEnd::failed(progress.text.clone(), why)));
                }
                self.conversation.say(TOO_LONG, None)?;
                Ok(None)
            }
            _ if text.trim().is_empty() => {
                progress.empty += 1;
                if progress.empty >= PATIENCE {
                    let why = format!("the model's answer was empty {PATIENCE} times in a row");
                    return Ok(Some(TurnEnd::failed(progress.text.clone(), why)));
                }
                self.conversation.say(EMPTY, None)?;
                Ok(None)
            }
            _ => Ok(Some(TurnEnd {
                status: "completed",
                text: text.to_owned(),
                error: None,
            })),
        }
    }

    async fn use_tools(
        &mut self,
        answer: Answer,
        progress: &mut Progress,
    ) -> Result<Option<TurnEnd>, Halt> {
        progress.empty = 0;
        progress.too_long = 0;
        match self.run_calls(answer, &mut progress.repeats).await? {
            Step::Done(()) => Ok(progress.repeats.end().map(|why| {
                let text = progress.text.clone();
                TurnEnd::failed(text, why)
            })),
            Step::Urgent => Ok(None),
            Step::Interrupted => self.interrupted(progress).map(Some),
        }
    }

    fn interrupted(&mut self, progress: &Progress) -> Result<TurnEnd, Halt> {
        self.conversation.say(BROKEN_OFF, None)?;
        Ok(TurnEnd {
            status: "interrupted",
            text: progress.text.clone(),
            error: None,
        })
    }

    /// Says what an answer has used.
    pub(super) async fn count(&mut self, answer: &Answer) -> Result<(), Halt> {
        let tokens = &answer.tokens;
        let cost = self.rates.map_or(0.0, |rates| rates.cost(tokens));
        self.spent.cost_usd += cost;
        self.spent.context = tokens.all_input().saturating_add(tokens.output);
        if self.spent.context == 0 {
            // Not every service reports it. Four bytes are a token, more or less.
            let bytes = self.head.len() + self.conversation.answered_bytes();
            self.spent.context = u64::try_from(bytes / 4).unwrap_or(u64::MAX);
        }
        let mut usage = Usage {
            input_tokens: tokens.all_input(),
            cache_read_tokens: tokens.cache_read,
            cache_write_tokens: tokens.cache_write,
            output_tokens: tokens.output,
            cost_usd: cost,
            unpriced_tokens: match self.rates {
                Some(_) => 0,
                None => tokens.all_input().saturating_add(tokens.output),
            },
            ..Usage::default()
        };
        // The tokens that a copy's first request finds in the cache are its original's.
        if self.conversation.is_parting() && !std::mem::replace(&mut self.spent.forked, true) {
            usage.forked_tokens = tokens.cache_read;
            usage.saved_usd = self
                .rates
                .map_or(0.0, |rates| rates.saved(tokens.cache_read));
        }
        Ok(self.out.say(&Say::Usage(usage)).await?)
    }

    pub(super) async fn set_mode(&mut self, word: &str) -> Result<(), Halt> {
        let mode = PermissionMode::of_agent(word);
        let error = match mode {
            Some(mode) => {
                self.permissions.set_mode(mode);
                self.tools.set_mode(mode);
                None
            }
            None => Some(format!("there is no mode {word:?}")),
        };
        let mode = word.to_owned();
        Ok(self.out.say(&Say::Mode { mode, error }).await?)
    }

    /// True if there is hardly room for another answer.
    fn is_full(&self) -> bool {
        let more = self.conversation.unanswered_bytes() / 4;
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        self.spent.context.saturating_add(more) > self.limits.context
    }

    /// Makes room; returns the end of the turn if no room can be made.
    async fn make_room(&mut self, progress: &mut Progress) -> Result<Step<Option<TurnEnd>>, Halt> {
        progress.made_room += 1;
        if progress.made_room > PATIENCE {
            let why = "the conversation does not fit into the model's context, even after it was cut. \
                       Set `contextWindow` of the provider in ccb.json to what the model can take";
            let end = TurnEnd::failed(progress.text.clone(), why);
            return Ok(Step::Done(Some(end)));
        }
        match self.compact().await? {
            Step::Done(true) => Ok(Step::Done(None)),
            Step::Done(false) => {
                let why = "the conversation does not fit into the model's context, and nothing can \
                           be cut from it. Start a new agent with a shorter prompt";
                let end = TurnEnd::failed(progress.text.clone(), why);
                Ok(Step::Done(Some(end)))
            }
            Step::Interrupted => Ok(Step::Interrupted),
            Step::Urgent => Ok(Step::Urgent),
        }
    }
}
