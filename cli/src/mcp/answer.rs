//! What a tool answers: words for a model, JSON for programs.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use store::Failure;

use coordinator::agent::service::Receipt;

/// The answer to a call that did what it was asked.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// The same JSON as `--json` prints, and what clients expect besides.
    pub(crate) json: Value,
    /// Done when it has been written out.
    pub(crate) receipt: Option<Receipt>,
}

impl Answer {
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self {
            text: text.into(),
            json,
            receipt: None,
        }
    }
}

/// The one mapping from what happened to what the client gets.
pub(crate) fn to_result(outcome: Result<Answer, Failure>) -> CallToolResult {
    match outcome {
        Ok(answer) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
            result.structured_content = Some(answer.json);
            result
        }
        Err(error) => {
            let mut text = error.message().to_owned();
            if let Some(hint) = hint(&error) {
                text = format!("{text}. {}", sentence(&hint));
            }
            let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
            result.structured_content = Some(error.to_json());
            result
        }
    }
}

/// What to do next, in words of tools where the command line's would lead astray.
fn hint(error: &Failure) -> Option<String> {
    let text = match error.kind() {
        "task_not_found" => "TaskList shows the tasks there are",
        "already_claimed" => {
            "Leave it to its owner: TaskList shows what is free, SendMessage reaches them"
        }
        "already_resolved" => "TaskUpdate with status \"pending\" opens it again",
        "blocked" => "Do what it waits for first, or take another: TaskList shows both",
        "parked" => {
            "It failed too often: tell the lead; TaskUpdate with status \"pending\" makes it ready"
        }
        "cycle" => "Leave that dependency out",
        "in_worktree" => "Leave it first with ExitWorktree",
        "not_in_worktree" => "EnterWorktree gives you one",
        "has_changes" => {
            "Commit or keep them (action \"keep\"), or set discard_changes to lose them"
        }
        "members_alive" => "Send each a shutdown_request with SendMessage and wait for the answers",
        "team_not_found" => "TeamCreate makes one",
        "not_running" => "SendMessage lets it go on; TaskOutput has its result",
        "no_runtime" | "unknown_runtime" => {
            "Do it yourself, or put it on the board with TaskCreate; a person has to set up what \
             runs agents"
        }
        _ => return error.hint().map(str::to_owned),
    };
    Some(text.to_owned())
}

/// A hint as a sentence of its own.
fn sentence(hint: &str) -> String {
    let mut chars = hint.chars();
    let first: String = chars
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    let end = if hint.ends_with(['.', '?', '!']) {
        ""
    } else {
        "."
    };
    format!("{first}{}{end}", chars.as_str())
}
