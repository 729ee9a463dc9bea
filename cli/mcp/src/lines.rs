//! Reads lines of bounded length.

use std::io::{self, BufRead};

use serde_json::Value;

/// Maximum bytes of a client's message.
pub(crate) const MAX_LINE: usize = 4 << 20;
/// Bytes at the end of a too long line that are searched for its id.
const TAIL: usize = 256;
/// Bytes of memory kept for the next line.
const KEPT: usize = 64 << 10;

/// One line from the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its bytes, without the end of line.
    Whole(Vec<u8>),
    /// The line was too long; this is the id of its request, or null if it was not found.
    TooLong(Value),
}

/// Reads lines.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    max: usize,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, max: usize) -> Self {
        Self {
            input,
            max,
            line: Vec::new(),
        }
    }

    /// The next line that is not empty; `None` at the end. Text without an end of line is no
    /// message: the client died while it wrote.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            self.line.clear();
            self.line.shrink_to(KEPT);
            let Some(tail) = self.read()? else {
                return Ok(None);
            };
            if let Some(tail) = tail {
                let id = first_id(&self.line).or_else(|| last_id(&tail));
                return Ok(Some(Line::TooLong(id.unwrap_or_default())));
            }
            let line = self.line.trim_ascii();
            if !line.is_empty() {
                return Ok(Some(Line::Whole(line.to_vec())));
            }
        }
    }

    /// Reads up to the end of a line. Bytes over the limit are dropped, except for the last ones,
    /// which are returned.
    fn read(&mut self) -> io::Result<Option<Option<Vec<u8>>>> {
        let mut tail: Option<Vec<u8>> = None;
        loop {
            let bytes = match self.input.fill_buf() {
                Ok([]) => return Ok(None),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            match &mut tail {
                None if self.line.len() + part.len() <= self.max => {
                    self.line.extend_from_slice(part);
                }
                None => tail = Some(part[part.len().saturating_sub(TAIL)..].to_vec()),
                Some(tail) => {
                    tail.extend_from_slice(&part[part.len().saturating_sub(TAIL)..]);
                    tail.drain(..tail.len().saturating_sub(TAIL));
                }
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(tail));
            }
        }
    }
}

/// The `id` of a request with this beginning, if it precedes everything long.
fn first_id(start: &[u8]) -> Option<Value> {
    let mut rest = start.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (key, after) = take_value(rest)?;
        let after = after.trim_ascii_start().strip_prefix(b":")?;
        let (value, after) = take_value(after)?;
        if key == "id" {
            return is_id(&value).then_some(value);
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// The JSON value at the beginning, and the bytes after it.
fn take_value(bytes: &[u8]) -> Option<(Value, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, &bytes[values.byte_offset()..]))
}

/// The same where the id is the very last thing in the line.
fn last_id(end: &[u8]) -> Option<Value> {
    let end = end.trim_ascii_end().strip_suffix(b"}")?;
    let key = b"\"id\"";
    let at = end.windows(key.len()).rposition(|window| window == key)?;
    let value = end[at + key.len()..]
        .trim_ascii_start()
        .strip_prefix(b":")?;
    let value: Value = serde_json::from_slice(value).ok()?;
    is_id(&value).then_some(value)
}

/// True if this can be the id of a request.
pub(crate) fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64() || value.is_u64()
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use serde_json::json;

    use super::*;

    fn read(text: &str, max: usize) -> Vec<Line> {
        // A small buffer, so that lines come in pieces.
        let mut lines = Lines::new(BufReader::with_capacity(7, text.as_bytes()), max);
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    #[test]
    fn lines_come_one_by_one_and_an_unfinished_one_is_none() {
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(
            read("{1}\n\n \r\n{22222222}\r\n{3", 100),
            [whole("{1}"), whole("{22222222}")]
        );
    }

    #[test]
    fn what_is_too_long_is_skipped_and_its_id_found() {
        let long = "x".repeat(1000);
        let text = format!(
            "{{\"id\":7,\"a\":\"{long}\"}}\n{{\"a\":\"{long}\",\"id\": \"q\"}}\n{{\"a\":{{\"x\":\"{long}\",\"id\":3}}}}\nshort\n"
        );
        let lines = read(&text, 100);
        assert_eq!(
            lines,
            [
                Line::TooLong(json!(7)),
                Line::TooLong(json!("q")),
                // This id is not the request's own.
                Line::TooLong(Value::Null),
                Line::Whole(b"short".to_vec()),
            ]
        );
    }
}
