//! Seeing to runs nobody sees to any more.

use std::path::PathBuf;
use std::time::Duration;

use swarm::process::sweep;
use swarm::run::{self, By, ExitStatus, Meta, RunDir, RunError, Told, exit_of_dead};

use worktrees::Slug;

use super::agents::Agents;
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
    pub fn set_run_aside(&self, run: &RunDir) -> Result<PathBuf, AgentError> {
        // Nobody knows how old it is, so only its environment tells what belongs to it.
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

    /// Finishes every run whose guard and host are gone before it was finished: ends what is
    /// left of it, gives its tasks back, tells its parent. Costs next to nothing when there is
    /// none.
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
        let agents = Agents::new(surroundings, &Settings::default());
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
