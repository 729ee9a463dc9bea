//! Taking a task, and giving it back.

use std::collections::HashMap;

use crate::board::{Board, Caller};
use crate::error::{BoardError, Refusal};
use crate::facts::{Lease, LeaseTerm};
use crate::id::TaskId;
use crate::index::{Index, Slim};
use crate::needs::Needs;
use crate::prepared::Edited;
use crate::section::ListDir;
use crate::task::{Status, Task, check_line};

/// Who wants a task, and on what terms.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The agent that will own it.
    pub agent: String,
    /// Refuse if the agent has other unfinished work.
    pub check_busy: bool,
    /// How the claim can end without the agent.
    pub lease: Option<LeaseTerm>,
}

impl ClaimRequest {
    /// A claim without a lease, as a person makes it.
    pub fn new(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            check_busy: false,
            lease: None,
        }
    }
}

/// A task that is now the caller's.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// As it is now.
    pub task: Task,
    /// To be shown with every later write, if the claim has a lease.
    pub token: Option<u64>,
}

impl Board {
    /// Claims task `id`: owner and status change in one step, or nothing does.
    pub fn claim(&self, id: TaskId, request: &ClaimRequest) -> Result<Claimed, BoardError> {
        self.claim_with(id, request, None)
    }

    /// Claims task `id` and says in the same step that it is done in the tree `name`, which need not
    /// be there yet.
    pub fn claim_in(
        &self,
        id: TaskId,
        request: &ClaimRequest,
        name: &str,
    ) -> Result<Claimed, BoardError> {
        check_line("worktree", name)?;
        self.claim_with(id, request, Some(name))
    }

    fn claim_with(
        &self,
        id: TaskId,
        request: &ClaimRequest,
        worktree: Option<&str>,
    ) -> Result<Claimed, BoardError> {
        check_line("agent", &request.agent)?;
        let task = self.edit(
            id,
            &Needs::busy(request.check_busy, &request.agent),
            |index, task, now| {
                check_claim(index, task, request, Busy::OwnsUnfinished)?;
                let mut task = task.clone();
                start(&mut task, request, now);
                if worktree.is_some() {
                    task.set_worktree(worktree);
                }
                Ok(Edited::new("claim", task))
            },
        )?;
        let token = task.lease().map(|lease| lease.token);
        Ok(Claimed { task, token })
    }

    /// Gives a task back: pending, no owner, no lease.
    pub fn release(&self, id: TaskId, caller: &Caller) -> Result<Task, BoardError> {
        self.edit(id, &Needs::nothing(), |_, task, _| {
            caller.check_token(task)?;
            if task.status == Status::Completed {
                return Err(BoardError::refused(task, Refusal::AlreadyResolved));
            }
            caller.check_owner(task)?;
            let mut task = task.clone();
            task.make_pending();
            Ok(Edited::new("release", task))
        })
    }

