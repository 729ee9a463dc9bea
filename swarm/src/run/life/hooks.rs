//! Hooks on an agent's start, its end and its idleness. Its host runs them: they are its children
//! like the agent itself, so they end with the run whatever happens, and the run is written down
//! before the first of them starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use uuid::Uuid;

use super::Life;
use crate::hooks::{BLOCKS_IN_A_ROW, HookEvent, Late, LoopGuard, Outcome, Runner};
use crate::process::Processes;
use crate::run::services::HookCall;
use crate::run::transcript::Entry;
use crate::runtime::{Message, Messages, Order, TurnStatus};

/// A message from the hooks.
#[derive(Debug)]
pub(crate) enum Said {
    /// All that were waited for have answered.
    All {
        number: u64,
        event: HookEvent,
        outcome: Outcome,
    },
    /// A hook that no caller waited for has answered.
    Late(Box<Late>),
}

/// The hooks of one life.
#[derive(Debug)]
pub(crate) struct Hooking {
    processes: Processes,
    said: UnboundedSender<Said>,
    guard: LoopGuard,
    /// Counts what was asked; an answer to an earlier question does not count any more.
    number: u64,
    /// True if the host waits for an answer.
    asked: bool,
    /// True if the agent would end, but a hook in the background may still wake it.
    lingering: bool,
    /// The number of running hooks.
    going: Arc<AtomicUsize>,
    /// True if the agent continues because a hook said so.
    active: bool,
    /// The no of a hook to the end of an agent that cannot continue.
    pub(crate) refused: Option<String>,
}

impl Hooking {
    pub(crate) fn new(processes: &Processes) -> (Self, UnboundedReceiver<Said>) {
        let (said, heard) = unbounded_channel();
        let hooking = Self {
            processes: processes.clone(),
            said,
            guard: LoopGuard::default(),
            number: 0,
            asked: false,
            lingering: false,
            going: Arc::default(),
            active: false,
            refused: None,
        };
        (hooking, heard)
    }

    /// True if the run waits for hooks.
    pub(crate) fn pending(&self) -> bool {
        self.asked || (self.lingering && self.is_going())
    }

    /// True if hooks run, waited for or not.
    pub(crate) fn is_busy(&self) -> bool {
        self.asked || self.lingering || self.is_going()
    }

    fn is_going(&self) -> bool {
        self.going.load(Ordering::Relaxed) > 0
    }

    /// Drops the open question, as other work has begun.
    pub(crate) fn forget(&mut self) {
        self.asked = false;
        self.lingering = false;
    }

    fn runner(&self, call: &HookCall) -> Runner {
        let (sender, mut receiver) = unbounded_channel();
        let said = self.said.clone();
        tokio::spawn(async move {
            while let Some(late) = receiver.recv().await {
                said.send(Said::Late(Box::new(late))).ok();
            }
        });
        let environment = call.environment.clone();
        Runner::new(self.processes.clone(), environment, sender).counting(&self.going)
    }
}

