//! The services that a host needs from the rest of the engine. The coordinator provides them: only
//! there tasks, mail and worktrees are known.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::exit::{Exit, Proof};
use super::meta::Meta;
use crate::hooks::{Hook, HookEvent, HookInput};
use crate::runtime::Usage;

/// An action that the engine could not do.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct ServiceError {
    /// In words.
    pub why: String,
    /// True if it says nothing about the agent or its work: a git that was killed, a full disk.
    pub passing: bool,
}

/// A message for the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct MailMessage {
    /// By which it is acknowledged.
    pub seq: u64,
    /// By which it is recognised.
    pub id: Uuid,
    /// The text for the model.
    pub text: String,
    /// True if it interrupts the current step.
    pub now: bool,
    /// True if another host may have given it to the agent before.
    pub redelivered: bool,
    /// The answer to a question of the agent, which is for the runtime and not for the model.
    pub answer: Option<PermissionAnswer>,
    /// The order about its permissions, if the message contains one.
    pub mode: Option<ModeOrder>,
}

impl MailMessage {
    /// True if it is for the host alone.
    pub(super) fn is_for_host(&self) -> bool {
        let mode = self.mode.as_ref();
        self.answer.is_some() || mode.is_some_and(|mode| mode.request.is_some())
    }
}

/// An order to allow the agent more, or less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeOrder {
    /// The mode, by Claude Code's name. `None` where a plan was approved: the mode from before.
    pub mode: Option<String>,
    /// The request that is answered when it is done; `None` where a plan was approved.
    pub request: Option<String>,
    /// The reason why the sender may not do that.
    pub refused: Option<String>,
    /// The beginnings of commands that were approved together with a plan.
    pub allowed_commands: Vec<String>,
}

/// The answer to a question of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionAnswer {
    /// The question's name in the engine.
    pub request: String,
    /// True if it may.
    pub allow: bool,
    /// The reason for a no.
    pub reason: Option<String>,
}

/// The agent's mail.
pub trait Mail: fmt::Debug + Send {
    /// Becomes readable when there is something new.
    fn bell(&self) -> BorrowedFd<'_>;

    /// Takes the messages that have come and were not taken yet.
    fn take(&mut self) -> Result<Vec<MailMessage>, ServiceError>;

    /// The agent has these.
    fn done(&mut self, seqs: &[u64]) -> Result<(), ServiceError>;
}

/// The result of a question that was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The question was sent; the answer comes by mail and names this.
    Waiting(String),
    /// There is no agent or user to ask.
    Refused(String),
    /// The call needs no question.
    Allowed,
}

/// The work of an agent, as something that can be checked.
#[derive(Debug, Clone, Default)]
pub struct Seal {
    /// The proof so far.
    pub proof: Proof,
    /// The check that decides if it counts; for the shell.
    pub check: Option<String>,
    /// The check is ended when this is over.
    pub timeout: Duration,
    /// Maximum repeats when it fails.
    pub retries: u32,
    /// The directory it runs in, if that is not the agent's.
    pub check_dir: Option<CheckDir>,
    /// The reason why it does not count, whatever a check would say.
    pub refused: Option<String>,
}

/// A place for a check, with nothing in it but what is to be checked.
#[derive(Debug, Clone, Default)]
pub struct CheckDir {
    /// The directory.
    pub dir: PathBuf,
    /// Variables that differ from the agent's.
    pub env: Vec<(OsString, OsString)>,
    /// A command that has to run there first, for the shell.
    pub set_up: Option<String>,
    /// Maximum time for that.
    pub set_up_timeout: Duration,
}

/// Says if a turn may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MayBegin {
    /// The turn may begin.
    Now,
    /// Not yet: the whole team is held back. The host asks again after this time, or at a ring.
    Later {
        /// The longest wait.
        wait: Duration,
        /// Why, in words.
        why: String,
    },
    /// Never again: the team has used up what it may.
    Never(String),
}

