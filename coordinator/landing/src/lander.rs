//! Lands the result of a task on a branch.
//!
//! The worktree of a completed task and the task itself contain all that a landing needs, so the
//! next start finds a landing that was interrupted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use runs::progress::Patience;
use runs::{AgentError, Agents};
use taskboard::{Attempt, Caller, Task, TaskId, TaskResult};
use worktrees::{
    AfterCheck, Check, MergeOutcome, MergeRequest, MergeStrategy, Merged, SetUp, Slug, TreeError,
    Trees, Wanted, shown_branch,
};

use store::fault::reached;

use super::message;
use super::queue::{is_commit_checked, is_workers};
use super::shared;
use crate::fault;

/// Lands the work on tasks of one team.
#[derive(Debug)]
pub struct Lander<'a> {
    /// The agents of the team.
    pub agents: &'a Agents,
    /// Time limit of a check.
    pub verify_timeout: Duration,
    /// Maximum attempts of a task that is reopened because its merged result fails; `None` leaves
    /// such a task completed.
    pub reopen: Option<usize>,
}

/// The target of finished work.
#[derive(Debug, Clone)]
pub struct Landings {
    /// The branch.
    pub into: String,
    /// The form of the commits on the branch.
    pub strategy: MergeStrategy,
    /// A command that must pass on every merged result, besides the task's own check.
    pub check: Option<String>,
    /// The setup of a worktree in which a check runs.
    pub set_up: SetUp,
    /// True if a conflict becomes a task of its own.
    pub conflicts_become_tasks: bool,
    /// Only the work on these tasks lands; `None` means all.
    pub only: Option<BTreeSet<TaskId>>,
}

/// The outcome of landing a task's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landed {
    /// It is on the branch.
    At(Moved),
    /// There was nothing to land.
    Nothing,
    /// Both sides changed these files; this task is to resolve the conflict.
    Conflict(Vec<String>, Option<TaskId>),
    /// The merged result did not pass the check.
    Rejected {
        /// The end of the check's output, and how it ended.
        why: String,
        /// The command.
        check: String,
        /// All of its output.
        log: PathBuf,
    },
    /// It is not on the branch, for this reason.
    Left(String),
    /// A process was killed on the way, or a file could not be read or written: the landing is
    /// retried.
    Hindered(String),
}

/// A move of a branch, done or previewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The old head.
    pub before: String,
    /// The new head.
    pub after: String,
    /// Number of commits of the task's worktree that were not on the branch.
    pub commits: usize,
    /// The worktree that has the branch checked out and was updated.
    pub checkout: Option<PathBuf>,
    /// The output of the check, if one ran.
    pub log: Option<PathBuf>,
}

impl From<Merged> for Moved {
    fn from(merged: Merged) -> Self {
        Self {
            before: merged.before,
            after: merged.after,
            commits: merged.commits,
            checkout: merged.checkout,
            log: merged.log,
        }
    }
}

