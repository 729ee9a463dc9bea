//! The secrets to search for, and the places that need a closer look.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::shapes::{self, Class, SHAPES, Shape};
use super::{Redactor, ScanState, Verdict, values};

/// A value's first bytes are searched for, and then the rest is compared.
const VALUE_START: usize = 8;
/// Bytes of a value after which it counts as found.
pub(super) const VALUE_SURE: usize = 4096;
/// Shorter values would be found everywhere.
const VALUE_LEAST: usize = 4;
/// A key whose end never comes does not take everything after it along.
pub(super) const PEM_MOST: usize = 16 * 1024;

/// The secrets to search for. Made once, shared by all streams.
#[derive(Debug)]
pub struct Secrets {
    pub(super) finder: Option<AhoCorasick>,
    /// The texts that the finder searches for: the starts of shapes and of values.
    pub(super) starts: Vec<Start>,
    longest_start: usize,
    /// The bytes that begin a start.
    firsts: [bool; 256],
    /// The longest first, so that none hides one it is the start of.
    values: Vec<Vec<u8>>,
}

/// A text that a secret may begin with, and the check that decides.
#[derive(Debug)]
pub(super) struct Start {
    bytes: Vec<u8>,
    /// Places in [`SHAPES`].
    pub(super) shapes: Vec<usize>,
    /// Places in [`Secrets::values`].
    values: Vec<usize>,
}

impl Secrets {
    /// All known shapes, and these values with the forms they may be printed in.
    ///
    /// Values of less than four bytes are left out.
    pub fn new(values: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        Self::with_shapes(true, values)
    }

    /// These values with the forms they may be printed in, and no shapes.
    pub fn values_only(values: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        Self::with_shapes(false, values)
    }

    fn with_shapes(shapes: bool, values: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut values: Vec<Vec<u8>> = values
            .into_iter()
            .flat_map(|value| values::forms(value.as_ref()))
            .filter(|value| value.len() >= VALUE_LEAST)
            .collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        let known = if shapes { SHAPES } else { &[] };
        let shapes = known.iter().map(|shape| shape.start.as_bytes());
        let heads = values.iter().map(|value| head(value));
        let mut starts: Vec<Vec<u8>> = shapes.chain(heads).map(<[u8]>::to_vec).collect();
        starts.sort();
        starts.dedup();
        // Fails only beyond two billion states. Every agent's supervisor makes one, and most
        // of them read little: what is quick to make beats what is quick to use.
        let finder = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostFirst)
            .build(&starts)
            .ok();
        let mut firsts = [false; 256];
        for start in &starts {
            firsts[usize::from(start[0])] = true;
        }
        let longest_start = starts.iter().map(Vec::len).max().unwrap_or(0);
        let starts = starts
            .into_iter()
            .map(|start| Start::new(start, known, &values));
        Self {
            finder,
            starts: starts.collect(),
            longest_start,
            firsts,
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

    /// `text` without its secrets; `None` if there are none in it.
    pub fn redacted(self: &Arc<Self>, text: &str) -> Option<String> {
        let found = self
            .finder
            .as_ref()
            .is_some_and(|finder| finder.is_match(text));
        found
            .then(|| self.redact(text))
            .filter(|redacted| redacted != text)
    }

    /// The first place from `from` on that may turn out to be a start when more bytes come.
    pub(super) fn open_end(&self, data: &[u8], from: usize) -> usize {
        let first = data
            .len()
            .saturating_sub(self.longest_start.saturating_sub(1));
        let open = |at: &usize| {
            let tail = &data[*at..];
            let begins =
                |start: &Start| start.bytes.len() > tail.len() && start.bytes.starts_with(tail);
            self.firsts[usize::from(tail[0])] && self.starts.iter().any(begins)
        };
        (first.max(from)..data.len())
            .find(open)
            .unwrap_or(data.len())
    }

    pub(super) fn value_at(&self, start: usize, data: &[u8], last: bool) -> Verdict {
        for index in self.starts[start].values.iter().copied() {
            let value = &self.values[index];
            let sure = &value[..value.len().min(VALUE_SURE)];
            if data.starts_with(sure) {
                let at = sure.len();
                let rest = ScanState::Value { index, at };
                return Verdict::Secret {
                    keep: 0,
                    drop: at,
                    then: if value.len() > at {
                        rest
                    } else {
                        ScanState::Text
                    },
                };
            }
            if !last && sure.starts_with(data) {
                return Verdict::Open;
            }
        }
        Verdict::No
    }
}

impl Start {
    fn new(bytes: Vec<u8>, known: &[Shape], values: &[Vec<u8>]) -> Self {
        // Of several starts at one place any may be the one that is found.
        let related = |other: &[u8]| other.starts_with(&bytes) || bytes.starts_with(other);
        let shape = |n: &usize| related(known[*n].start.as_bytes());
        let value = |n: &usize| related(head(&values[*n]));
        Self {
            shapes: (0..known.len()).filter(shape).collect(),
            values: (0..values.len()).filter(value).collect(),
            bytes,
        }
    }
}

fn head(value: &[u8]) -> &[u8] {
    &value[..value.len().min(VALUE_START)]
}

impl Secrets {
    /// The next state, and true if `byte` still belongs to the secret.
    pub(super) fn step(&self, state: ScanState, byte: u8) -> (ScanState, bool) {
        match state {
            ScanState::Text => (ScanState::Text, false),
            ScanState::Run(class) if class.has(byte) => (state, true),
            ScanState::Run(_) => (ScanState::Text, false),
            ScanState::Value { index, at } => match self.values[index].get(at..) {
                Some([next]) if *next == byte => (ScanState::Text, true),
                Some([next, ..]) if *next == byte => (ScanState::Value { index, at: at + 1 }, true),
                _ => (ScanState::Text, false),
            },
            ScanState::Pem {
                seen,
                matched,
                dashes,
            } => {
                if !Class::Pem.has(byte) || seen >= PEM_MOST {
                    return (ScanState::Text, false);
                }
                let seen = seen + 1;
                let (matched, dashes) = match (dashes, byte) {
                    // The fifth dash after the label is the end.
                    (Some(4), b'-') => return (ScanState::Text, true),
                    (Some(count), b'-') => (matched, Some(count + 1)),
                    (Some(_), _) => (matched, Some(0)),
                    (None, _) => shapes::pem_end(matched, byte),
                };
                let next = ScanState::Pem {
                    seen,
                    matched,
                    dashes,
                };
                (next, true)
            }
        }
    }
}
