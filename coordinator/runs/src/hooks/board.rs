//! `TaskCreated` and `TaskCompleted`: asked before the board changes, outside every lock.

use serde_json::json;
use swarm::hooks::HookEvent;
use taskboard::{Hooks, Task, TaskResult, Veto};

use super::{HookSource, Surrounding, not_trusted_words};

/// The hooks' say on tasks.
#[derive(Debug, Clone)]
pub struct BoardHooks {
    source: HookSource,
}

impl HookSource {
    /// The hooks to ask before a task is created; `None` if there are none.
    pub fn before_create(&self) -> Option<BoardHooks> {
        self.asked(HookEvent::TaskCreated)
    }

    /// The hooks to ask before a task is completed; `None` if there are none.
    pub fn before_complete(&self) -> Option<BoardHooks> {
        self.asked(HookEvent::TaskCompleted)
    }

    /// `None` if there is no hook to ask: then the board has one step less to take.
    fn asked(&self, event: HookEvent) -> Option<BoardHooks> {
        let source = self.clone();
        match self.choose(event) {
            Ok((_, chosen)) => {
                if !chosen.untrusted.is_empty() {
                    tracing::warn!("{}", not_trusted_words(&chosen.untrusted));
                }
                (!chosen.run.is_empty()).then_some(BoardHooks { source })
            }
            // The call of the hooks reports the error.
            Err(_) => Some(BoardHooks { source }),
        }
    }
}

impl BoardHooks {
    fn ask(&self, event: HookEvent, task: &Task) -> Result<(), Veto> {
        let unknown = |reason: String| Veto {
            reason,
            bad_settings: true,
        };
        let refused = |reason: String| Veto::new(reason);
        let (around, chosen) = self.source.choose(event).map_err(unknown)?;
        if chosen.run.is_empty() {
            return Ok(());
        }
        let input = self.input(&around, task);
        let outcome = self.source.run(event, chosen.run, input).map_err(refused)?;
        match outcome.block {
            Some((_, reason)) => Err(refused(reason)),
            None => Ok(()),
        }
    }

    fn input(&self, around: &Surrounding, task: &Task) -> swarm::hooks::HookInput {
        let mut input = self.source.input(around);
        input.task_id = Some(task.id.to_string());
        input.task_subject = Some(task.subject.clone());
        input.task_description = Some(task.description.clone());
        let who = task.owner.as_deref().unwrap_or(&self.source.agent);
        input.teammate_name = Some(who.to_owned());
        input.more.insert("task".into(), json!(task.to_json()));
        input
    }
}

impl Hooks for BoardHooks {
    fn before_create(&self, task: &Task) -> Result<(), Veto> {
        self.ask(HookEvent::TaskCreated, task)
    }

    fn before_complete(&self, task: &Task) -> Result<Option<TaskResult>, Veto> {
        self.ask(HookEvent::TaskCompleted, task)?;
        Ok(None)
    }
}
