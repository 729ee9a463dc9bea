//! The events of one agent's run, as they happen.
//!
//! The reader follows `transcript.jsonl` and keeps the last entries only, each cut to the size of a
//! view; so neither a transcript of gigabytes nor a line of megabytes fills the memory.

use std::collections::VecDeque;

use serde_json::Value;
use store::clock::parse_rfc3339;
use store::follow::Follower;
use store::text::{clean, clean_cut, cut_bytes, first_line};
use swarm::fork;
use swarm::run::{Entry, Record, RunDir};
use swarm::runtime::Stream;

/// Bytes at the end of an existing transcript that are read first.
const BEGINS_WITH: u64 = 1 << 20;
/// Maximum bytes per read; a longer line is not parsed.
const AT_ONCE: usize = 2 << 20;
/// Maximum number of entries.
const KEPT: usize = 2_000;
/// Maximum bytes of one text.
const TEXT: usize = 8 * 1024;
/// Maximum bytes of a tool's result.
const RESULT: usize = 4 * 1024;
/// Maximum characters of a tool call or of the first line of its result.
const LINE: usize = 240;
/// Number of last entries that are searched for the call of a result.
const LOOKED_BACK: usize = 256;

/// An event, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptEntry {
    /// Counts up from 1; constant while the entry exists, also when its result arrives.
    pub number: u64,
    /// The time, in ms since the epoch.
    pub at_ms: i64,
    /// The event.
    pub what: Happened,
}

/// An event. Texts may have several lines, are cut if they are long, and safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum Happened {
    /// Its first prompt. For a fork, only its own order: the rest is its parent's conversation.
    Told { text: String, fork: bool },
    /// A message of the model.
    Said { text: String },
    /// Output of the agent's program.
    Printed { text: String, error: bool },
    /// A tool call on one line, and the result when it has arrived.
    Tool {
        id: String,
        name: String,
        input: String,
        result: Option<ToolResult>,
    },
    /// A message to the agent.
    Received { text: String },
    /// A request for permission to use a tool.
    Asked { tool: String, input: String },
    /// The answer to a request.
    Answered { allow: bool, why: Option<String> },
    /// The agent makes no progress.
    Stalled { why: String },
    /// The agent's turn is over.
    TurnEnded {
        status: String,
        error: Option<String>,
    },
    /// A life of the agent began or ended, or the engine noticed something.
    Note { text: String },
}

/// The result of a tool call, folded to one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// True if it is no error.
    pub ok: bool,
    /// Its first line that is not blank.
    pub first: String,
    /// Its beginning, for a view that unfolds it; may have several lines and is safe to print.
    pub text: String,
    /// Number of lines.
    pub lines: usize,
    /// Number of bytes in the transcript.
    pub bytes: usize,
}

/// Follows the transcript of one run.
#[derive(Debug)]
pub struct TranscriptReader {
    log: Follower,
    entries: VecDeque<TranscriptEntry>,
    last: u64,
    /// True if entries before the first kept one were dropped or not read.
    earlier: bool,
    trouble: Option<String>,
}

impl TranscriptReader {
    /// A reader of this run, which need not exist yet.
    pub fn new(run: &RunDir) -> Self {
        let path = run.transcript_path();
        let len = std::fs::metadata(&path).map_or(0, |found| found.len());
        Self {
            log: Follower::tail(path, BEGINS_WITH),
            entries: VecDeque::new(),
            last: 0,
            earlier: len > BEGINS_WITH,
            trouble: None,
        }
    }

    /// Reads the text appended since the last call; returns true if there is something new to show.
    /// A transcript that was cut or replaced is shown from its new beginning.
    pub fn poll(&mut self) -> bool {
        let before = self.trouble.take();
        let mut new = false;
        loop {
            let appended = match self.log.read(AT_ONCE) {
                Ok(appended) => appended,
                Err(error) => {
                    self.trouble = Some(clean_cut(&error.to_string(), LINE));
                    return new || self.trouble != before;
                }
            };
            if appended.restarted {
                self.entries.clear();
                self.earlier = false;
                new = true;
            }
            for long in appended.too_long {
                let text = format!("a line of {long} bytes is too long to be shown");
                self.push(0, Happened::Note { text });
                new = true;
            }
            let lines = appended.bytes.split(|byte| *byte == b'\n');
            for line in lines.filter(|line| !line.is_empty()) {
                // A line that cannot be read was cut off by a crash.
                if let Ok(record) = serde_json::from_slice::<Record>(line) {
                    new |= self.take(record);
                }
            }
            if !appended.more {
                return new || self.trouble != before;
            }
        }
    }

