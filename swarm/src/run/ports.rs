//! What a host needs of the rest of the engine. The coordinator provides it: only there tasks,
//! mail and trees are known.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::BorrowedFd;

use serde_json::Value;
use uuid::Uuid;

use super::exit::Exit;
use crate::hooks::{Hook, HookEvent, HookInput};

/// Something the engine could not do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

/// A message for the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
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

impl Letter {
    /// Whether it is for the host alone.
    pub(super) fn is_for_host(&self) -> bool {
        let mode = self.mode.as_ref();
        self.answer.is_some() || mode.is_some_and(|mode| mode.request.is_some())
    }
}

/// Somebody wants the agent to be allowed more, or less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeOrder {
    /// The mode, by Claude Code's name.
    pub mode: String,
    /// The request that is answered when it is done; none where a plan was approved.
    pub request: Option<String>,
    /// Why whoever wants it may not.
    pub refused: Option<String>,
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
pub trait Mail: fmt::Debug {
    /// Becomes readable when there is something new.
    fn bell(&self) -> BorrowedFd<'_>;

    /// What has come and was not taken yet.
    fn take(&mut self) -> Result<Vec<Letter>, PortError>;

    /// The agent has these.
    fn done(&mut self, seqs: &[u64]) -> Result<(), PortError>;
}

/// What became of a question that was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// It has been asked; the answer comes by mail and names this.
    Waiting(String),
    /// There is nobody to ask.
    Refused(String),
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

/// Everything else a host needs.
pub trait Ports: fmt::Debug {
    /// Begins to read the agent's mail.
    fn mail(&mut self) -> Result<Box<dyn Mail>, PortError>;

    /// Whether the run may still work on its task; if not, why.
    fn lost_task(&mut self) -> Result<Option<String>, PortError>;

    /// Tells whoever started the run something about it.
    fn tell_parent(&mut self, summary: &str, text: &str) -> Result<(), PortError>;

    /// The hooks that run at `event` of this agent, as they are now.
    fn hooks(&mut self, event: HookEvent) -> Result<HookCall, PortError> {
        let _ = event;
        Ok(HookCall::default())
    }

    /// Sends the agent itself a message, which wakes it.
    fn tell_agent(&mut self, summary: &str, text: &str) -> Result<(), PortError>;

    /// Notes the agent's mode, or why it is not `mode`, and tells whoever asked for it.
    fn mode_set(
        &mut self,
        mode: &str,
        request: Option<&str>,
        refused: Option<&str>,
    ) -> Result<(), PortError> {
        let _ = (mode, request, refused);
        Ok(())
    }

    /// Asks the lead whether the agent may use a tool.
    fn ask(&mut self, tool: &str, input: &Value) -> Result<Asked, PortError>;

    /// Notes that the agent waits for work (true) or has some.
    fn idle(&mut self, idle: bool) -> Result<(), PortError>;

    /// Does everything that has to be done when a run has ended, in order: writes down how (and
    /// calls `written`), gives its tasks back, sees to its tree, tells its parent. Can be called
    /// again by somebody else if it is cut short.
    fn finish(&mut self, exit: &Exit, written: &mut dyn FnMut()) -> Result<(), PortError>;
}
