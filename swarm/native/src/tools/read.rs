//! Read: a part of a file, with line numbers.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use serde_json::{Value, json};

use super::files::FileTool;
use super::input::Input;
use super::{Cancel, MAX_RESULT, ToolOutput, ToolSpec};

/// Lines of one call where the model does not say.
const LINES: u64 = 2000;
/// Maximum bytes of one line.
const LINE: usize = 2000;
/// Bytes that are read to tell text from other files.
const START: usize = 8192;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "Read".into(),
        description: format!(
            "Reads a text file, with line numbers. At most {LINES} lines at once: use offset (first \
             line, from 1) and limit for more. Read a file before you edit it."
        ),
        input_schema: json!({
            "type": "object",
            "properties": {
                "file_path": { "type": "string" },
                "offset": { "type": "integer" },
                "limit": { "type": "integer" },
            },
            "required": ["file_path"],
        }),
        reads_only: true,
    }
}

pub(super) fn read(
    tool: &Arc<FileTool>,
    input: Value,
    cancel: &Cancel,
) -> Result<ToolOutput, String> {
    let input = Input::new(input, &["file_path", "offset", "limit"])?;
    let path = input.needed("file_path")?;
    let offset = input.number("offset")?.unwrap_or(1).max(1);
    let limit = input.number("limit")?.unwrap_or(LINES).max(1);
    let located = tool.places.locate(path)?;
    let file = located.read()?;
    let failed = |error: io::Error| located.failure("read", &error);
    let meta = file.metadata().map_err(failed)?;
    let shown = located.path();
    let shown = shown.display();
    if meta.is_dir() {
        return Err(format!(
            "{shown} is a directory. List it with Glob or with `ls` in Bash."
        ));
    }
    if !meta.is_file() {
        return Err(format!("{shown} is neither a file nor a directory."));
    }
    let mut reader = BufReader::with_capacity(64 * 1024, &file);
    let start = reader.fill_buf().map_err(failed)?;
    let start = &start[..start.len().min(START)];
    if let Some(kind) = not_text(start) {
        return Err(format!(
            "{shown} is {kind} ({} bytes); only text can be read.",
            meta.len()
        ));
    }
    let page = page(&mut reader, offset, limit, cancel).map_err(failed)?;
    if let Some(real) = located.real(&file) {
        tool.seen.note(&real, &file).map_err(failed)?;
    }
    let mut text = page.text;
    match (page.shown, page.more) {
        (0, _) if meta.len() == 0 => text = "[The file is empty.]".into(),
        (0, _) => {
            return Err(format!(
                "{shown} has only {} lines; offset {offset} is after its end.",
                page.passed
            ));
        }
        (lines, true) => {
            let next = offset + lines;
            text.push_str(&format!(
                "[The file goes on. Read with offset {next} for more.]\n"
            ));
        }
        _ => {}
    }
    if let Some(more) = tool.found_below(&located) {
        text.push_str(&more);
    }
    Ok(ToolOutput::ok(text))
}

struct Page {
    text: String,
    /// Lines before it.
    passed: u64,
    shown: u64,
    more: bool,
}

/// Lines `offset..offset + limit`, as far as they fit into a result. Nothing of the file is kept
/// in memory besides.
fn page(reader: &mut impl BufRead, offset: u64, limit: u64, cancel: &Cancel) -> io::Result<Page> {
    let mut page = Page {
        text: String::new(),
        passed: 0,
        shown: 0,
        more: false,
    };
    let mut line = Vec::with_capacity(LINE);
    loop {
        if cancel.is_cancelled() {
            return Err(io::Error::other("it was cancelled"));
        }
        line.clear();
        let wanted = page.passed + 1 >= offset;
        let length = next_line(reader, if wanted { LINE } else { 0 }, &mut line)?;
        let Some(length) = length else {
            return Ok(page);
        };
        if !wanted {
            page.passed += 1;
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        let mut entry = format!("{:>6}\t{text}", offset + page.shown);
        if length > line.len() {
            let cut = length - line.len();
            entry.push_str(&format!(" [… {cut} more bytes in this line]"));
        }
        entry.push('\n');
        // Room for what is said about the rest.
        if page.shown == limit || page.text.len() + entry.len() > MAX_RESULT - 4096 {
            page.more = true;
            return Ok(page);
        }
        page.text.push_str(&entry);
        page.shown += 1;
    }
}

/// The next line without its end, as much of it as `keep` says; its whole length, `None` at the end
/// of the file. A carriage return at its end is left out: a model that edits sees lines.
fn next_line(
    reader: &mut impl BufRead,
    keep: usize,
    line: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    let mut length = 0;
    let mut last = None;
    loop {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        line.extend_from_slice(&piece[..piece.len().min(keep - line.len().min(keep))]);
        length += piece.len();
        last = piece.last().copied().or(last);
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            if last == Some(b'\r') {
                length -= 1;
                line.truncate(length);
            }
            return Ok(Some(length));
        }
    }
}

/// The kind of the file, if it is no text.
pub(super) fn not_text(start: &[u8]) -> Option<&'static str> {
    let magic: [(&[u8], &str); 8] = [
        (b"\x89PNG", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"RIFF", "a WebP image or other media file"),
        (b"%PDF", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive or office document"),
        (b"\x1f\x8b", "compressed data"),
        (b"\x7fELF", "a compiled program"),
    ];
    if let Some((_, kind)) = magic.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(kind);
    }
    let utf16 = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    match memchr::memchr(0, start) {
        Some(_) if utf16 => Some("UTF-16 text, which has to be converted first (iconv)"),
        Some(_) => Some("a binary file"),
        None => None,
    }
}

/// The whole of a file that is small enough to be edited.
pub(super) fn whole(file: &File, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut limited = file.take(most + 1);
    limited.read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}
