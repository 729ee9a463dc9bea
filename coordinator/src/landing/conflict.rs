//! Conflicts that become tasks of their own.

use taskboard::{NewTask, Task, TaskFacts, TaskId};
use worktrees::Slug;

use super::lander::{Lander, Landings};
use crate::run::AgentError;

/// Under which a task to solve a conflict says whose.
const CONFLICT_OF: &str = "conflictOf";

/// The tree whose conflict this task is to solve.
fn conflict_of(task: &Task) -> Option<&str> {
    task.metadata.as_ref()?.get(CONFLICT_OF)?.as_str()
}

/// Whether the task was made to solve a conflict.
pub(crate) fn is_conflict(task: &Task) -> bool {
    conflict_of(task).is_some()
}

impl Lander<'_> {
    /// A task to bring two pieces of work together, made once.
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
