//! Starting an agent: written down first, then its task, its tree, its processes.

use std::path::PathBuf;
use std::time::Duration;

use store::clock::{Clock, SystemClock, rfc3339};
use store::fault::reached;
use store::home::create_private_dir;
use store::name::Name;
use swarm::run::{LaunchPlan, Meta, RunDir, RunState, RuntimeSpec, TreeOf, tmp_dir};
use swarm::{AgentId, NewMember};
use taskboard::{Begin, ClaimRequest, LeaseTerm, TaskId};
use worktrees::{Base, CreateMode, CreateRequest, SetUp, Slug};

use super::agents::Agents;
use super::error::AgentError;
use super::network_ports;
use super::spawn_checks::{check, check_name};
use super::start::Launched;
use crate::binding::Binder;
use crate::fault;

/// How long one who waits sleeps at most until it asks again.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// The longest description.
const MAX_DESCRIPTION: usize = 200;

/// Where an agent works.
#[derive(Debug, Clone)]
pub enum WorksIn {
    /// Here, like everybody else.
    Directory(PathBuf),
    /// In a working tree of its own.
    Worktree {
        /// What the tree starts from.
        base: Base,
        /// What it gets besides its files.
        set_up: SetUp,
    },
}

/// An agent to be started.
#[derive(Debug)]
pub struct Spawn {
    /// What it is told; for a shell, the command.
    pub prompt: String,
    /// In a few words.
    pub description: String,
    /// Its definition.
    pub agent_type: String,
    /// What runs it.
    pub runtime: RuntimeSpec,
    /// A model that was asked for and that its runtime does not know.
    pub dropped_model: Option<String>,
    /// A name it can be addressed by.
    pub name: Option<Name>,
    /// It becomes a member of the team, and lives on when a turn is over.
    pub teammate: bool,
    /// It leads the team, and has the name every lead has.
    pub lead: bool,
    /// It must have its plan approved first.
    pub plan_mode: bool,
    /// It continues its parent's conversation.
    pub fork: bool,
    /// Its model.
    pub model: Option<String>,
    /// What it may do without asking.
    pub permission_mode: Option<String>,
    /// Where it works.
    pub isolation: WorksIn,
    /// The task it is for.
    pub task: Option<TaskId>,
    /// Whoever started it does not wait for its result.
    pub background: bool,
    /// Who is told of its end.
    pub parent: Name,
    /// The tool call that started it.
    pub tool_use_id: Option<String>,
    /// What else its runtime is told.
    pub plan: LaunchPlan,
}

impl Agents {
    /// Starts an agent. When this returns it is under way, and goes on whatever becomes of the
    /// caller.
    pub fn spawn(&self, spawn: &Spawn) -> Result<Launched, AgentError> {
        check(spawn)?;
        self.check_caller()?;
        let running = self.running()?;
        self.check_number(running.len())?;
        if let Some(name) = &spawn.name {
            check_name(name, spawn.lead, &running)?;
        }
        let id = AgentId::random();
        let run = self.run(id.as_str());
        let mut meta = self.describe(spawn, &id);
        let model = spawn.runtime.kind.has_model();
        if model {
            // Nothing is written down for one that cannot start.
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

    /// The same. If nobody may start an agent at the moment, one who waits for the result anyway
    /// waits for that, too, and `told` once why. Nothing is written down until then, so it can be
    /// broken off.
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
            WorksIn::Worktree { .. } => (
                PathBuf::new(),
                // Its name is written down before it is made, so that it is found.
                Some(TreeOf {
                    name: slug,
                    path: String::new(),
                    branch: None,
                    set_up: serde_json::Value::Null,
                    outcome: None,
                }),
            ),
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
        if let WorksIn::Worktree { base, set_up } = &spawn.isolation {
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
            lease: Some(LeaseTerm::Run(meta.agent_id.clone())),
        };
        let claimed = self.board().claim(task, &request)?;
        meta.token = claimed.token;
        reached(fault::SPAWN_CLAIMED);
        Ok(())
    }

    /// Makes the run's tree, or makes it again, and binds its task to it.
    pub(super) fn make_tree(
        &self,
        base: Base,
        set_up: SetUp,
        mode: CreateMode,
        meta: &mut Meta,
    ) -> Result<(), AgentError> {
        let slug = Slug::new(&format!("agent-{}", meta.agent_id))?;
        let trees = self.trees()?;
        let kept = serde_json::to_value(&set_up).unwrap_or_default();
        let hooks = self.hook_source(meta.address(), Some(&meta.agent_id));
        let hooks = hooks.create_tree()?;
        let by_hook = |slug: &Slug| match &hooks {
            Some(hooks) => hooks.create(slug),
            None => Err("there is no hook".into()),
        };
        let request = CreateRequest {
            hook: hooks.is_some().then_some(&by_hook as _),
            base,
            mode,
            agent: Some(meta.agent_id.clone()),
            task: meta
                .task_id
                .as_ref()
                .map(|id| (self.at.list.to_string(), id.clone())),
            set_up,
            ..CreateRequest::new(Some(slug.clone()), &self.at.directory)
        };
        let created = trees.create(&request)?;
        reached(fault::SPAWN_TREE);
        let path = created.entry.path().to_owned();
        meta.worktree = Some(TreeOf {
            name: slug.to_string(),
            path: path.to_string_lossy().into_owned(),
            branch: created.entry.branch.clone(),
            set_up: kept,
            outcome: None,
        });
        meta.cwd = path;
        if let (true, Some(name)) = (meta.teammate, &meta.name) {
            // Whoever deletes the team sees to the trees of its members.
            let path = meta.cwd.to_string_lossy().into_owned();
            let update = swarm::MemberUpdate {
                cwd: Some(path.clone()),
                worktree_path: Some(Some(path)),
                ..swarm::MemberUpdate::default()
            };
            self.roster().update(name, &update)?;
        }
        if let Some(task) = meta.task_id.as_ref().and_then(|id| id.parse().ok()) {
            let board = self.board();
            let binder = Binder {
                board,
                trees: &trees,
            };
            binder.bind(&slug, task, Begin::ByNobody)?;
        }
        Ok(())
    }

    /// Writes the agent into the roster, before it starts.
    fn enlist(&self, spawn: &Spawn, name: &Name, meta: &Meta) -> Result<(), AgentError> {
        let team = self.roster();
        let run = AgentId::parse(&meta.agent_id);
        match team.roster() {
            Ok(roster) if roster.member(name.as_str()).is_some() => {
                // It was a member before and has ended: the same place, a new run.
                let update = swarm::MemberUpdate {
                    is_active: Some(true),
                    cwd: Some(meta.cwd.to_string_lossy().into_owned()),
                    mode: spawn.permission_mode.clone(),
                    mode_before_plan: spawn.plan.mode_before_plan.clone(),
                    run,
                    ..swarm::MemberUpdate::default()
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
                // One that was not made is not there.
                let slug = Slug::new(&tree.name)?;
                trees.settle(&slug)?;
                trees.agent_ended(&slug).ok();
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
