//! The index as a file, so that opening a board does not mean reading every task.
//!
//! Binary, because ten thousand tasks must load in a millisecond. It may be missing, cut off, old,
//! or of another version; then ccb rebuilds it from the change log and the task files.

use std::collections::BTreeMap;

use store::atomic::Stamp;

use crate::id::TaskId;
use crate::rules::index::{Index, Slim};
use crate::task::Status;

const MAGIC: &[u8; 8] = b"ccbindex";
/// Grows with every change of the layout; a file of any other version is ignored.
const VERSION: u64 = 1;

/// The position of an index file in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// The number of the last change it knows.
    pub(crate) seq: u64,
    /// The position up to which it has read the log.
    pub(crate) offset: u64,
    /// The identity of that log.
    pub(crate) log: u64,
    /// The highest id that was ever in the history.
    pub(crate) max_id: u64,
}

/// The bytes of an index file.
pub(crate) fn encode(index: &Index, at: Position) -> Vec<u8> {
    let mut body = Writer(Vec::with_capacity(64 * index.len() + 64));
    for number in [at.seq, at.offset, at.log, at.max_id] {
        body.fixed(number);
    }
    body.number(index.len() as u64);
    for (id, slim) in index.iter() {
        body.number(id.get());
        body.slim(slim);
    }
    body.number(index.unreadable().len() as u64);
    for (id, stamp) in index.unreadable() {
        body.number(id.get());
        body.stamp(*stamp);
    }
    sealed(&body.0)
}

/// The file with this body: what tells an index file from another, and damage, comes first.
pub(crate) fn sealed(body: &[u8]) -> Vec<u8> {
    let mut file = Writer(Vec::with_capacity(body.len() + 24));
    file.0.extend_from_slice(MAGIC);
    file.fixed(VERSION);
    file.fixed(checksum(body));
    file.0.extend_from_slice(body);
    file.0
}

/// Reads an index file; `None` if it is not exactly what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Index, Position)> {
    let mut file = Reader(bytes.strip_prefix(MAGIC)?);
    if file.fixed()? != VERSION || file.fixed()? != checksum(file.0) {
        return None;
    }
    let at = Position {
        seq: file.fixed()?,
        offset: file.fixed()?,
        log: file.fixed()?,
        max_id: file.fixed()?,
    };
    let mut tasks = Vec::new();
    for _ in 0..file.number()? {
        tasks.push((TaskId::new(file.number()?)?, file.slim()?));
    }
    let mut unreadable = BTreeMap::new();
    for _ in 0..file.number()? {
        unreadable.insert(TaskId::new(file.number()?)?, file.stamp()?);
    }
    file.0
        .is_empty()
        .then(|| (Index::build(tasks, unreadable), at))
}

/// Eight bytes at a time, because it is computed over megabytes on every start.
fn checksum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    let mut sum = bytes.len() as u64;
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    sum ^ store::fingerprint(chunks.remainder())
}

struct Writer(Vec<u8>);

impl Writer {
    fn fixed(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Seven bits per byte, so that small numbers are short.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push((number & 0x7f) as u8);
    }

    fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn ids(&mut self, ids: &[TaskId]) {
        self.number(ids.len() as u64);
        for id in ids {
            self.number(id.get());
        }
    }

    fn stamp(&mut self, stamp: Stamp) {
        self.fixed(stamp.mtime_ns.cast_unsigned());
        self.number(stamp.size);
    }

