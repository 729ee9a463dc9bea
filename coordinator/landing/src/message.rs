//! The commit messages for tasks.

use taskboard::{Task, TaskResult};
use worktrees::Trees;

/// Maximum characters of a check in a commit message.
const CHECK: usize = 200;

/// The message of a commit with the work on a task.
pub fn of_work(task: &Task, list: &str, check: Option<&str>) -> String {
    format!("{}\n\n{}", subject(task), trailers(task, list, check))
}

/// The message of the merge commit of a task.
pub(crate) fn of_merge(task: &Task, list: &str, check: Option<&str>) -> String {
    let (id, subject) = (task.id, subject(task));
    format!(
        "Merge task {id}: {subject}\n\n{}",
        trailers(task, list, check)
    )
}

/// True if the work on the task is one commit that names the task.
pub(super) fn says_it(task: &Task, list: &str, result: &TaskResult, trees: &Trees) -> bool {
    let (Some(base), Some(commit)) = (&result.base, &result.commit) else {
        return false;
    };
    let named = format!("Task: {list}#{}", task.id);
    let message = trees.only_commit(base, commit);
    message.is_some_and(|message| message.lines().any(|line| line == named))
}

fn subject(task: &Task) -> String {
    // A second line would end the subject, and an empty line would begin the body.
    task.subject
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ")
}

fn trailers(task: &Task, list: &str, check: Option<&str>) -> String {
    let mut text = format!("Task: {list}#{}\n", task.id);
    if let Some(check) = check {
        let line = check.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(CHECK).collect();
        let more = if short.len() < line.len() { "…" } else { "" };
        text.push_str(&format!("Check: {short}{more}\n"));
    }
    text
}
