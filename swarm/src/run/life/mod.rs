//! One life of an agent, in its host's view.

mod children;
pub(super) mod hooks;
mod limits;
mod mail;
mod mail_queue;
mod mode;
pub(super) mod park;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use uuid::Uuid;

use children::Children;
use hooks::Hooking;
use limits::{Failure, Hold};
use mail_queue::MailQueue;
use park::Rest;

use super::guard::stop_words;
use super::host::{HostError, HostOptions};
use super::meta::{Meta, RunState};
use super::meter::Meter;
use super::partial::{last_text, last_turn};
use super::recorder::Recorder;
use super::run_dir::RunDir;
use super::services::{Asked, HostServices, ModeOrder};
use super::stop::{Step, Stopping, Why};
use super::stuck::Stuck;
use super::transcript::Entry;
use crate::hooks::HookEvent;
use crate::process::{Ending, ProcessId, Processes};
use crate::runtime::{Abilities, Event, EventRedactor, Messages, Order, Pulse, TurnEnd, Usage};

/// Interval between writes of the usage.
const USAGE_EVERY: Duration = Duration::from_secs(2);

/// Maximum time to end for an agent that has done everything and knows that nothing more comes.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A host's state of the agent it supervises.
#[derive(Debug)]
pub(super) struct Life<'a> {
    pub(super) run: RunDir,
    pub(super) meta: Meta,
    pub(super) abilities: Abilities,
    pub(super) options: &'a HostOptions,
    pub(super) services: &'a mut dyn HostServices,
    pub(super) record: Recorder,
    pub(super) redactor: EventRedactor,
    pub(super) mail_queue: Option<MailQueue>,
    pub(super) stopping: Stopping,
    pub(super) stuck: Stuck,
    /// True between the start of a turn and its end.
    pub(super) busy: bool,
    /// True if it waited for mail when the process ended that it shares with others.
    pub(super) rested: bool,
    pub(super) last_turn: Option<TurnEnd>,
    /// The text of that turn is only in the transcript, within so many bytes of its end.
    put_away: Option<u64>,
    pub(super) not_launched: Option<String>,
    pub(super) ending: Option<Ending>,
    /// True if its program has ended.
    pub(super) gone: bool,
    /// The usage of this life.
    pub(super) used: Usage,
    pub(super) used_written: Instant,
    /// Questions that wait: the engine's name for each, the runtime's, and until when.
    pub(super) questions: HashMap<String, (String, Instant)>,
    /// True if an urgent message waits for the turn to be broken off.
    pub(super) interrupted: bool,
    /// Messages that are part of the prompt.
    pub(super) in_prompt: Vec<Uuid>,
    pub(super) meter: Meter,
    /// Its next turn is held back.
    pub(super) hold: Option<Hold>,
    /// Since when the provider has not answered it.
    pub(super) refused_since: Option<Instant>,
    /// True if the model has not said anything in this turn.
    pub(super) unanswered: bool,
    /// The reason for which it is about to be ended.
    pub(super) over: Option<Why>,
    /// The team has used up what it may.
    pub(super) team_spent: Option<String>,
    /// The failure of the last turn.
    pub(super) failure: Option<Failure>,
    /// True if it failed like that before.
    pub(super) repeated: bool,
    pub(super) hooking: Hooking,
    /// The modes that the agent was ordered to change to.
    pub(super) modes: VecDeque<ModeOrder>,
    /// The time by which it should have ended, after the order that nothing more will come.
    pub(super) should_be_over: Option<Instant>,
    pub(super) children: Children,
}

impl<'a> Life<'a> {
    /// `rest` is what a host before this one knew.
    pub(super) fn begin(
        run: RunDir,
        abilities: Abilities,
        services: &'a mut dyn HostServices,
        options: &'a HostOptions,
        hooking: Hooking,
        rest: Option<Rest>,
    ) -> Result<Self, HostError> {
        let meta = run.meta()?;
        let used = meta.usage.since(&meta.used_before);
        let rested = meta.restarts > 0 && meta.state == RunState::Idle;
        // Only the transcript says how its last turn ended, which decides how it ends itself: also if
        // it is stopped before it starts again.
        let last_turn = rested.then(|| last_turn(&run, meta.life)).flatten();
        let mail_queue = match abilities.messages {
            // A resumed agent has it already.
            _ if rest.is_some() => None,
            Messages::Never => None,
            _ => match services.mail() {
                Ok(mail) => Some(MailQueue::new(mail)),
                Err(error) => {
                    // Another process reads it; the agent can work without.
                    tracing::warn!(%error, "the agent gets no mail");
                    None
                }
            },
        };
        let mut life = Self {
            record: Recorder::open(&run, meta.life, options),
            redactor: EventRedactor::new(&options.secrets),
            run,
            meta,
            abilities,
            options,
            services,
            mail_queue,
            stopping: Stopping::default(),
            stuck: Stuck::new(),
            busy: true,
            rested,
            last_turn,
            put_away: None,
            not_launched: None,
            ending: None,
            gone: false,
            // Not empty if the process of this life was restarted.
            used,
            used_written: Instant::now(),
            questions: HashMap::new(),
            interrupted: false,
            in_prompt: Vec::new(),
            meter: Meter::new(options.limits),
            hold: None,
            refused_since: None,
            unanswered: true,
            over: None,
            team_spent: None,
            failure: None,
            repeated: false,
            hooking,
            modes: VecDeque::new(),
            should_be_over: None,
            children: Children::default(),
        };
        if let Some(rest) = rest {
            life.takes_up(rest);
        }
        Ok(life)
    }