impl Lander<'_> {
    /// Lands the work on one task.
    pub fn land(&self, id: TaskId, landings: &Landings, stop: &AtomicBool) -> Landed {
        match self.try_landing(id, landings, stop) {
            Ok(outcome) => outcome,
            Err(error) if error.is_passing() => Landed::Hindered(error.to_string()),
            Err(error) => Landed::Left(error.to_string()),
        }
    }

    fn try_landing(
        &self,
        id: TaskId,
        landings: &Landings,
        stop: &AtomicBool,
    ) -> Result<Landed, AgentError> {
        let board = self.agents.board();
        let shared = self.agents.shared().is_some();
        // Other machines land on the same branch.
        let turn = match shared {
            true => shared::turn(self.agents, &landings.into, stop)?,
            false => None,
        };
        if shared && turn.is_none() {
            return Ok(Landed::Hindered("it is not its turn".into()));
        }
        let task = board.get(id)?;
        let result = task.result().unwrap_or_default();
        let Some(name) = &result.worktree else {
            return Ok(Landed::Nothing);
        };
        let slug = Slug::new(name)?;
        let trees = self.agents.trees()?;
        if shared {
            if shared::is_there(board, &task, &trees, &landings.into)? {
                return Ok(Landed::Nothing);
            }
            shared::bring_here(self.agents, &task, &trees)?;
        }
        let verify = board.check_of(&task)?;
        let check = together(&[verify.as_deref(), landings.check.as_deref()]);
        let check = check.map(|command| Check {
            command,
            timeout: self.verify_timeout,
            set_up: landings.set_up.clone(),
            after: AfterCheck::Keep,
            stop,
        });
        // The task may have been rejected while its check ran.
        let wanted = |commit: &str| match board.get(id) {
            Ok(now) if now.result().is_none_or(|now| now.commit != result.commit) => false,
            Ok(_) if shared => {
                let noted = shared::note(board, id, &result, &landings.into, commit, true);
                noted.is_ok()
            }
            _ => !shared,
        };
        let request = MergeRequest {
            check,
            proven: self.proven(&task, &result, landings)?,
            wanted: Some(Wanted(&wanted)),
            ..self.request(&task, &result, verify.as_deref(), landings, &trees)
        };
        match trees.merge(&slug, &request) {
            Ok(merged) => {
                match shared {
                    true => {
                        reached(fault::LAND_MOVED);
                        let into = &landings.into;
                        shared::note(board, id, &result, into, &merged.after, false)?;
                    }
                    false => self.landed_again(&task, &result)?,
                }
                self.conflict_is_over(&slug)?;
                // A worker may get another message at any moment; its worktree is removed at the
                // end.
                if !is_workers(&task) {
                    self.put_away_all(&trees, &slug, &task, &landings.into);
                }
                Ok(Landed::At(merged.into()))
            }
            Err(error) => self.not_landed(error, &task, &slug, landings),
        }
    }

    /// Previews the landing. Runs no check, moves nothing.
    pub(crate) fn preview(&self, id: TaskId, landings: &Landings) -> Result<Landed, AgentError> {
        let board = self.agents.board();
        let task = board.get(id)?;
        let result = task.result().unwrap_or_default();
        let Some(name) = &result.worktree else {
            return Ok(Landed::Nothing);
        };
        let trees = self.agents.trees()?;
        if self.agents.shared().is_some() {
            shared::bring_here(self.agents, &task, &trees)?;
        }
        let request = MergeRequest {
            dry_run: true,
            ..self.request(&task, &result, None, landings, &trees)
        };
        Ok(match trees.merge(&Slug::new(name)?, &request) {
            Ok(merged) if merged.outcome == MergeOutcome::NothingToDo => Landed::Nothing,
            Ok(merged) => Landed::At(merged.into()),
            Err(TreeError::Conflicts { files, .. }) => Landed::Conflict(files, None),
            Err(error) => Landed::Left(error.to_string()),
        })
    }

    /// The commit on which the check passed, if nothing else must pass and ccb itself ran the
    /// check.
    fn proven(
        &self,
        task: &Task,
        result: &TaskResult,
        landings: &Landings,
    ) -> Result<Option<String>, AgentError> {
        let passed = is_commit_checked(result) && self.agents.board().believes(task)?;
        let commit = result.commit.clone();
        Ok(commit.filter(|_| passed && landings.check.is_none()))
    }

    /// The request to land it, without the check.
    fn request<'r>(
        &self,
        task: &Task,
        result: &TaskResult,
        verify: Option<&str>,
        landings: &Landings,
        trees: &Trees,
    ) -> MergeRequest<'r> {
        let list = self.agents.board().name().as_str();
        MergeRequest {
            into: Some(landings.into.clone()),
            strategy: landings.strategy,
            message: Some(match landings.strategy {
                MergeStrategy::Merge => message::of_merge(task, list, verify),
                _ => message::of_work(task, list, verify),
            }),
            // A single commit that names the task needs no merge commit around it.
            follow: message::says_it(task, list, result, trees),
            for_task: Some(format!("{list}#{}", task.id)),
            ..MergeRequest::default()
        }
    }

    /// Clears the undone mark of work that is on the branch again.
    fn landed_again(&self, task: &Task, result: &TaskResult) -> Result<(), AgentError> {
        if result.undone == Some(true) {
            let result = TaskResult {
                undone: None,
                ..result.clone()
            };
            self.agents.board().proved(task.id, &result)?;
        }
        Ok(())
    }

    fn not_landed(
        &self,
        error: TreeError,
        task: &Task,
        slug: &Slug,
        landings: &Landings,
    ) -> Result<Landed, AgentError> {
        Ok(match error {
            TreeError::Conflicts { files, .. }
                if self.agents.shared().is_some() && !landings.conflicts_become_tasks =>
            {
                // The next attempt begins with the current branch.
                let why = format!(
                    "{} has changed the same lines: {}",
                    shown_branch(&landings.into),
                    files.join(", ")
                );
                if let Some(attempts) = self.reopen {
                    self.open_again(task.id, attempts, &why)?;
                }
                Landed::Rejected {
                    why,
                    check: "git merge".into(),
                    log: PathBuf::new(),
                }
            }
            TreeError::Conflicts { files, .. } => {
                let became = match landings.conflicts_become_tasks {
                    true => Some(self.conflict_task(task, slug, &files, landings)?),
                    false => None,
                };
                Landed::Conflict(files, became)
            }
            // A killed check says nothing about the result.
            error @ TreeError::CheckFailed { killed: true, .. } => {
                Landed::Hindered(error.to_string())
            }
            TreeError::CheckFailed {
                how, log, command, ..
            } => {
                let why = rejection(&landings.into, &how, &log);
                if let Some(attempts) = self.reopen {
                    self.open_again(task.id, attempts, &why)?;
                }
                Landed::Rejected {
                    why,
                    check: command,
                    log,
                }
            }
            error if error.is_passing() => Landed::Hindered(error.to_string()),
            error => Landed::Left(error.to_string()),
        })
    }

    /// Reopens a task whose work does not fit with the rest.
    fn open_again(&self, id: TaskId, attempts: usize, why: &str) -> Result<(), AgentError> {
        let run = format!("landing-{}", uuid::Uuid::new_v4());
        let attempt = Attempt::new(run, "rejected", why);
        let patience = Patience::of(attempts);
        let enough = |all: &[Attempt]| patience.is_over(all);
        let caller = Caller::forced("engine");
        let board = self.agents.board();
        board.attempt_failed(id, &caller, &attempt, &enough)?;
        Ok(())
    }
}

/// One command that runs all of these, if there are any.
pub(super) fn together(commands: &[Option<&str>]) -> Option<String> {
    let all: Vec<String> = commands
        .iter()
        .flatten()
        .map(|command| format!("( {command}\n)"))
        .collect();
    (!all.is_empty()).then(|| all.join(" && "))
}

fn rejection(into: &str, how: &str, log: &std::path::Path) -> String {
    let printed = store::log::tail(log, 4096).unwrap_or_default();
    format!(
        "together with what is on {into} the check failed ({how}):\n{}",
        printed.trim_end()
    )
}
