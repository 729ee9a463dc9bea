//! Grep: text in files, as ripgrep finds it, without starting a process.

use std::io;
use std::path::Path;
use std::sync::Arc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use serde_json::{Value, json};

use super::files::FileTool;
use super::input::Input;
use super::places::Located;
use super::walk::{self, Wanted};
use super::{Cancel, MAX_RESULT, ToolOutput, ToolSpec};

/// Lines or names of a result where the model does not say.
const HEAD: u64 = 250;
/// Maximum bytes of one line.
const LINE: usize = 500;
/// The most memory one file takes; a longer line is not searched.
const HEAP: usize = 16 * 1024 * 1024;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "Grep".into(),
        description: "Searches files for a regular expression (ripgrep's syntax); leaves out what \
                      .gitignore names. Use it instead of grep or rg in Bash."
            .into(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string" },
                "path": { "type": "string", "description": "file or directory" },
                "glob": { "type": "string", "description": "only files like this, e.g. *.ts" },
                "type": { "type": "string", "description": "only this type, e.g. rust, py" },
                "output_mode": { "type": "string", "enum": ["files_with_matches", "content", "count"] },
                "-A": { "type": "integer" },
                "-B": { "type": "integer" },
                "-C": { "type": "integer" },
                "-n": { "type": "boolean" },
                "-i": { "type": "boolean" },
                "multiline": { "type": "boolean" },
                "head_limit": { "type": "integer" },
            },
            "required": ["pattern"],
        }),
        reads_only: true,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Files,
    Content,
    Count,
}

struct Query {
    matcher: RegexMatcher,
    mode: Mode,
    before: usize,
    after: usize,
    numbers: bool,
    multiline: bool,
    head: usize,
}

impl Query {
    fn read(input: &Input) -> Result<Self, String> {
        let pattern = input.needed("pattern")?;
        let multiline = input.flag("multiline")?;
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(input.flag("-i")?)
            .multi_line(true)
            .dot_matches_new_line(multiline)
            .line_terminator(if multiline { None } else { Some(b'\n') })
            .build(pattern)
            .map_err(|error| format!("The pattern is not a regular expression: {error}"))?;
        let mode = match input.text("output_mode")? {
            None | Some("files_with_matches") => Mode::Files,
            Some("content") => Mode::Content,
            Some("count") => Mode::Count,
            Some(_) => {
                return Err("output_mode must be files_with_matches, content or count.".into());
            }
        };
        let lines = |name: &str| -> Result<Option<usize>, String> {
            let lines = input.number(name)?;
            Ok(lines.map(|lines| usize::try_from(lines.min(1000)).unwrap_or(1000)))
        };
        let around = lines("-C")?.unwrap_or(0);
        let head = input.number("head_limit")?.unwrap_or(HEAD);
        Ok(Self {
            matcher,
            mode,
            before: lines("-B")?.unwrap_or(around),
            after: lines("-A")?.unwrap_or(around),
            numbers: input.flag_or("-n", true)?,
            multiline,
            head: usize::try_from(if head == 0 { u64::MAX } else { head }).unwrap_or(usize::MAX),
        })
    }

    fn searcher(&self) -> Searcher {
        let content = self.mode == Mode::Content;
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .multi_line(self.multiline)
            .heap_limit(Some(HEAP))
            .before_context(if content { self.before } else { 0 })
            .after_context(if content { self.after } else { 0 })
            .build()
    }
}

pub(super) fn grep(
    tool: &Arc<FileTool>,
    input: Value,
    cancel: &Cancel,
) -> Result<ToolOutput, String> {
    let known = [
        "pattern",
        "path",
        "glob",
        "type",
        "output_mode",
        "-A",
        "-B",
        "-C",
        "-n",
        "-i",
        "multiline",
        "head_limit",
    ];
    let input = Input::new(input, &known)?;
    let query = Query::read(&input)?;
    let located = tool.places.locate(input.text("path")?.unwrap_or("."))?;
    let wanted = Wanted {
        glob: input.text("glob")?,
        kind: input.text("type")?,
    };
    let mut results = Results::new(&query, cancel);
    let mut searcher = query.searcher();
    let is_dir = located.read()?.metadata().is_ok_and(|meta| meta.is_dir());
    if is_dir {
        let all = walk::files(&located, &wanted, cancel, &mut |below, path| {
            results.file(&mut searcher, &located, below, &tool.places.shown(path))
        })?;
        results.all &= all;
    } else {
        let shown = tool.places.shown(&located.path());
        results.file(&mut searcher, &located, Path::new(""), &shown);
    }
    Ok(ToolOutput::ok(results.text()))
}

