//! The common parts of the tools that read, write and search files.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::places::{Located, Places};
use super::seen::Seen;
use super::{BoxFuture, Call, Cancel, Tool, ToolOutput, ToolSpec};

/// Called with the directory in which a file was read; its text is added to the result.
pub type FoundBelow = Box<dyn FnMut(&Path) -> Option<String> + Send>;

/// The common state of an agent's file tools: their places, and the files they remember.
pub(super) struct FileTool {
    pub(super) places: Places,
    pub(super) seen: Seen,
    found_below: Mutex<Option<FoundBelow>>,
}

impl fmt::Debug for FileTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileTool")
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}

impl FileTool {
    pub(super) fn new(places: Places, seen: Seen, found_below: Option<FoundBelow>) -> Arc<Self> {
        Arc::new(Self {
            places,
            seen,
            found_below: Mutex::new(found_below),
        })
    }

    /// The instructions that belong to the directory of this file.
    pub(super) fn found_below(&self, located: &Located<'_>) -> Option<String> {
        let mut found = self
            .found_below
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let path = located.path();
        found.as_mut()?(path.parent()?)
    }
}

/// The work of a tool on a thread of its own, because files block.
type Work = fn(&Arc<FileTool>, Value, &Cancel) -> Result<ToolOutput, String>;

/// A tool that works on files.
pub(super) struct OnFiles {
    spec: ToolSpec,
    files: Arc<FileTool>,
    work: Work,
}

impl OnFiles {
    pub(super) fn tool(spec: ToolSpec, files: &Arc<FileTool>, work: Work) -> Arc<dyn Tool> {
        Arc::new(Self {
            spec,
            files: Arc::clone(files),
            work,
        })
    }
}

impl Tool for OnFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, call: &'a Call) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            // Dropping this future ends the search as well.
            let stop = EndOnDrop(call.cancel.child());
            let (files, work, cancel) = (Arc::clone(&self.files), self.work, stop.0.clone());
            let done = tokio::task::spawn_blocking(move || work(&files, input, &cancel)).await;
            match done {
                Ok(Ok(output)) => output,
                Ok(Err(why)) => ToolOutput::error(why),
                Err(_) => ToolOutput::error(format!("{} failed inside ccb.", self.spec.name)),
            }
        })
    }
}

struct EndOnDrop(Cancel);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
