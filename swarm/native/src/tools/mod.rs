//! The tools of a native agent: files, search, commands, skills, and the tools of MCP servers.
//!
//! Names and inputs are those that users of Claude Code know. A call answers with text, whatever a
//! model sends: an unknown tool, input of the wrong shape or a file that does not exist is a result
//! that says so, never a failure of the loop. Every result is bounded where it is made.

mod bash;
mod bound;
mod cancel;
mod captured;
mod edit;
mod files;
mod glob;
mod grep;
mod input;
mod places;
mod process;
mod read;
mod seen;
#[cfg(test)]
mod tests;
mod toolbox;
mod walk;
mod web_fetch;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

pub use bound::{MAX_RESULT, bounded};
pub use cancel::Cancel;
pub use files::FoundBelow;
pub use seen::Seen;
pub use toolbox::{Toolbox, ToolboxOptions};
pub(super) use web_fetch::plain_text;

/// A call that runs.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The model's view of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that calls use.
    pub name: String,
    /// The occasions to use it, for the model. Short: it is part of every request.
    pub description: String,
    /// The JSON schema of its input.
    pub input_schema: Value,
    /// True if it changes nothing, so that calls of it may run beside each other.
    pub reads_only: bool,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// For the model; at most [`MAX_RESULT`] bytes and a line that says what was cut.
    pub text: String,
    /// True if the call failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// The call did what was asked.
    pub fn ok(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

    /// The call did not; `why` says what to do instead.
    pub fn error(why: impl Into<String>) -> Self {
        Self {
            text: why.into(),
            is_error: true,
        }
    }
}

/// Called with the tool's present activity.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// One call of a tool.
#[derive(Clone, Default)]
pub struct Call {
    /// The id the model gave it.
    pub id: String,
    /// Cancelling it ends the tool and the processes it started for this call.
    pub cancel: Cancel,
    /// Called now and then with the tool's present activity.
    pub progress: Option<Progress>,
}

impl Call {
    /// A call without cancellation and progress.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Says what the tool is doing.
    pub fn say(&self, what: &str) {
        if let Some(progress) = &self.progress {
            progress(what);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut call = f.debug_struct("Call");
        call.field("id", &self.id).field("cancel", &self.cancel);
        call.finish_non_exhaustive()
    }
}

/// A tool that a model can call.
pub trait Tool: Send + Sync {
    /// The model's view of it; the same for the life of the tool.
    fn spec(&self) -> &ToolSpec;

    /// Does it. Dropping the future ends it as cancelling does.
    fn call<'a>(&'a self, input: Value, call: &'a Call) -> BoxFuture<'a, ToolOutput>;
}
