//! The questions of Codex for permission, and the answers it expects.

use serde_json::{Value, json};

use super::items::Items;
use crate::tools::OWN_SERVER;

/// A question that waits for an answer.
#[derive(Debug)]
pub(super) struct Question {
    id: Value,
    form: Form,
}

/// In which form it wants the answer.
#[derive(Debug)]
enum Form {
    /// Accept or decline.
    Decision,
    /// The same, for a tool of an MCP server.
    Elicitation,
    /// The permissions it gets.
    Permissions(Value),
}

/// The action for a request of Codex.
#[derive(Debug)]
pub(super) enum Asked {
    /// Ask the host.
    Host {
        question: Question,
        tool: String,
        input: Value,
    },
    /// Answer at once.
    Answer(Value),
    /// We do not do this.
    Unknown,
}

/// The question in `method`. `own_tools`: ours are among the servers and need no permission.
pub(super) fn asked(
    id: &Value,
    method: &str,
    params: &Value,
    items: &Items,
    own_tools: bool,
) -> Asked {
    let question = |form| Question {
        id: id.clone(),
        form,
    };
    match method {
        "item/commandExecution/requestApproval" => Asked::Host {
            question: question(Form::Decision),
            tool: "shell".into(),
            input: json!({
                "command": params["command"],
                "cwd": params["cwd"],
                "reason": params["reason"],
            }),
        },
        "item/fileChange/requestApproval" => {
            let item = params["itemId"].as_str().unwrap_or_default();
            let known = items.find(item);
            Asked::Host {
                question: question(Form::Decision),
                tool: known.map_or_else(|| "apply_patch".into(), |known| known.name.clone()),
                input: known.map_or(Value::Null, |known| known.input.clone()),
            }
        }
        "item/permissions/requestApproval" => Asked::Host {
            question: question(Form::Permissions(params["permissions"].clone())),
            tool: "permissions".into(),
            input: params["permissions"].clone(),
        },
        "mcpServer/elicitation/request" => {
            let server = params["serverName"].as_str().unwrap_or_default();
            if params["_meta"]["codex_approval_kind"] != "mcp_tool_call" {
                // A form for a person.
                return Asked::Answer(json!({ "action": "decline" }));
            }
            if own_tools && server == OWN_SERVER {
                return Asked::Answer(json!({ "action": "accept", "content": {} }));
            }
            let (tool, input) = match items.of_server(server) {
                Some((tool, input)) => (tool.clone(), input.clone()),
                None => (
                    format!("mcp__{server}"),
                    params["_meta"]["tool_params"].clone(),
                ),
            };
            Asked::Host {
                question: question(Form::Elicitation),
                tool,
                input,
            }
        }
        "item/tool/requestUserInput" => Asked::Answer(json!({ "answers": {} })),
        _ => Asked::Unknown,
    }
}

impl Question {
    /// The id of the question.
    pub(super) fn id(&self) -> &Value {
        &self.id
    }

    /// The answer, as it is wanted.
    pub(super) fn answer(&self, allow: bool) -> Value {
        match (&self.form, allow) {
            (Form::Decision, true) => json!({ "decision": "accept" }),
            (Form::Decision, false) => json!({ "decision": "decline" }),
            (Form::Elicitation, true) => json!({ "action": "accept", "content": {} }),
            (Form::Elicitation, false) => json!({ "action": "decline" }),
            (Form::Permissions(wanted), true) => json!({ "permissions": wanted }),
            (Form::Permissions(_), false) => json!({ "permissions": {} }),
        }
    }
}