impl Life<'_> {
    /// The hooks to run at `event`; `None` if there are none.
    fn call(&mut self, event: HookEvent) -> Option<HookCall> {
        let mut call = match self.services.hooks(event) {
            Ok(call) => call,
            Err(error) => {
                self.record.note(format!("hooks are not run: {error}"));
                return None;
            }
        };
        for note in &call.notes {
            self.record.note(note.clone());
        }
        let text = self.last_words();
        let mut put = |key: &str, value: serde_json::Value| {
            call.input.more.insert(key.to_owned(), value);
        };
        if let (true, Some(text)) = (event.is_loop(), text) {
            put("last_assistant_message", text.into());
            put("stop_hook_active", self.hooking.active.into());
        }
        (!call.run.is_empty()).then_some(call)
    }

    /// Asks the hooks if the agent may start; returns their texts for the agent, or the reason for
    /// a no.
    pub(crate) async fn ask_to_start(&mut self) -> Result<Vec<String>, String> {
        let event = HookEvent::SubagentStart;
        let Some(call) = self.call(event) else {
            return Ok(Vec::new());
        };
        let hooks: Vec<_> = call.run.iter().collect();
        let runner = self.hooking.runner(&call);
        let outcome = runner.run(event, &hooks, &call.input).await;
        self.note_outcome(event, &outcome);
        match outcome.block {
            Some((command, reason)) => Err(format!(
                "the SubagentStart hook `{command}` said no: {reason}"
            )),
            None => Ok(outcome.context),
        }
    }

    /// Asks the hooks if the agent may end, or be idle. False if there are none.
    pub(crate) fn ask_to_rest(&mut self, event: HookEvent) -> bool {
        let Some(call) = self.call(event) else {
            return false;
        };
        let runner = self.hooking.runner(&call);
        let said = self.hooking.said.clone();
        self.hooking.number += 1;
        self.hooking.asked = true;
        let number = self.hooking.number;
        tokio::spawn(async move {
            let hooks: Vec<_> = call.run.iter().collect();
            let outcome = runner.run(event, &hooks, &call.input).await;
            said.send(Said::All {
                number,
                event,
                outcome,
            })
            .ok();
        });
        true
    }

    /// True if the agent's end has to wait for hooks in the background.
    pub(crate) fn lingers(&mut self) -> bool {
        self.hooking.lingering = self.hooking.is_going();
        self.hooking.lingering
    }

    /// A hook, or all of them, have answered.
    pub(crate) async fn hooks_said(&mut self, said: Said, orders: &Sender<Order>) {
        match said {
            Said::Late(late) => self.late(&late, orders).await,
            Said::All {
                number,
                event,
                outcome,
            } => {
                self.note_outcome(event, &outcome);
                let current = self.hooking.asked && number == self.hooking.number;
                if !current || self.busy || self.stopping.why().is_some() {
                    self.end_of_lingering(orders).await;
                    return;
                }
                self.hooking.asked = false;
                self.decided(event, outcome, orders).await;
            }
        }
    }

    async fn decided(&mut self, event: HookEvent, outcome: Outcome, orders: &Sender<Order>) {
        let name = event.as_str();
        if let Some((command, reason)) = outcome.halt {
            self.report(&format!("The {name} hook `{command}` stops it: {reason}"));
            if event == HookEvent::TeammateIdle {
                self.end_now(orders).await;
                return;
            }
        } else if let Some((command, reason)) = outcome.block {
            if self.follows(event, &command, &reason) {
                self.one_more_turn(event, &reason, orders).await;
                return;
            }
        } else {
            self.hooking.guard.passed(event);
        }
        self.hooking.active = false;
        self.settle_down(false, orders).await;
    }

    /// True if a no is followed: not if the turn went wrong, which another one would not mend, and
    /// not for ever.
    fn follows(&mut self, event: HookEvent, command: &str, reason: &str) -> bool {
        let name = event.as_str();
        let turn = self.last_turn.as_ref();
        if turn.is_none_or(|turn| turn.status != TurnStatus::Completed) {
            let why = format!("a {name} hook said no to the end of a turn that failed: {reason}");
            self.record.note(why);
            return false;
        }
        if self.hooking.guard.blocked(event, command) {
            self.hooking.guard.passed(event);
            self.report(&format!(
                "The {name} hook `{command}` has said no {BLOCKS_IN_A_ROW} times in a row, the \
                 last time: {reason}\nThe agent is not sent back again."
            ));
            return false;
        }
        true
    }

    async fn one_more_turn(&mut self, event: HookEvent, reason: &str, orders: &Sender<Order>) {
        let name = event.as_str();
        let never = self.abilities.messages == Messages::Never;
        if never || self.ending.is_some() || orders.is_closed() {
            let why = format!("a {name} hook said no, and it cannot go on: {reason}");
            self.record.note(why.clone());
            self.hooking.refused = Some(why);
            return;
        }
        let text = format!("A {name} hook says that you are not done:\n{reason}");
        let id = Uuid::new_v4();
        self.at_work();
        self.hooking.active = true;
        let shown = self.redactor.text(&text);
        self.record.add(Entry::Message { id, text: shown });
        let message = Message {
            id,
            text,
            now: false,
        };
        orders.send(Order::Send(message)).await.ok();
    }

    async fn late(&mut self, late: &Late, orders: &Sender<Order>) {
        if let Some(said) = late.answer.in_words() {
            let (event, command) = (late.hook.event.as_str(), &late.hook.command);
            let text =
                format!("The {event} hook `{command}` that ran in the background says:\n{said}");
            let summary = format!("a {event} hook has something to say");
            let can_be_woken = late.wakes && self.mail_queue.is_some() && self.ending.is_none();
            self.record.note(self.redactor.text(&text));
            let told = match can_be_woken {
                true => self.services.tell_agent(&summary, &text),
                false => self.services.tell_parent(&summary, &text),
            };
            if let Err(error) = told {
                tracing::warn!(%error, "nobody is told what a hook said");
            }
            if can_be_woken {
                self.fetch_mail(orders).await;
            }
        }
        self.end_of_lingering(orders).await;
    }

    /// No hook is left that could wake an agent that is about to end.
    async fn end_of_lingering(&mut self, orders: &Sender<Order>) {
        let waits = self.hooking.lingering && !self.hooking.asked && !self.busy;
        if waits && !self.hooking.is_going() && self.stopping.why().is_none() {
            self.settle_down(false, orders).await;
        }
    }

    /// Writes down what hooks said besides yes and no.
    fn note_outcome(&mut self, event: HookEvent, outcome: &Outcome) {
        let name = event.as_str();
        for (command, why) in &outcome.failures {
            let why = self.redactor.text(why);
            self.record
                .note(format!("the {name} hook `{command}` failed: {why}"));
        }
        for message in &outcome.messages {
            let message = self.redactor.text(message);
            self.record.note(format!("a {name} hook says: {message}"));
        }
    }

    /// Reports to the run's starter, and writes the report down.
    fn report(&mut self, text: &str) {
        let text = self.redactor.text(text);
        self.record.note(text.clone());
        let summary = format!("a hook of \"{}\"", self.meta.description);
        if let Err(error) = self.services.tell_parent(&summary, &text) {
            tracing::warn!(%error, "the parent is not told");
        }
    }
}