struct Results<'a> {
    query: &'a Query,
    cancel: &'a Cancel,
    lines: Vec<String>,
    bytes: usize,
    /// True if no match was left out.
    all: bool,
    too_long: Vec<String>,
}

impl<'a> Results<'a> {
    fn new(query: &'a Query, cancel: &'a Cancel) -> Self {
        Self {
            query,
            cancel,
            lines: Vec::new(),
            bytes: 0,
            all: true,
            too_long: Vec::new(),
        }
    }

    /// Searches one file; `false` if there is no room for more.
    fn file(
        &mut self,
        searcher: &mut Searcher,
        located: &Located<'_>,
        below: &Path,
        shown: &str,
    ) -> bool {
        let file = match below.as_os_str().is_empty() {
            true => located.read().ok(),
            false => located.read_below(below).ok(),
        };
        // The file was removed since, or is a link or a device: nothing to search.
        let Some(file) = file.filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))
        else {
            return true;
        };
        let mut found = Found {
            results: self,
            shown,
            count: 0,
        };
        let matcher = &found.results.query.matcher.clone();
        let searched = searcher.search_file(matcher, &file, &mut found);
        let count = found.count;
        if searched.is_err() && !self.cancel.is_cancelled() {
            self.too_long.push(shown.to_owned());
        }
        match self.query.mode {
            Mode::Files if count > 0 => self.push(shown.to_owned()),
            Mode::Count if count > 0 => self.push(format!("{shown}:{count}")),
            _ => self.has_room(),
        }
    }

    fn has_room(&self) -> bool {
        self.lines.len() < self.query.head && self.bytes < MAX_RESULT - 4096
    }

    fn push(&mut self, line: String) -> bool {
        if !self.has_room() {
            self.all = false;
            return false;
        }
        self.bytes += line.len() + 1;
        self.lines.push(line);
        true
    }

    fn text(self) -> String {
        let mut text = match self.lines.is_empty() {
            true => "No matches.".to_owned(),
            false => self.lines.join("\n"),
        };
        if !self.all {
            let shown = self.lines.len();
            text.push_str(&format!(
                "\n[Only the first {shown} lines; search more narrowly, or raise head_limit.]"
            ));
        }
        if !self.too_long.is_empty() {
            let names = self.too_long.iter().take(5).cloned().collect::<Vec<_>>();
            text.push_str(&format!(
                "\n[Not searched, because a line is too long or reading failed: {}]",
                names.join(", ")
            ));
        }
        text
    }
}

/// The matches in one file.
struct Found<'r, 'a> {
    results: &'r mut Results<'a>,
    shown: &'r str,
    count: usize,
}

impl Found<'_, '_> {
    fn line(&mut self, number: Option<u64>, bytes: &[u8], sign: char) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let mut number = number;
        for line in text.trim_end_matches(['\n', '\r']).split('\n') {
            let line = line.trim_end_matches('\r');
            let cut = line.floor_char_boundary(LINE);
            let mut entry = match number.filter(|_| self.results.query.numbers) {
                Some(number) => format!("{}{sign}{number}{sign}", self.shown),
                None => format!("{}{sign}", self.shown),
            };
            entry.push_str(&line[..cut]);
            if cut < line.len() {
                entry.push_str(&format!(" [… {} more bytes]", line.len() - cut));
            }
            if !self.results.push(entry) {
                return false;
            }
            number = number.map(|number| number + 1);
        }
        true
    }
}

impl Sink for Found<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.results.cancel.is_cancelled() {
            return Ok(false);
        }
        self.count += 1;
        match self.results.query.mode {
            Mode::Files => Ok(false),
            Mode::Count => Ok(true),
            Mode::Content => Ok(self.line(found.line_number(), found.bytes(), ':')),
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let other = matches!(context.kind(), SinkContextKind::Other);
        Ok(other || self.line(context.line_number(), context.bytes(), '-'))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.results.push("--".into()))
    }
}
