//! Tasks in a report: attempts, checks and diffs, folded.

use super::super::model::{CheckPart, Excerpt, Report, TaskPart};
use super::figures::{moment, money, time, tokens};
use super::{escape, line};

/// Length of a list of tasks above which it is folded.
const OPEN: usize = 60;

pub(super) fn section(out: &mut String, report: &Report) {
    if report.tasks.is_empty() {
        return;
    }
    line(out, "<h2>Tasks</h2>");
    let (bad, good): (Vec<&TaskPart>, Vec<&TaskPart>) = report
        .tasks
        .iter()
        .partition(|task| mark(&task.state).1 != "ok");
    for part in bad {
        task(out, part);
    }
    let many = good.len() > OPEN;
    if many {
        line(
            out,
            &format!(
                "<details><summary>{} done</summary>",
                store::counted(good.len(), "task")
            ),
        );
    }
    for part in good {
        task(out, part);
    }
    if many {
        line(out, "</details>");
    }
}

/// The mark and the colour of a state.
fn mark(state: &str) -> (&'static str, &'static str) {
    match state {
        "done" => ("✔", "ok"),
        "failed" | "unreadable" => ("✘", "bad"),
        "parked" => ("‖", "bad"),
        "running" => ("◐", "run"),
        "conflict" => ("⚠", "warn"),
        _ => ("○", "dim"),
    }
}

fn task(out: &mut String, task: &TaskPart) {
    let (mark, class) = match task.unchecked {
        Some(_) => ("⚠", "warn"),
        None => mark(&task.state),
    };
    let id = escape(&task.id);
    let took = task
        .from_ms
        .zip(task.to_ms)
        .map(|(from, to)| time(to - from));
    let cost = (task.cost_usd > 0.0).then(|| money(task.cost_usd));
    let right: Vec<String> = took.into_iter().chain(cost).collect();
    line(
        out,
        &format!(
            "<details id=\"task-{id}\"><summary><span class=\"right\">{}</span><span class=\"{class}\">{mark}</span> <b>#{id}</b> {}</summary>",
            right.join(" · "),
            escape(&task.subject)
        ),
    );
    let landing = match task.landing.as_str() {
        "landed" => " · landed",
        "undone" => " · landed, and that was undone",
        "waiting" => " · not landed",
        _ => "",
    };
    line(
        out,
        &format!("<p class=\"{class}\">{}{landing}</p>", escape(&task.words)),
    );
    let mut facts = Vec::new();
    if task.tries > 1 {
        facts.push(store::counted(task.tries, "attempt"));
    }
    if task.tokens > 0 {
        facts.push(format!("{} tokens", tokens(task.tokens)));
    }
    if !task.after.is_empty() {
        let link = |id: &String| {
            let id = escape(id);
            format!("<a href=\"#task-{id}\">#{id}</a>")
        };
        let after: Vec<String> = task.after.iter().map(link).collect();
        facts.push(format!("after {}", after.join(", ")));
    }
    if !facts.is_empty() {
        line(out, &format!("<p class=\"dim\">{}</p>", facts.join(" · ")));
    }
    if !task.description.trim().is_empty() && task.description != task.subject {
        line(
            out,
            &format!("<pre class=\"text\">{}</pre>", escape(&task.description)),
        );
    }
    attempts(out, task);
    if let Some(found) = &task.check {
        check(out, found);
    }
    changes(out, task);
    line(out, "</details>");
}

fn attempts(out: &mut String, task: &TaskPart) {
    if task.attempts.is_empty() {
        return;
    }
    line(out, "<h3>Attempts that came to nothing</h3>");
    for one in &task.attempts {
        let counts = if one.counts { "" } else { " (does not count)" };
        line(
            out,
            &format!(
                "<p><span class=\"bad\">{}</span>{counts} {} <span class=\"dim\">{}</span></p>",
                escape(&one.status),
                escape(&one.what),
                escape(&moment(&one.at))
            ),
        );
        if !one.printed.is_empty() {
            line(
                out,
                &format!("<pre class=\"text\">{}</pre>", escape(&one.printed)),
            );
        }
    }
}

fn check(out: &mut String, check: &CheckPart) {
    let class = if check.passed { "ok" } else { "bad" };
    let took = time(i64::try_from(check.duration_ms).unwrap_or(i64::MAX));
    line(
        out,
        &format!(
            "<h3>Check</h3>\n<p><code>{}</code> <span class=\"{class}\">{}</span> <span class=\"dim\">{took}</span></p>",
            escape(&check.command),
            escape(&check.words)
        ),
    );
    if let Some(flaky) = &check.flaky {
        line(
            out,
            &format!(
                "<p class=\"warn\">It failed at first on the same commit: {}</p>",
                escape(flaky)
            ),
        );
    }
    let output = &check.output;
    if output.text.trim().is_empty() {
        return;
    }
    let open = if check.passed { "" } else { " open" };
    let cut = match output.cut {
        0 => String::new(),
        bytes => format!(" <span class=\"dim\">(the last part; {bytes} bytes before it)</span>"),
    };
    line(
        out,
        &format!(
            "<details{open}><summary>Output of the check{cut}</summary><pre class=\"text\" tabindex=\"0\">{}</pre></details>",
            escape(&output.text)
        ),
    );
}

fn changes(out: &mut String, task: &TaskPart) {
    if task.changes.is_empty() && task.diff.is_none() {
        return;
    }
    let count = |of: fn(&fanout::FileChange) -> Option<u64>| {
        let lines = task.changes.iter().filter_map(of);
        lines.fold(0_u64, u64::saturating_add)
    };
    let files = store::counted(task.changes.len(), "file");
    line(
        out,
        &format!(
            "<details><summary>Changes: {files} <span class=\"ok\">+{}</span> <span class=\"bad\">−{}</span></summary>",
            count(|file| file.added),
            count(|file| file.deleted)
        ),
    );
    match &task.diff {
        Some(text) => diff(out, text),
        None => {
            line(out, "<ul>");
            for file in &task.changes {
                line(
                    out,
                    &format!("<li><code>{}</code></li>", escape(&file.path)),
                );
            }
            line(out, "</ul>");
        }
    }
    line(out, "</details>");
}

/// A diff, line by line, each in the colour of its kind.
fn diff(out: &mut String, diff: &Excerpt) {
    out.push_str("<pre class=\"diff\" tabindex=\"0\">");
    for text in diff.text.lines() {
        let class = match text.as_bytes() {
            [b'd', b'i', b'f', b'f', b' ', ..] => "f",
            [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] | [b'@', b'@', ..] => "h",
            [b'+', ..] => "a",
            [b'-', ..] => "d",
            [b' ', ..] | [] => "",
            _ => "h",
        };
        // An empty line would have no height.
        let text = if text.is_empty() { " " } else { text };
        match class {
            "" => out.push_str(&format!("<span>{}</span>", escape(text))),
            class => out.push_str(&format!("<span class=\"{class}\">{}</span>", escape(text))),
        }
    }
    out.push_str("</pre>\n");
    if diff.cut > 0 {
        line(
            out,
            "<p class=\"dim\">The diff goes on; <code>ccb diff</code> shows all of it.</p>",
        );
    }
}
