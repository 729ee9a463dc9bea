//! Starting an agent: written down first, then its task, its worktree, its processes.

use std::path::PathBuf;
use std::time::Duration;

use store::agent_id::AgentId;
use store::clock::{Clock, SystemClock, rfc3339};
use store::fault::reached;
use store::home::create_private_dir;
use store::name::Name;
use swarm::run::{LaunchPlan, Meta, RunDir, RunState, RuntimeSpec, TreeOf, tmp_dir};
use taskboard::{BoardError, ClaimRequest, Claimed, TaskId};
use team::NewMember;
use worktrees::{Base, CreateMode, SetUp, Slug};

use super::agents::Agents;
use super::error::AgentError;
use super::network_ports;
use super::spawn_checks::{check, check_name};
use super::start::Launched;
use crate::fault;

/// Maximum sleep of a waiting starter between two requests.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// The longest description.
const MAX_DESCRIPTION: usize = 200;

/// The directory an agent works in.
#[derive(Debug, Clone)]
pub enum WorksIn {
    /// In the starter's directory, without a worktree.
    Directory(PathBuf),
    /// In a worktree of its own.
    Worktree {
        /// The commit the worktree starts from.
        base: Base,
        /// The setup of the worktree, besides its files.
        set_up: SetUp,
        /// The process that makes the worktree.
        made_by: MadeBy,
    },
}

/// The process that makes the worktree of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeBy {
    /// The starter of the agent: if that fails, no agent is started.
    Starter,
    /// The agent's host, so that a process that starts many agents does not do the work of all. If
    /// that fails, the agent ends before it has begun. Only for worktrees that start from a commit.
    Host,
}

/// An agent to be started.
#[derive(Debug)]
pub struct Spawn {
    /// The agent's id if its task was claimed with it already; else `None`.
    pub id: Option<AgentId>,
    /// The agent's prompt; for a shell, the command.
    pub prompt: String,
    /// In a few words.
    pub description: String,
    /// The agent type.
    pub agent_type: String,
    /// The runtime that runs the agent.
    pub runtime: RuntimeSpec,
    /// The requested model if its runtime does not know it; else `None`.
    pub dropped_model: Option<String>,
    /// The agent's name; `None` if it has only an id.
    pub name: Option<Name>,
    /// True if it becomes a member of the team, and lives on after its turn.
    pub teammate: bool,
    /// True if it leads the team; it then has the name every lead has.
    pub lead: bool,
    /// True if it must have its plan approved first.
    pub plan_mode: bool,
    /// True if it continues its parent's conversation.
    pub fork: bool,
    /// The model; `None` for the runtime's default.
    pub model: Option<String>,
    /// The permission mode: the agent's rights without asking.
    pub permission_mode: Option<String>,
    /// The directory it works in.
    pub isolation: WorksIn,
    /// The task it is for; `None` for an agent without a task.
    pub task: Option<TaskId>,
    /// True if the starter does not wait for the result.
    pub background: bool,
    /// The name that is notified of the agent's end.
    pub parent: Name,
    /// The tool call that started it; `None` if no model did.
    pub tool_use_id: Option<String>,
    /// Further options of the runtime.
    pub plan: LaunchPlan,
}

impl Agents {
    /// Starts an agent. When this returns the agent runs, and continues even if the caller ends.
    pub fn spawn(&self, spawn: &Spawn) -> Result<Launched, AgentError> {
        check(spawn)?;
        self.check_caller()?;
        let running = self.running()?;
        self.check_number(running.len())?;
        if let Some(name) = &spawn.name {
            check_name(name, spawn.lead, &running)?;
        }
        let id = spawn.id.clone().unwrap_or_else(AgentId::random);
        let run = self.run(id.as_str());
        let mut meta = self.describe(spawn, &id);
        let model = spawn.runtime.kind.has_model();
        if model {
            // Nothing is written down for an agent that cannot start.
            AgentError::check(self.fleet().gate()?)?;
        }
        let held = run.create(&meta, &spawn.prompt)?;
        let waiter = match spawn.background {
            true => None,
            false => Some(run.waiter()?),
        };
        let admitted = self.fleet().admit(id.as_str(), model);
        let admitted = admitted.map_err(Into::into).and_then(AgentError::check);
        match admitted.and_then(|()| self.equip(spawn, &run, &mut meta)) {
            Ok(()) => {}
            Err(error) => {
                self.give_up(&run, &meta);
                return Err(error);
            }
        }
        self.start(&run, held, &meta)?;
        Ok(Launched { run, meta, waiter })
    }

