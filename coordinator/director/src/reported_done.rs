//! Tasks that are marked done without proof by another tool, a person, or an agent that ccb does
//! not run.

use std::time::Duration;

use runs::progress::Patience;
use runs::{AgentError, LaunchPlan, Prove, Spawn, WorksIn};
use swarm::run::{ExitStatus, RuntimeSpec};
use taskboard::{Attempt, BoardError, Caller, Task, TaskId, TaskResult};
use worktrees::Slug;

use super::setup::Setup;

/// Longest single wait for a check; then the wait starts again.
const ROUND: Duration = Duration::from_secs(3600);

impl Setup {
    /// Runs the check of a task that was completed without it: in the worktree of the task, if
    /// known, else in the caller's directory. If it fails, the task is open again.
    pub(super) fn prove_reported(&self, id: TaskId) -> Result<(), String> {
        self.try_to_prove(id)
            .unwrap_or_else(|error| Err(error.to_string()))
    }

    fn try_to_prove(&self, id: TaskId) -> Result<Result<(), String>, AgentError> {
        let task = self.board().get(id)?;
        let verify = self.board().check_of(&task)?;
        let Some(verify) = verify.filter(|_| task.is_reported()) else {
            return Ok(Ok(()));
        };
        // A run like any other, so that no process of the check outlives ccb unnoticed.
        let launched = self.agents.spawn(&Spawn {
            id: None,
            dropped_model: None,
            prompt: "true".into(),
            description: format!("check of #{id}"),
            agent_type: "general-purpose".into(),
            runtime: RuntimeSpec {
                name: "shell".into(),
                ..RuntimeSpec::default()
            },
            name: None,
            teammate: false,
            lead: false,
            plan_mode: false,
            fork: false,
            model: None,
            permission_mode: None,
            isolation: WorksIn::Directory(self.where_done(&task)),
            task: None,
            background: false,
            parent: self.parent.clone(),
            tool_use_id: None,
            plan: LaunchPlan {
                prove: Some(Prove {
                    verify: Some(verify),
                    timeout_ms: u64::try_from(self.verify_timeout.as_millis()).unwrap_or(u64::MAX),
                    ..Prove::default()
                }),
                ..LaunchPlan::default()
            },
        })?;
        let outcome = loop {
            if let Some(outcome) = self.agents.wait(&launched, ROUND)? {
                break outcome;
            }
        };
        self.agents.delivered(&launched)?;
        if outcome.exit.status == ExitStatus::Completed {
            let proof = outcome.exit.proof.as_ref().and_then(TaskResult::of);
            let result = TaskResult {
                run: Some(launched.meta.agent_id.clone()),
                verified: Some(true),
                check: proof.and_then(|proof| proof.check),
                ..TaskResult::default()
            };
            self.board().proved(id, &result)?;
            return Ok(Ok(()));
        }
        let why = outcome
            .exit
            .error
            .unwrap_or_else(|| "its check failed".into());
        let run = launched.meta.agent_id.clone();
        self.take_back(id, run, "reported", &why)?;
        Ok(Err(why))
    }

    /// Reopens a completed task with the problem: it was not done after all, or does not fit with
    /// the rest. `run` names the run that found the problem.
    pub(super) fn take_back(
        &self,
        id: TaskId,
        run: String,
        status: &str,
        why: &str,
    ) -> Result<(), BoardError> {
        let attempt = Attempt::new(run, status, why);
        let patience = Patience::of(self.max_attempts);
        let caller = Caller::forced("engine");
        let enough = |all: &[Attempt]| patience.is_over(all);
        self.board()
            .attempt_failed(id, &caller, &attempt, &enough)?;
        Ok(())
    }

    /// The directory where a task was done, if known.
    fn where_done(&self, task: &Task) -> std::path::PathBuf {
        let tree = task.worktree().and_then(|name| {
            let trees = self.agents.trees().ok()?;
            let entry = trees.get(&Slug::new(name).ok()?).ok()?;
            Some(entry.path().to_owned())
        });
        tree.unwrap_or_else(|| self.agents.directory().to_owned())
    }
}
