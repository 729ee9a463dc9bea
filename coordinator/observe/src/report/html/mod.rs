//! A report as one file that a browser opens from anywhere.
//!
//! The file loads nothing: no script, no picture, no font. Its policy allows the one style sheet in
//! it by its hash and nothing else, so that even a mistake in escaping could load or run nothing.
//! All text of agents passes through [`escape()`].

mod escape;
mod figures;
mod tasks;

use std::fmt::Write;

use sha2::{Digest, Sha256};

pub use self::escape::escape;
use self::figures::{moment, money, time, tokens};
use super::model::{Report, ReportState, Row, Span, SpanKind};

const STYLE: &str = include_str!("style.css");
/// Width of the timeline, in units of its own.
const WIDE: i64 = 1000;
/// Maximum number of agents in the timeline.
const ROWS: usize = 400;

/// The whole page.
pub fn page(report: &Report) -> String {
    let mut out = String::with_capacity(64 * 1024);
    let title = format!("{} {}", report.kind.word(), report.team);
    out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    line(
        &mut out,
        &format!(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">",
            policy()
        ),
    );
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"referrer\" content=\"no-referrer\">\n");
    line(&mut out, &format!("<title>{}</title>", escape(&title)));
    // Only the hashed text between the tags.
    line(&mut out, &format!("<style>{STYLE}</style>"));
    out.push_str("</head>\n<body>\n<main>\n");
    head(&mut out, report);
    left(&mut out, report);
    timeline(&mut out, report);
    tasks::section(&mut out, report);
    agents(&mut out, report);
    models(&mut out, report);
    landings(&mut out, report);
    for (heading, texts) in [("Notes", &report.notes), ("Left out", &report.omitted)] {
        if !texts.is_empty() {
            line(&mut out, &format!("<h2>{heading}</h2>\n<ul>"));
            for text in texts {
                line(&mut out, &format!("<li>{}</li>", escape(text)));
            }
            out.push_str("</ul>\n");
        }
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// The content policy of the page: the style sheet in it.
fn policy() -> String {
    let hash = base64(&Sha256::digest(STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// The class that colours a state.
fn class_of(state: ReportState) -> &'static str {
    match state {
        ReportState::Running => "run",
        ReportState::Done => "ok",
        ReportState::Failed => "bad",
        ReportState::Conflicts | ReportState::Stopped | ReportState::Interrupted => "warn",
        ReportState::Open => "dim",
    }
}

fn head(out: &mut String, report: &Report) {
    let title = match report.title.lines().next() {
        Some(first) if !first.trim().is_empty() => first,
        _ => &report.team,
    };
    line(out, &format!("<header>\n<h1>{}</h1>", escape(title)));
    line(
        out,
        &format!(
            "<p class=\"{}\">{} {}</p>",
            class_of(report.state),
            report.state.mark(),
            escape(&report.words)
        ),
    );
    let into = report.branch.as_deref();
    let into = into.map(|branch| format!(" · into {}", escape(branch)));
    let ended = match &report.ended_at {
        Some(ended) => format!("to {}", escape(&moment(ended))),
        None => "and still running".into(),
    };
    line(
        out,
        &format!(
            "<p class=\"dim\">{} {} · from {} {ended}{}</p>\n</header>",
            report.kind.word(),
            escape(&report.team),
            escape(&moment(&report.started_at)),
            into.unwrap_or_default(),
        ),
    );
    if report.title.trim().lines().count() > 1 {
        let text = escape(&report.title);
        line(
            out,
            &format!(
                "<details><summary>The whole prompt</summary><pre class=\"text\">{text}</pre></details>"
            ),
        );
    }
    let totals = &report.totals;
    let figures = [
        (format!("{} of {}", totals.done, totals.tasks), "tasks done"),
        (totals.landed.to_string(), "landed"),
        (totals.failed_attempts.to_string(), "failed attempts"),
        (totals.agents.to_string(), "agents"),
        (time(totals.duration_ms), "from start to end"),
        (time(totals.work_ms), "work of all agents"),
        (time(totals.check_ms), "checks"),
        (
            tokens(totals.input_tokens.saturating_add(totals.output_tokens)),
            "tokens",
        ),
        (money(totals.cost_usd), "cost"),
    ];
    let cached = (totals.cache_read_tokens > 0)
        .then(|| (tokens(totals.cache_read_tokens), "tokens read from cache"));
    let saved = (totals.saved_usd > 0.0).then(|| (money(totals.saved_usd), "saved by forking"));
    line(out, "<ul class=\"figures\">");
    for (figure, word) in figures.into_iter().chain(cached).chain(saved) {
        line(out, &format!("<li><b>{figure}</b> {word}</li>"));
    }
    line(out, "</ul>");
    if totals.earlier_tasks > 0 {
        let earlier = store::counted(totals.earlier_tasks, "task");
        line(
            out,
            &format!(
                "<p class=\"dim\">{earlier} on the board done earlier and not listed here.</p>"
            ),
        );
    }
}

fn left(out: &mut String, report: &Report) {
    let undone: Vec<_> = report
        .landings
        .iter()
        .filter(|one| one.undone_at.is_some())
        .collect();
    if report.left.is_empty() && undone.is_empty() {
        return;
    }
    line(out, "<h2>Undone or left</h2>\n<ul>");
    for one in &report.left {
        let command = match one.command.is_empty() {
            true => String::new(),
            false => format!("<br><code>{}</code>", escape(&one.command)),
        };
        line(out, &format!("<li>{}{command}</li>", escape(&one.what)));
    }
    for one in undone {
        let task = one
            .task
            .as_ref()
            .map(|task| format!(" (task {})", escape(task)));
        let at = one.undone_at.as_deref().map(moment).unwrap_or_default();
        line(
            out,
            &format!(
                "<li>landing {}{} on {} was undone at {}</li>",
                escape(&one.id),
                task.unwrap_or_default(),
                escape(&one.into),
                escape(&at)
            ),
        );
    }
    line(out, "</ul>");
}

/// Agents over time, landings with their times, and the chain that decided the duration.
fn timeline(out: &mut String, report: &Report) {
    let timeline = &report.timeline;
    let whole = timeline.to_ms - timeline.from_ms;
    if timeline.rows.is_empty() || whole <= 0 {
        return;
    }
    line(out, "<h2>Timeline</h2>\n<ul class=\"legend\">");
    for (class, word) in [
        ("starting", "starting"),
        ("working", "working"),
        ("waiting", "waiting"),
        ("check", "check"),
        ("landing", "landed"),
    ] {
        line(
            out,
            &format!(
                "<li><svg viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"1\" height=\"1\"/></svg>{word}</li>"
            ),
        );
    }
    line(out, "</ul>");
    let at = |ms: i64| (ms - timeline.from_ms).clamp(0, whole) * WIDE / whole;
    landed_row(out, report, &at);
    for row in timeline.rows.iter().take(ROWS) {
        agent_row(out, report, row, &at);
    }
    if timeline.rows.len() > ROWS {
        let more = store::counted(timeline.rows.len() - ROWS, "more agent");
        line(
            out,
            &format!("<p class=\"dim\">{more}: see the table of agents.</p>"),
        );
    }
    if timeline.critical_path.len() > 1 {
        line(
            out,
            "<h3>Critical path</h3>\n<p class=\"dim\">This chain of tasks decided how long all of it took.</p>\n<ol class=\"path\">",
        );
        for step in &timeline.critical_path {
            let waited = match step.waited_ms {
                ms if ms < 1000 => String::new(),
                ms => format!(", after it waited {}", time(ms)),
            };
            let task = report.tasks.iter().find(|task| task.id == step.task);
            let subject = task.map(|task| escape(&task.subject)).unwrap_or_default();
            let id = escape(&step.task);
            line(
                out,
                &format!(
                    "<li><a href=\"#task-{id}\">#{id}</a> {subject} <span class=\"dim\">{}{waited}</span></li>",
                    time(step.took_ms)
                ),
            );
        }
        line(out, "</ol>");
    }
}

fn landed_row(out: &mut String, report: &Report, at: &dyn Fn(i64) -> i64) {
    let mut marks = String::new();
    for one in &report.landings {
        let Some(ms) = store::clock::parse_rfc3339(&one.at) else {
            continue;
        };
        let class = if one.undone_at.is_some() {
            "undone"
        } else {
            "landing"
        };
        let task = one.task.as_deref().unwrap_or("all");
        write!(
            marks,
            "<rect class=\"{class}\" x=\"{}\" width=\"3\" height=\"16\"><title>{} landed at {}</title></rect>",
            at(ms).min(WIDE - 3),
            escape(task),
            escape(&moment(&one.at))
        )
        .ok();
    }
    if !marks.is_empty() {
        bar(out, "<b>landed</b>", "landings over time", &marks);
    }
}

fn agent_row(out: &mut String, report: &Report, row: &Row, at: &dyn Fn(i64) -> i64) {
    let agent = report.agents.iter().find(|agent| agent.id == row.agent);
    let name = agent.map_or(row.agent.as_str(), |agent| agent.name.as_str());
    let task = agent.and_then(|agent| agent.task.as_deref());
    let task = task
        .map(|task| format!(" #{}", escape(task)))
        .unwrap_or_default();
    let mut marks = String::new();
    for span in &row.spans {
        let (from, to) = (at(span.from_ms), at(span.to_ms));
        write!(
            marks,
            "<rect class=\"{}\" x=\"{from}\" width=\"{}\" height=\"16\"><title>{} {}</title></rect>",
            word(span),
            (to - from).max(1),
            word(span),
            time(span.to_ms - span.from_ms)
        )
        .ok();
    }
    let name = escape(name);
    bar(
        out,
        &format!("{name}{task}"),
        &format!("{name} over time"),
        &marks,
    );
}

fn word(span: &Span) -> &'static str {
    match span.what {
        SpanKind::Starting => "starting",
        SpanKind::Working => "working",
        SpanKind::Waiting => "waiting",
        SpanKind::Check => "check",
    }
}

fn bar(out: &mut String, label: &str, about: &str, marks: &str) {
    line(
        out,
        &format!(
            "<div class=\"row\"><span>{label}</span><svg viewBox=\"0 0 {WIDE} 16\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{about}\">{marks}</svg></div>"
        ),
    );
}

fn agents(out: &mut String, report: &Report) {
    if report.agents.is_empty() {
        return;
    }
    line(
        out,
        "<h2>Agents</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Agents\"><table>",
    );
    line(
        out,
        "<thead><tr><th>agent</th><th>task</th><th>runs on</th><th>ended</th><th class=\"n\">tools</th><th class=\"n\">in</th><th class=\"n\">cached</th><th class=\"n\">out</th><th class=\"n\">cost</th></tr></thead><tbody>",
    );
    for agent in &report.agents {
        let model = agent
            .model
            .as_deref()
            .map(|model| format!(" {}", escape(model)));
        let task = agent.task.as_deref().map(|task| {
            let task = escape(task);
            format!("<a href=\"#task-{task}\">#{task}</a>")
        });
        line(
            out,
            &format!(
                "<tr><td>{}</td><td>{}</td><td>{}{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escape(&agent.name),
                task.unwrap_or_default(),
                escape(&agent.runtime),
                model.unwrap_or_default(),
                escape(&agent.state),
                agent.tool_uses,
                tokens(agent.input_tokens),
                tokens(agent.cache_read_tokens),
                tokens(agent.output_tokens),
                money(agent.cost_usd),
            ),
        );
    }
    line(out, "</tbody></table></div>");
    for agent in report
        .agents
        .iter()
        .filter(|agent| !agent.result.trim().is_empty())
    {
        let notes: String = agent
            .notes
            .iter()
            .map(|note| format!("<p>{}</p>", escape(note)))
            .collect();
        line(
            out,
            &format!(
                "<details><summary>What {} said at its end</summary>{notes}<pre class=\"text\">{}</pre></details>",
                escape(&agent.name),
                escape(&agent.result)
            ),
        );
    }
}

fn models(out: &mut String, report: &Report) {
    if report.models.is_empty() {
        return;
    }
    line(
        out,
        "<h2>Cost by model</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Cost by model\"><table>",
    );
    line(
        out,
        "<thead><tr><th>model</th><th class=\"n\">agents</th><th class=\"n\">in</th><th class=\"n\">out</th><th class=\"n\">cost</th></tr></thead><tbody>",
    );
    for model in &report.models {
        line(
            out,
            &format!(
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escape(&model.name),
                model.agents,
                tokens(model.input_tokens),
                tokens(model.output_tokens),
                money(model.cost_usd)
            ),
        );
    }
    line(out, "</tbody></table></div>");
}

fn landings(out: &mut String, report: &Report) {
    if report.landings.is_empty() {
        return;
    }
    line(
        out,
        "<h2>Landings</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Landings\"><table>",
    );
    line(
        out,
        "<thead><tr><th>landing</th><th>task</th><th>branch</th><th>commit</th><th>when</th><th></th></tr></thead><tbody>",
    );
    for one in &report.landings {
        let undone = match &one.undone_at {
            Some(at) => format!("<span class=\"bad\">undone {}</span>", escape(&moment(at))),
            None => String::new(),
        };
        line(
            out,
            &format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td><td>{}</td><td>{undone}</td></tr>",
                escape(&one.id),
                escape(one.task.as_deref().unwrap_or("the plan")),
                escape(&one.into),
                escape(one.commit.get(..12).unwrap_or(&one.commit)),
                escape(&moment(&one.at)),
            ),
        );
    }
    line(out, "</tbody></table></div>");
}

#[cfg(test)]
mod tests {
    use super::super::model::{AgentPart, AttemptPart, CheckPart, Excerpt, LeftPart, TaskPart};
    use super::*;

    const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}\x1b[31m javascript:alert(1)";

    fn hostile() -> Report {
        let text = || HOSTILE.to_owned();
        Report {
            id: text(),
            team: text(),
            title: text() + "\nmore",
            branch: Some(text()),
            started_at: text(),
            ended_at: Some(text()),
            words: text(),
            timeline: super::super::model::Timeline {
                from_ms: 0,
                to_ms: 100,
                rows: vec![Row {
                    agent: text(),
                    spans: vec![Span {
                        what: SpanKind::Working,
                        from_ms: 0,
                        to_ms: 50,
                    }],
                }],
                critical_path: Vec::new(),
            },
            tasks: vec![TaskPart {
                id: text(),
                subject: text(),
                description: text(),
                state: text(),
                words: text(),
                after: vec![text()],
                attempts: vec![AttemptPart {
                    what: text(),
                    printed: text(),
                    ..AttemptPart::default()
                }],
                check: Some(CheckPart {
                    command: text(),
                    words: text(),
                    flaky: Some(text()),
                    output: Excerpt {
                        text: text(),
                        cut: 1,
                    },
                    ..CheckPart::default()
                }),
                changes: vec![fanout::FileChange {
                    path: text(),
                    ..Default::default()
                }],
                diff: Some(Excerpt {
                    text: format!("+{HOSTILE}\n-{HOSTILE}\n{HOSTILE}"),
                    cut: 1,
                }),
                landing: text(),
                ..TaskPart::default()
            }],
            agents: vec![AgentPart {
                id: text(),
                name: text(),
                result: text(),
                notes: vec![text()],
                model: Some(text()),
                task: Some(text()),
                ..AgentPart::default()
            }],
            left: vec![LeftPart {
                what: text(),
                command: text(),
            }],
            notes: vec![text()],
            omitted: vec![text()],
            ..Report::default()
        }
    }

    #[test]
    fn nothing_that_agents_wrote_becomes_markup() {
        let page = page(&hostile());
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains("<img"), "{page}");
        assert!(!page.contains('\u{202e}') && !page.contains('\x1b'));
        assert!(page.contains("&lt;script&gt;"));
        // No attribute of ours is closed by a text: outside of quotes there is none.
        for tag in page.split('<').skip(1) {
            let tag = tag.split('>').next().unwrap_or_default();
            let own: String = tag.split('"').step_by(2).collect();
            assert!(!own.contains("onerror"), "{tag}");
        }
    }

    #[test]
    fn the_page_asks_for_nothing_and_its_policy_names_its_style() {
        let page = page(&hostile());
        for word in [
            "http:", "https:", "url(", "@import", "<link", "<iframe", "<object",
        ] {
            assert!(!page.contains(word), "{word}");
        }
        let style = page
            .split("<style>")
            .nth(1)
            .and_then(|rest| rest.split("</style>").next());
        let hash = base64(&Sha256::digest(style.unwrap().as_bytes()));
        assert!(page.contains(&format!("style-src 'sha256-{hash}'")));
        assert!(
            !page.contains("style="),
            "the policy allows no style attributes"
        );
    }

    #[test]
    fn base64_is_as_everybody_writes_it() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
