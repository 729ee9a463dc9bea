//! Who is at the other end of a session: what happened goes out, what a person decided comes in.
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

/// Shows a session, and passes on what a person decides.
pub trait SessionUi: Send + Sync {
    /// Something happened, or was asked to be shown.
    fn show(&self, event: &SessionEvent<'_>);

    /// What the person has decided since the last call. Never waits.
    fn decisions(&self) -> Vec<Decision>;

    /// Whether somebody is there who may still decide something.
    fn is_attended(&self) -> bool;

    /// Which of the finished work is to land on `into` now; waits for the answer.
    fn choose_to_land(&self, into: &str, offers: &[Offer]) -> Result<Vec<TaskId>, Failure>;

    /// The signal that came since the last call, if one did.
    fn signal(&self) -> Option<u8>;
}

/// Something that happened in a session.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum SessionEvent<'a> {
    /// It begins, or goes on.
    Begun(&'a Session),
    /// What the engine says: who began what, how it ended, what landed, what it cost.
    Director(&'a DirectorEvent),
    /// What the look at the start has found.
    Finding(&'a Finding),
    /// Somebody wrote to the lead, which is the person.
    Message(&'a Message),
    /// Somebody asks for something that the lead or the person can answer.
    Request(&'a mailbox::Request),
    /// What the lead said, if it is a model.
    LeadSaid(&'a str),
    /// The board, as it was asked for.
    Tasks(&'a Snapshot),
    /// Who is there, as it was asked for.
    Agents(&'a [Listed]),
    /// The lead's turn is over and there is nothing on the board: it waits for the person.
    LeadWaits,
    /// A message to an agent has arrived.
    Delivered { to: &'a str },
    /// A task was put on the board by the person.
    Added { task: TaskId, subject: &'a str },
    /// Everybody is asked to stop, or ended at once.
    Stopping { at_once: bool },
    /// Another process directs the session, which is only followed here; none once it is gone and
    /// this process takes over.
    Following { who: Option<&'a str> },
    /// Something else, in words.
    Note(&'a str),
    /// It is about to be over: everybody has stopped, and everything is still on disk.
    Closing(Verdict),
    /// It is over.
    Ended(&'a Summary),
}

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum Decision {
    /// Something for the lead; a task where the person leads.
    Say(String),
    /// A task for an agent with a model.
    AddTask(String),
    /// A task that runs this command.
    AddCommand(String),
    /// A message to an agent.
    Write { to: String, text: String },
    /// To see the board.
    ShowTasks,
    /// To see who is there.
    ShowAgents,
    /// That an agent stops; its task is free again.
    Stop(String),
    /// An answer to a request.
    Answer {
        /// Its id, or the beginning of it, or who asks.
        request: String,
        approve: bool,
        why: Option<String>,
    },
    /// That the session ends; it can go on later.
    Quit,
}

/// Finished work that has not landed.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The task it was done for.
    pub task: TaskId,
    /// What the task is about.
    pub subject: String,
    /// The files that changed; empty if that is not known.
    pub files: Vec<FileStat>,
    /// Why nothing proves it; none if a check passed.
    pub unchecked: Option<String>,
    /// Finished tasks whose work is part of this.
    pub builds_on: Vec<TaskId>,
    /// What it started from, and what it came to.
    pub range: Option<(String, String)>,
    /// The repository.
    pub repository: PathBuf,
}

/// How a session ended, and what is left.
#[derive(Debug)]
pub struct Summary {
    /// The team.
    pub team: String,
    /// Whether everything is done.
    pub verdict: Verdict,
    /// How things stand.
    pub stand: Stand,
    /// How many tasks there are.
    pub total: usize,
    /// How many of them are completed.
    pub completed: usize,
    /// The completed ones that nothing proves.
    pub unchecked: Vec<TaskId>,
    /// Those that failed too often.
    pub parked: Vec<ParkedTask>,
    /// Those whose work is on no other branch than their own.
    pub unlanded: Vec<TaskId>,
    /// What workers left in their trees.
    pub left: Vec<LeftTree>,
    /// Trees of tasks that are still there.
    pub staying: Vec<StayingTree>,
    /// Why it was ended from outside, if it was.
    pub stopped: Option<String>,
    /// What the lead said last, if it is a model.
    pub report: Option<String>,
    /// How the lead failed, if it did, with the last it printed.
    pub lead_failure: Option<String>,
    /// What its agents used, if that is known.
    pub usage: Option<Usage>,
}

/// A task that failed too often.
#[derive(Debug, Serialize)]
pub struct ParkedTask {
    /// Its id.
    pub id: TaskId,
    /// What it is about.
    #[serde(skip)]
    pub subject: String,
    /// What went wrong.
    pub reason: String,
    /// Everything that was printed the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}