    /// The last entries, oldest first.
    pub fn entries(&self) -> &VecDeque<TranscriptEntry> {
        &self.entries
    }

    /// True if there is more before the first of them: `ccb agent logs` shows all of it.
    pub fn has_earlier(&self) -> bool {
        self.earlier
    }

    /// The reason why it cannot be read; `None` if it can.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn push(&mut self, at_ms: i64, what: Happened) {
        self.last += 1;
        self.entries.push_back(TranscriptEntry {
            number: self.last,
            at_ms,
            what,
        });
        if self.entries.len() > KEPT {
            self.entries.pop_front();
            self.earlier = true;
        }
    }

    /// Adds a record; returns true if it is shown.
    fn take(&mut self, record: Record) -> bool {
        let at_ms = parse_rfc3339(&record.ts).unwrap_or(0);
        let what = match record.entry {
            Entry::ToolResult { id, output, error } => return self.result(&id, &output, error),
            Entry::Output { stream, text } => {
                return self.printed(at_ms, &text, stream == Stream::Stderr);
            }
            entry => match shown(entry) {
                Some(what) => what,
                None => return false,
            },
        };
        self.push(at_ms, what);
        true
    }

    /// Folds a result into its call.
    fn result(&mut self, of: &str, output: &str, error: bool) -> bool {
        let found = ToolResult {
            ok: !error,
            first: first_line(output, LINE),
            text: block(cut_bytes(output, RESULT).0),
            lines: output.lines().count(),
            bytes: output.len(),
        };
        let calls = self.entries.iter_mut().rev().take(LOOKED_BACK);
        for entry in calls {
            if let Happened::Tool { id, result, .. } = &mut entry.what
                && id == of
            {
                *result = Some(found);
                return true;
            }
        }
        false
    }

    /// Appends output to the preceding output entry, as long as that is short.
    fn printed(&mut self, at_ms: i64, more: &str, error: bool) -> bool {
        if more.is_empty() {
            return false;
        }
        if let Some(TranscriptEntry {
            what: Happened::Printed { text, error: same },
            ..
        }) = self.entries.back_mut()
            && *same == error
            && text.len() + more.len() <= TEXT
        {
            text.push_str(&block(more));
            return true;
        }
        let text = block(more);
        self.push(at_ms, Happened::Printed { text, error });
        true
    }
}

/// The shown form of an entry; `None` if it is not shown.
fn shown(entry: Entry) -> Option<Happened> {
    Some(match entry {
        Entry::Prompt { text } => match order_of_fork(&text) {
            Some(order) => Happened::Told {
                text: block(order),
                fork: true,
            },
            None => Happened::Told {
                text: block(&text),
                fork: false,
            },
        },
        Entry::Text { text } if !text.trim().is_empty() => Happened::Said { text: block(&text) },
        Entry::ToolUse { id, name, input } => Happened::Tool {
            id,
            name: clean_cut(&name, LINE),
            input: input_line(&input),
            result: None,
        },
        Entry::Message { text, .. } => Happened::Received { text: block(&text) },
        Entry::Permission { tool, input, .. } => Happened::Asked {
            tool: clean_cut(&tool, LINE),
            input: input_line(&input),
        },
        Entry::Answer { allow, reason, .. } => Happened::Answered {
            allow,
            why: reason.map(|why| first_line(&why, LINE)),
        },
        Entry::Stalled { why } => Happened::Stalled {
            why: first_line(&why, LINE),
        },
        Entry::TurnEnded { status, error, .. } => Happened::TurnEnded {
            status: clean_cut(&status, LINE),
            error: error.map(|error| first_line(&error, LINE)),
        },
        Entry::Note { text } => Happened::Note { text: block(&text) },
        Entry::Started { model, .. } => Happened::Note {
            text: match model {
                Some(model) => format!("started with {}", clean_cut(&model, LINE)),
                None => "started".to_owned(),
            },
        },
        Entry::Ended { status, error } => Happened::Note {
            text: match error {
                Some(error) => {
                    format!("{}: {}", clean_cut(&status, LINE), first_line(&error, LINE))
                }
                None => clean_cut(&status, LINE),
            },
        },
        _ => return None,
    })
}

