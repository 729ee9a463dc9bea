//! A server's tool as one of the agent's.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use sha2::{Digest, Sha256};
use swarm::tools::OWN_SERVER;

use super::super::tools::{BoxFuture, Call, Tool, ToolOutput, ToolSpec};
use super::connection::Connection;

/// The longest name that every service takes.
const MAX_NAME: usize = 64;
/// Maximum length of a description that a model gets: it is part of every request.
const MAX_DESCRIPTION: usize = 2048;
/// Of ours: those that change nothing, and those that wait for agents, of which several may be at
/// work.
const OWN_BESIDE_OTHERS: [&str; 4] = ["Agent", "TaskGet", "TaskList", "TaskOutput"];

/// All tools of a server.
pub(super) fn tools_of(connection: &Arc<Connection>) -> Vec<Arc<dyn Tool>> {
    let mut seen = HashSet::new();
    let own = connection.name() == OWN_SERVER;
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for tool in connection.tools() {
        let name = full_name(connection.name(), &tool.name);
        if !seen.insert(name.clone()) {
            continue;
        }
        let hint = tool.annotations.as_ref();
        let hint = hint.and_then(|hints| hints.read_only_hint);
        let reads_only = match own {
            true => OWN_BESIDE_OTHERS.contains(&&*tool.name),
            false => hint == Some(true),
        };
        let mut schema = Value::Object((*tool.input_schema).clone());
        if let Some(schema) = schema.as_object_mut() {
            schema.shift_remove("$schema");
            schema.entry("type").or_insert_with(|| "object".into());
        }
        let description = tool.description.as_deref().unwrap_or_default();
        let end = description.floor_char_boundary(MAX_DESCRIPTION);
        tools.push(Arc::new(ServerTool {
            connection: Arc::clone(connection),
            plain: tool.name.to_string(),
            spec: ToolSpec {
                name,
                description: description[..end].to_owned(),
                input_schema: schema,
                reads_only,
            },
        }));
    }
    tools
}

/// `mcp__SERVER__TOOL`, in letters and of a length that every service takes.
fn full_name(server: &str, tool: &str) -> String {
    let whole = format!("mcp__{server}__{tool}");
    let plain = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
        true => c,
        false => '_',
    };
    let name: String = whole.chars().map(plain).collect();
    if name.len() <= MAX_NAME {
        return name;
    }
    // Two long names that begin alike stay apart.
    let hash = Sha256::digest(whole.as_bytes());
    let hash: String = hash.iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("{}_{hash}", &name[..MAX_NAME - 9])
}

#[derive(Debug)]
struct ServerTool {
    connection: Arc<Connection>,
    /// The name that the server uses.
    plain: String,
    spec: ToolSpec,
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, call: &'a Call) -> BoxFuture<'a, ToolOutput> {
        Box::pin(self.connection.call(&self.plain, input, call))
    }
}

/// The text of a result, and the kinds of its other parts.
pub(super) fn text_of(result: &CallToolResult) -> String {
    let blocks = result.content.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image ({}), not shown]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a sound ({}), not played]", audio.mime_type),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, .. } => {
                format!("[a file, not shown: {uri}]")
            }
            _ => "[a file, not shown]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("[see {}]", link.uri),
        _ => "[something that cannot be shown]".into(),
    });
    let blocks: Vec<String> = blocks.collect();
    match (blocks.is_empty(), &result.structured_content) {
        (true, Some(json)) => json.to_string(),
        (true, None) => "(no output)".into(),
        (false, _) => blocks.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_letters_and_of_a_length_that_every_service_takes() {
        assert_eq!(full_name("db", "query"), "mcp__db__query");
        assert_eq!(full_name("a.b c", "x/y"), "mcp__a_b_c__x_y");
        let long = |end: &str| full_name("server", &format!("{}{end}", "t".repeat(100)));
        assert_eq!(long("a").len(), MAX_NAME);
        assert_ne!(long("a"), long("b"));
        assert_eq!(long("a"), long("a"));
    }
}
