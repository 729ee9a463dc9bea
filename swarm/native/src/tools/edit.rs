//! Write and Edit: a file whole, or an exact piece of it.

use std::io;
use std::sync::Arc;

use memchr::memmem;
use serde_json::{Value, json};

use super::files::FileTool;
use super::input::Input;
use super::places::Located;
use super::read::whole;
use super::seen::Known;
use super::{ToolOutput, ToolSpec};

/// The largest file that is edited.
const MAX_EDITED: u64 = 16 * 1024 * 1024;

pub(super) fn write_spec() -> ToolSpec {
    ToolSpec {
        name: "Write".into(),
        description:
            "Writes a whole file, making missing directories. A file that exists must have \
                      been read first. Prefer Edit for changes."
                .into(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "file_path": { "type": "string" },
                "content": { "type": "string" },
            },
            "required": ["file_path", "content"],
        }),
        reads_only: false,
    }
}

pub(super) fn edit_spec() -> ToolSpec {
    ToolSpec {
        name: "Edit".into(),
        description:
            "Replaces old_string by new_string in a file that you have read. old_string must \
                      match exactly, without the line numbers, and only once unless replace_all is \
                      true: add lines around it to make it unique."
                .into(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "file_path": { "type": "string" },
                "old_string": { "type": "string" },
                "new_string": { "type": "string" },
                "replace_all": { "type": "boolean" },
            },
            "required": ["file_path", "old_string", "new_string"],
        }),
        reads_only: false,
    }
}

pub(super) fn write(tool: &Arc<FileTool>, input: Value) -> Result<ToolOutput, String> {
    let input = Input::new(input, &["file_path", "content"])?;
    let path = input.needed("file_path")?;
    let content = input.needed("content")?;
    let located = tool.places.locate(path)?;
    let target = located.target(true)?;
    let failed = |error: io::Error| located.failure("write", &error);
    let real = located.real_target(&target);
    let old = target.current().map_err(failed)?;
    let existed = old.is_some();
    if let Some(old) = old {
        if old.metadata().map_err(failed)?.is_dir() {
            return Err(format!("{} is a directory.", located.path().display()));
        }
        match tool.seen.known(&real, &old).map_err(failed)? {
            Known::AsItIs => {}
            Known::Before => return Err(changed(&located)),
            Known::Never => {
                return Err(format!(
                    "{} exists and you have not read it. Read it first, or use Edit.",
                    located.path().display()
                ));
            }
        }
    }
    let new = target.replace(content.as_bytes()).map_err(failed)?;
    tool.seen.note(&real, &new).map_err(failed)?;
    let verb = if existed { "Replaced" } else { "Created" };
    let lines = content.lines().count();
    Ok(ToolOutput::ok(format!(
        "{verb} {} ({lines} lines).",
        located.path().display()
    )))
}

pub(super) fn edit(tool: &Arc<FileTool>, input: Value) -> Result<ToolOutput, String> {
    let input = Input::new(
        input,
        &["file_path", "old_string", "new_string", "replace_all"],
    )?;
    let path = input.needed("file_path")?;
    let (old, new) = (input.needed("old_string")?, input.needed("new_string")?);
    let every = input.flag("replace_all")?;
    if old == new {
        return Err("old_string and new_string are the same; nothing would change.".into());
    }
    let located = tool.places.locate(path)?;
    let target = located.target(old.is_empty())?;
    let failed = |error: io::Error| located.failure("edit", &error);
    let real = located.real_target(&target);
    let shown = located.path();
    let shown = shown.display();
    let Some(file) = target.current().map_err(failed)? else {
        if old.is_empty() {
            let made = target.replace(new.as_bytes()).map_err(failed)?;
            tool.seen.note(&real, &made).map_err(failed)?;
            return Ok(ToolOutput::ok(format!("Created {shown}.")));
        }
        return Err(format!("{shown} does not exist. Create it with Write."));
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{shown} is not a file."));
    }
    if old.is_empty() {
        return Err("old_string is empty. Give the text to replace, or use Write.".into());
    }
    match tool.seen.known(&real, &file).map_err(failed)? {
        Known::AsItIs => {}
        Known::Before => return Err(changed(&located)),
        Known::Never => return Err(format!("You have not read {shown}. Read it first.")),
    }
    let Some(bytes) = whole(&file, MAX_EDITED).map_err(failed)? else {
        return Err(format!(
            "{shown} is larger than {MAX_EDITED} bytes. Change it with a command in Bash."
        ));
    };
    let (edited, count) = replaced(&bytes, old, new, every).map_err(|why| why.said(&shown))?;
    // Another process may have written between reading and here.
    if tool.seen.known(&real, &file).map_err(failed)? != Known::AsItIs {
        return Err(changed(&located));
    }
    let made = target.replace(&edited).map_err(failed)?;
    tool.seen.note(&real, &made).map_err(failed)?;
    Ok(ToolOutput::ok(match count {
        1 => format!("Edited {shown}."),
        count => format!("Edited {shown}: replaced {count} places."),
    }))
}

