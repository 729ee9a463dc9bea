//! Rejected work: the agent that did it resumes with the feedback, in the same worktree and the
//! same conversation, if that is possible.

use runs::{AgentError, Launched};
use taskboard::{Attempt, Task};

use super::setup::Setup;

impl Setup {
    /// Resumes the agent whose work was rejected. `None` if there is no such agent, or it cannot
    /// resume as it was: then a new agent starts from its work.
    pub(super) fn resume_rejected(&self, task: &Task, check: Option<&str>) -> Option<Launched> {
        let attempts = task.attempts();
        let last = attempts.last()?;
        let run = last.work.as_ref()?.run.as_deref()?;
        match self.try_resuming(task, last, run, check) {
            Ok(launched) => launched,
            Err(error) => {
                tracing::info!(%error, run, "a new agent goes on with the work");
                None
            }
        }
    }

    fn try_resuming(
        &self,
        task: &Task,
        last: &Attempt,
        run: &str,
        check: Option<&str>,
    ) -> Result<Option<Launched>, AgentError> {
        let run = self.agents.run(run);
        let meta = run.meta()?;
        // A command has no conversation, and an agent must pass the check it was started with.
        let prove = meta.launch.prove.as_ref();
        let same = prove.is_some_and(|prove| prove.verify.as_deref() == check);
        let its_own = meta.task_id.as_deref() == Some(task.id.to_string().as_str());
        if !meta.runtime.kind.has_model() || !same || !its_own || meta.worktree.is_none() {
            return Ok(None);
        }
        // Two agents of one name could not be distinguished.
        let named = self.agents.addressed(meta.address())?;
        if let Some(other) = named
            && self.agents.is_alive(&other)?
        {
            return Ok(None);
        }
        let text = format!(
            "Your work on task #{} was sent back. What is wanted:\n\n{}",
            task.id, last.why
        );
        self.agents.leave_message(&meta, &self.parent, text)?;
        let launched = self.agents.resume(&run, !self.quiet)?;
        Ok(launched)
    }
}
