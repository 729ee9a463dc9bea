//! Conflicts that become tasks of their own.

use runs::AgentError;
use taskboard::{Caller, NewTask, Status, Task, TaskFacts, TaskId, Update};
use worktrees::{Slug, Trees};

use super::lander::{Lander, Landings};

/// Metadata key: the worktree whose conflict this task resolves.
const CONFLICT_OF: &str = "conflictOf";

/// The worktree whose conflict this task resolves.
fn conflict_of(task: &Task) -> Option<&str> {
    task.metadata.as_ref()?.get(CONFLICT_OF)?.as_str()
}

/// True if the task was made to resolve a conflict.
pub fn is_conflict(task: &Task) -> bool {
    conflict_of(task).is_some()
}

/// The tasks whose work landed since `base` and changed one of these files: the other side of a
/// conflict. `#3` for a task of the same list.
pub fn rivals(files: &[String], base: &str, list: &str, trees: &Trees) -> Vec<String> {
    let landings = trees.landings().unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for landing in landings.iter().rev().filter(|landing| landing.stands()) {
        let Some(task) = &landing.task else {
            continue;
        };
        // The base contains everything that landed before it.
        if trees.contains(base, &landing.commit).unwrap_or(true) {
            break;
        }
        let changed = trees.changed_paths(&landing.from, &landing.commit);
        let touches = changed
            .unwrap_or_default()
            .iter()
            .any(|path| files.contains(path));
        let name = match task.rsplit_once('#') {
            Some((of, id)) if of == list => format!("#{id}"),
            _ => task.clone(),
        };
        if touches && !found.contains(&name) {
            found.push(name);
        }
    }
    found.reverse();
    found
}

impl Lander<'_> {
    /// The work of this worktree landed: a conflict task for it that has not begun is completed.
    pub(super) fn conflict_is_over(&self, slug: &Slug) -> Result<(), AgentError> {
        let board = self.agents.board();
        let key = slug.to_string();
        let snapshot = board.snapshot()?;
        let open = snapshot.tasks().find(|task| {
            let free = task.status == Status::Pending && task.owner.is_none();
            free && conflict_of(task) == Some(key.as_str())
        });
        let Some(task) = open else {
            return Ok(());
        };
        let update = Update {
            status: Some(Status::Completed),
            ..Update::default()
        };
        let caller = Caller {
            force: true,
            ..Caller::new("engine".to_owned())
        };
        board.update(task.id, &update, &caller, None)?;
        Ok(())
    }

    /// Makes a task to combine two pieces of work, once.
    pub(super) fn conflict_task(
        &self,
        task: &Task,
        slug: &Slug,
        files: &[String],
        landings: &Landings,
    ) -> Result<TaskId, AgentError> {
        let key = format!("{slug}");
        let snapshot = self.agents.board().snapshot()?;
        let made = snapshot
            .tasks()
            .find(|other| conflict_of(other) == Some(key.as_str()));
        if let Some(made) = made {
            return Ok(made.id);
        }
        let branch = slug.branch();
        let into = &landings.into;
        let description = format!(
            "Task #{} (\"{}\") is done on branch {branch}, but {into} has changed the same \
             lines since. Both sides are right by themselves; what is wanted is a result that \
             does what both were meant to do.\n\nFiles:\n{}\n\nIn your working tree, which is \
             at {into}, run `git merge {branch}`, resolve the conflicts, and commit. Look at \
             both sides first: `git log -p {into}..{branch}` and `git log -p {branch}..{into}`. \
             Do not drop either.",
            task.id,
            task.subject,
            files
                .iter()
                .map(|file| format!("- {file}"))
                .collect::<Vec<_>>()
                .join("\n"),
        );
        let facts = TaskFacts {
            paths: Some(files.to_vec()),
            priority: Some(task.priority().saturating_add(1)),
            verify: self.agents.board().check_of(task)?.map(Some),
            ..TaskFacts::default()
        };
        let mut metadata = facts.into_metadata();
        metadata.insert(CONFLICT_OF.into(), key.into());
        let new = NewTask {
            subject: format!("Bring {branch} and {into} together"),
            description,
            metadata,
            ..NewTask::default()
        };
        let created = self.agents.board().create(&[new], None)?;
        let first = created.first().map(|task| task.id);
        first.ok_or_else(|| AgentError::Invalid("the conflict's task was not created".into()))
    }
}