fn changed(located: &Located<'_>) -> String {
    format!(
        "{} has changed on disk since you read it. Read it again, then repeat the change.",
        located.path().display()
    )
}

/// The reason why a text was not replaced.
#[derive(Debug, PartialEq, Eq)]
enum NotReplaced {
    Missing,
    Several(usize),
}

impl NotReplaced {
    fn said(&self, path: &dyn std::fmt::Display) -> String {
        match self {
            Self::Missing => format!(
                "old_string was not found in {path}. It must match exactly, with all white space; \
                 read the file again."
            ),
            Self::Several(count) => format!(
                "old_string is in {path} {count} times. Add lines around it until it is unique, or \
                 set replace_all."
            ),
        }
    }
}

/// `bytes` with `old` replaced, and how often. In a file whose lines all end in CRLF, lines of the
/// model's, which end in LF, mean the same.
fn replaced(
    bytes: &[u8],
    old: &str,
    new: &str,
    every: bool,
) -> Result<(Vec<u8>, usize), NotReplaced> {
    let (mut old, mut new) = (old.to_owned(), new.to_owned());
    let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    if memmem::find(bytes, old.as_bytes()).is_none() && ends_in_crlf(bytes) {
        old = crlf(&old);
        new = crlf(&new);
    } else if ends_in_crlf(bytes) {
        new = crlf(&new);
    }
    let places: Vec<usize> = memmem::find_iter(bytes, old.as_bytes()).collect();
    match places.len() {
        0 => return Err(NotReplaced::Missing),
        1 => {}
        _ if every => {}
        count => return Err(NotReplaced::Several(count)),
    }
    let mut edited = Vec::with_capacity(bytes.len() + new.len());
    let mut from = 0;
    for place in &places {
        edited.extend_from_slice(&bytes[from..*place]);
        edited.extend_from_slice(new.as_bytes());
        from = place + old.len();
    }
    edited.extend_from_slice(&bytes[from..]);
    Ok((edited, places.len()))
}

fn ends_in_crlf(bytes: &[u8]) -> bool {
    let mut ends = memchr::memchr_iter(b'\n', bytes).peekable();
    ends.peek().is_some() && ends.all(|at| at > 0 && bytes[at - 1] == b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_replaced_exactly() {
        let edit = |bytes: &[u8], old, new, every| replaced(bytes, old, new, every);
        assert_eq!(edit(b"a b a", "b", "c", false), Ok((b"a c a".to_vec(), 1)));
        assert_eq!(edit(b"a b a", "a", "c", true), Ok((b"c b c".to_vec(), 2)));
        assert_eq!(
            edit(b"a b a", "a", "c", false),
            Err(NotReplaced::Several(2))
        );
        assert_eq!(edit(b"a b a", "x", "c", true), Err(NotReplaced::Missing));
        // Other bytes stay as they are.
        assert_eq!(
            edit(b"\xff\0a", "a", "b", false),
            Ok((b"\xff\0b".to_vec(), 1))
        );
    }

    #[test]
    fn files_with_crlf_keep_it() {
        let edit = |bytes: &[u8], old, new| replaced(bytes, old, new, false).unwrap().0;
        assert_eq!(edit(b"a\r\nb\r\n", "a\nb", "x\ny"), b"x\r\ny\r\n");
        assert_eq!(edit(b"a\r\nb\r\n", "b", "x\ny"), b"a\r\nx\r\ny\r\n");
        assert_eq!(
            edit(b"a\r\nb\n", "b", "x\ny"),
            b"a\r\nx\ny\n",
            "mixed ends stay"
        );
        assert_eq!(edit(b"a\r\nb\r\n", "a\r\nb", "c"), b"c\r\n");
    }
}
