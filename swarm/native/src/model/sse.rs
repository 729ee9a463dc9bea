//! Server-sent events, read as they come and never without a limit.

use memchr::memchr;

/// The longest event; one is a piece of an answer, at most a whole one.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name; empty if it has none.
    pub name: String,
    pub data: Vec<u8>,
}

/// The event is longer than any answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Cuts bytes into events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The bytes that arrived.
    buffer: Vec<u8>,
    /// The number of bytes that are read.
    read: usize,
    /// The offset up to which the buffer has no line end.
    searched: usize,
    event: Event,
    has_data: bool,
    begun: bool,
}

impl Events {
    /// More bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.buffer.drain(..self.read);
            self.searched -= self.read;
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event that is whole.
    pub(super) fn next(&mut self) -> Result<Option<Event>, TooLong> {
        while let Some(end) = memchr(b'\n', &self.buffer[self.searched..]) {
            let end = self.searched + end;
            let line = self.read..end;
            self.read = end + 1;
            self.searched = self.read;
            if let Some(event) = self.line(line)? {
                return Ok(Some(event));
            }
        }
        self.searched = self.buffer.len();
        match self.buffer.len() - self.read > MAX_EVENT {
            true => Err(TooLong),
            false => Ok(None),
        }
    }

    fn line(&mut self, range: std::ops::Range<usize>) -> Result<Option<Event>, TooLong> {
        let mut line = &self.buffer[range];
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            let has_data = std::mem::take(&mut self.has_data);
            let event = std::mem::take(&mut self.event);
            return Ok(has_data.then_some(event));
        }
        let colon = memchr(b':', line);
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.event.data.len() + value.len() > MAX_EVENT {
                    return Err(TooLong);
                }
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            // Comments keep the connection alive; ids are for those who come back.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(events: &mut Events) -> Vec<(String, String)> {
        let mut found = Vec::new();
        while let Some(event) = events.next().unwrap() {
            let data = String::from_utf8(event.data).unwrap();
            found.push((event.name, data));
        }
        found
    }

    const STREAM: &str = "\u{feff}event: a\r\ndata: {\"x\":1}\r\n\r\n: ping\n\ndata:one\ndata: two\n\nevent: empty\n\nid: 7\ndata\n\ndata: cut";

    fn expected() -> Vec<(String, String)> {
        [("a", "{\"x\":1}"), ("", "one\ntwo"), ("", "")]
            .map(|(name, data)| (name.to_owned(), data.to_owned()))
            .to_vec()
    }

    proptest! {
        /// However a stream is cut into pieces, the same events come out.
        #[test]
        fn pieces_do_not_matter(cuts in prop::collection::vec(0..STREAM.len(), 0..20)) {
            let mut cuts = cuts;
            cuts.push(STREAM.len());
            cuts.sort_unstable();
            let (mut events, mut found, mut from) = (Events::default(), Vec::new(), 0);
            for cut in cuts {
                events.push(&STREAM.as_bytes()[from..cut]);
                found.extend(all(&mut events));
                from = cut;
            }
            prop_assert_eq!(found, expected());
        }
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let mut events = Events::default();
        let piece = vec![b'x'; 8 * 1024 * 1024];
        let ended = (0..8).any(|_| {
            events.push(&piece);
            events.next().is_err()
        });
        assert!(ended);
    }
}
