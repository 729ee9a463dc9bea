//! Writing to an agent: an agent that runs gets the message, an agent that has ended resumes.

use std::time::{Duration, Instant};

use mailbox::{Body, Draft, Posted, Priority};
use store::clock::{Clock, SystemClock, rfc3339};
use store::fault::reached;
use store::name::Name;
use swarm::run::{Held, Meta, RunDir, RunError, RunState};
use taskboard::BoardError;
use worktrees::{Base, CreateMode};

use super::agents::Agents;
use super::error::AgentError;
use super::finish::{REFUSED, VETOED};
use super::start::Launched;
use crate::fault;

/// Maximum time for an agent to end that is about to.
const ENDING: Duration = Duration::from_secs(60);
/// Interval between two looks at an agent that has ended and is still supervised.
const LET_GO: Duration = Duration::from_millis(50);

/// The result of sending a message to an agent.
#[derive(Debug)]
pub struct Sent {
    /// The message as it was sent.
    pub posted: Posted,
    /// The agent's record when the message was sent.
    pub meta: Meta,
    /// True if the agent had ended, and resumes because of the message.
    pub resumed: bool,
}

impl Agents {
    /// Sends `text` to an agent. An agent that has ended resumes with it.
    pub fn send(
        &self,
        meta: &Meta,
        from: &Name,
        text: String,
        summary: Option<String>,
        priority: Priority,
    ) -> Result<Sent, AgentError> {
        let run = self.run(&meta.agent_id);
        let to = Name::new("agent", meta.address())?;
        let draft = Draft {
            summary,
            priority: Some(priority),
            ..Draft::new(from.clone(), to, Body::Text(text))
        };
        self.reconcile_one(&run)?;
        loop {
            // Under this lock an agent decides that it takes in nothing more.
            let lock = run.lock()?;
            let meta = run.meta()?;
            let alive = run.is_alive()?;
            if alive && meta.state != RunState::Ending && !meta.state.is_terminal() {
                let posted = self.mailbox().send(&draft)?;
                return Ok(Sent {
                    posted,
                    meta,
                    resumed: false,
                });
            }
            drop(lock);
            if alive {
                if !run.wait_dead(ENDING)? {
                    return Err(AgentError::WillNotEnd {
                        id: run.id().to_owned(),
                    });
                }
                continue;
            }
            let posted = self.mailbox().send(&draft)?;
            reached(fault::RESUME_SENT);
            let resumed = self.resume(&run, true)?;
            let meta = run.meta()?;
            return Ok(Sent {
                posted,
                meta,
                resumed: resumed.is_some(),
            });
        }
    }

    /// Puts a message into the inbox of an agent that is about to be resumed.
    pub fn leave_message(
        &self,
        meta: &Meta,
        from: &Name,
        text: String,
    ) -> Result<Posted, AgentError> {
        let to = Name::new("agent", meta.address())?;
        let summary: String = text
            .lines()
            .next()
            .unwrap_or("")
            .chars()
            .take(200)
            .collect();
        let draft = Draft {
            summary: Some(summary),
            ..Draft::new(from.clone(), to, Body::Text(text))
        };
        Ok(self.mailbox().send(&draft)?)
    }

    /// Resumes an agent that has ended. None if another process has just done so.
    pub fn resume(&self, run: &RunDir, background: bool) -> Result<Option<Launched>, AgentError> {
        self.reconcile_one(run)?;
        let Some(held) = take_ended(run)? else {
            return Ok(None);
        };
        let mut meta = run.meta()?;
        meta.state = RunState::Registered;
        meta.told = None;
        meta.ended_at = None;
        meta.stalled = None;
        for said in [VETOED, REFUSED] {
            meta.other.shift_remove(said);
        }
        (meta.host, meta.guard, meta.pid) = (None, None, None);
        meta.started_at = rfc3339(SystemClock.now_ms());
        run.begin_life(&mut meta)?;
        let waiter = match background {
            true => None,
            false => Some(run.waiter()?),
        };
        let equipped = Self::of_run(self.at.home.clone(), &meta, self.starter.clone())?
            .equip_again(run, &mut meta);
        if let Err(error) = equipped {
            drop(held);
            // It has a life that never began: that is finished like any other.
            self.reconcile_one(run)?;
            return Err(error);
        }
        self.start(run, held, &meta)?;
        Ok(Some(Launched {
            run: run.clone(),
            meta,
            waiter,
        }))
    }

    /// Gives a run back the resources it lost at its end.
    fn equip_again(&self, run: &RunDir, meta: &mut Meta) -> Result<(), AgentError> {
        if let Some(task) = meta.task_id.as_ref().and_then(|id| id.parse().ok()) {
            match self.claim(task, meta) {
                Ok(()) => {}
                // Another agent has it, or it is done: the conversation can continue without it.
                Err(AgentError::Board(
                    BoardError::Refused { .. } | BoardError::NotFound { .. },
                )) => (meta.task_id, meta.token) = (None, None),
                Err(error) => return Err(error),
            }
        }
        if let Some(tree) = &meta.worktree {
            let set_up = serde_json::from_value(tree.set_up.clone()).unwrap_or_default();
            // A worktree that was never made starts from its planned commit.
            let base = tree.make_from.clone().map_or(Base::Head, Base::Given);
            self.make_tree(base, set_up, CreateMode::Resume, meta)?;
        }
        if let (true, Some(name)) = (meta.teammate, &meta.name) {
            self.roster().set_active(name, true)?;
        }
        meta.state = RunState::Starting;
        run.write_meta(meta)?;
        Ok(())
    }
}

/// Takes a run whose agent has ended. Its supervisor lets go of it some moments after the end is
/// recorded. `None` if the agent has not ended, or another process resumes it.
fn take_ended(run: &RunDir) -> Result<Option<Held>, AgentError> {
    let deadline = Instant::now() + ENDING;
    loop {
        match run.take() {
            Ok(held) => return Ok(Some(held)),
            Err(RunError::Running { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let state = run.meta()?.state;
        let has_ended = state == RunState::Ending || state.is_terminal();
        if !has_ended || Instant::now() >= deadline {
            return Ok(None);
        }
        run.wait_dead(LET_GO)?;
    }
}