    /// Returns everything unfinished that `agent` owns; used when the agent is gone.
    pub fn unassign(&self, agent: &str) -> Result<Vec<Task>, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.return_in_tables(Whose::Agent(agent)) {
            return done;
        }
        self.return_tasks(Look::Everywhere, |slim| {
            slim.owner.as_deref() == Some(agent)
        })
    }

    /// Returns everything unfinished that the run `run` holds; used when the run is gone.
    pub fn unassign_run(&self, run: &str) -> Result<Vec<Task>, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.return_in_tables(Whose::Run(run)) {
            return done;
        }
        self.return_tasks(Look::Everywhere, |slim| slim.run.as_deref() == Some(run))
    }

    /// The same, without a look at every file of the list: finds what the run has claimed through
    /// the board, and not a lease that somebody wrote into a file by hand.
    pub fn release_run(&self, run: &str) -> Result<Vec<Task>, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.return_in_tables(Whose::Run(run)) {
            return done;
        }
        self.return_tasks(Look::Index, |slim| slim.run.as_deref() == Some(run))
    }

    /// Returns the tasks whose leases have run out, as every change does first: for whoever waits
    /// for something to do while nobody changes anything. Whether there were any.
    pub fn return_overdue(&self) -> Result<bool, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(done) = self.return_overdue_in_tables() {
            return done;
        }
        Ok(false)
    }

    /// Extends the leases that the run `run` holds by a term from now on, and says which those are,
    /// with their tokens. One that has run out is not among them: whoever held it must stop.
    pub fn renew(&self, run: &str, milliseconds: i64) -> Result<Vec<(TaskId, u64)>, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(held) = self.renew_in_tables(run, milliseconds) {
            return held;
        }
        let mut held = Vec::new();
        self.section(|section| {
            held.clear();
            let until = self.now_ms().saturating_add(milliseconds);
            let of_run = |slim: &Slim| slim.run.as_deref() == Some(run) && slim.lease_end.is_some();
            let index = section.index().iter();
            let ids: Vec<TaskId> = index
                .filter(|(_, slim)| of_run(slim))
                .map(|(id, _)| id)
                .collect();
            for id in ids {
                let before = section.read(id)?;
                let mut task = before.task.clone();
                let lease = task
                    .lease()
                    .filter(|lease| lease.run.as_deref() == Some(run));
                let Some(mut lease) = lease else { continue };
                lease.expires_at = lease.expires_at.map(|end| end.max(until));
                task.set_lease(&lease);
                section.stage_and_write("renew", &before, task, ListDir::Leave)?;
                held.push((id, lease.token));
            }
            Ok(())
        })?;
        Ok(held)
    }

    fn return_tasks(
        &self,
        look: Look,
        belongs: impl Fn(&Slim) -> bool,
    ) -> Result<Vec<Task>, BoardError> {
        // Kept across attempts: what an interrupted attempt returned is returned.
        let mut returned = Vec::new();
        self.section(|section| {
            if look == Look::Everywhere {
                // Whoever is gone is gone: nothing of its may be overlooked.
                section.scan(&HashMap::new())?;
            }
            let open = |slim: &Slim| slim.status != Status::Completed && belongs(slim);
            let ids: Vec<TaskId> = section
                .index()
                .iter()
                .filter(|(_, slim)| open(slim))
                .map(|(id, _)| id)
                .collect();
            for id in ids {
                let before = section.read(id)?;
                // The file says whether it is so.
                if !section.index().get(id).is_some_and(open) {
                    continue;
                }
                let mut task = before.task.clone();
                task.make_pending();
                section.stage_and_write("unassign", &before, task.clone(), ListDir::Leave)?;
                returned.push(task);
            }
            Ok(())
        })?;
        Ok(returned)
    }

    /// What can be claimed now, best first.
    pub fn ready(&self) -> Result<Vec<TaskId>, BoardError> {
        #[cfg(feature = "postgres")]
        if let Some(found) = self.ready_in_tables() {
            return found;
        }
        self.section(|section| Ok(section.live().index.ready()))
    }
}

/// Whose tasks are to be returned.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose<'a> {
    Agent(&'a str),
    Run(&'a str),
}

/// Where to look for the tasks of somebody who is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// In every file.
    Everywhere,
    /// In what the board knows.
    Index,
}

/// What keeps an agent from taking a task that is not its own yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Anything unfinished it owns: whoever names a task should first do what is assigned.
    OwnsUnfinished,
    /// What it is working on: `next` hands out assigned tasks first anyway, and one that is
    /// blocked must not keep its owner idle.
    IsWorking,
}

