//! A few lines at the bottom of the terminal that are redrawn.
//!
//! Lines about finished tasks scroll by above them. A frame is written in one piece, between the
//! marks that make a terminal show it at once; it is never wider or higher than the terminal, and
//! the cursor comes back however the run ends.

use std::io::Write;
use std::time::{Duration, Instant};

use anstyle::Style;
use fanout::{FanoutEvent, Outcome, Progress, Stage, time};
use store::counted;
use term::table::fit;
use unicode_width::UnicodeWidthStr;

use super::{Show, board_command};
use crate::output::{BOLD, CYAN, DIM, GREEN, PLAIN, RED, YELLOW, clean_line};

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
/// Sequences that clear to the end of the line, and of the screen.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
/// Minimum time between two frames, except for lines that remain.
const PACE: Duration = Duration::from_millis(80);

pub(super) struct Terminal {
    /// The number of lines of the last frame.
    drawn: usize,
    last: Option<Instant>,
    colours: bool,
}

impl Terminal {
    pub(super) fn start() -> Self {
        let choice = anstream::AutoStream::choice(&std::io::stderr());
        write(HIDE_CURSOR);
        Self {
            drawn: 0,
            last: None,
            colours: choice != anstream::ColorChoice::Never,
        }
    }
}

impl Show for Terminal {
    fn show(&mut self, event: &FanoutEvent, progress: &Progress, now_ms: u64) {
        let (width, height) = size();
        let stays = lasting(event, progress, width);
        let soon = self.last.is_some_and(|last| last.elapsed() < PACE);
        if stays.is_empty() && soon && *event != FanoutEvent::Ended {
            return;
        }
        self.last = Some(Instant::now());
        let frame = match event {
            FanoutEvent::Ended => Vec::new(),
            _ => frame(progress, width, height, now_ms),
        };
        let text = redraw(self.drawn, &stays, &frame);
        self.drawn = frame.len();
        if self.colours {
            write(&text);
        } else {
            write(&without_colours(&text));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let end = redraw(self.drawn, &[], &[]);
        write(&format!("{end}{SHOW_CURSOR}"));
    }
}

fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush())
        .ok();
}

fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    let (columns, rows) = size.map_or((80, 24), |size| (size.ws_col, size.ws_row));
    let or = |given: u16, otherwise| {
        if given == 0 {
            otherwise
        } else {
            usize::from(given)
        }
    };
    (or(columns, 80), or(rows, 24))
}

/// The bytes that put the lines of `stays` above a new frame; the old frame had `drawn` lines.
fn redraw(drawn: usize, stays: &[String], frame: &[String]) -> String {
    let mut text = String::from(BEGIN);
    if drawn > 0 {
        text.push_str(&format!("\x1b[{drawn}A\r"));
    }
    for line in stays.iter().chain(frame) {
        text.push_str(line);
        text.push_str(CLEAR_LINE);
        text.push('\n');
    }
    text.push_str(CLEAR_BELOW);
    text.push_str(END);
    text
}

/// Removes colours, and keeps the sequences that move the cursor.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        out.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        if !after[end..].starts_with('m') {
            out.push_str("\x1b[");
            out.push_str(&after[..=end]);
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// A line that is filled up to a width: each text is cut to the room that is left.
struct Line {
    text: String,
    left: usize,
}

