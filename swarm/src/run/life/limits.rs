//! The limits that stop a running agent: its own, its team's, a provider that refuses, and the same
//! failure over and over.

use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use uuid::Uuid;

use super::Life;
use super::mail::GO_ON;
use super::mail_queue::MailQueue;
use crate::process::Processes;
use crate::run::exit::ExitReason;
use crate::run::guard::stop_words;
use crate::run::meter::in_words;
use crate::run::services::MayBegin;
use crate::run::stop::Why;
use crate::runtime::{Event, Message, Messages, Order, TurnEnd, TurnStatus, retry_after};

/// Wait after a refusal that names no time.
const UNKNOWN: Duration = Duration::from_secs(60);

/// The next turn is held back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    /// The time at which the host asks again if it may begin.
    pub(crate) until: Instant,
    /// True if the last turn had no result and has to be repeated.
    pub(crate) again: bool,
}

/// A failure, and the state of the agent's worktree at that time.
pub(crate) type Failure = (String, Option<String>);

impl Life<'_> {
    /// Checks if this event exceeds a limit.
    pub(crate) fn weigh(&mut self, event: &Event) {
        if let Some(what) = self.meter.heard(event, &self.used) {
            self.over(ExitReason::Limit, what);
        }
        let speaks = matches!(event, Event::Text(_) | Event::ToolUse { .. });
        let goes_on = speaks || matches!(event, Event::ToolResult { .. });
        if goes_on && let Some(what) = self.team_spent.take() {
            self.over(ExitReason::Limit, what);
        }
        if speaks && std::mem::take(&mut self.unanswered) {
            self.answered();
        }
    }

    /// The provider does not refuse.
    fn answered(&mut self) {
        self.refused_since = None;
        if let Err(error) = self.services.answered() {
            tracing::warn!(%error, "nobody is told that the model answers");
        }
    }

    /// Notes that it has to end; the first reason counts.
    fn over(&mut self, reason: ExitReason, why: String) {
        if self.stopping.why().is_none() && self.over.is_none() {
            self.over = Some(Why::Over(reason, why));
        }
    }

    /// Ends the agent if it has come to that.
    pub(crate) fn end_if_over(&mut self, orders: &Sender<Order>, processes: &Processes) {
        if let Some(why) = self.over.take() {
            if let Why::Over(_, words) = &why {
                self.record.note(words.clone());
            }
            self.stop(why, orders, processes);
        }
    }

    /// Tells the team what was used.
    pub(crate) fn report_usage(&mut self) {
        match self.services.used(&self.used) {
            Ok(Some(what)) => self.team_spent = Some(what),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the team does not know what was used"),
        }
    }

    /// Checks the limits, whose changes send no event.
    pub(crate) fn tick_limits(&mut self) {
        match self.services.team_late() {
            Ok(Some(what)) => self.over(ExitReason::Limit, what),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "cannot tell how long the team works"),
        }
    }

    /// The time of the next check of limits.
    pub(crate) fn limits_due(&self) -> Option<Instant> {
        let hold = self.hold.map(|hold| hold.until);
        let mut all = [hold, self.meter.deadline(), self.give_up_at()].into_iter();
        // An agent that is being ended has no limits any more.
        match self.stopping.why() {
            None => all.by_ref().flatten().min(),
            Some(_) => None,
        }
    }

    fn give_up_at(&self) -> Option<Instant> {
        self.hold?;
        self.refused_since?.checked_add(self.options.give_up)
    }

    /// Checks the limits when their time has come.
    pub(crate) async fn limits_are_due(&mut self, orders: &Sender<Order>) {
        let now = Instant::now();
        if !self.end_if_late() && self.hold.is_some_and(|hold| hold.until <= now) {
            self.look_at_gate(orders).await;
        }
    }

    /// Ends it if it has no time left, or has waited long enough; true if so.
    pub(crate) fn end_if_late(&mut self) -> bool {
        let now = Instant::now();
        if self.meter.deadline().is_some_and(|at| at <= now) {
            self.over(ExitReason::Limit, self.meter.late());
        } else if self.give_up_at().is_some_and(|at| at <= now) {
            self.give_up();
        } else {
            return false;
        }
        true
    }

    fn give_up(&mut self) {
        let why = self.meta.stalled.clone();
        let why = why.unwrap_or_else(|| "the provider refuses".into());
        let waited = in_words(self.options.give_up);
        self.over(ExitReason::Quota, format!("{why}; it has waited {waited}"));
    }

    /// True if a turn may begin now. If not, it is held back, or the agent ends.
    pub(crate) fn may_begin(&mut self) -> bool {
        if let Some(what) = self.meter.before_turn(&self.used) {
            self.over(ExitReason::Limit, what);
            return false;
        }
        let again = self.hold.is_some_and(|hold| hold.again);
        match self.services.may_begin() {
            Ok(MayBegin::Now) => {
                self.unanswered = true;
                if self.hold.take().is_some() {
                    self.record.note("it goes on");
                    self.meta.stalled = None;
                    self.write_meta();
                }
                true
            }
            Ok(MayBegin::Later { wait, why }) => {
                self.hold_back(wait, why, again);
                false
            }
            Ok(MayBegin::Never(what)) => {
                self.over(ExitReason::Limit, what);
                false
            }
            // An error here does not hold an agent back whose provider did not refuse.
            Err(error) => {
                tracing::warn!(%error, "cannot tell whether a turn may begin");
                if again {
                    self.hold_back(UNKNOWN, error.to_string(), again);
                }
                !again
            }
        }
    }

    fn hold_back(&mut self, wait: Duration, why: String, again: bool) {
        let now = Instant::now();
        self.refused_since.get_or_insert(now);
        if self.meta.stalled.as_ref() != Some(&why) {
            self.record.note(format!("held back: {why}"));
            self.meta.stalled = Some(why);
            self.write_meta();
        }
        self.hold = Some(Hold {
            until: now + wait,
            again,
        });
    }

    /// After a ring or a wait: continues if it may.
    pub(crate) async fn look_at_gate(&mut self, orders: &Sender<Order>) {
        let Some(hold) = self.hold else {
            return;
        };
        if self.stopping.why().is_some() || !self.may_begin() {
            return;
        }
        if hold.again && !self.mail_queue.as_ref().is_some_and(MailQueue::waiting) {
            let message = Message {
                id: Uuid::new_v4(),
                text: GO_ON.into(),
                now: false,
            };
            self.at_work();
            orders.send(Order::Send(message)).await.ok();
        }
        self.fetch_mail(orders).await;
    }

    /// Weighs a turn that is over; true if it has to be repeated later.
    pub(crate) fn weigh_turn(&mut self, turn: &TurnEnd) -> bool {
        self.report_usage();
        match turn.status {
            TurnStatus::Quota => {
                let why = turn.error.as_deref().unwrap_or("out of quota");
                if let Err(error) = self.services.refused(retry_after(why), why) {
                    tracing::warn!(%error, "the others do not know that the provider refuses");
                }
                let can = !matches!(self.abilities.messages, Messages::Never);
                if !can || self.options.give_up.is_zero() {
                    return false;
                }
                self.refused_since.get_or_insert_with(Instant::now);
                self.hold = Some(Hold {
                    until: Instant::now(),
                    again: true,
                });
                true
            }
            TurnStatus::Failed => {
                let tree = self.services.tree_state();
                let failure = (turn.error.clone().unwrap_or_default(), tree);
                self.repeated = self.failure.as_ref() == Some(&failure);
                self.failure = Some(failure);
                false
            }
            _ => {
                if std::mem::take(&mut self.unanswered) {
                    self.answered();
                }
                (self.failure, self.repeated) = (None, false);
                false
            }
        }
    }

    /// Checks the limits after a turn, so that an agent at its limit does not wait for another
    /// turn.
    pub(crate) fn weigh_next(&mut self) {
        if self.repeated {
            let what = self.failure.as_ref().map(|failure| failure.0.clone());
            let why = format!(
                "it failed the same way twice, and nothing had changed in between: {}",
                what.unwrap_or_default()
            );
            self.over(ExitReason::NoProgress, why);
        } else if let Some(what) = self.team_spent.take() {
            self.over(ExitReason::Limit, what);
        } else if let Some(what) = self.meter.before_turn(&self.used) {
            self.over(ExitReason::Limit, what);
        }
    }

    /// The same before there is an agent; true if the run has to end without ever having one.
    pub(crate) fn end_before_start(&mut self) -> bool {
        if let Some(why) = self.over.take() {
            self.stop_before_start(why);
        }
        self.stopping.why().is_some()
    }

    /// Notes the reason to end while no agent runs yet.
    pub(crate) fn stop_before_start(&mut self, why: Why) {
        self.stopping.begin(why, Duration::ZERO, false);
    }

    pub(crate) fn look_for_stop_before_start(&mut self) {
        match self.run.stop_request(self.meta.life) {
            Ok(Some(stop)) => {
                self.stop_before_start(Why::Asked(stop_words(&stop.by, stop.reason)));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "cannot read whether to stop"),
        }
    }
}
