//! Finishes runs that have no supervisor any more.

use std::path::PathBuf;
use std::time::Duration;

use swarm::process::sweep;
use swarm::run::{self, By, ExitStatus, Meta, RunDir, RunError, Told, exit_of_dead};

use worktrees::Slug;

use super::agents::Agents;
use super::error::AgentError;
use super::finish;

/// Maximum time for the remains of a run to die.
const DYING: Duration = Duration::from_secs(10);

/// A run that had no process left to finish it.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The agent's id.
    pub id: String,
    /// The run's status at its end; `None` if that is unknown.
    pub status: Option<ExitStatus>,
}

impl Agents {
    /// Settles a dead run whose record is unreadable: ends its remaining processes, releases its
    /// tasks, removes its worktree if it has no changes, and keeps its files aside. Returns the
    /// path of these files. The caller has taken the run.
    pub fn set_run_aside(&self, run: &RunDir) -> Result<PathBuf, AgentError> {
        // The age of the run is unknown, so only the environment of a process tells that it belongs
        // to the run.
        let left = sweep(run.id(), None, DYING);
        if !left.is_empty() {
            tracing::error!(id = run.id(), ?left, "processes of the run do not die");
        }
        if self.board().exists() {
            self.board().unassign_run(run.id())?;
        }
        if let (Ok(trees), Ok(slug)) = (self.trees(), Slug::new(&format!("agent-{}", run.id())))
            && let Err(error) = trees.settle(&slug).and_then(|()| trees.agent_ended(&slug))
        {
            tracing::info!(%error, "its tree stays");
        }
        Ok(run.set_aside(&self.runs.with_file_name(".ccb").join("unreadable"))?)
    }

    /// Finishes every run whose guard and host died before they finished it: ends its remaining
    /// processes, releases its tasks, notifies its parent. Costs next to nothing if there is none.
    pub fn reconcile(&self) -> Result<Vec<Settled>, AgentError> {
        let mut settled = Vec::new();
        self.settle_outsiders()?;
        for id in run::active(&self.runs)? {
            if self.at.own_run.as_ref() == Some(&id) {
                continue;
            }
            settled.extend(self.reconcile_one(&self.run(&id))?);
        }
        Ok(settled)
    }

    /// Finishes the run with this id, unless another process does; returns its status.
    pub fn reconcile_run(&self, id: &str) -> Result<Option<ExitStatus>, AgentError> {
        let settled = self.reconcile_one(&self.run(id))?;
        Ok(settled.and_then(|settled| settled.status))
    }

    /// Finishes one run, unless another process does.
    pub(super) fn reconcile_one(&self, run: &RunDir) -> Result<Option<Settled>, AgentError> {
        // This lock makes the process the run's supervisor: no other process finishes or resumes
        // it.
        let held = match run.take() {
            Ok(held) => held,
            Err(RunError::Running { .. }) => return Ok(None),
            Err(_) if !run.path().is_dir() => {
                // The process that gave the run up died between deleting it and saying so.
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
                // The start came no further than the run's directory.
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
                // An unreadable run cannot be finished; it must not keep ccb from finishing others.
                tracing::warn!(id = run.id(), %error, "a run cannot be settled");
                return Ok(None);
            }
        };
        if let Err(RunError::Corrupt { .. }) = run.exit(meta.life) {
            // As if it was never written: then nothing counts as done.
            run.put_damaged_exit_aside()?;
        }
        let agents = Self::of_run(self.at.home.clone(), &meta, self.starter.clone())?;
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use store::atomic::{self, Durability};
    use store::home::Home;
    use store::name::Name;
    use store::settings::Settings;
    use taskboard::{NewTask, Status};

    use super::*;
    use crate::backends::Backends;
    use crate::run::Surroundings;

    /// A finished run of a shell command whose task has to be proven, with `damage` done to its
    /// `meta.json`; the status of its task after it is settled, and whether the run was kept.
    fn settled_with(damage: impl FnOnce(&mut Value)) -> (Status, bool) {
        let dir = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            home: Home::new(dir.path().join("home")).unwrap(),
            team: Name::new("team", "t").unwrap(),
            list: Name::new("list", "t").unwrap(),
            directory: dir.path().to_owned(),
            own_run: None,
        };
        let backends = Backends::files(&surroundings.home);
        let agents = Agents::new(surroundings, &Settings::default(), backends);
        let new = NewTask {
            subject: "do it".into(),
            ..NewTask::default()
        };
        let task = agents.board().create(&[new], None).unwrap()[0].id;
        let run = agents.run("a0123456789abcdef");
        let meta = json!({
            "v": 1, "agentId": run.id(), "life": 1, "team": "t", "list": "t",
            "parent": "team-lead", "cwd": dir.path(), "taskId": task.to_string(),
            "runtime": { "name": "shell", "kind": "shell" },
            "launch": { "prove": { "verify": "false", "timeoutMs": 1000, "maxAttempts": 3 } },
            "options": { "lockTimeoutMs": 10_000 },
        });
        let mut meta: Meta = serde_json::from_value(meta).unwrap();
        let held = run.create(&meta, "true").unwrap();
        agents.claim(task, &mut meta).unwrap();
        let mut kept = serde_json::to_value(&meta).unwrap();
        damage(&mut kept);
        let path = run.path().join("meta.json");
        let bytes = serde_json::to_vec(&kept).unwrap();
        atomic::replace(run.path(), &path, &bytes, Durability::Ordered).unwrap();
        let exit = json!({
            "v": 1, "life": 1, "status": "completed", "durationMs": 1, "by": "host",
            "endedAt": "2026-01-01T00:00:00.000Z",
        });
        let exit = serde_json::from_value(exit).unwrap();
        run.end(&exit, Durability::Ordered).unwrap();
        drop(held);
        agents.reconcile().unwrap();
        let status = agents.board().get(task).unwrap().status;
        (status, run.path().is_dir())
    }

    #[test]
    fn a_run_whose_plan_cannot_be_read_proves_nothing() {
        assert_eq!(settled_with(|_| ()), (Status::Completed, true));
        let damaged: [fn(&mut Value); 4] = [
            |meta| meta["launch"] = json!("{}"),
            |meta| meta["launch"]["prove"] = json!({ "verify": "false" }),
            |meta| meta["launch"]["prove"]["timeoutMs"] = json!("soon"),
            |meta| meta["launch"]["maxTurns"] = json!(-1),
        ];
        for damage in damaged {
            assert_eq!(settled_with(damage), (Status::Pending, false));
        }
    }

    #[test]
    fn options_that_cannot_be_read_are_not_taken_for_the_usual_ones() {
        let damage = |meta: &mut Value| meta["options"]["lockTimeoutMs"] = json!("long");
        assert_eq!(settled_with(damage), (Status::Pending, false));
        // Those of an early version are not there at all.
        let early = |meta: &mut Value| drop(meta.as_object_mut().unwrap().shift_remove("options"));
        assert_eq!(settled_with(early), (Status::Completed, true));
    }
}
