//! The worktree of a run: made by the process that starts the agent, or by its host.

use store::fault::reached;
use swarm::run::{Meta, RunDir, TreeOf};
use taskboard::{Begin, TaskId};
use worktrees::{Base, CreateMode, CreateRequest, Created, Lease, SetUp, Slug, Trees};

use super::agents::Agents;
use super::error::AgentError;
use crate::binding::Binder;
use crate::fault;

impl Agents {
    /// Makes the run's worktree, or makes it again, and binds its task to it.
    pub(super) fn make_tree(
        &self,
        base: Base,
        set_up: SetUp,
        mode: CreateMode,
        meta: &mut Meta,
    ) -> Result<(), AgentError> {
        let trees = self.trees()?;
        self.create_tree(&trees, (base, mode), set_up, Use::Later, meta)?;
        if let (true, Some(name)) = (meta.teammate, &meta.name) {
            // The deletion of a team removes the worktrees of its members.
            let path = meta.cwd.to_string_lossy().into_owned();
            let update = team::MemberUpdate {
                cwd: Some(path.clone()),
                worktree_path: Some(Some(path)),
                ..team::MemberUpdate::default()
            };
            self.roster().update(name, &update)?;
        }
        if let Some(task) = task_of(meta) {
            let board = self.board();
            let binder = Binder {
                board,
                trees: &trees,
            };
            binder.bind(&slug_of(meta)?, task, Begin::ByNobody)?;
        }
        Ok(())
    }

    /// Makes the worktree the run waits for, if it does, and holds it. The task has named it since
    /// the run claimed it, so that nothing is left to bind.
    pub(super) fn make_awaited_tree(
        &self,
        run: &RunDir,
        meta: &mut Meta,
    ) -> Result<Option<Lease>, AgentError> {
        let Some(tree) = meta.awaited_tree() else {
            return Ok(None);
        };
        let set_up = serde_json::from_value(tree.set_up.clone()).unwrap_or_default();
        let base = Base::Given(tree.make_from.clone().unwrap_or_default());
        // A process that is started again may find what the one before it made.
        let mode = match meta.restarts {
            0 => CreateMode::Exclusive,
            _ => CreateMode::Resume,
        };
        let created = self.create_tree(&self.trees()?, (base, mode), set_up, Use::Now, meta)?;
        run.write_meta(meta)?;
        Ok(created.lease)
    }

    /// Takes the name of a worktree that was never made off the run's task.
    pub(super) fn forget_awaited(&self, meta: &Meta) {
        let (Some(tree), Some(task)) = (&meta.worktree, task_of(meta)) else {
            return;
        };
        let board = self.board();
        let named = |task: taskboard::Task| task.worktree() == Some(tree.name.as_str());
        if board.get(task).is_ok_and(named)
            && let Err(error) = board.unbind_worktree(task, &tree.name)
        {
            tracing::info!(%error, "the task names a worktree that is not there");
        }
    }

    fn create_tree(
        &self,
        trees: &Trees,
        (base, mode): (Base, CreateMode),
        set_up: SetUp,
        used: Use,
        meta: &mut Meta,
    ) -> Result<Created, AgentError> {
        let slug = slug_of(meta)?;
        let kept = serde_json::to_value(&set_up).unwrap_or_default();
        let hooks = self.hook_source(meta.address(), Some(&meta.agent_id));
        let hooks = hooks.create_tree()?;
        let by_hook = |slug: &Slug| match &hooks {
            Some(hooks) => hooks.create(slug),
            None => Err("there is no hook".into()),
        };
        let list = self.at.list.to_string();
        let task = meta.task_id.clone();
        let request = CreateRequest {
            hook: hooks.is_some().then_some(&by_hook as _),
            base,
            mode,
            agent: Some(meta.agent_id.clone()),
            bound_to: match used {
                Use::Now => task.clone().map(|id| (id, list.clone())),
                Use::Later => None,
            },
            task: task.map(|id| (list, id)),
            set_up,
            hold: used == Use::Now,
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
            make_from: None,
            outcome: None,
        });
        meta.cwd = path;
        Ok(created)
    }
}

/// Says if the process that makes a worktree is the one that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is held from the start, and its task names it already.
    Now,
    /// Its task is bound to it when it exists; another process will hold it.
    Later,
}

fn slug_of(meta: &Meta) -> Result<Slug, AgentError> {
    Ok(Slug::new(&format!("agent-{}", meta.agent_id))?)
}

fn task_of(meta: &Meta) -> Option<TaskId> {
    meta.task_id.as_ref()?.parse().ok()
}
