//! The names under which a remote keeps the results of runs, where several machines share a board.

use taskboard::TaskId;

/// The prefix of the names of a list's results.
pub fn results_of(list: &str) -> String {
    format!("results/{list}")
}

/// The name, below `refs/ccb/`, of the work of this run for a task. No two runs have one name, so
/// nothing is ever replaced there.
pub fn result_name(list: &str, task: TaskId, run: &str) -> String {
    format!("results/{list}/{task}/{run}")
}