    pub(super) fn mail_bell(&self) -> Option<io::Result<OwnedFd>> {
        let queue = self.mail_queue.as_ref()?;
        Some(queue.mail().bell().try_clone_to_owned())
    }

    pub(super) fn prompt(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = self.redactor.text(text);
        self.record.add(Entry::Prompt { text });
    }

    pub(super) fn not_launched(&mut self, why: &str) {
        self.not_launched = Some(why.to_owned());
    }

    /// From here on the agent may have run, whatever becomes of us; one that kills us at once is
    /// faster than anything we could write down after it.
    pub(super) fn about_to_launch(&mut self) {
        self.meta.host = Some(ProcessId::own());
        self.meta.guard = rustix::process::getppid().and_then(ProcessId::of);
        self.write_meta();
    }

    /// The agent's program is there.
    pub(super) fn launched(&mut self, processes: &Processes, others: &[Pid]) {
        let running = processes.running();
        let pid = running.into_iter().find(|pid| !others.contains(pid));
        self.meta.pid = pid.map(|pid| pid.as_raw_nonzero().get());
        self.meta.stalled = None;
        self.set_state(match self.busy {
            true => RunState::Running,
            false => RunState::Idle,
        });
    }

    fn set_state(&mut self, state: RunState) {
        self.meta.state = state;
        self.write_meta();
    }

    /// Writes the state. An error does not end the agent.
    pub(super) fn write_meta(&mut self) {
        if let Err(error) = self.run.write_meta(&self.meta) {
            tracing::warn!(%error, "the run's state is not written down");
        }
    }