    /// Starts an agent as soon as the limits allow it. If no agent may start at the moment, a
    /// caller that waits for the result anyway waits for that, too, and `told` gets the reason
    /// once. Nothing is written down until then, so the caller can break it off.
    pub fn spawn_when_possible(
        &self,
        spawn: &Spawn,
        told: impl FnOnce(&AgentError),
    ) -> Result<Launched, AgentError> {
        let mut told = Some(told);
        loop {
            let error = match self.spawn(spawn) {
                Err(error) if error.is_for_now() && !spawn.background => error,
                launched => return launched,
            };
            if let Some(told) = told.take() {
                told(&error);
            }
            self.fleet().wait(ASK_AGAIN)?;
        }
    }

    fn describe(&self, spawn: &Spawn, id: &AgentId) -> Meta {
        let now = rfc3339(SystemClock.now_ms());
        let slug = format!("agent-{id}");
        let (cwd, worktree) = match &spawn.isolation {
            WorksIn::Directory(dir) => (dir.clone(), None),
            WorksIn::Worktree {
                base,
                set_up,
                made_by,
            } => {
                let make_from = match (made_by, base) {
                    (MadeBy::Host, Base::Given(commit)) => Some(commit.clone()),
                    _ => None,
                };
                // The worktree's name is written down before it is made, so that ccb finds it.
                let tree = TreeOf {
                    name: slug,
                    path: String::new(),
                    branch: None,
                    set_up: serde_json::to_value(set_up).unwrap_or_default(),
                    make_from,
                    outcome: None,
                };
                (PathBuf::new(), Some(tree))
            }
        };
        Meta {
            agent_id: id.to_string(),
            life: 1,
            name: spawn.name.as_ref().map(ToString::to_string),
            teammate: spawn.teammate,
            team: self.at.team.to_string(),
            parent: spawn.parent.to_string(),
            description: short(&spawn.description),
            agent_type: spawn.agent_type.clone(),
            fork: spawn.fork,
            runtime: spawn.runtime.clone(),
            model: spawn.model.clone(),
            permission_mode: spawn.permission_mode.clone(),
            launch: spawn.plan.of_run(id.as_str()),
            cwd,
            worktree,
            repository: Some(self.at.directory.clone()),
            list: self.at.list.to_string(),
            task_id: spawn.task.map(|id| id.to_string()),
            tool_use_id: spawn.tool_use_id.clone(),
            tmp: Some(tmp_dir(id.as_str())),
            options: self.options.clone(),
            created_at: now.clone(),
            started_at: now,
            ..Meta::default()
        }
    }

    /// Gives the run everything it needs before it starts.
    fn equip(&self, spawn: &Spawn, run: &RunDir, meta: &mut Meta) -> Result<(), AgentError> {
        if let (true, Some(name)) = (spawn.teammate, &spawn.name) {
            self.enlist(spawn, name, meta)?;
        }
        if let Some(task) = spawn.task {
            self.claim(task, meta)?;
        }
        if let WorksIn::Worktree { base, set_up, .. } = &spawn.isolation
            && meta.awaited_tree().is_none()
        {
            self.make_tree(base.clone(), set_up.clone(), CreateMode::Exclusive, meta)?;
        }
        create_private_dir(&self.at.home.team(&self.at.team).join("scratchpad"))?;
        meta.port_base = network_ports::take(&self.at.home, run)?;
        meta.state = RunState::Starting;
        run.write_meta(meta)?;
        Ok(())
    }

