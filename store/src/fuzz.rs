//! Entry points of the fuzz targets in `fuzz/` and of the test that replays their corpora.
//!
//! A target reads bytes as an attacker could have written them, and asserts what holds for any
//! bytes. No part of ccb calls these functions.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;

use crate::duration::{DurationFormat, short};
use crate::follow::Follower;
use crate::log;
use crate::name::Name;
use crate::settings::Settings;
use crate::text;

/// A target: its name, and the function that reads one input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("settings", settings),
    ("terminal_text", terminal_text),
    ("names", names),
    ("log_lines", log_lines),
];

/// Maximum input of a target with a costly check, in bytes.
pub const SMALL: usize = 4096;

/// Fails if a terminal would take any of `shown` for an order, or show it in another order.
///
/// The list is written out here, so that it does not repeat a mistake in [`text`].
pub fn assert_steers_no_terminal(shown: &str) {
    for c in shown.chars() {
        let code = u32::from(c);
        let control = code < 0x20 && !matches!(c, '\n' | '\t') || (0x7f..0xa0).contains(&code);
        let line_end = matches!(code, 0x2028 | 0x2029);
        let direction =
            matches!(code, 0x061c | 0x200e | 0x200f | 0x202a..=0x202e | 0x2066..=0x2069);
        assert!(
            !(control || line_end || direction),
            "U+{code:04X} reaches the terminal in {shown:?}"
        );
    }
}

/// The same for text that has to stay on its line.
pub fn assert_is_one_plain_line(shown: &str) {
    assert_steers_no_terminal(shown);
    assert!(!shown.contains(['\n', '\t']), "{shown:?} has a line break");
}

/// Two halves of an input: the first `data[0]` bytes after that one, and the rest.
pub fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    match data.split_first() {
        Some((at, rest)) => rest.split_at(usize::from(*at).min(rest.len())),
        None => (data, data),
    }
}

fn settings(data: &[u8]) {
    let path = Path::new("/r/.claude/ccb.json");
    let mut once = Settings::default();
    if let Err(error) = once.apply(data, path) {
        let words = error.to_string();
        assert!(words.len() < 64 * 1024, "an error of {} bytes", words.len());
        return;
    }
    let mut twice = once.clone();
    assert!(twice.apply(data, path).is_ok(), "refused the second time");
    // Each file keeps its own settings for agents' environment and sandbox.
    twice.agents = once.agents.clone();
    assert_eq!(once, twice, "a file says something else the second time");
}

fn terminal_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let clean = text::clean(&text);
    assert_steers_no_terminal(&clean);
    assert_eq!(clean.chars().count(), text.chars().count());
    assert_eq!(text::clean(&clean), clean);
    assert_is_one_plain_line(&text::clean_line(&text));
    let most = data.first().map_or(0, |byte| usize::from(*byte));
    for cut in [text::clean_cut(&text, most), text::first_line(&text, most)] {
        assert_is_one_plain_line(&cut);
        assert!(cut.chars().count() <= most.max(1), "{cut:?} is over {most}");
    }
    let (kept, cut) = text::cut_bytes(&text, most);
    assert!(kept.len() <= most && text.starts_with(kept));
    assert_eq!(cut, kept.len() < text.len());
}

fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(name) = Name::new("agent", &text) {
        let parts = Path::new(name.as_str()).components().count();
        assert_eq!((parts, name.as_str()), (1, &*text));
    }
    let derived = Name::derived(&text, "0123abcd");
    assert!(Name::new("list", derived.as_str()).is_ok(), "{derived}");
    for format in [
        DurationFormat::WITH_UNIT,
        DurationFormat::SECONDS,
        DurationFormat::MILLISECONDS,
    ] {
        let json: Option<Value> = serde_json::from_slice(data).ok();
        let read = json.map(|json| format.read_json(&json));
        let times = [Some(format.read(&text)), read];
        for time in times.into_iter().flatten().flatten() {
            let ms =
                std::time::Duration::from_millis(time.as_millis().try_into().unwrap_or(u64::MAX));
            assert_eq!(DurationFormat::WITH_UNIT.read(&short(time)), Ok(ms));
        }
    }
    if let Some(time) = crate::clock::parse_rfc3339(&text) {
        let written = crate::clock::rfc3339(time);
        assert_eq!(
            crate::clock::parse_rfc3339(&written),
            Some(time),
            "{written}"
        );
    }
}

/// A log as it grows: its followers get its complete lines.
fn log_lines(data: &[u8]) {
    let Some((limit, data)) = data.split_first() else {
        return;
    };
    let limit = usize::from(*limit).max(1);
    let (first, rest) = halves(data);
    let Ok((mut file, path)) = memory_file() else {
        return;
    };
    let (mut follower, mut lines, mut long) = (Follower::new(path.clone()), Vec::new(), Vec::new());
    for part in [first, rest] {
        if file.write_all(part).is_err() {
            return;
        }
        // Each look reads something, so there are at most as many as bytes.
        for _ in 0..=data.len() + 1 {
            let Ok(appended) = follower.read(limit) else {
                return;
            };
            assert!(appended.bytes.len() <= limit && !appended.restarted);
            assert!(appended.bytes.last().is_none_or(|last| *last == b'\n'));
            lines.extend(appended.bytes);
            long.extend(appended.too_long);
            if !appended.more {
                break;
            }
        }
    }
    let whole = [first, rest].concat();
    let end = memchr::memrchr(b'\n', &whole).map_or(0, |at| at + 1);
    let fits = |line: &&[u8]| line.len() <= limit;
    let all = || whole[..end].split_inclusive(|byte| *byte == b'\n');
    let kept: Vec<u8> = all().filter(fits).flatten().copied().collect();
    assert_eq!(lines, kept, "with a limit of {limit}");
    let lengths = all()
        .filter(|line| !fits(line))
        .map(|line| line.len() as u64 - 1);
    assert_eq!(long, lengths.collect::<Vec<_>>());
    let read = log::read_from(&path, 0);
    assert!(read.is_ok_and(|read| read.next_offset == end as u64));
    assert!(log::tail(&path, limit as u64).is_ok());
}

/// A file in memory, and a path to it.
fn memory_file() -> io::Result<(File, PathBuf)> {
    let file = File::from(memfd_create("ccb-fuzz", MemfdFlags::CLOEXEC)?);
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if `target` fails with this input.
    fn notices(target: fn(&[u8]), input: &[u8]) -> bool {
        std::panic::catch_unwind(|| target(input)).is_err()
    }

    #[test]
    fn a_terminal_order_that_is_let_through_is_noticed() {
        fn lets_everything_through(data: &[u8]) {
            assert_steers_no_terminal(&String::from_utf8_lossy(data));
        }
        assert!(!notices(lets_everything_through, b"plain\n\ttext"));
        for order in [
            "\u{1b}[2J",
            "a\rb",
            "\u{9b}1m",
            "\u{202e}",
            "\u{2028}",
            "\u{7f}",
        ] {
            assert!(
                notices(lets_everything_through, order.as_bytes()),
                "{order:?}"
            );
            assert!(!notices(terminal_text, order.as_bytes()), "{order:?}");
        }
        assert!(notices(|_| assert_is_one_plain_line("a\nb"), b""));
    }
}
