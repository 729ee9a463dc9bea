//! Takes secrets out of what agents print, as it streams by.
//!
//! Two kinds are known: shapes (the keys of well-known services, tokens in headers, private keys)
//! and exact values the caller names, as a rule of its environment. Each becomes `[redacted]`; all
//! other bytes pass unchanged.
//!
//! However the stream is cut into chunks, the outcome is the same. At most a few KiB are held back,
//! while it is open if they begin a secret; a secret itself, however long, is dropped as it comes
//! and not collected.
//!
//! This is no protection from an agent that wants to get a secret out. It can print it backwards.

mod secrets;
mod shapes;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

pub use self::secrets::Secrets;
use self::shapes::{Class, SHAPES};
pub use self::values::secret_values;

/// The text in place of a secret. Plain enough to sit inside a JSON string.
pub const MARK: &str = "[redacted]";

/// The decision about the bytes at one place.
enum Verdict {
    No,
    /// It depends on what comes next.
    Open,
    Secret {
        /// The number of bytes that pass.
        keep: usize,
        /// The number of bytes after them that are dropped.
        drop: usize,
        /// The state after it.
        then: ScanState,
    },
}

/// The state of a scan, which decides about the next bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// They pass, unless a secret begins.
    Text,
    /// They belong to a secret as long as they are of this class.
    Run(Class),
    /// They belong to a private key until its end.
    Pem {
        /// Bytes so far.
        seen: usize,
        /// The length of the part of `-----END ` that was read.
        matched: usize,
        /// Dashes after the label of the end, if that has begun.
        dashes: Option<usize>,
    },
    /// They belong to a very long value as long as they are the same.
    Value { index: usize, at: usize },
}

/// The scan of one stream.
#[derive(Debug)]
pub struct Redactor {
    secrets: Arc<Secrets>,
    state: ScanState,
    /// The bytes that arrived and are not decided.
    held: Vec<u8>,
    /// The offset in the stream at which the undecided bytes begin.
    offset: u64,
    /// Bytes before this place belong to a secret that has its mark.
    covered: u64,
    /// No web token begins before this place, so it is not searched again.
    no_token_before: u64,
    /// The two bytes before `offset`.
    before: [u8; 2],
}

/// Bytes that are added to the held ones before they are scanned again.
const STEP: usize = 8 * 1024;

impl Redactor {
    /// For one stream from its start.
    pub fn new(secrets: Arc<Secrets>) -> Self {
        Self {
            secrets,
            state: ScanState::Text,
            held: Vec::new(),
            offset: 0,
            covered: 0,
            no_token_before: 0,
            before: [b'\n'; 2],
        }
    }

    /// Appends to `out` what may be shown now that `chunk` has come.
    pub fn push(&mut self, mut chunk: &[u8], out: &mut Vec<u8>) {
        while !self.held.is_empty() && !chunk.is_empty() {
            let (now, later) = chunk.split_at(chunk.len().min(STEP));
            chunk = later;
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(now);
            let done = self.process(&held, false, out);
            held.drain(..done);
            self.held = held;
        }
        if !chunk.is_empty() {
            let done = self.process(chunk, false, out);
            self.held.extend_from_slice(&chunk[done..]);
        }
    }

    /// The stream has ended: appends what was held back.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.process(&held, true, out);
    }

    /// The number of bytes that are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Decides about as many bytes of `data` as possible and returns how many; with `last`,
    /// about all.
    fn process(&mut self, data: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        let secrets = Arc::clone(&self.secrets);
        // Bytes before `done` are decided and shown or dropped, those before `at` are decided.
        let (mut done, mut at) = (0, 0);
        let mut open = usize::MAX;
        loop {
            if self.state != ScanState::Text {
                at += self.swallow(&data[at..]);
                done = at;
                if self.state != ScanState::Text {
                    break;
                }
            }
            if open == usize::MAX || open < at {
                open = if last {
                    data.len()
                } else {
                    secrets.open_end(data, at)
                };
            }
            let found = secrets
                .finder
                .as_ref()
                .and_then(|finder| finder.find(&data[at..]));
            let found = found.map(|found| (at + found.start(), found.pattern().as_usize()));
            let Some((place, start)) = found.filter(|(place, _)| *place < open) else {
                at = open;
                break;
            };
            match self.judge(data, place, start, last) {
                Verdict::No => at = place + 1,
                Verdict::Open => {
                    at = place;
                    break;
                }
                Verdict::Secret { keep, drop, then } => {
                    self.show(data, done, place + keep, out);
                    let (from, to) = (self.place(place + keep), self.place(place + keep + drop));
                    if from >= self.covered {
                        out.extend_from_slice(MARK.as_bytes());
                    }
                    self.covered = self.covered.max(to);
                    self.state = then;
                    done = place + keep;
                    // Another may begin inside a value and go beyond it.
                    at = if then == ScanState::Text {
                        done + 1
                    } else {
                        done + drop
                    };
                }
            }
        }
        self.show(data, done, at, out);
        self.leave(data, at);
        at
    }

    fn place(&self, at: usize) -> u64 {
        self.offset + at as u64
    }

    /// Shows `data[from..to]` but for what is covered.
    fn show(&self, data: &[u8], from: usize, to: usize, out: &mut Vec<u8>) {
        let covered = usize::try_from(self.covered.saturating_sub(self.offset));
        let from = from.max(covered.unwrap_or(usize::MAX));
        if from < to {
            out.extend_from_slice(&data[from..to]);
        }
    }

    fn leave(&mut self, data: &[u8], at: usize) {
        match data[..at] {
            [] => {}
            [one] => self.before = [self.before[1], one],
            [.., a, b] => self.before = [a, b],
        }
        self.offset += at as u64;
    }

    /// The two bytes before `at`.
    fn behind(&self, data: &[u8], at: usize) -> [u8; 2] {
        match at {
            0 => self.before,
            1 => [self.before[1], data[0]],
            _ => [data[at - 2], data[at - 1]],
        }
    }

    fn judge(&mut self, data: &[u8], at: usize, start: usize, last: bool) -> Verdict {
        let rest = &data[at..];
        let secrets = Arc::clone(&self.secrets);
        match secrets.value_at(start, rest, last) {
            Verdict::No => {}
            other => return other,
        }
        let behind = self.behind(data, at);
        for shape in secrets.starts[start].shapes.iter().map(|n| &SHAPES[*n]) {
            // A part that may still become a start is not searched before it has come.
            if !rest.starts_with(shape.start.as_bytes()) {
                continue;
            }
            if shape.is_token() && self.place(at) < self.no_token_before {
                continue;
            }
            match shape.judge(rest, behind, last) {
                (Verdict::No, looked) => {
                    if shape.is_token() {
                        self.no_token_before = self.place(at) + looked as u64;
                    }
                }
                (other, _) => return other,
            }
        }
        Verdict::No
    }

    /// Drops the bytes that belong to the secret under way; returns how many.
    fn swallow(&mut self, data: &[u8]) -> usize {
        let mut used = 0;
        while let Some(byte) = data.get(used) {
            let (next, ours) = self.secrets.step(self.state, *byte);
            self.state = next;
            used += usize::from(ours);
            if next == ScanState::Text {
                break;
            }
        }
        used
    }
}
