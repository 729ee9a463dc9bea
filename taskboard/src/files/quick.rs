//! Reads the head of a log line without a JSON parser.
//!
//! Every process reads every line, so this is where a crowd of them spends its time. Only lines
//! exactly as ccb writes them are understood; the caller has a real parser for the rest (names with
//! escapes in them, lines of later versions).

use store::atomic::Stamp;

use crate::id::TaskId;
use crate::rules::index::Slim;
use crate::task::Status;

/// The part of a change that an index needs.
#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    /// The format of the line.
    pub(crate) v: u64,
    pub(crate) seq: u64,
    pub(crate) id: TaskId,
    pub(crate) slim: Option<Slim>,
}

/// The head of `line`, if it can be read this way.
pub(crate) fn head(line: &[u8]) -> Option<Head> {
    let mut text = Text(line);
    text.skip(b"{\"v\":")?;
    let v = text.number()?;
    text.skip(b",\"seq\":")?;
    let seq = text.number()?;
    text.skip(b",\"ts\":")?;
    text.string()?;
    text.skip(b",\"op\":")?;
    text.string()?;
    text.skip(b",\"id\":\"")?;
    let id = TaskId::new(text.number()?)?;
    text.skip(b"\"")?;
    // Deleted tasks and changes by other tools are rare.
    text.skip(b",\"slim\":[")?;
    let slim = text.slim()?;
    text.skip(b"],\"task\":{")?;
    Some(Head {
        v,
        seq,
        id,
        slim: Some(slim),
    })
}

struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn skip(&mut self, word: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(word)?;
        Some(())
    }

    fn comma(&mut self) -> Option<()> {
        self.skip(b",")
    }

    fn number(&mut self) -> Option<u64> {
        let mut number: u64 = 0;
        let mut digits = 0;
        while let Some(digit) = self.0.get(digits).filter(|byte| byte.is_ascii_digit()) {
            number = number
                .checked_mul(10)?
                .checked_add(u64::from(digit - b'0'))?;
            digits += 1;
        }
        self.0 = self.0.get(digits..)?;
        (digits > 0).then_some(number)
    }

    fn signed(&mut self) -> Option<i64> {
        let negative = self.skip(b"-").is_some();
        let number = i64::try_from(self.number()?).ok()?;
        Some(if negative { -number } else { number })
    }

    /// A string in which nothing is escaped.
    fn string(&mut self) -> Option<&'a str> {
        self.skip(b"\"")?;
        let end = memchr::memchr2(b'"', b'\\', self.0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        self.skip(b"\"")?;
        std::str::from_utf8(text).ok()
    }

    /// `null`, or what `read` reads.
    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.skip(b"null") {
            Some(()) => Some(None),
            None => read(self).map(Some),
        }
    }

    fn name(&mut self) -> Option<Option<Box<str>>> {
        self.optional(|text| text.string().map(Into::into))
    }

    fn ids(&mut self) -> Option<Box<[TaskId]>> {
        self.skip(b"[")?;
        let mut ids = Vec::new();
        while self.skip(b"]").is_none() {
            if !ids.is_empty() {
                self.comma()?;
            }
            ids.push(TaskId::new(self.number()?)?);
        }
        Some(ids.into())
    }

    /// The fields in the order of `changes::Packed`.
    fn slim(&mut self) -> Option<Slim> {
        let status = Status::from_code(self.number()?)?;
        self.comma()?;
        let owner = self.name()?;
        self.comma()?;
        let parked = self.name()?;
        self.comma()?;
        let flags = self.number()?;
        self.comma()?;
        let priority = self.signed()?;
        self.comma()?;
        let blocked_by = self.ids()?;
        self.comma()?;
        let blocks = self.ids()?;
        self.comma()?;
        let lease_end = self.optional(Self::signed)?;
        self.comma()?;
        let run = self.name()?;
        self.comma()?;
        let fingerprint = self.number()?;
        self.comma()?;
        let mtime_ns = self.signed()?;
        self.comma()?;
        let size = self.number()?;
        Some(Slim {
            status,
            owner,
            parked,
            internal: flags & 1 != 0,
            checks: flags & 2 != 0,
            priority,
            blocked_by,
            blocks,
            lease_end,
            run,
            fingerprint,
            stamp: Stamp { mtime_ns, size },
        })
    }
}
