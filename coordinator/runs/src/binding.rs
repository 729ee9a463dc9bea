//! A task and the worktree it is done in name each other.
//!
//! The board is the truth: it is changed first, because it has rules that can refuse, and a crash
//! in between leaves a worktree that names the wrong task or none. [`Binder::reconcile`] brings
//! such worktrees in line; every command here does so first.

use store::{Category, Explain, Facts};
use taskboard::{
    Begin, Board, BoardError, Caller, Completed, Hooks, Task, TaskId, TaskResult, Veto,
};
use worktrees::{Entry, EventTask, RemoveRequest, Removed, Slug, TreeError, Trees};

/// An error of the board or of the worktrees.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BindingError {
    /// An error of the board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// An error of the worktrees.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A worktree that is for no task.
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
    /// The board with the tasks.
    pub board: &'a Board,
    /// The repository's worktrees.
    pub trees: &'a Trees,
}

/// A worktree that was removed together with its task's completion.
#[derive(Debug)]
pub struct Finished {
    /// The removed worktree.
    pub removed: Removed,
    /// The completed task.
    pub completed: Completed,
}

impl Binder<'_> {
    /// Binds task `id` to the worktree, and starts it as `begin` says. ccb unbinds what either of
    /// them was bound to before.
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
        // A worktree made for the task names it since it was made.
        if self.task_of(&before) != Some(id) {
            self.trees.task_bound(&entry, event_task(&task));
        }
        Ok((entry, task))
    }

    /// Unbinds the worktree and its task from each other. The task stays as far as it is.
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

    /// Removes the worktree and completes its task, or does neither.
    ///
    /// First ccb asks everything that can refuse: the board's rules, the worktree's changes, then
    /// `hooks`, which may prove that the task is done. Then it removes the worktree, then it
    /// completes the task. If another change got in between, it restores the worktree.
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

    /// Makes every worktree name the task that names it, and no other.
    pub fn reconcile(&self) -> Result<(), BindingError> {
        let trees = self.trees.list()?;
        if trees.iter().all(|entry| !entry.is_live()) {
            return Ok(());
        }
        let snapshot = self.board.snapshot()?;
        for entry in trees.iter().filter(|entry| entry.is_live()) {
            // A worktree of another list's task does not concern this board.
            let other_list = |list: &String| list != self.board.name().as_str();
            if entry.task_list.as_ref().is_some_and(other_list) {
                continue;
            }
            let naming = |task: &&Task| task.worktree() == Some(entry.name.as_str());
            let task = snapshot.tasks().find(naming).map(|task| task.id);
            // An unreadable task may well name the worktree.
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

    /// Makes the worktree, and no other, name the task.
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
