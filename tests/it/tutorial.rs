//! docs/tutorial.md, typed line by line at a terminal: every command works, and the screen shows
//! what the tutorial shows.

use std::path::PathBuf;
use std::process::Command;

use harness::path_with_ccb;
use harness::terminal::Terminal;

use crate::{CCB, ON_TERMINAL};

const TUTORIAL: &str = include_str!("../../docs/tutorial.md");
/// The text between a question and the typed answer.
const ASKED: &str = "[d]iff ";
const ASKED_TO: &str = "[y/N] ";

/// One command of the tutorial, and its output below it.
#[derive(Debug, Default)]
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The commands of all `console` blocks, in order. A line that ends in a backslash continues.
fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for line in TUTORIAL.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                ..Step::default()
            });
            goes_on = command.ends_with('\\');
        } else if goes_on {
            let step = steps.last_mut().expect("a command");
            step.command = format!("{}\n{line}", step.command);
            goes_on = line.ends_with('\\');
        } else if let Some(step) = steps.last_mut() {
            step.shown.push(line.to_owned());
        }
    }
    steps
}

/// True if two words are the same but for parts that differ from run to run: times, commits, ids.
fn same_word(told: &str, seen: &str) -> bool {
    told == seen || (shape(told).is_some() && shape(told) == shape(seen))
}

fn shape(word: &str) -> Option<&'static str> {
    let word = word.trim_matches(|c: char| "()[]:;,.\"'`".contains(c));
    let digits = |c: char| c.is_ascii_digit();
    if word.len() == 8 && word.matches(':').count() == 2 && word.starts_with(digits) {
        return Some("a time");
    }
    if word.contains("agent-") || word.contains("/runs/") {
        return Some("an agent");
    }
    let number = word.trim_end_matches(['s', 'm']);
    if !number.is_empty() && number.chars().all(|c| digits(c) || c == '.') && number != word
        || word.contains('.') && word.chars().all(|c| digits(c) || c == '.')
    {
        return Some("a duration");
    }
    let hex = word.chars().all(|c| c.is_ascii_hexdigit());
    (hex && word.len() >= 7).then_some("a commit")
}

fn same_line(told: &str, seen: &str) -> bool {
    let (told, seen): (Vec<&str>, Vec<&str>) = (
        told.split_whitespace().collect(),
        seen.split_whitespace().collect(),
    );
    told.len() == seen.len()
        && told
            .iter()
            .zip(&seen)
            .all(|(told, seen)| same_word(told, seen))
}

/// The typed answers to questions in the output of a step.
fn answers(step: &Step) -> Vec<(String, String)> {
    let asked = step.shown.iter().filter_map(|line| {
        let mark = [ASKED, ASKED_TO]
            .into_iter()
            .find(|mark| line.contains(mark))?;
        let (question, answer) = line.split_once(mark)?;
        Some((question.trim().to_owned(), answer.trim().to_owned()))
    });
    asked.filter(|(_, answer)| !answer.is_empty()).collect()
}

#[test]
fn the_tutorial_shows_what_a_person_sees() {
    let home = tempfile::tempdir().unwrap();
    let bin = path_with_ccb(CCB);
    let path = format!(
        "{}:{}",
        bin.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut directory: PathBuf = home.path().to_owned();
    let place = home.path().join("place");
    let steps = steps();
    assert!(steps.len() > 15, "{steps:?}");
    for step in &steps {
        let script = format!(
            "eval \"$(ccb shell-init bash)\"\n{}\ncode=$?\npwd > '{}'\nexit $code",
            step.command,
            place.display()
        );
        let mut command = Command::new("bash");
        command
            .args(["--norc", "-c", &script])
            .current_dir(&directory)
            .env("HOME", home.path())
            .env("PATH", &path)
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_PAGER", "cat")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        // All of it is on the screen.
        let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 200);
        for (question, answer) in answers(step) {
            terminal.wait_for_text(&question);
            terminal.type_keys(&format!("{answer}\r"));
        }
        let (_, screen) = terminal.end();
        let rows = screen.rows();
        let mut rows = rows.iter();
        for told in step
            .shown
            .iter()
            .filter(|line| !line.trim().is_empty() && *line != "…")
        {
            let found = rows.any(|seen| same_line(told, seen));
            assert!(
                found,
                "$ {}\ndoes not show\n{told}\nin\n{screen:?}",
                step.command
            );
        }
        let now = std::fs::read_to_string(&place).unwrap();
        directory = PathBuf::from(now.trim_end());
    }
}

#[test]
fn what_differs_from_run_to_run_is_not_compared() {
    assert!(same_line(
        "12:00:01 ✔ #1 done, checked 0.4 s",
        "23:59:59 ✔ #1 done, checked 12.0 s"
    ));
    assert!(same_line(
        "⇥ #1 is on main 112a307bb7",
        "⇥ #1 is on main abcdef0123"
    ));
    assert!(same_line(
        "cd .claude/worktrees/agent-1a",
        "cd .claude/worktrees/agent-2b"
    ));
    assert!(!same_line("#1 done", "#2 done"));
    assert!(!same_line("2 of 3 tasks", "1 of 3 tasks"));
    assert!(!same_line("one two", "one two three"));
}