    /// Takes the task for the run: the lease ends with it.
    pub(super) fn claim(&self, task: TaskId, meta: &mut Meta) -> Result<(), AgentError> {
        let request = ClaimRequest {
            agent: meta.address().to_owned(),
            check_busy: false,
            lease: Some(self.lease_of(&meta.agent_id)),
        };
        let claimed = match meta.awaited_tree() {
            // The process that makes it records the task there.
            Some(tree) => self.board().claim_in(task, &request, &tree.name)?,
            None => self.board().claim(task, &request)?,
        };
        meta.token = claimed.token;
        reached(fault::SPAWN_CLAIMED);
        Ok(())
    }

    /// Claims a task for a run that has still to be prepared, before others do that for the same
    /// task on other machines. The claim is renewed for the same owner when the run starts.
    pub fn reserve(&self, task: TaskId, who: &str, run: &str) -> Result<Claimed, BoardError> {
        let request = ClaimRequest {
            agent: who.to_owned(),
            check_busy: false,
            lease: Some(self.lease_of(run)),
        };
        self.board().claim(task, &request)
    }

    /// Writes the agent into the roster, before it starts.
    fn enlist(&self, spawn: &Spawn, name: &Name, meta: &Meta) -> Result<(), AgentError> {
        let team = self.roster();
        let run = AgentId::parse(&meta.agent_id);
        match team.roster() {
            Ok(roster) if roster.member(name.as_str()).is_some() => {
                // It was a member before and has ended: the same place, a new run.
                let update = team::MemberUpdate {
                    is_active: Some(true),
                    cwd: Some(meta.cwd.to_string_lossy().into_owned()),
                    mode: spawn.permission_mode.clone(),
                    mode_before_plan: spawn.plan.mode_before_plan.clone(),
                    run,
                    ..team::MemberUpdate::default()
                };
                team.update(name.as_str(), &update)?;
            }
            _ => {
                let member = NewMember {
                    agent_type: spawn.agent_type.clone(),
                    model: spawn.model.clone(),
                    color: spawn.plan.color.clone(),
                    cwd: Some(meta.cwd.to_string_lossy().into_owned()),
                    is_active: true,
                    plan_mode_required: spawn.plan_mode,
                    mode: spawn.permission_mode.clone(),
                    mode_before_plan: spawn.plan.mode_before_plan.clone(),
                    run,
                    ..NewMember::new(name.clone())
                };
                team.join(&member)?;
            }
        }
        Ok(())
    }

    /// Undoes what was done for a run that does not start.
    fn give_up(&self, run: &RunDir, meta: &Meta) {
        let undone = (|| {
            let board = self.board();
            if board.exists() {
                board.unassign_run(&meta.agent_id)?;
            }
            if let Some(tree) = &meta.worktree
                && let Ok(trees) = self.trees()
            {
                // A worktree that was never made does not exist.
                let slug = Slug::new(&tree.name)?;
                trees.settle(&slug)?;
                trees.agent_ended(&slug).ok();
                self.forget_awaited(meta);
            }
            if let (true, Some(name)) = (meta.teammate, &meta.name) {
                self.roster().set_active(name, false).ok();
            }
            self.fleet()
                .left(&meta.agent_id, &meta.life_id(), &meta.usage)?;
            store::tree::delete(run.path())?;
            run.settle()?;
            Ok::<_, AgentError>(())
        })();
        if let Err(error) = undone {
            // The next command finishes it.
            tracing::warn!(%error, "a run that did not start is not cleaned up yet");
        }
    }
}

/// The beginning of a description, in one line.
fn short(text: &str) -> String {
    let line = text.split(['\n', '\r']).next().unwrap_or_default().trim();
    line.chars()
        .filter(|c| !c.is_control())
        .take(MAX_DESCRIPTION)
        .collect()
}
