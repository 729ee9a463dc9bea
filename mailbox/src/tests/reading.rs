//! Reads the text for models, to prove that no agent's words can pass for ccb's.

use crate::notification::{RunStatus, TaskNotification, Usage, WorktreeLeft};
use crate::render::{CLOSE, OPEN};

/// One element of a rendered batch, with its texts as they were written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rendered {
    /// An agent's message.
    Message {
        /// The sender.
        teammate_id: String,
        /// The sender's colour, if it has one.
        color: Option<String>,
        /// The content in one line.
        summary: Option<String>,
        /// True if the reader may have seen it before.
        redelivered: bool,
        /// The words, or JSON.
        text: String,
    },
    /// The end of a run.
    Notification(Box<TaskNotification>),
}

/// Reads back exactly what `render` wrote; `None` if it is anything else.
pub(super) fn parse_rendered(text: &str) -> Option<Vec<Rendered>> {
    let mut reader = Reader::new(text);
    let mut blocks = Vec::new();
    while !reader.is_at_end() {
        if !blocks.is_empty() {
            reader.literal("\n")?;
        }
        blocks.push(if reader.starts_with(OPEN) {
            read_message(&mut reader)?
        } else {
            Rendered::Notification(Box::new(TaskNotification::read(&mut reader)?))
        });
    }
    Some(blocks)
}

fn read_message(reader: &mut Reader<'_>) -> Option<Rendered> {
    reader.literal(OPEN)?;
    let teammate_id = reader.attribute("teammate_id")?;
    let color = reader.attribute("color");
    let summary = reader.attribute("summary");
    let redelivered = reader.attribute("redelivered").is_some();
    reader.literal(">\n")?;
    let text = reader.text_until(CLOSE)?;
    Some(Rendered::Message {
        teammate_id,
        color,
        summary,
        redelivered,
        text,
    })
}

impl TaskNotification {
    /// Reads back exactly what [`Self::to_xml`] wrote.
    pub(super) fn from_xml(xml: &str) -> Option<Self> {
        let mut reader = Reader::new(xml);
        let notification = Self::read(&mut reader)?;
        reader.is_at_end().then_some(notification)
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.literal("<task-notification>\n")?;
        let task_id = reader.element("task-id")?;
        let tool_use_id = reader.element("tool-use-id");
        let output_file = reader.element("output-file")?;
        let status = reader.element("status")?;
        let summary = reader.element("summary")?;
        let candidates = [
            RunStatus::Completed,
            RunStatus::Lost,
            RunStatus::Failed,
            RunStatus::Killed,
        ];
        let (status, description) = candidates.into_iter().find_map(|candidate| {
            let description = summary
                .strip_prefix("Agent \"")?
                .strip_suffix(candidate.verdict())?
                .strip_suffix("\" ")?;
            (candidate.word() == status).then(|| (candidate, description.to_owned()))
        })?;
        let result = reader.element("result");
        reader.literal("<usage>\n")?;
        let mut number = |name| reader.element(name)?.parse().ok();
        let usage = Usage {
            total_tokens: number("total_tokens")?,
            tool_uses: number("tool_uses")?,
            duration_ms: number("duration_ms")?,
        };
        reader.literal("</usage>\n")?;
        let worktree = match reader.literal("<worktree>\n") {
            Some(()) => {
                let worktree = WorktreeLeft {
                    worktree_path: reader.element("worktreePath")?,
                    worktree_branch: reader.element("worktreeBranch"),
                };
                reader.literal("</worktree>\n")?;
                Some(worktree)
            }
            None => None,
        };
        reader.literal("</task-notification>")?;
        Some(Self {
            task_id,
            tool_use_id,
            output_file,
            status,
            description,
            result,
            usage,
            worktree,
        })
    }
}

/// Reads what was written, from left to right.
#[derive(Debug)]
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn starts_with(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    /// Skips `text`, if it comes next.
    fn literal(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// The text up to `end`, which is skipped, too.
    fn text_until(&mut self, end: &str) -> Option<String> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text.to_owned())
    }

    /// The content of the element `name` with its newline, if that is what comes next.
    fn element(&mut self, name: &str) -> Option<String> {
        let before = self.rest;
        let found = self
            .literal(&format!("<{name}>"))
            .and_then(|()| self.text_until(&format!("</{name}>\n")));
        if found.is_none() {
            self.rest = before;
        }
        found
    }

    /// The value of the attribute `name`, if that is what comes next.
    fn attribute(&mut self, name: &str) -> Option<String> {
        let before = self.rest;
        let found = self
            .literal(&format!(" {name}=\""))
            .and_then(|()| self.text_until("\""));
        if found.is_none() {
            self.rest = before;
        }
        found
    }
}
