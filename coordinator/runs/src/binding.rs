//! A task and the working tree it is done in name each other.
//!
//! The board is the truth: it is changed first, because it has rules that can refuse, and a
//! crash in between leaves a tree that names the wrong task or none. [`Binder::reconcile`]
//! brings such
//! trees in line; every command here does so first.

use store::{Category, Explain, Facts};
use taskboard::{
    Begin, Board, BoardError, Caller, Completed, Hooks, Task, TaskId, TaskResult, Veto,
};
use worktrees::{Entry, EventTask, RemoveRequest, Removed, Slug, TreeError, Trees};

/// What the board or the trees said.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BindingError {
    /// The board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The trees.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A tree that is for no task.
    #[error("worktree {name:?} is bound to no task")]
    NoTask { name: String },
}

impl Explain for BindingError {
    fn facts(&self) -> Facts {
        match self {
            Self::Board(error) => error.facts(),
            Self::Tree(error) => error.facts(),
            Self::NoTask { .. } => Facts::new(Category::NotFound, "no_task")
                .hint("`ccb worktree bind NAME ID` binds one"),
        }
    }
}

/// Both sides of one repository.
#[derive(Debug, Clone, Copy)]
pub struct Binder<'a> {
    /// The tasks.
    pub board: &'a Board,
    /// The trees.
    pub trees: &'a Trees,
}

/// A tree that was removed together with its task's completion.
#[derive(Debug)]
pub struct Finished {
    /// The tree.
    pub removed: Removed,
    /// The task.
    pub completed: Completed,
}

impl Binder<'_> {
    /// Binds task `id` to the tree, and starts it as `begin` says. What either of them was bound
    /// to before is unbound.
    pub fn bind(
        &self,
        slug: &Slug,
        id: TaskId,
        begin: Begin<'_>,
    ) -> Result<(Entry, Task), BindingError> {
        let before = self.trees.get(slug)?;
        let task = self.board.bind_worktree(id, slug.as_str(), begin)?;
        if let Some(other) = self.task_of(&before).filter(|other| *other != id) {
            self.forget(other, slug)?;
        }
        let entry = self.point(slug, Some(id))?;
        // One that was made for it said so when it was made.
        if self.task_of(&before) != Some(id) {
            self.trees.task_bound(&entry, event_task(&task));
        }
        Ok((entry, task))
    }

    /// Unbinds the tree and its task from each other. The task stays as far as it is.
    pub fn unbind(&self, slug: &Slug) -> Result<(Entry, Task), BindingError> {
        let entry = self.trees.get(slug)?;
        let id = self.task_of(&entry).ok_or_else(|| BindingError::NoTask {
            name: slug.to_string(),
        })?;
        let task = self.board.unbind_worktree(id, slug.as_str())?;
        let entry = self.point(slug, None)?;
        self.trees.task_unbound(&entry, event_task(&task));
        Ok((entry, task))
    }

    /// Removes the tree and completes its task, or does neither.
    ///
    /// First everything that can say no is asked: the board's rules, the tree's changes, then
    /// `hooks`, which may prove that the task is done. Then the tree goes, then the task is
    /// completed. If somebody got in between, the tree is brought back.
    pub fn remove_and_complete(
        &self,
        slug: &Slug,
        request: &RemoveRequest<'_>,
        caller: &Caller,
        hooks: Option<&dyn Hooks>,
    ) -> Result<Finished, BindingError> {
        let entry = self.trees.get(slug)?;
        let id = self.task_of(&entry).ok_or_else(|| BindingError::NoTask {
            name: slug.to_string(),
        })?;
        let shown = self.board.may_complete(id, caller)?;
        self.trees.check_remove(slug, request.discard)?;
        let proof = match hooks {
            Some(hooks) => hooks.before_complete(&shown).map_err(BoardError::from)?,
            None => None,
        };
        let removed = self.trees.remove(slug, request)?;
        let proven = Proven { shown, proof };
        let completed = match self.board.complete(id, caller, Some(&proven)) {
            Ok(completed) => completed,
            Err(error) => {
                if removed.undoable {
                    self.trees.undo(slug)?;
                }
                return Err(error.into());
            }
        };
        let task = self.board.unbind_worktree(id, slug.as_str())?;
        self.trees.forget_task(&removed.entry)?;
        self.trees.task_completed(&removed.entry, event_task(&task));
        Ok(Finished {
            removed,
            completed: Completed { task, ..completed },
        })
    }

    /// Makes every tree name the task that names it, and no other.
    pub fn reconcile(&self) -> Result<(), BindingError> {
        let trees = self.trees.list()?;
        if trees.iter().all(|entry| !entry.is_live()) {
            return Ok(());
        }
        let snapshot = self.board.snapshot()?;
        for entry in trees.iter().filter(|entry| entry.is_live()) {
            // A tree of another list's task is none of our business.
            let other_list = |list: &String| list != self.board.name().as_str();
            if entry.task_list.as_ref().is_some_and(other_list) {
                continue;
            }
            let naming = |task: &&Task| task.worktree() == Some(entry.name.as_str());
            let task = snapshot.tasks().find(naming).map(|task| task.id);
            // What cannot be read may well name it.
            let unreadable = self
                .task_of(entry)
                .is_some_and(|id| snapshot.unreadable().contains_key(&id));
            if task != self.task_of(entry) && !unreadable {
                let slug = Slug::new(&entry.name)?;
                self.trees.set_task(&slug, self.name(task))?;
            }
        }
        Ok(())
    }

    /// Makes the tree, and no other, name the task.
    fn point(&self, slug: &Slug, id: Option<TaskId>) -> Result<Entry, TreeError> {
        self.trees.set_task(slug, self.name(id))
    }

    fn name(&self, id: Option<TaskId>) -> Option<(String, String)> {
        id.map(|id| (id.to_string(), self.board.name().to_string()))
    }

    fn forget(&self, id: TaskId, slug: &Slug) -> Result<(), BindingError> {
        match self.board.unbind_worktree(id, slug.as_str()) {
            Ok(_) | Err(BoardError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn task_of(&self, entry: &Entry) -> Option<TaskId> {
        let ours = |list: &String| list == self.board.name().as_str();
        if !entry.task_list.as_ref().is_none_or(ours) {
            return None;
        }
        entry.task_id.as_ref()?.parse().ok()
    }
}

fn event_task(task: &Task) -> EventTask {
    EventTask {
        id: task.id.to_string(),
        status: Some(task.status.to_string()),
    }
}

/// Lets a completion through that was proven for exactly this task.
#[derive(Debug)]
struct Proven {
    shown: Task,
    proof: Option<TaskResult>,
}

impl Hooks for Proven {
    fn before_complete(&self, task: &Task) -> Result<Option<TaskResult>, Veto> {
        if *task == self.shown {
            return Ok(self.proof.clone());
        }
        Err(Veto::new(
            "the task changed while its worktree was being removed",
        ))
    }
}
