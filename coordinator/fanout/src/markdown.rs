//! `report.md`, and the summary of a CI step: for people.

use std::fmt::Write;

use super::outcome::Outcome;
use super::report::{Report, TaskReport};

/// Maximum number of tasks with a row, those that need attention first; the other files have the
/// rest.
const MOST_ROWS: usize = 200;
/// Maximum number of tasks in the drawing.
const MOST_DRAWN: usize = 60;
const TAIL_LINES: usize = 30;

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    writeln!(text, "# {}: {}\n", inline(&report.name), report.title()).ok();
    let cost = report.cost();
    text.push_str(&report.done_text());
    if cost.usd > 0.0 || cost.tokens > 0 {
        write!(text, ", ${:.2}, {} tokens", cost.usd, cost.tokens).ok();
    }
    writeln!(text, ". Base `{}`.", short(&report.base)).ok();
    if let Some(landed) = &report.landed {
        let branch = inline(&landed.branch);
        writeln!(text, "Landed on {branch} at `{}`.", short(&landed.commit)).ok();
    }
    if let Some(broken) = &report.broken {
        writeln!(text, "\n> ❌ {}", inline(broken)).ok();
    }
    for note in &report.notes {
        writeln!(text, "\n> {}", inline(note)).ok();
    }
    writeln!(text, "\n{}\n", report.counts_text()).ok();
    table(&mut text, report);
    for task in report
        .tasks
        .iter()
        .filter(|task| needs_attention(task))
        .take(20)
    {
        details(&mut text, report, task);
    }
    drawing(&mut text, report);
    text
}

fn needs_attention(task: &TaskReport) -> bool {
    !task.outcome.is_success() && !matches!(task.outcome, Outcome::Skipped { .. })
}

fn table(text: &mut String, report: &Report) {
    let mut rows: Vec<&TaskReport> = report.tasks.iter().collect();
    // A stable sort: the plan's order otherwise.
    rows.sort_by_key(|task| (!needs_attention(task), task.outcome.is_success()));
    writeln!(
        text,
        "| | task | outcome | tries | time | cost | changes | patch |"
    )
    .ok();
    writeln!(text, "|---|---|---|---:|---:|---:|---|---|").ok();
    for task in rows.iter().take(MOST_ROWS) {
        let mark = match &task.outcome {
            outcome if outcome.is_success() && task.is_flaky() => "⚠️",
            outcome if outcome.is_success() => "✅",
            Outcome::Skipped { .. } => "⏭️",
            _ => "❌",
        };
        let patch = task.files.get("patch");
        let patch = patch.map(|file| code(file)).unwrap_or_default();
        let changes = cell(&task.diffstat());
        writeln!(
            text,
            "| {mark} | **{}** {} | {} | {} | {} | {} | {changes} | {patch} |",
            cell(&task.id),
            cell(&task.subject),
            cell(&task.headline()),
            task.attempts,
            time(task.duration_ms),
            if task.cost.usd > 0.0 {
                format!("${:.2}", task.cost.usd)
            } else {
                String::new()
            },
        )
        .ok();
    }
    if rows.len() > MOST_ROWS {
        writeln!(
            text,
            "\n… and {} more in `report.json`.",
            rows.len() - MOST_ROWS
        )
        .ok();
    }
}

fn details(text: &mut String, report: &Report, task: &TaskReport) {
    let failure = task.failure();
    let mut lines: Vec<&str> = failure.lines().collect();
    let what = if lines.is_empty() {
        ""
    } else {
        lines.remove(0)
    };
    let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    let (id, what) = (html(&task.id), html(what));
    writeln!(text, "\n<details><summary>{id}: {what}</summary>\n").ok();
    if !tail.is_empty() {
        // A fence longer than any in the text.
        let longest = tail.iter().map(|line| longest_run(line)).max();
        let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
        writeln!(text, "{fence}text\n{}\n{fence}\n", tail.join("\n")).ok();
    }
    let again = match task.resolve.is_empty() {
        true => report.again_for(task),
        false => None,
    };
    let facts = [
        ("log", task.log().map(str::to_owned)),
        ("worktree", task.worktree.clone()),
        ("retry", again),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            writeln!(text, "* {name}: {}", code(&value)).ok();
        }
    }
    for (at, step) in task.resolve.iter().enumerate() {
        writeln!(text, "{}. {}", at + 1, code(step)).ok();
    }
    writeln!(text, "\n</details>").ok();
}

/// The graph, if it is useful and can be drawn.
fn drawing(text: &mut String, report: &Report) {
    let edges = report.tasks.iter().any(|task| !task.depends_on.is_empty());
    if !edges || report.tasks.len() > MOST_DRAWN {
        return;
    }
    let place = |id: &str| report.tasks.iter().position(|task| task.id == id);
    writeln!(text, "\n```mermaid\ngraph LR").ok();
    for (at, task) in report.tasks.iter().enumerate() {
        let class = if task.outcome.is_success() {
            "good"
        } else {
            "bad"
        };
        writeln!(text, "  t{at}[\"{}\"]:::{class}", html(&task.id)).ok();
        for on in task.depends_on.iter().filter_map(|on| place(on)) {
            writeln!(text, "  t{on} --> t{at}").ok();
        }
    }
    writeln!(text, "  classDef good fill:#d4f4dd,stroke:#2da44e\n  classDef bad fill:#ffdce0,stroke:#cf222e\n```").ok();
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Milliseconds in a form for people.
pub fn time(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

fn html(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace('"', "&quot;").replace(['\n', '\r'], " ")
}

/// One line in which nothing is markup.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in html(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    // The text of a task must not mention a user.
    out.replace('@', "@\u{200b}")
}

/// Text in a code span, where a backslash would be shown and nothing else is markup.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ").replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text) + 1);
    let gap = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{gap}{text}{gap}{fence}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

fn cell(text: &str) -> String {
    // Cut before anything is escaped: half an escape would be markup again.
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", inline(&text[..at])),
        None => inline(text),
    }
}