    fn slim(&mut self, slim: &Slim) {
        let status = slim.status.code();
        let flags = [
            slim.internal,
            slim.checks,
            slim.owner.is_some(),
            slim.parked.is_some(),
            slim.lease_end.is_some(),
            slim.run.is_some(),
        ];
        let bits = flags
            .iter()
            .enumerate()
            .map(|(n, set)| u8::from(*set) << (n + 2));
        self.0.push(status | bits.sum::<u8>());
        for text in [&slim.owner, &slim.parked, &slim.run].into_iter().flatten() {
            self.text(text);
        }
        if let Some(end) = slim.lease_end {
            self.signed(end);
        }
        self.signed(slim.priority);
        self.ids(&slim.blocked_by);
        self.ids(&slim.blocks);
        self.fixed(slim.fingerprint);
        self.stamp(slim.stamp);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn fixed(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    fn text(&mut self) -> Option<Box<str>> {
        let len = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(std::str::from_utf8(text).ok()?.into())
    }

    fn ids(&mut self) -> Option<Box<[TaskId]>> {
        (0..self.number()?)
            .map(|_| TaskId::new(self.number()?))
            .collect()
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            mtime_ns: self.fixed()?.cast_signed(),
            size: self.number()?,
        })
    }

    fn slim(&mut self) -> Option<Slim> {
        let bits = self.byte()?;
        let flag = |n: u8| bits & (1 << (n + 2)) != 0;
        let status = Status::from_code((bits & 3).into())?;
        let mut optional = |present: bool| {
            if present {
                self.text().map(Some)
            } else {
                Some(None)
            }
        };
        let (owner, parked, run) = (optional(flag(2))?, optional(flag(3))?, optional(flag(5))?);
        Some(Slim {
            status,
            owner,
            parked,
            run,
            internal: flag(0),
            checks: flag(1),
            lease_end: if flag(4) { Some(self.signed()?) } else { None },
            priority: self.signed()?,
            blocked_by: self.ids()?,
            blocks: self.ids()?,
            fingerprint: self.fixed()?,
            stamp: self.stamp()?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids() -> impl Strategy<Value = Box<[TaskId]>> {
        prop::collection::vec((1..TaskId::MAX).prop_filter_map("an id", TaskId::new), 0..4)
            .prop_map(Into::into)
    }

    fn text() -> impl Strategy<Value = Option<Box<str>>> {
        prop::option::of(".{0,9}".prop_map(Into::into))
    }

    prop_compose! {
        pub(crate) fn slim()(
            status in prop::sample::select(vec![Status::Pending, Status::InProgress, Status::Completed]),
            (owner, parked, run) in (text(), text(), text()),
            (internal, checks) in any::<(bool, bool)>(),
            (priority, lease_end) in any::<(i64, Option<i64>)>(),
            (blocked_by, blocks) in (ids(), ids()),
            (fingerprint, mtime_ns, size) in any::<(u64, i64, u64)>(),
        ) -> Slim {
            let stamp = Stamp { mtime_ns, size };
            Slim { status, owner, parked, internal, checks, priority, blocked_by, blocks,
                lease_end, run, fingerprint, stamp }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_damage_is_noticed(
            slims in prop::collection::btree_map(1..1000_u64, slim(), 0..20),
            at in any::<(u64, u64, u64, u64)>(),
            damage in any::<(prop::sample::Index, u8)>(),
        ) {
            let at = Position { seq: at.0, offset: at.1, log: at.2, max_id: at.3 };
            let tasks = slims.iter().map(|(n, slim)| (TaskId::new(*n).unwrap(), slim.clone()));
            let index = Index::build(tasks, BTreeMap::new());
            let bytes = encode(&index, at);
            let (read, position) = decode(&bytes).unwrap();
            prop_assert_eq!(position, at);
            let pairs = |index: &Index| -> Vec<(TaskId, Slim)> {
                index.iter().map(|(id, slim)| (id, slim.clone())).collect()
            };
            prop_assert_eq!(pairs(&read), pairs(&index));

            let place = damage.0.index(bytes.len());
            prop_assert!(decode(&bytes[..place]).is_none(), "cut off");
            let mut damaged = bytes;
            damaged[place] ^= damage.1.max(1);
            prop_assert!(decode(&damaged).is_none(), "a wrong byte");
        }
    }
}
