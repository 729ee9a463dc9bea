//! A tool's answer: words for a model, and JSON for a program that asks for it.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use store::Failure;

use coordinator::agent::service::Receipt;

use super::audience::{Audience, fit};

/// The answer to a successful call.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// The place where the text can be read if it is too long for the client.
    pub(crate) whole: String,
    /// The same JSON as `--json` prints, and what clients expect besides.
    pub(crate) json: Value,
    /// Runs after the answer is written out.
    pub(crate) receipt: Option<Receipt>,
}

impl Answer {
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self {
            text: text.into(),
            whole: "the middle is left out".into(),
            json,
            receipt: None,
        }
    }

    /// Names the command that prints the whole text.
    pub(crate) fn printed_by(self, command: &str) -> Self {
        Self {
            whole: format!("`{command}` prints all of it"),
            ..self
        }
    }
}

/// The only mapping from an outcome to a result for the client.
pub(crate) fn to_result(outcome: Result<Answer, Failure>, audience: &Audience) -> CallToolResult {
    let block = |text, whole: &str| {
        let text = fit(text, audience.room_for_words(), whole);
        vec![ContentBlock::text(text)]
    };
    let (mut result, json) = match outcome {
        Ok(answer) => {
            let block = block(answer.text, &answer.whole);
            (CallToolResult::success(block), answer.json)
        }
        Err(error) => {
            let mut text = error.message().to_owned();
            if let Some(hint) = hint(&error) {
                text = format!("{text}. {}", sentence(&hint));
            }
            let block = block(text, "the middle is left out");
            (CallToolResult::error(block), error.to_json())
        }
    };
    if audience.wants_json() {
        result.structured_content = Some(json);
    }
    result
}

/// The next step, in words of tools where the command line's would mislead.
fn hint(error: &Failure) -> Option<String> {
    let text = match error.kind() {
        "task_not_found" => "TaskList shows the tasks there are",
        "already_claimed" => {
            "Leave it to its owner: TaskList shows what is free, SendMessage reaches them"
        }
        "agent_busy" => {
            "Finish that first with status \"completed\", or give it back with status \"pending\""
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
        "worktree_not_found" => "Worktrees with action \"list\" shows those there are",
        "members_alive" => "Send each a shutdown_request with SendMessage and wait for the answers",
        "team_not_found" => "TeamCreate makes one",
        "not_running" => "SendMessage resumes it; TaskOutput has its result",
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