    /// The time of the next action that no event starts.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let question = self.questions.values().map(|(_, until)| *until).min();
        let lingers = self
            .should_be_over
            .filter(|_| self.stopping.why().is_none());
        let all = [
            self.stopping.due(),
            question,
            self.limits_due(),
            lingers,
            self.children_due(),
        ];
        all.into_iter().flatten().min()
    }

    /// Does the work whose time has come.
    pub(super) async fn due(&mut self, orders: &Sender<Order>, processes: &Processes) {
        self.limits_are_due(orders).await;
        self.look_at_children(orders).await;
        let now = Instant::now();
        if self.stopping.due().is_some_and(|due| due <= now)
            && let Some(step) = self.stopping.step()
        {
            self.take_step(step, orders, processes);
        }
        if self.should_be_over.is_some_and(|by| by <= now) && self.stopping.why().is_none() {
            // Some do not end when their input does. The agent's work is done.
            let why = Why::Asked("it did not end by itself".into());
            self.stop(why, orders, processes);
        }
        let late: Vec<String> = self
            .questions
            .iter()
            .filter(|(_, (_, until))| *until <= now)
            .map(|(request, _)| request.clone())
            .collect();
        for request in late {
            let reason = "nobody answered in time".to_owned();
            self.answer(&request, false, Some(reason), orders);
        }
    }

    /// Does the work that no event starts.
    pub(super) fn tick(&mut self, orders: &Sender<Order>, processes: &Processes) {
        self.tick_limits();
        match self.services.lost_task() {
            Ok(Some(why)) => self.stop(Why::LostTask(why), orders, processes),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "cannot tell whether the task is still ours"),
        }
        if let Some(prompt) = self.stuck.report(self.busy, self.options.stuck_after) {
            let summary = format!("\"{}\" seems to wait for input", self.meta.description);
            let text = format!(
                "Nothing has come from agent {} for a while. The last thing it printed looks \
                 like a question: {prompt:?}. Its input is empty, so it will not get an answer; \
                 stop it and start it again in a way that does not ask.",
                self.meta.agent_id
            );
            self.record
                .note(format!("it seems to wait for input: {prompt}"));
            if let Err(error) = self.services.tell_parent(&summary, &text) {
                tracing::warn!(%error, "the parent is not told");
            }
        }
    }

    /// Keeps no long text in memory while there is nothing to do; others are in the same process.
    pub(super) fn rest(&mut self) {
        const LONG: usize = 4 * 1024;
        // The entries written after it while it rests: notes, changes of its mode.
        const LATER: usize = 256 * 1024;
        if let Some(turn) = self.last_turn.as_mut().filter(|it| it.text.len() > LONG) {
            let text = std::mem::take(&mut turn.text);
            // No byte of a text takes more than six in JSON; it may be there twice.
            let within = text.len() * 12 + LATER;
            self.put_away = Some(u64::try_from(within).unwrap_or(u64::MAX));
        }
    }

    /// The last words of its last turn.
    pub(super) fn last_words(&self) -> Option<String> {
        match self.put_away {
            Some(within) => last_text(&self.run, self.meta.life, within),
            None => Some(self.last_turn.as_ref()?.text.clone()),
        }
    }

    /// Ends an agent whose loop runs in this process and does not come back: nothing it is asked
    /// would reach it.
    pub(super) fn look_at_pulse(
        &mut self,
        pulse: Option<&Pulse>,
        orders: &Sender<Order>,
        processes: &Processes,
    ) {
        let silent = pulse.map(Pulse::silent_for);
        if let Some(silent) = silent.filter(|silent| *silent >= self.options.blocked_after) {
            let why = format!(
                "its loop has blocked its thread for {} s, so it was ended",
                silent.as_secs()
            );
            self.stop(Why::Broken(why), orders, processes);
        }
    }

    pub(super) fn look_for_stop(&mut self, orders: &Sender<Order>, processes: &Processes) {
        match self.run.stop_request(self.meta.life) {
            Ok(Some(stop)) => {
                let why = Why::Asked(stop_words(&stop.by, stop.reason));
                let grace = Duration::from_millis(stop.grace_ms);
                self.begin_stop(why, grace, orders, processes);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "cannot read whether to stop"),
        }
    }

    pub(super) fn stop(&mut self, why: Why, orders: &Sender<Order>, processes: &Processes) {
        self.begin_stop(why, self.options.grace, orders, processes);
    }

    fn begin_stop(
        &mut self,
        why: Why,
        grace: Duration,
        orders: &Sender<Order>,
        processes: &Processes,
    ) {
        let can_ask = !orders.is_closed();
        if let Some(step) = self.stopping.begin(why, grace, can_ask) {
            self.stop_children(grace);
            self.take_step(step, orders, processes);
        }
    }

    fn take_step(&mut self, step: Step, orders: &Sender<Order>, processes: &Processes) {
        match step {
            Step::Ask => {
                self.record.note("it is asked to end");
                orders.try_send(Order::Stop).ok();
            }
            Step::Terminate => {
                self.record.note("it is sent SIGTERM");
                processes.signal_all(Signal::TERM);
            }
            Step::Kill => processes.signal_all(Signal::KILL),
        }
    }

    /// Handles an event of the agent.
    pub(super) async fn event(&mut self, event: Event, orders: &Sender<Order>) {
        let event = self.redactor.redact(event);
        self.stuck.alive(&event);
        self.record.event(&event);
        self.weigh(&event);
        match event {
            Event::Started { session, model } => self.started(session, model),
            Event::ToolUse { .. } => {
                self.used.tool_uses += 1;
                self.meta.usage.tool_uses += 1;
            }
            Event::ToolResult { .. } => {
                if matches!(self.abilities.messages, Messages::AtToolBoundary) {
                    self.give_mail(orders).await;
                }
            }
            Event::Accepted { message } => self.taken_in(message),
            Event::Usage(usage) => self.count(&usage),
            Event::Permission { id, tool, input } => match self.services.ask(&tool, &input) {
                Ok(Asked::Waiting(request)) => {
                    let until = Instant::now() + self.options.permission_deadline;
                    self.questions.insert(request, (id, until));
                }
                Ok(Asked::Allowed) => self.reply(id, true, None, orders),
                Ok(Asked::Refused(why)) => self.reply(id, false, Some(why), orders),
                Err(error) => self.reply(id, false, Some(error.to_string()), orders),
            },
            Event::Stalled { why } => {
                self.meta.stalled = Some(why);
                self.write_meta();
            }
            Event::Mode { mode, refused } => {
                self.mode_answered(&mode, refused.as_deref(), orders).await;
            }
            Event::TurnEnded(turn) => self.turn_ended(turn, orders).await,
            Event::Output { .. } | Event::Text(_) | Event::Ended(_) => {
                if self.meta.stalled.take().is_some() {
                    self.write_meta();
                }
            }
        }
    }

    fn started(&mut self, session: Option<String>, model: Option<String>) {
        self.record.add(Entry::Started {
            session: session.clone(),
            model: model.clone(),
            pid: self.meta.pid,
        });
        for id in std::mem::take(&mut self.in_prompt) {
            self.taken_in(id);
        }
        if session.is_some() && session != self.meta.session {
            self.meta.session = session;
            self.write_meta();
        }
        if model.is_some() && self.meta.model.is_none() {
            self.meta.model = model;
        }
    }

    fn count(&mut self, usage: &Usage) {
        self.used.add(usage);
        self.meta.usage.add(usage);
        if self.used_written.elapsed() >= USAGE_EVERY {
            self.used_written = Instant::now();
            self.write_meta();
            self.report_usage();
        }
    }

    pub(super) fn answer(
        &mut self,
        request: &str,
        allow: bool,
        why: Option<String>,
        orders: &Sender<Order>,
    ) {
        if let Some((id, _)) = self.questions.remove(request) {
            self.reply(id, allow, why, orders);
        }
    }

    fn reply(&mut self, id: String, allow: bool, reason: Option<String>, orders: &Sender<Order>) {
        self.record.add(Entry::Answer {
            id: id.clone(),
            allow,
            reason: reason.clone(),
        });
        orders.try_send(Order::Answer { id, allow, reason }).ok();
    }

    /// A turn is over: more mail, or the end, or waiting for mail.
    async fn turn_ended(&mut self, turn: TurnEnd, orders: &Sender<Order>) {
        // An agent that is stopped while it waits may say that its next turn never began.
        let never_began = !self.busy && self.last_turn.is_some() && turn.text.is_empty();
        self.busy = false;
        self.interrupted = false;
        let again = self.weigh_turn(&turn);
        if !never_began {
            self.last_turn = Some(turn);
            self.put_away = None;
        }
        if self.stopping.why().is_some() {
            return;
        }
        if again {
            self.look_at_gate(orders).await;
            return;
        }
        self.settle_down(true, orders).await;
    }

    /// Decides what follows a turn: more mail, or the answers of hooks (if they are to be asked),
    /// or the end, or waiting for mail.
    pub(super) async fn settle_down(&mut self, ask: bool, orders: &Sender<Order>) {
        // A sender asks under this lock if the agent still takes in messages.
        let lock = self.run.lock();
        if let Err(error) = &lock {
            tracing::warn!(%error, "somebody may write to an agent that is about to end");
        }
        self.fetch_mail(orders).await;
        if self.busy || self.mail_queue.as_ref().is_some_and(MailQueue::pending) {
            return;
        }
        let event = match self.meta.teammate {
            true => HookEvent::TeammateIdle,
            false => HookEvent::SubagentStop,
        };
        if ask && self.ask_to_rest(event) {
            return;
        }
        let leaves = self.meta.teammate && self.leaves();
        if self.meta.teammate && !leaves {
            self.weigh_next();
            if self.over.is_some() {
                return;
            }
            self.set_state(RunState::Idle);
            drop(lock);
            self.note_idle(true);
            return;
        }
        if self.lingers() {
            return;
        }
        if !leaves && self.waits_for_children() && !self.leaves() {
            self.set_state(RunState::Idle);
            return;
        }
        self.set_state(RunState::Ending);
        drop(lock);
        orders.send(Order::Finish).await.ok();
        self.should_be_over = Some(Instant::now() + END_TIMEOUT);
    }

    /// Lets an idle agent end that has agreed to end since the last look.
    pub(super) async fn leave_if_agreed(&mut self, orders: &Sender<Order>) {
        let idle = self.meta.state == RunState::Idle && !self.busy && !self.hooking.pending();
        if idle && self.stopping.why().is_none() && self.leaves() {
            self.settle_down(false, orders).await;
        }
    }

    /// True if the agent has agreed to end.
    fn leaves(&mut self) -> bool {
        self.services.leaves().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot tell whether it is to end");
            false
        })
    }

    /// Lets the agent end, whatever may come in.
    pub(super) async fn end_now(&mut self, orders: &Sender<Order>) {
        self.set_state(RunState::Ending);
        orders.send(Order::Finish).await.ok();
        self.should_be_over = Some(Instant::now() + END_TIMEOUT);
    }

    pub(super) fn note_idle(&mut self, idle: bool) {
        if self.meta.teammate
            && let Err(error) = self.services.idle(idle)
        {
            tracing::warn!(%error, "nobody is told whether the agent is idle");
        }
    }

    /// The agent's program has ended.
    pub(super) fn ended(&mut self, ending: Option<Ending>) {
        for (stream, bytes) in self.redactor.rest() {
            self.record.printed(stream, &bytes);
        }
        self.ending = ending;
        self.gone = true;
    }

    /// Notes that the processes the agent left behind were ended, too.
    pub(super) fn swept(&mut self, left: &[Pid]) {
        if !left.is_empty() {
            let pids: Vec<i32> = left.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
            self.record
                .note(format!("processes that do not die: {pids:?}"));
        }
    }
}
