//! A failure as a person reads it: what failed, the last lines it printed, where the rest is.

use std::path::PathBuf;

use taskboard::Task;

use crate::run::Agents;

/// Maximum number of the last printed lines that are shown.
const SHOWN: usize = 8;

/// A failure's text, cut into the parts that are shown separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureText {
    /// The failed step and its error, on one line.
    pub what: String,
    /// The last lines that were printed.
    pub printed: Vec<String>,
    /// Number of lines before these.
    pub before: usize,
}

impl FailureText {
    /// Parses a reason as tasks store it: one line that says what failed, then the output.
    pub fn of(why: &str) -> Self {
        let mut lines = why.trim().lines();
        let what = lines.next().unwrap_or_default().trim_end_matches(':');
        let what = what.trim_end_matches("; it printed");
        let printed: Vec<&str> = lines
            .map(str::trim_end)
            .skip_while(|line| line.is_empty())
            .collect();
        let before = printed.len().saturating_sub(SHOWN);
        Self {
            what: what.to_owned(),
            printed: printed[before..]
                .iter()
                .map(|line| (*line).to_owned())
                .collect(),
            before,
        }
    }
}

/// The file with everything that was printed by the check of this run, or else by its agent.
pub fn log_of_run(agents: &Agents, run: &str) -> Option<PathBuf> {
    // A run that was resumed is known by its id and a number.
    let id = run.split('#').next().unwrap_or(run);
    let id = store::agent_id::AgentId::parse(id)?;
    let run = agents.run(id.as_str());
    [run.check_path(), run.output_path()]
        .into_iter()
        .find(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0))
}

/// The same of the last attempt at a task that has such a file.
pub fn log_of_task(agents: &Agents, task: &Task) -> Option<PathBuf> {
    let attempts = task.attempts();
    let mut runs = attempts.iter().rev().map(|attempt| attempt.run.as_str());
    runs.find_map(|run| log_of_run(agents, run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_from_what_was_printed() {
        let one = FailureText::of("the check `make` failed: exit code 2");
        assert_eq!(one.what, "the check `make` failed: exit code 2");
        assert!(one.printed.is_empty());

        let printed: String = (1..=20).map(|n| format!("line {n}  \n")).collect();
        let long = FailureText::of(&format!("it failed (exit code 1):\n\n{printed}\n"));
        assert_eq!(long.what, "it failed (exit code 1)");
        assert_eq!(long.printed.first().map(String::as_str), Some("line 13"));
        assert_eq!(long.printed.last().map(String::as_str), Some("line 20"));
        assert_eq!(long.before, 12);
        assert_eq!(FailureText::of("").what, "");
    }
}