/// The rules of a claim, in the order in which they are checked.
pub(crate) fn check_claim(
    index: &Index,
    task: &Task,
    request: &ClaimRequest,
    busy: Busy,
) -> Result<(), BoardError> {
    let refused = |reason| Err(BoardError::refused(task, reason));
    let mine = task.owner.as_ref() == Some(&request.agent);
    if let Some(owner) = &task.owner
        && !mine
    {
        return refused(Refusal::AlreadyClaimed {
            owner: owner.clone(),
        });
    }
    if task.status == Status::Completed {
        return refused(Refusal::AlreadyResolved);
    }
    if mine && task.status == Status::InProgress {
        return Ok(());
    }
    if let Some(obstacle) = index.start_obstacle(task.id) {
        return refused(obstacle);
    }
    if request.check_busy {
        // Work that was assigned but not begun keeps an agent from taking more, but not from
        // beginning with it.
        let with = if mine || busy == Busy::IsWorking {
            in_progress(index, &request.agent, Some(task.id))
        } else {
            let agent = &request.agent;
            let mut all: Vec<TaskId> = index
                .working_on(agent)
                .chain(index.assigned_to(agent))
                .collect();
            all.sort_unstable();
            all
        };
        if !with.is_empty() {
            return refused(Refusal::AgentBusy {
                agent: request.agent.clone(),
                with,
            });
        }
    }
    Ok(())
}

/// Owner, status and lease of a claim.
pub(crate) fn start(task: &mut Task, request: &ClaimRequest, now_ms: i64) {
    let again = task.owner.as_ref() == Some(&request.agent) && task.status == Status::InProgress;
    task.owner = Some(request.agent.clone());
    task.status = Status::InProgress;
    match &request.lease {
        Some(term) => {
            let (run, expires_at) = match term {
                LeaseTerm::Milliseconds(ms) => (None, Some(now_ms.saturating_add(*ms))),
                LeaseTerm::Run(run) => (Some(run.clone()), None),
                LeaseTerm::Heartbeat { run, milliseconds } => (
                    Some(run.clone()),
                    Some(now_ms.saturating_add(*milliseconds)),
                ),
            };
            // Growing even if the clock was set back since the last one.
            let token = (task.last_token() + 1).max(u64::try_from(now_ms).unwrap_or(0));
            task.set_lease(&Lease {
                agent: request.agent.clone(),
                run,
                token,
                expires_at,
            });
        }
        None if again => {}
        None => task.end_lease(),
    }
}

pub(crate) fn in_progress(index: &Index, agent: &str, except: Option<TaskId>) -> Vec<TaskId> {
    index
        .working_on(agent)
        .filter(|id| Some(*id) != except)
        .collect()
}

/// Whether `next` may give this task to the agent.
pub(crate) fn pickable(index: &Index, id: TaskId, agent: &str) -> bool {
    let owner = index.get(id).and_then(|slim| slim.owner.as_deref());
    index.may_start(id) && owner.is_none_or(|owner| owner == agent)
}

#[cfg(test)]
mod tests {
    use store::clock::monotonic_ns;
    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::board::BoardOptions;
    use crate::create::NewTask;

    #[test]
    fn a_run_gives_back_what_it_claimed_without_a_look_at_every_file() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let name = Name::new("list", "l").unwrap();
        let board = Board::new(&home, name, BoardOptions::default());
        let new = NewTask {
            subject: "x".into(),
            ..NewTask::default()
        };
        let made = board
            .create(&[new.clone(), new.clone(), new], None)
            .unwrap();
        let request = |agent: &str| ClaimRequest {
            lease: Some(LeaseTerm::Run("r1".into())),
            check_busy: false,
            ..ClaimRequest::new(agent)
        };
        for task in &made[..2] {
            board.claim(task.id, &request("a")).unwrap();
        }
        // Somebody else took it over, with an editor.
        let mut taken = board.get(made[1].id).unwrap();
        taken.end_lease();
        taken.owner = Some("b".into());
        let bytes = crate::format::to_bytes(&taken);
        let path = board.task_path(taken.id);
        let mut file = std::fs::File::options()
            .write(true)
            .truncate(true)
            .open(path)
            .unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        board.ready().unwrap();
        let start = monotonic_ns();
        let returned = board.release_run("r1").unwrap();
        let looked = board
            .peek(|loaded| loaded.slots.scanned_since(start))
            .unwrap();
        assert!(!looked, "it does not take longer, the longer the list is");
        let ids: Vec<TaskId> = returned.iter().map(|task| task.id).collect();
        assert_eq!(ids, [made[0].id], "what is another's stays with it");
        assert_eq!(board.get(taken.id).unwrap().owner.as_deref(), Some("b"));
    }
}
