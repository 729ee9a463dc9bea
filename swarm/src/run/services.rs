//! What a host needs of the rest of the engine. The coordinator provides it: only there tasks,
//! mail and trees are known.

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

/// Something the engine could not do.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct ServiceError {
    /// In words.
    pub why: String,
    /// It says nothing about the agent or what it did: a git that was killed, a full disk.
    pub passing: bool,
}

/// A message for the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct MailMessage {
    /// By which it is acknowledged.
    pub seq: u64,
    /// By which it is recognised.
    pub id: Uuid,
    /// As the model is to see it.
    pub text: String,
    /// Whether it interrupts the current step.
    pub now: bool,
    /// Somebody may have given it to the agent before.
    pub redelivered: bool,
    /// The answer to a question of the agent, which is for the runtime and not for the model.
    pub answer: Option<PermissionAnswer>,
    /// It changes what the agent may do.
    pub mode: Option<ModeOrder>,
}

impl MailMessage {
    /// Whether it is for the host alone.
    pub(super) fn is_for_host(&self) -> bool {
        let mode = self.mode.as_ref();
        self.answer.is_some() || mode.is_some_and(|mode| mode.request.is_some())
    }
}

/// Somebody wants the agent to be allowed more, or less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeOrder {
    /// The mode, by Claude Code's name. None where a plan was approved: the one from before.
    pub mode: Option<String>,
    /// The request that is answered when it is done; none where a plan was approved.
    pub request: Option<String>,
    /// Why whoever wants it may not.
    pub refused: Option<String>,
    /// How commands begin that were approved together with a plan.
    pub allowed_commands: Vec<String>,
}

/// The answer to a question of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionAnswer {
    /// Which question, as the engine named it.
    pub request: String,
    /// Whether it may.
    pub allow: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// The agent's mail.
pub trait Mail: fmt::Debug + Send {
    /// Becomes readable when there is something new.
    fn bell(&self) -> BorrowedFd<'_>;

    /// What has come and was not taken yet.
    fn take(&mut self) -> Result<Vec<MailMessage>, ServiceError>;

    /// The agent has these.
    fn done(&mut self, seqs: &[u64]) -> Result<(), ServiceError>;
}

/// What became of a question that was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It has been asked; the answer comes by mail and names this.
    Waiting(String),
    /// There is nobody to ask.
    Refused(String),
    /// Nobody has to be asked.
    Allowed,
}

/// What an agent did, as something that can be checked.
#[derive(Debug, Clone, Default)]
pub struct Seal {
    /// What there is so far.
    pub proof: Proof,
    /// What decides whether it counts; for the shell.
    pub check: Option<String>,
    /// The check is ended when this is over.
    pub timeout: Duration,
    /// So often it is run again when it fails.
    pub retries: u32,
    /// Where it runs, if that is not where the agent worked.
    pub check_dir: Option<CheckDir>,
    /// Why it does not count, whatever a check would say.
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
    /// How long that may take.
    pub set_up_timeout: Duration,
}

/// Whether a turn may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MayBegin {
    /// It may.
    Now,
    /// Not yet: the whole team is held back. It is asked again after this long, or when
    /// somebody rings.
    Later {
        /// How long it takes at most.
        wait: Duration,
        /// Why, in words.
        why: String,
    },
    /// Never again: the team has used up what it may.
    Never(String),
}

/// What is to be run at an event.
#[derive(Debug, Clone, Default)]
pub struct HookCall {
    /// The hooks.
    pub run: Vec<Hook>,
    /// What they are told.
    pub input: HookInput,
    /// Their environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What is left out, and why: for the transcript.
    pub notes: Vec<String>,
}

/// An agent that the agent has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its id.
    pub id: String,
    /// What it does, in a few words.
    pub description: String,
}

/// Everything else a host needs.
pub trait HostServices: fmt::Debug {
    /// Begins to read the agent's mail.
    fn mail(&mut self) -> Result<Box<dyn Mail>, ServiceError>;

    /// Whether the run may still work on its task; if not, why.
    fn lost_task(&mut self) -> Result<Option<String>, ServiceError>;

    /// Tells whoever started the run something about it.
    fn tell_parent(&mut self, summary: &str, text: &str) -> Result<(), ServiceError>;

    /// The hooks that run at `event` of this agent, as they are now.
    fn hooks(&mut self, event: HookEvent) -> Result<HookCall, ServiceError>;

    /// Sends the agent itself a message, which wakes it.
    fn tell_agent(&mut self, summary: &str, text: &str) -> Result<(), ServiceError>;

    /// Notes what the agent's mode is now, or why the order changes nothing, and tells whoever
    /// asked for it.
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

    /// Whether the agent has agreed to end when its turn is over.
    fn leaves(&mut self) -> Result<bool, ServiceError> {
        Ok(false)
    }

    /// Whether nothing has to be looked at while the agent waits for somebody to ring.
    fn may_park(&mut self) -> bool {
        false
    }

    /// Notes that the agent waits for work (true) or has some.
    fn idle(&mut self, idle: bool) -> Result<(), ServiceError>;

    /// The agent is gone and says that it did what it was asked to do. Makes one thing of it
    /// that can be checked, if whoever started it wants that.
    fn seal(&mut self) -> Result<Option<Seal>, ServiceError>;

    /// The check of what was sealed is over, and so is everything it started. Of one that did
    /// not pass, says what may be the reason.
    fn checked(&mut self, passed: bool) -> Option<String>;

    /// The agent is gone, and what it did is checked: whether it kept to what it may do. Writes
    /// into `exit` what it did not.
    fn judge(&mut self, exit: &mut Exit);

    /// Whether the agent's next turn may begin.
    fn may_begin(&mut self) -> Result<MayBegin, ServiceError>;

    /// The provider refuses for now; it may have said for how long.
    fn refused(&mut self, retry_after: Option<Duration>, why: &str) -> Result<(), ServiceError>;

    /// The model has answered: the provider does not refuse.
    fn answered(&mut self) -> Result<(), ServiceError>;

    /// What this life has used so far. If that is more than the whole team may use, says so.
    fn used(&mut self, used: &Usage) -> Result<Option<String>, ServiceError>;

    /// Whether the time of the whole team is over.
    fn team_late(&mut self) -> Result<Option<String>, ServiceError>;

    /// Something that is the same as long as nothing changes in the agent's tree; None if that
    /// cannot be told.
    fn tree_state(&mut self) -> Option<String>;

    /// Does everything that has to be done when a run has ended, in order: writes down how (and
    /// calls `written`), gives its tasks back, sees to its tree, tells its parent. Can be called
    /// again by somebody else if it is cut short.
    fn finish(&mut self, exit: &Exit, written: &mut dyn FnMut()) -> Result<(), ServiceError>;
}
