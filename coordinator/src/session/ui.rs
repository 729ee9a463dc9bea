//! The interface of a session: events go out, a person's decisions come in.
//!
//! A session knows nothing of terminals. Lines on a terminal, a live view and a page are each a
//! [`SessionUi`].

use std::path::PathBuf;

use director::Verdict;
use director::{DirectorEvent, LeftTree, Stand};
use landing::StayingTree;
use mailbox::Message;
use runs::Listed;
use serde::Serialize;
use store::Failure;
use swarm::runtime::Usage;
use taskboard::{Snapshot, TaskId};
use worktrees::patch::FileStat;

use super::Session;
use crate::Finding;

/// Shows a session, and passes on a person's decisions.
pub trait SessionUi: Send + Sync {
    /// Shows an event, or something the person asked for.
    fn show(&self, event: &SessionEvent<'_>);

    /// The person's decisions since the last call. Never waits.
    fn decisions(&self) -> Vec<Decision>;

    /// True if a person is there who may still decide something.
    fn is_attended(&self) -> bool;

    /// Asks which of the finished work is to land on `into` now; waits for the answer.
    fn choose_to_land(&self, into: &str, offers: &[Offer]) -> Result<Vec<TaskId>, Failure>;

    /// The signal that came since the last call, if one did.
    fn signal(&self) -> Option<u8>;
}

/// An event of a session.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum SessionEvent<'a> {
    /// The session begins or resumes.
    Begun(&'a Session),
    /// An event of the engine: a start, an outcome, a landing, a cost.
    Director(&'a DirectorEvent),
    /// A finding of the check at the start.
    Finding(&'a Finding),
    /// A message to the lead, which is the person.
    Message(&'a Message),
    /// A request that the lead or the person can answer.
    Request(&'a mailbox::Request),
    /// A message of the lead, if it is a model.
    LeadSaid(&'a str),
    /// The board, at the person's request.
    Tasks(&'a Snapshot),
    /// The agents, at the person's request.
    Agents(&'a [Listed]),
    /// The lead's turn is over and there is nothing on the board: it waits for the person.
    LeadWaits,
    /// A message to an agent has arrived.
    Delivered { to: &'a str },
    /// The person put a task on the board.
    Added { task: TaskId, subject: &'a str },
    /// All agents are asked to stop, or ended at once.
    Stopping { at_once: bool },
    /// Another process directs the session, which is only followed here; `None` once it has exited
    /// and this process takes over.
    Following { who: Option<&'a str> },
    /// Another message, in words.
    Note(&'a str),
    /// The session is about to end: all agents have stopped, and everything is still on disk.
    Closing(Verdict),
    /// The session has ended.
    Ended(&'a Summary),
}

/// A decision of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum Decision {
    /// A message for the lead; a task if the person leads.
    Say(String),
    /// A task for an agent with a model.
    AddTask(String),
    /// A task that runs this command.
    AddCommand(String),
    /// A message to an agent.
    Write { to: String, text: String },
    /// A request to see the board.
    ShowTasks,
    /// A request to see the agents.
    ShowAgents,
    /// Stops an agent; its task is free again.
    Stop(String),
    /// An answer to a request.
    Answer {
        /// Its id, or the beginning of it, or the sender's name.
        request: String,
        approve: bool,
        why: Option<String>,
    },
    /// Ends the session; it can be resumed later.
    Quit,
}

/// Finished work that has not landed.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The task it was done for.
    pub task: TaskId,
    /// The subject of the task.
    pub subject: String,
    /// The files that changed; empty if unknown.
    pub files: Vec<FileStat>,
    /// The reason why it is unproven; `None` if a check passed.
    pub unchecked: Option<String>,
    /// Finished tasks whose work is part of this.
    pub builds_on: Vec<TaskId>,
    /// Its base and its result.
    pub range: Option<(String, String)>,
    /// The repository.
    pub repository: PathBuf,
}

/// The end of a session, with the remaining work.
#[derive(Debug)]
pub struct Summary {
    /// The team.
    pub team: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The overall state.
    pub stand: Stand,
    /// Number of all tasks.
    pub total: usize,
    /// Number of completed tasks.
    pub completed: usize,
    /// The completed tasks without proof.
    pub unchecked: Vec<TaskId>,
    /// The tasks that failed too often.
    pub parked: Vec<ParkedTask>,
    /// The tasks whose work is on no branch but their own.
    pub unlanded: Vec<TaskId>,
    /// The work that workers left in their worktrees.
    pub left: Vec<LeftTree>,
    /// Worktrees of tasks that are still there.
    pub staying: Vec<StayingTree>,
    /// The reason of a stop from outside, if there was one.
    pub stopped: Option<String>,
    /// The lead's last message, if it is a model.
    pub report: Option<String>,
    /// The error of the lead, if it failed, with the end of its output.
    pub lead_failure: Option<String>,
    /// The usage of its agents, if known.
    pub usage: Option<Usage>,
}

/// A task that failed too often.
#[derive(Debug, Serialize)]
pub struct ParkedTask {
    /// Its id.
    pub id: TaskId,
    /// The subject.
    #[serde(skip)]
    pub subject: String,
    /// The error.
    pub reason: String,
    /// The whole output of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}
