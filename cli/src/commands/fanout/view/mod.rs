//! Shows a run: on a terminal, as lines, as JSON, and to GitHub.
//!
//! The terminal view is a page of own code rather than a crate of progress bars: the frame is a
//! pure function of the events, so tests can check it, and it is written in one piece.

pub(crate) mod github;
mod json;
mod plain;
mod terminal;

use std::io::IsTerminal;
use std::time::Instant;

use fanout::{Events, FanoutEvent, Progress, shell_word};
use runs::env;
use store::clock::{Clock, SystemClock, rfc3339};

use crate::context::Context;

/// Shows the run.
pub(super) struct View {
    progress: Progress,
    began: Instant,
    show: Box<dyn Show>,
    github: bool,
    /// True if the view does not name the board.
    nameless: bool,
}

/// A way to show a run.
trait Show {
    /// Shows `event`, which `progress` already includes.
    fn show(&mut self, event: &FanoutEvent, progress: &Progress, now_ms: u64);
}

/// Shows nothing (`--quiet`).
struct Silent;

impl Show for Silent {
    fn show(&mut self, _: &FanoutEvent, _: &Progress, _: u64) {}
}

/// The view that fits the output.
pub(super) fn choose(ci: bool, nameless: bool, context: &Context) -> View {
    let stderr = std::io::stderr();
    let dumb = env::var("TERM").is_none_or(|term| term == "dumb");
    let github = env::var(env::GITHUB_ACTIONS).is_some_and(|value| value == "true");
    let show: Box<dyn Show> = if context.quiet {
        Box::new(Silent)
    } else if context.out.is_json() {
        Box::new(json::Json::new(context.out.clone()))
    } else if stderr.is_terminal() && !dumb && !github && !ci {
        Box::new(terminal::Terminal::start())
    } else {
        Box::new(plain::Plain::new(now))
    };
    View {
        progress: Progress::default(),
        began: Instant::now(),
        show,
        github: github && !context.out.is_json(),
        nameless,
    }
}

/// Writes GitHub's annotation for a plan that did not begin.
pub(super) fn annotate(message: &str) {
    if env::var(env::GITHUB_ACTIONS).is_some_and(|value| value == "true") {
        plain::write_line(&github::not_run(message));
    }
}

/// The command that shows the board of a plan, from where this one was started.
pub(super) fn board_command(team: &str) -> String {
    let mut words = vec!["ccb".to_owned()];
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--home" | "-C" => {
                words.push(word);
                words.extend(given.next().map(|value| shell_word(&value)));
            }
            word if word.starts_with("--home=") => words.push(shell_word(word)),
            _ => {}
        }
    }
    words.extend(["--team", team, "task", "list"].map(str::to_owned));
    words.join(" ")
}

fn now() -> String {
    let time = rfc3339(SystemClock.now_ms());
    // Milliseconds do not help the reader here.
    format!("{}Z", time.get(..19).unwrap_or(&time))
}

impl Events for View {
    fn event(&mut self, event: &FanoutEvent) {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let unnamed = match event {
            FanoutEvent::Planned { tasks, jobs, .. } if self.nameless => {
                Some(FanoutEvent::Planned {
                    tasks: tasks.clone(),
                    jobs: *jobs,
                    team: String::new(),
                })
            }
            _ => None,
        };
        let event = unnamed.as_ref().unwrap_or(event);
        self.progress.take(event, now_ms);
        self.show.show(event, &self.progress, now_ms);
        if self.github
            && let Some(line) = github::annotation(event, &self.progress)
        {
            plain::write_line(&line);
        }
    }
}