impl Line {
    fn new(width: usize) -> Self {
        // The last column is not used: some terminals wrap there.
        Self {
            text: String::new(),
            left: width.saturating_sub(1),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        if self.left == 0 || text.is_empty() {
            return;
        }
        let text = fit(text, self.left);
        self.left = self.left.saturating_sub(text.width());
        self.text.push_str(&format!("{style}{text}{style:#}"));
    }
}

/// The lines that an event leaves on the screen.
fn lasting(event: &FanoutEvent, progress: &Progress, width: usize) -> Vec<String> {
    let mut line = Line::new(width);
    match event {
        FanoutEvent::Finished { task, outcome } => {
            let style = match outcome {
                Outcome::Skipped { .. } => DIM,
                Outcome::Conflict { .. } | Outcome::Killed { .. } => YELLOW,
                outcome if outcome.is_success() => GREEN,
                _ => RED,
            };
            line.push(outcome.mark(), style);
            line.push(&format!(" {} ", clean_line(task)), BOLD);
            let subject = progress.task(task).map(|task| clean_line(&task.subject));
            line.push(
                &subject
                    .filter(|subject| subject != task)
                    .unwrap_or_default(),
                PLAIN,
            );
            let words = outcome.words();
            let what = words.lines().next().unwrap_or_default();
            line.push(
                &format!("  {}", clean_line(what.trim_end_matches(':'))),
                DIM,
            );
        }
        FanoutEvent::Retrying { task, why } => {
            line.push("↻", YELLOW);
            line.push(&format!(" {} ", clean_line(task)), BOLD);
            let what = why.lines().next().unwrap_or_default();
            line.push(&clean_line(what.trim_end_matches(':')), DIM);
        }
        FanoutEvent::Planned { tasks, jobs, team } => {
            let tasks = counted(tasks.len(), "task");
            line.push(&format!("{tasks}, {jobs} at once"), DIM);
            if !team.is_empty() {
                line.push("; the board: ", DIM);
                line.push(&board_command(team), PLAIN);
            }
        }
        FanoutEvent::Paused { why } => line.push(&format!("paused: {}", clean_line(why)), YELLOW),
        FanoutEvent::Note { text } => line.push(&clean_line(text), YELLOW),
        _ => return Vec::new(),
    }
    vec![line.text]
}

/// The lines at the bottom: a bar, and one line per running task.
fn frame(progress: &Progress, width: usize, height: usize, now_ms: u64) -> Vec<String> {
    let running = progress.running();
    let mut lines = vec![bar(progress, running.len(), width, now_ms)];
    // Room for the cursor's line, and one more to be safe.
    let room = height.saturating_sub(lines.len() + 2);
    let shown = if running.len() > room {
        room.saturating_sub(1)
    } else {
        running.len()
    };
    for at in &running[..shown] {
        let mut line = Line::new(width);
        let Stage::Running {
            since_ms,
            attempt,
            checking,
            ..
        } = &progress.stages[*at]
        else {
            continue;
        };
        let task = &progress.tasks[*at];
        let spent = now_ms.saturating_sub(*since_ms);
        let spinner = ['|', '/', '-', '\\'][usize::try_from(spent / 250 % 4).unwrap_or(0)];
        line.push(&format!("  {spinner} "), CYAN);
        line.push(&format!("{:>6} ", time(spent)), DIM);
        line.push(&format!("{} ", clean_line(&task.id)), BOLD);
        if *checking {
            line.push("checking ", YELLOW);
        }
        if *attempt > 1 {
            line.push(&format!("attempt {attempt} "), YELLOW);
        }
        let subject = clean_line(&task.subject);
        line.push(if subject == task.id { "" } else { &subject }, PLAIN);
        lines.push(line.text);
    }
    if shown < running.len() && room > 0 {
        let mut line = Line::new(width);
        line.push(&format!("  … and {} more", running.len() - shown), DIM);
        lines.push(line.text);
    }
    lines
}

fn bar(progress: &Progress, running: usize, width: usize, now_ms: u64) -> String {
    let total = progress.tasks.len();
    let (good, bad) = progress.ended();
    let columns = (width / 3).clamp(4, 30);
    let part = |count: usize| (count * columns).checked_div(total).unwrap_or(columns);
    let (green, red) = (part(good), part(good + bad) - part(good));
    let blue = part(good + bad + running).saturating_sub(green + red);
    let mut line = Line::new(width);
    line.push(&"━".repeat(green), GREEN);
    line.push(&"━".repeat(red), RED);
    line.push(&"━".repeat(blue), CYAN);
    line.push(&"─".repeat(columns.saturating_sub(green + red + blue)), DIM);
    line.push(&format!(" {}/{total}", good + bad), BOLD);
    if bad > 0 {
        line.push(&format!("  {bad} not done"), RED);
    }
    if running > 0 {
        line.push(&format!("  {running} running"), CYAN);
    }
    if progress.landed > 0 {
        line.push(&format!("  {} landed", progress.landed), GREEN);
    }
    match (&progress.paused, progress.eta_ms(now_ms)) {
        (Some(_), _) => line.push("  paused", YELLOW),
        (None, Some(left)) if left > 0 => line.push(&format!("  about {} left", time(left)), DIM),
        _ => {}
    }
    line.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanout::PlannedEvent;

    fn progress(total: usize, running: usize, done: usize) -> Progress {
        let mut progress = Progress::default();
        let task = |n: usize| PlannedEvent {
            id: format!("task-{n}"),
            subject: format!("die Größe der 世界 {n} \x1b[31m{}", "x".repeat(200)),
            ..PlannedEvent::default()
        };
        let tasks = (0..total).map(task).collect();
        progress.take(
            &FanoutEvent::Planned {
                tasks,
                jobs: 4,
                team: "t".into(),
            },
            0,
        );
        for n in 0..running + done {
            let started = FanoutEvent::Started {
                task: format!("task-{n}"),
                agent: "a1".into(),
                attempt: 2,
            };
            progress.take(&started, 0);
        }
        for n in 0..done {
            let finished = FanoutEvent::Finished {
                task: format!("task-{n}"),
                outcome: Outcome::NoChange { proven: true },
            };
            progress.take(&finished, 5_000);
        }
        progress
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_frame_stays_within_the_terminal() {
        for (width, height) in [(80, 24), (20, 5), (10, 3), (1, 1), (3, 2), (200, 4)] {
            for (total, running, done) in [(0, 0, 0), (1, 1, 0), (50, 30, 20), (1000, 3, 7)] {
                let lines = frame(&progress(total, running, done), width, height, 9_000);
                assert!(
                    lines.len() <= height.saturating_sub(1).max(1),
                    "{width}x{height}: {lines:?}"
                );
                for line in &lines {
                    let line = plain(line);
                    assert!(line.width() < width.max(2), "{width}: {line:?}");
                    assert!(!line.contains(['\n', '\x1b']), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn a_frame_says_what_is_going_on() {
        let text = frame(&progress(10, 2, 3), 100, 24, 9_000).join("\n");
        let text = plain(&text);
        assert!(text.contains(" 3/10  2 running  about "), "{text}");
        assert!(text.contains("9.0 s task-3 attempt 2 die Größe"), "{text}");
        let many = plain(&frame(&progress(50, 30, 0), 100, 10, 0).join("\n"));
        assert!(many.contains("… and 24 more"), "{many}");
    }

    #[test]
    fn a_new_frame_covers_the_old_one() {
        let text = redraw(3, &["done".into()], &["bar".into()]);
        assert_eq!(
            text,
            "\x1b[?2026h\x1b[3A\rdone\x1b[K\nbar\x1b[K\n\x1b[J\x1b[?2026l"
        );
        assert!(!redraw(0, &[], &[]).contains('A'));
    }

    #[test]
    fn no_colour_still_moves_the_cursor() {
        let text = without_colours("\x1b[2A\r\x1b[32mgood\x1b[0m\x1b[K\n\x1b[?2026l");
        assert_eq!(text, "\x1b[2A\rgood\x1b[K\n\x1b[?2026l");
    }
}
