//! Glob: files by their names.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::files::FileTool;
use super::input::Input;
use super::walk::{self, Wanted};
use super::{Cancel, ToolOutput, ToolSpec};

/// The most names a result has.
const MOST: usize = 200;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "Glob".into(),
        description:
            "Finds files by name, such as **/*.rs or src/**/test_*. Newest first; leaves out \
                      what .gitignore names."
                .into(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string" },
                "path": { "type": "string", "description": "directory to search; default: the working directory" },
            },
            "required": ["pattern"],
        }),
        reads_only: true,
    }
}

pub(super) fn glob(
    tool: &Arc<FileTool>,
    input: Value,
    cancel: &Cancel,
) -> Result<ToolOutput, String> {
    let input = Input::new(input, &["pattern", "path"])?;
    let pattern = input.needed("pattern")?;
    let absolute = walk::split(pattern);
    let (dir, pattern) = match &absolute {
        Some((dir, rest)) => (dir.to_string_lossy().into_owned(), rest.as_str()),
        None => (input.text("path")?.unwrap_or(".").to_owned(), pattern),
    };
    let located = tool.places.locate(&dir)?;
    // A pattern with a slash is meant from the directory on, one without at any depth.
    let from_here = pattern.contains('/') || absolute.is_some();
    let anchored = match from_here && !pattern.starts_with("**/") {
        true => format!("/{pattern}"),
        false => pattern.to_owned(),
    };
    let wanted = Wanted {
        glob: Some(&anchored),
        kind: None,
    };
    let mut found: Vec<(SystemTime, String)> = Vec::new();
    let all = walk::files(&located, &wanted, cancel, &mut |below, path| {
        let file = located.read_below(below);
        let time = file.and_then(|file| file.metadata()?.modified());
        if let Ok(time) = time {
            found.push((time, tool.places.shown(path)));
        }
        true
    })?;
    if found.is_empty() {
        return Ok(ToolOutput::ok("No files match."));
    }
    found.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.cmp(y)));
    let count = found.len();
    let names: Vec<String> = found.into_iter().take(MOST).map(|(_, name)| name).collect();
    let mut text = names.join("\n");
    if count > MOST {
        text.push_str(&format!(
            "\n[{MOST} of {count} files; use a narrower pattern or path.]"
        ));
    }
    if !all {
        text.push_str("\n[There are too many files here; not all were looked at.]");
    }
    Ok(ToolOutput::ok(text))
}
