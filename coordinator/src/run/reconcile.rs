//! Seeing to runs nobody sees to any more.

use std::path::PathBuf;
use std::time::Duration;

use swarm::process::sweep;
use swarm::run::{self, By, ExitStatus, Meta, RunDir, RunError, Told, exit_of_dead};

use worktrees::Slug;

use super::engine::Agents;
use super::error::AgentError;
use super::finish;

/// How long what is left of a run may take to die.
const DYING: Duration = Duration::from_secs(10);

/// A run that was found with nobody left to finish it.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The agent.
    pub id: String,
    /// How it ended.
    pub status: Option<ExitStatus>,
}

impl Agents {
    /// Sees to a dead run of which nobody can read what it was: what is left of it is ended, its
    /// tasks are free again, its tree goes if nothing is in it, its files are kept aside. Returns
    /// where. The caller has taken the run.
    pub(crate) fn set_run_aside(&self, run: &RunDir) -> Result<PathBuf, AgentError> {
        // Nobody knows how old it is, so only its environment tells what belongs to it.
        let left = sweep(run.id(), None, DYING);
        if !left.is_empty() {
            tracing::error!(id = run.id(), ?left, "processes of the run do not die");
        }
        if self.board().dir().is_dir() {
            self.board().unassign_run(run.id())?;
        }
        if let (Ok(trees), Ok(slug)) = (self.trees(), Slug::new(&format!("agent-{}", run.id())))
            && let Err(error) = trees.settle(&slug).and_then(|()| trees.agent_ended(&slug))
        {
            tracing::info!(%error, "its tree stays");
        }
        Ok(run.set_aside(&self.runs.with_file_name(".ccb").join("unreadable"))?)
    }

    /// Finishes every run whose guard and host are gone before it was finished: ends what is
    /// left of it, gives its tasks back, tells its parent. Costs next to nothing when there is
    /// none.
    pub fn reconcile(&self) -> Result<Vec<Settled>, AgentError> {
        let mut settled = Vec::new();
        for id in run::active(&self.runs)? {
            if self.own_run.as_ref() == Some(&id) {
                continue;
            }
            settled.extend(self.reconcile_one(&self.run(&id))?);
        }
        Ok(settled)
    }

    /// Finishes the run with this id, if nobody else does; says how it ended.
    pub fn reconcile_run(&self, id: &str) -> Result<Option<ExitStatus>, AgentError> {
        let settled = self.reconcile_one(&self.run(id))?;
        Ok(settled.and_then(|settled| settled.status))
    }

    /// Finishes one run, if nobody else does.
    pub(super) fn reconcile_one(&self, run: &RunDir) -> Result<Option<Settled>, AgentError> {
        // Having this lock is supervising the run: nobody else finishes it, nobody resumes it.
        let held = match run.take() {
            Ok(held) => held,
            Err(RunError::Running { .. }) => return Ok(None),
            Err(_) if !run.path().is_dir() => {
                // Whoever gave it up died between deleting it and saying so.
                run.settle()?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if !run.is_active() {
            return Ok(None);
        }
        let meta = match run.meta() {
            Ok(meta) => meta,
            Err(RunError::NotFound { .. }) => {
                // Nobody came further than its directory.
                drop(held);
                store::tree::delete(run.path())?;
                run.settle()?;
                return Ok(None);
            }
            Err(error @ RunError::Corrupt { .. }) => {
                tracing::warn!(id = run.id(), %error, "a run is set aside");
                self.set_run_aside(run)?;
                return Ok(None);
            }
            Err(error) => {
                // What cannot be read cannot be finished; it must not keep others from being.
                tracing::warn!(id = run.id(), %error, "a run cannot be settled");
                return Ok(None);
            }
        };
        if let Err(RunError::Corrupt { .. }) = run.exit(meta.life) {
            // As if nobody had come to write it: then nothing is taken for done.
            run.put_damaged_exit_aside()?;
        }
        let agents = Self::of_run(self.home.clone(), &meta, self.starter.clone())?;
        let exit = match run.exit(meta.life)? {
            Some(_) if meta.told == Some(Told::Waiting) && run.has_waiter()? => return Ok(None),
            Some(exit) => exit,
            None => {
                let first = meta.guard.as_ref().or(meta.host.as_ref());
                let left = sweep(run.id(), first, DYING);
                if !left.is_empty() {
                    tracing::error!(id = run.id(), ?left, "processes of the run do not die");
                }
                exit_of_dead(run, &meta, By::Sweep, how_lost(&meta))
            }
        };
        finish::finish(&agents, run, &exit, None, &mut || ())?;
        drop(held);
        Ok(Some(Settled {
            id: run.id().to_owned(),
            status: Some(exit.status),
        }))
    }
}

fn how_lost(meta: &Meta) -> String {
    match meta.host {
        None => "whoever started it died before it was up".into(),
        Some(_) => "its guard and its host died".into(),
    }
}
