//! One JSON object per event, on standard output.

use coordinator::fanout::{FanoutEvent, Progress};
use serde_json::{Value, json};

use super::Show;
use crate::output::Output;

pub(super) struct Json {
    out: Output,
}

impl Json {
    pub(super) fn new(out: Output) -> Self {
        Self { out }
    }
}

impl Show for Json {
    fn show(&mut self, event: &FanoutEvent, _: &Progress, _: u64) {
        if let Some(value) = to_json(event) {
            // Whoever does not read any more does not stop the run.
            self.out.json(&value).ok();
        }
    }
}

fn to_json(event: &FanoutEvent) -> Option<Value> {
    let mut value = match event {
        FanoutEvent::Planned { tasks, jobs } => {
            let tasks: Vec<Value> = tasks
                .iter()
                .map(|task| json!({"id": task.id, "subject": task.subject, "dependsOn": task.depends_on}))
                .collect();
            json!({"event": "planned", "jobs": jobs, "tasks": tasks})
        }
        FanoutEvent::Started {
            task,
            agent,
            attempt,
        } => {
            json!({"event": "started", "task": task, "agent": agent, "attempt": attempt})
        }
        FanoutEvent::Checking { task } => json!({"event": "checking", "task": task}),
        FanoutEvent::Retrying { task, why } => {
            json!({"event": "retrying", "task": task, "why": why})
        }
        FanoutEvent::Finished { task, outcome } => {
            json!({"event": "finished", "task": task, "outcome": outcome})
        }
        FanoutEvent::Landed {
            task,
            branch,
            commit,
        } => {
            json!({"event": "landed", "task": task, "branch": branch, "commit": commit})
        }
        FanoutEvent::Paused { why } => json!({"event": "paused", "why": why}),
        FanoutEvent::Resumed => json!({"event": "resumed"}),
        FanoutEvent::Note { text } => json!({"event": "note", "text": text}),
        // The command itself ends with a line of its own.
        FanoutEvent::Tick | FanoutEvent::Ended => return None,
    };
    value["ts"] = super::now().into();
    Some(value)
}