/// The hooks to run at an event.
#[derive(Debug, Clone, Default)]
pub struct HookCall {
    /// The hooks.
    pub run: Vec<Hook>,
    /// Their input.
    pub input: HookInput,
    /// Their environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The hooks that are left out, and why: for the transcript.
    pub notes: Vec<String>,
}

/// An agent that the agent has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its id.
    pub id: String,
    /// Its task in a few words.
    pub description: String,
}

/// The further services that a host needs.
pub trait HostServices: fmt::Debug {
    /// Begins to read the agent's mail.
    fn mail(&mut self) -> Result<Box<dyn Mail>, ServiceError>;

    /// The reason why the run may no longer work on its task; `None` if it may.
    fn lost_task(&mut self) -> Result<Option<String>, ServiceError>;

    /// Tells the run's starter something about it.
    fn tell_parent(&mut self, summary: &str, text: &str) -> Result<(), ServiceError>;

    /// The hooks that run at `event` of this agent, as they are now.
    fn hooks(&mut self, event: HookEvent) -> Result<HookCall, ServiceError>;

    /// Sends the agent itself a message, which wakes it.
    fn tell_agent(&mut self, summary: &str, text: &str) -> Result<(), ServiceError>;

    /// Notes the agent's present mode, or why the order changes nothing, and tells the sender of
    /// the order.
    fn mode_set(
        &mut self,
        order: &ModeOrder,
        meta: &Meta,
        refused: Option<&str>,
    ) -> Result<(), ServiceError>;

    /// The agents this one has started that still run.
    fn children(&mut self) -> Result<Vec<Child>, ServiceError> {
        Ok(Vec::new())
    }

    /// Asks one of them to end, without waiting for it.
    fn stop_child(
        &mut self,
        child: &Child,
        why: &str,
        grace: Duration,
    ) -> Result<(), ServiceError> {
        let _ = (child, why, grace);
        Ok(())
    }

    /// Asks the lead whether the agent may use a tool.
    fn ask(&mut self, tool: &str, input: &Value) -> Result<Asked, ServiceError>;

    /// True if the agent has agreed to end when its turn is over.
    fn leaves(&mut self) -> Result<bool, ServiceError> {
        Ok(false)
    }

    /// True if nothing has to be checked while the agent waits for a ring.
    fn may_park(&mut self) -> bool {
        false
    }

    /// Notes that the agent waits for work (true) or has some.
    fn idle(&mut self, idle: bool) -> Result<(), ServiceError>;

    /// The agent is gone and says that it did its task. Makes one thing of the work that can be
    /// checked, if the starter wants that.
    fn seal(&mut self) -> Result<Option<Seal>, ServiceError>;

    /// The check of what was sealed is over, and so is everything it started. Of one that did
    /// not pass, says what may be the reason.
    fn checked(&mut self, passed: bool) -> Option<String>;

    /// Checks, after the agent's end, if it kept to its permissions. Writes violations into `exit`.
    fn judge(&mut self, exit: &mut Exit);

    /// Decides if the agent's next turn may begin.
    fn may_begin(&mut self) -> Result<MayBegin, ServiceError>;

    /// The provider refuses for now; it may have said for how long.
    fn refused(&mut self, retry_after: Option<Duration>, why: &str) -> Result<(), ServiceError>;

    /// The model has answered: the provider does not refuse.
    fn answered(&mut self) -> Result<(), ServiceError>;

    /// Notes the usage of this life so far. If the team's limit is exceeded, returns the reason.
    fn used(&mut self, used: &Usage) -> Result<Option<String>, ServiceError>;

    /// The reason if the time of the whole team is over; else `None`.
    fn team_late(&mut self) -> Result<Option<String>, ServiceError>;

    /// A value that is the same as long as the agent's worktree does not change; `None` if it is
    /// unknown.
    fn tree_state(&mut self) -> Option<String>;

    /// Does everything that has to be done when a run has ended, in order: records how (and calls
    /// `written`), gives its tasks back, handles its worktree, tells its parent. Another process
    /// can call it again if it is cut short.
    fn finish(&mut self, exit: &Exit, written: &mut dyn FnMut()) -> Result<(), ServiceError>;
}
