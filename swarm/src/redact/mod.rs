//! Takes secrets out of what agents print, as it streams by.
//!
//! Two kinds are known: shapes (the keys of well-known services, tokens in headers, private
//! keys) and exact values the caller names, as a rule of its environment. Each becomes
//! `[redacted]`; all other bytes pass unchanged.
//!
//! However the stream is cut into chunks, the outcome is the same. At most a few KiB are held
//! back, while it is open whether they begin a secret; a secret itself, however long, is dropped
//! as it comes and not collected.
//!
//! What this is not: protection from an agent that wants to get a secret out. It can print it
//! backwards.

mod shapes;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use self::shapes::{Class, SHAPES};
pub use self::values::secret_values;

/// What stands where a secret was. Plain enough to sit inside a JSON string.
pub const MARK: &str = "[redacted]";

/// A value's first bytes are searched for, and then the rest is compared.
const VALUE_START: usize = 8;
/// As much of a value is waited for before it counts as found.
const VALUE_SURE: usize = 4096;
/// Shorter values would be found everywhere.
const VALUE_LEAST: usize = 4;
/// A key whose end never comes does not take everything after it along.
const PEM_MOST: usize = 16 * 1024;

/// What to look for. Made once, shared by all streams.
#[derive(Debug)]
pub struct Secrets {
    finder: Option<AhoCorasick>,
    /// What the finder looks for: the starts of shapes and of values.
    starts: Vec<Vec<u8>>,
    longest_start: usize,
    /// The longest first, so that none hides one it is the start of.
    values: Vec<Vec<u8>>,
}

/// What is known of the bytes at one place.
enum Verdict {
    No,
    /// It depends on what comes next.
    Open,
    Secret {
        /// So many bytes may stay.
        keep: usize,
        /// So many after them may not.
        drop: usize,
        /// How to go on.
        then: State,
    },
}

/// What is done with the bytes that come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// They pass, unless a secret begins.
    Text,
    /// They belong to a secret as long as they are of this class.
    Run(Class),
    /// They belong to a private key until its end.
    Pem {
        /// Bytes so far.
        seen: usize,
        /// How much of `-----END ` has been seen.
        matched: usize,
        /// Dashes after the label of the end, if that has begun.
        dashes: Option<usize>,
    },
    /// They belong to a very long value as long as they are the same.
    Value { index: usize, at: usize },
}

impl Secrets {
    /// All known shapes, and these values with the forms they may be printed in.
    ///
    /// Values of less than four bytes are left out.
    pub fn new(values: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut values: Vec<Vec<u8>> = values
            .into_iter()
            .flat_map(|value| values::forms(value.as_ref()))
            .filter(|value| value.len() >= VALUE_LEAST)
            .collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let shapes = SHAPES.iter().map(|shape| shape.start.as_bytes());
        let heads = values.iter().map(|value| head(value));
        let mut starts: Vec<Vec<u8>> = shapes.chain(heads).map(<[u8]>::to_vec).collect();
        starts.sort();
        starts.dedup();
        // Fails only beyond two billion states.
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(&starts)
            .ok();
        let longest_start = starts.iter().map(Vec::len).max().unwrap_or(0);
        Self {
            finder,
            starts,
            longest_start,
            values,
        }
    }

    /// `text` without its secrets, all at once.
    pub fn redact(self: &Arc<Self>, text: &str) -> String {
        let mut redactor = Redactor::new(Arc::clone(self));
        let mut out = Vec::with_capacity(text.len());
        redactor.push(text.as_bytes(), &mut out);
        redactor.finish(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The first place from `from` on that may turn out to be a start when more bytes come.
    fn open_end(&self, data: &[u8], from: usize) -> usize {
        let first = data
            .len()
            .saturating_sub(self.longest_start.saturating_sub(1));
        let open = |at: &usize| {
            let tail = &data[*at..];
            let begins = |start: &Vec<u8>| start.len() > tail.len() && start.starts_with(tail);
            self.starts.iter().any(begins)
        };
        (first.max(from)..data.len())
            .find(open)
            .unwrap_or(data.len())
    }

    fn value_at(&self, data: &[u8], last: bool) -> Verdict {
        for (index, value) in self.values.iter().enumerate() {
            let sure = &value[..value.len().min(VALUE_SURE)];
            if data.starts_with(sure) {
                let at = sure.len();
                let rest = State::Value { index, at };
                return Verdict::Secret {
                    keep: 0,
                    drop: at,
                    then: if value.len() > at { rest } else { State::Text },
                };
            }
            if !last && sure.starts_with(data) {
                return Verdict::Open;
            }
        }
        Verdict::No
    }
}

fn head(value: &[u8]) -> &[u8] {
    &value[..value.len().min(VALUE_START)]
}

/// One stream.
#[derive(Debug)]
pub struct Redactor {
    secrets: Arc<Secrets>,
    state: State,
    /// What came and is not decided.
    held: Vec<u8>,
    /// Where in the stream the undecided bytes begin.
    offset: u64,
    /// Bytes before this place belong to a secret that has its mark.
    covered: u64,
    /// No web token begins before this place; saves looking again and again.
    no_token_before: u64,
    /// The two bytes before `offset`.
    before: [u8; 2],
}

/// As much is added to what is held before it is looked at again.
const STEP: usize = 8 * 1024;

impl Redactor {
    /// For one stream from its start.
    pub fn new(secrets: Arc<Secrets>) -> Self {
        Self {
            secrets,
            state: State::Text,
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

    /// How many bytes are held back.
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
            if self.state != State::Text {
                at += self.swallow(&data[at..]);
                done = at;
                if self.state != State::Text {
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
            let place = found
                .map(|found| at + found.start())
                .filter(|place| *place < open);
            let Some(place) = place else {
                at = open;
                break;
            };
            match self.judge(data, place, last) {
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
                    at = if then == State::Text {
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

    fn judge(&mut self, data: &[u8], at: usize, last: bool) -> Verdict {
        let rest = &data[at..];
        match self.secrets.value_at(rest, last) {
            Verdict::No => {}
            other => return other,
        }
        let behind = self.behind(data, at);
        for shape in SHAPES {
            // Whatever may still become a start is not looked at before it has come.
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
            if next == State::Text {
                break;
            }
        }
        used
    }
}

impl Secrets {
    /// Whether `byte` still belongs to the secret, and what comes then.
    fn step(&self, state: State, byte: u8) -> (State, bool) {
        match state {
            State::Text => (State::Text, false),
            State::Run(class) if class.has(byte) => (state, true),
            State::Run(_) => (State::Text, false),
            State::Value { index, at } => match self.values[index].get(at..) {
                Some([next]) if *next == byte => (State::Text, true),
                Some([next, ..]) if *next == byte => (State::Value { index, at: at + 1 }, true),
                _ => (State::Text, false),
            },
            State::Pem {
                seen,
                matched,
                dashes,
            } => {
                if !Class::Pem.has(byte) || seen >= PEM_MOST {
                    return (State::Text, false);
                }
                let seen = seen + 1;
                let (matched, dashes) = match (dashes, byte) {
                    // The fifth dash after the label is the end.
                    (Some(4), b'-') => return (State::Text, true),
                    (Some(count), b'-') => (matched, Some(count + 1)),
                    (Some(_), _) => (matched, Some(0)),
                    (None, _) => shapes::pem_end(matched, byte),
                };
                let next = State::Pem {
                    seen,
                    matched,
                    dashes,
                };
                (next, true)
            }
        }
    }
}