/// A fork's own order, from its whole prompt.
pub(super) fn order_of_fork(prompt: &str) -> Option<&str> {
    let end = format!("</{}>", fork::TAG);
    let (_, order) = prompt.rsplit_once(end.as_str())?;
    Some(order.trim())
}

/// A text that may have several lines, made safe and cut.
pub(super) fn block(text: &str) -> String {
    let (kept, cut) = cut_bytes(text, TEXT);
    let mut text = clean(kept).replace('\t', "    ");
    if cut {
        text.push('…');
    }
    text
}

/// The argument of a tool on one line: its usual main argument, else all of them.
pub(super) fn input_line(input: &Value) -> String {
    const MAIN: [&str; 12] = [
        "command",
        "file_path",
        "path",
        "notebook_path",
        "pattern",
        "query",
        "url",
        "subject",
        "description",
        "to",
        "taskId",
        "prompt",
    ];
    match input {
        Value::Null => String::new(),
        Value::String(text) => first_line(text, LINE),
        Value::Object(fields) => {
            let main = MAIN.iter().find_map(|key| fields.get(*key)?.as_str());
            match main {
                Some(text) => first_line(text, LINE),
                None if fields.is_empty() => String::new(),
                None => clean_cut(&input.to_string(), LINE),
            }
        }
        other => clean_cut(&other.to_string(), LINE),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use swarm::run::Transcript;

    use super::*;

    fn run(dir: &tempfile::TempDir) -> RunDir {
        let runs = dir.path().join("runs");
        store::home::create_private_dir(&runs.join("a1")).unwrap();
        RunDir::new(&runs, "a1")
    }

    fn call(log: &mut Transcript, id: &str, command: &str) {
        let (id, name) = (id.to_owned(), "Bash".to_owned());
        let input = json!({ "command": command });
        log.add(Entry::ToolUse { id, name, input }).unwrap();
    }

    fn answered(log: &mut Transcript, id: &str, output: &str, error: bool) {
        let (id, output) = (id.to_owned(), output.to_owned());
        log.add(Entry::ToolResult { id, output, error }).unwrap();
    }

    fn say(log: &mut Transcript, text: &str) {
        let text = text.to_owned();
        log.add(Entry::Text { text }).unwrap();
    }

    fn said(reader: &TranscriptReader) -> Vec<String> {
        let text = |entry: &TranscriptEntry| match &entry.what {
            Happened::Said { text } | Happened::Note { text } => Some(text.clone()),
            _ => None,
        };
        reader.entries().iter().filter_map(text).collect()
    }

    #[test]
    fn results_are_folded_into_their_calls_also_when_they_come_later() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(&dir);
        let mut reader = TranscriptReader::new(&run);
        assert!(!reader.poll(), "there is nothing yet");
        let mut log = Transcript::open(&run, 1, u64::MAX);
        call(&mut log, "t1", "make\x1b[2J");
        call(&mut log, "t2", "ls");
        assert!(reader.poll());
        answered(&mut log, "t1", "\n  error: no\nmore\n", true);
        answered(&mut log, "unknown", "x", false);
        assert!(reader.poll());
        assert!(!reader.poll());
        let entries = reader.entries();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].number, 1);
        let Happened::Tool { input, result, .. } = &entries[0].what else {
            panic!("{entries:?}");
        };
        assert_eq!(input, "make\u{fffd}[2J");
        let expected = ToolResult {
            ok: false,
            first: "error: no".into(),
            text: "\n  error: no\nmore\n".into(),
            lines: 3,
            bytes: 18,
        };
        assert_eq!(result.as_ref(), Some(&expected));
        assert!(matches!(
            &entries[1].what,
            Happened::Tool { result: None, .. }
        ));
    }

    #[test]
    fn what_is_printed_in_pieces_is_one_entry() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(&dir);
        let mut log = Transcript::open(&run, 1, u64::MAX);
        for piece in ["one\n", "tw", "o\n"] {
            log.add_output(Stream::Stdout, piece.as_bytes()).unwrap();
        }
        log.add_output(Stream::Stderr, b"bad\n").unwrap();
        let mut reader = TranscriptReader::new(&run);
        reader.poll();
        let what: Vec<&Happened> = reader.entries().iter().map(|entry| &entry.what).collect();
        let printed = |text: &str, error| Happened::Printed {
            text: text.into(),
            error,
        };
        assert_eq!(
            what,
            [&printed("one\ntwo\n", false), &printed("bad\n", true)]
        );
    }

    #[test]
    fn a_fork_shows_its_own_order_and_not_what_it_was_told_about_being_one() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(&dir);
        let mut log = Transcript::open(&run, 1, u64::MAX);
        let text = fork::directive("Look at a.rs\nand b.rs", &fork::Moved::default());
        log.add(Entry::Prompt { text }).unwrap();
        let mut reader = TranscriptReader::new(&run);
        reader.poll();
        let told = Happened::Told {
            text: "Look at a.rs\nand b.rs".into(),
            fork: true,
        };
        assert_eq!(reader.entries()[0].what, told);
    }

    #[test]
    fn a_transcript_that_is_cut_or_replaced_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(&dir);
        let mut log = Transcript::open(&run, 1, u64::MAX);
        say(&mut log, "one");
        say(&mut log, "two");
        let mut reader = TranscriptReader::new(&run);
        reader.poll();
        assert_eq!(said(&reader), ["one", "two"]);
        store::atomic::remove(&run.transcript_path()).unwrap();
        assert!(reader.poll());
        assert_eq!(said(&reader), Vec::<String>::new());
        say(&mut Transcript::open(&run, 1, u64::MAX), "three");
        assert!(reader.poll());
        assert_eq!(said(&reader), ["three"]);
        let file = store::atomic::open_private(&run.transcript_path()).unwrap();
        file.set_len(0).unwrap();
        assert!(reader.poll());
        say(&mut Transcript::open(&run, 1, u64::MAX), "4");
        assert!(reader.poll());
        assert_eq!(said(&reader), ["4"]);
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut_and_one_of_many_is_told_of() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(&dir);
        let line = |size: usize| {
            let text = "x".repeat(size);
            let record =
                json!({"ts": "2026-01-01T00:00:00.000Z", "life": 1, "type": "text", "text": text});
            format!("{record}\n")
        };
        let text = format!("half a line\n{}{}{}", line(1 << 20), line(5 << 20), line(3));
        let path = run.transcript_path();
        let tmp = run.path();
        store::atomic::replace(tmp, &path, text.as_bytes(), Default::default()).unwrap();
        let mut reader = TranscriptReader {
            log: Follower::new(path),
            ..TranscriptReader::new(&run)
        };
        reader.poll();
        let said = said(&reader);
        assert_eq!(said.len(), 3, "{}", said.len());
        assert_eq!(said[0].len(), TEXT + '…'.len_utf8());
        let long = line(5 << 20).len() - 1;
        assert_eq!(
            said[1],
            format!("a line of {long} bytes is too long to be shown")
        );
        assert_eq!(said[2], "xxx");
    }

    #[test]
    fn only_the_end_of_a_long_transcript_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let run = run(&dir);
        let mut log = Transcript::open(&run, 1, u64::MAX);
        for n in 0..KEPT + 10 {
            say(&mut log, &n.to_string());
        }
        let mut reader = TranscriptReader::new(&run);
        reader.poll();
        assert_eq!(reader.entries().len(), KEPT);
        assert!(reader.has_earlier());
        let first = reader.entries().front().unwrap();
        assert_eq!(first.what, Happened::Said { text: "10".into() });
        assert_eq!(first.number, 11);
    }
}
