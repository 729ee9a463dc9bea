//! Does the run converge? Computed from measured values; reads no file.

use std::collections::{BTreeMap, HashMap, HashSet};

use runs::failure_text::FailureText;
use runs::progress::{Progress, is_check_failure, is_same_failure, judge};
use store::clock::parse_rfc3339;
use store::text::{clean, clean_cut};
use taskboard::{Attempt, Change, Snapshot, Status, Task, TaskId};

/// Maximum characters of the reason of a failed attempt.
const WHY: usize = 300;
/// Maximum number of points of a series.
const POINTS: usize = 120;
/// Number of measured tasks that an estimate needs.
const MEASURED: usize = 2;

/// A warning about an agent for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The kind of the warning.
    pub kind: MarkKind,
    /// The reason in words, on one line.
    pub why: String,
}

/// The kind of a warning about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// It makes the same tool call again and again, or two in turn.
    Repeats,
    /// It works, but its worktree does not change.
    ChangesNothing,
}

/// The state of a task's check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckState {
    /// The task has no check.
    #[default]
    None,
    /// It has not been run yet.
    NotRun,
    /// It failed this many times, and has not passed since.
    Red(usize),
    /// It passed, after this many failures.
    Green(usize),
}

/// The difference of an attempt from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// There is no earlier attempt.
    First,
    /// The same failure, and nothing changed in the worktree: no progress.
    Nothing,
    /// The same failure, although something changed.
    SameFailure,
    /// Another failure.
    NewFailure,
}

/// The size of an attempt's changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffSize {
    /// Number of files.
    pub files: usize,
    /// Number of new lines.
    pub added: u64,
    /// Number of deleted lines.
    pub deleted: u64,
}

/// A failed attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptScene {
    /// The run that made it.
    pub run: String,
    /// In one word: `failed`, `lost`, `died`, `rejected`.
    pub status: String,
    /// The error, on one line.
    pub why: String,
    /// The last lines of its output.
    pub printed: Vec<String>,
    /// The time, in ms.
    pub at_ms: i64,
    /// True if it counts against the task. An agent that was killed says nothing about its task.
    pub counts: bool,
    /// True if the task's check failed, and not an earlier step.
    pub check_failed: bool,
    /// The difference from the attempt before.
    pub difference: Difference,
    /// The size of the changes in its worktree; `None` if unknown.
    pub size: Option<DiffSize>,
}

/// The progress of a run, with estimates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunProgress {
    /// Number of completed tasks.
    pub done: usize,
    /// Number of all tasks, also those that cannot start.
    pub total: usize,
    /// Number of completed tasks over time, for a sparkline: `(ms, done)`, oldest first. Begins
    /// with the first remembered change of the board.
    pub series: Vec<(i64, usize)>,
    /// Estimated time for the rest at the present pace, in ms. `None` while too little was
    /// measured, or when no task is left that can run without a person.
    pub left_ms: Option<i64>,
    /// Number of tasks that the estimate is based on.
    pub measured: usize,
    /// US dollars so far, as reported by providers.
    pub cost_usd: f64,
    /// The estimated total, if the rest costs as much per task.
    pub cost_at_end_usd: Option<f64>,
    /// Number of failed attempts of all tasks.
    pub failures: usize,
    /// Tasks that fail in the same way repeatedly.
    pub stuck: Vec<TaskId>,
}

/// The times of tasks, from the board's history.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The last start of each task.
    begun: BTreeMap<TaskId, i64>,
    /// The time each task was completed, and the duration of its last attempt if known. A reopened
    /// task is not in it.
    done: BTreeMap<TaskId, (i64, Option<i64>)>,
    /// Number of completed tasks over time.
    series: Vec<(i64, usize)>,
}

impl Times {
    /// Applies changes of the board.
    pub(super) fn take(&mut self, changes: &[Change]) {
        for change in changes {
            let Some(at) = parse_rfc3339(&change.ts) else {
                continue;
            };
            let before = self.done.len();
            match status_after(change) {
                Some(Status::Completed) => {
                    let begun = self.begun.get(&change.id);
                    let took = begun.map(|begun| (at - begun).max(0));
                    self.done.entry(change.id).or_insert((at, took));
                }
                Some(Status::InProgress) => {
                    self.done.remove(&change.id);
                    self.begun.entry(change.id).or_insert(at);
                }
                Some(Status::Pending) | None => {
                    self.done.remove(&change.id);
                    self.begun.remove(&change.id);
                }
            }
            if self.series.is_empty() || self.done.len() != before {
                self.series.push((at, self.done.len()));
            }
        }
    }

    /// The time a task was completed.
    pub(super) fn done_ms(&self, id: TaskId) -> Option<i64> {
        self.done.get(&id).map(|(at, _)| *at)
    }

    /// The durations of completed tasks, shortest first.
    fn durations(&self) -> Vec<i64> {
        let mut all: Vec<i64> = self.done.values().filter_map(|(_, took)| *took).collect();
        all.sort_unstable();
        all
    }

    /// The series with at most as many points as a view can show; the last one is always in it.
    fn points(&self) -> Vec<(i64, usize)> {
        let step = self.series.len().div_ceil(POINTS).max(1);
        let mut points: Vec<(i64, usize)> =
            self.series.iter().rev().step_by(step).copied().collect();
        points.reverse();
        points
    }
}

fn status_after(change: &Change) -> Option<Status> {
    let internal = change.task.as_ref()?["metadata"]["_internal"] == true;
    let status = change.task.as_ref()?["status"].as_str()?;
    Status::parse(status).filter(|_| !internal)
}

/// The open tasks of a board that can run without a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// Number of tasks that are open and can run: not parked, and without a parked dependency.
    pub(super) open: usize,
    /// The length of the longest chain among them.
    pub(super) chain: usize,
    /// Number of agents that work at the same time.
    pub(super) at_once: usize,
}

impl Rest {
    /// Computes it for this board and number of agents.
    pub(super) fn of(tally: &Tally, at_once: usize) -> Self {
        Self {
            open: tally.open,
            chain: tally.chain.min(tally.open),
            at_once: at_once.max(1),
        }
    }
}

/// The counts of a board. They follow from the board alone, so they are computed once per change.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    done: usize,
    total: usize,
    /// See [`Rest::open`].
    open: usize,
    /// The length of the longest chain.
    chain: usize,
    failures: usize,
    stuck: Vec<TaskId>,
}

impl Tally {
    /// Counts this board, whose longest chain is `chain`.
    pub(super) fn of(board: &Snapshot, chain: &[TaskId]) -> Self {
        let held_up = held_up(board);
        let mut tally = Self {
            total: board.unreadable().len(),
            chain: chain.len(),
            ..Self::default()
        };
        for task in board.tasks().filter(|task| !task.is_internal()) {
            tally.total += 1;
            tally.failures += task.failures();
            match task.status {
                Status::Completed => tally.done += 1,
                _ => {
                    tally.open += usize::from(!held_up.contains(&task.id));
                    tally.stuck.extend(stuck(task).map(|_| task.id));
                }
            }
        }
        tally
    }
}

/// The tasks that are parked or cannot be read, and those that wait for one of them.
fn held_up(board: &Snapshot) -> HashSet<TaskId> {
    let mut waits: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    let mut next: Vec<TaskId> = board.unreadable().keys().copied().collect();
    for task in board.tasks() {
        if task.parked().is_some() {
            next.push(task.id);
        }
        for blocker in board.open_blockers(task.id) {
            waits.entry(blocker).or_default().push(task.id);
        }
    }
    let mut found = HashSet::new();
    while let Some(id) = next.pop() {
        if found.insert(id) {
            next.extend(waits.get(&id).into_iter().flatten());
        }
    }
    found
}

/// The time for the rest if each task takes the median duration: the longer of all of it shared out
/// among the agents, and the longest chain in sequence.
pub(super) fn left_ms(durations: &[i64], rest: Rest) -> Option<i64> {
    if durations.len() < MEASURED || rest.open == 0 {
        return None;
    }
    let median = durations[durations.len() / 2];
    let rounds = rest.open.div_ceil(rest.at_once.max(1)).max(rest.chain);
    Some(median.saturating_mul(i64::try_from(rounds).unwrap_or(i64::MAX)))
}

/// The total cost if each remaining task costs as much as the completed ones.
pub(super) fn cost_at_end(cost_usd: f64, done: usize, open: usize) -> Option<f64> {
    let measured = done >= MEASURED && cost_usd > 0.0;
    measured.then(|| cost_usd + cost_usd / done as f64 * open as f64)
}

/// The progress of a team. `cost_usd` is its cost so far.
pub(super) fn of_run(tally: &Tally, times: &Times, rest: Rest, cost_usd: f64) -> RunProgress {
    let durations = times.durations();
    RunProgress {
        done: tally.done,
        total: tally.total,
        series: times.points(),
        left_ms: left_ms(&durations, rest),
        measured: durations.len(),
        cost_usd,
        cost_at_end_usd: cost_at_end(cost_usd, tally.done, rest.open),
        failures: tally.failures,
        stuck: tally.stuck.clone(),
    }
}

/// Number of consecutive failures of a task in the same way, without a change in between.
pub(super) fn stuck(task: &Task) -> Option<usize> {
    match judge(&task.attempts()) {
        Progress::Stuck { times, .. } => Some(times),
        Progress::GoesOn => None,
    }
}

/// The state of the task's check.
pub(super) fn check_state(task: &Task) -> CheckState {
    let attempts = task.attempts();
    let red = attempts.iter().filter(|it| is_check_failure(&it.why));
    let red = red.count();
    let passed = task.result().is_some_and(|result| result.check_passed());
    match (task.verify_command(), passed, red) {
        (None, ..) => CheckState::None,
        (Some(_), true, red) => CheckState::Green(red),
        (Some(_), false, 0) => CheckState::NotRun,
        (Some(_), false, red) => CheckState::Red(red),
    }
}

/// The attempts at a task, each compared with the one before.
pub(super) fn attempts(all: &[Attempt]) -> Vec<AttemptScene> {
    let mut before: Option<&Attempt> = None;
    let mut scenes = Vec::new();
    for attempt in all {
        let text = FailureText::of(&attempt.why);
        scenes.push(AttemptScene {
            run: attempt.run.clone(),
            status: clean_cut(&attempt.status, WHY),
            why: clean_cut(&text.what, WHY),
            printed: text.printed.iter().map(|line| clean(line)).collect(),
            at_ms: parse_rfc3339(&attempt.at).unwrap_or(0),
            counts: attempt.counts,
            check_failed: is_check_failure(&attempt.why),
            difference: before.map_or(Difference::First, |before| difference(before, attempt)),
            size: None,
        });
        before = Some(attempt);
    }
    scenes
}

fn difference(before: &Attempt, now: &Attempt) -> Difference {
    match is_same_failure(&before.why, &now.why) {
        // An unknown worktree counts as unchanged, as in the decision about retries.
        true if before.tree == now.tree => Difference::Nothing,
        true => Difference::SameFailure,
        false => Difference::NewFailure,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(number: u64) -> TaskId {
        TaskId::new(number).unwrap()
    }

    fn change(number: u64, second: u32, status: &str) -> Change {
        Change {
            seq: 1,
            ts: format!("2026-01-01T00:00:{second:02}.000Z"),
            op: "update".into(),
            id: id(number),
            task: Some(json!({ "status": status })),
            foreign: false,
        }
    }

    fn attempt(why: &str, tree: &str) -> Attempt {
        Attempt {
            tree: Some(tree.to_owned()),
            at: "2026-01-01T00:00:00.000Z".to_owned(),
            ..Attempt::new("r".to_owned(), "failed", why)
        }
    }

    #[test]
    fn times_are_measured_from_the_claim_to_the_end_and_taken_back_when_it_is_opened_again() {
        let mut times = Times::default();
        times.take(&[
            change(1, 0, "pending"),
            change(2, 0, "pending"),
            change(1, 5, "in_progress"),
            // Recorded twice: the first counts.
            change(1, 6, "in_progress"),
            change(1, 15, "completed"),
            // By hand: its duration is unknown.
            change(2, 20, "completed"),
        ]);
        assert_eq!(times.durations(), [10_000]);
        let done: Vec<usize> = times.points().iter().map(|(_, done)| *done).collect();
        assert_eq!(done, [0, 1, 2]);
        times.take(&[change(1, 30, "pending")]);
        assert_eq!(times.done_ms(id(1)), None);
        assert_eq!(times.points().last().map(|(_, done)| *done), Some(1));
        // A failed attempt does not count into the next one's time.
        times.take(&[change(1, 40, "in_progress"), change(1, 44, "completed")]);
        assert_eq!(times.durations(), [4_000]);
        let gone = Change {
            task: None,
            ..change(1, 50, "")
        };
        times.take(&[gone]);
        assert_eq!(times.durations(), Vec::<i64>::new());
    }

    #[test]
    fn a_long_series_is_thinned_out_and_ends_with_the_last() {
        let mut times = Times::default();
        for number in 1..=1_000 {
            times.take(&[change(number, 1, "completed")]);
        }
        let points = times.points();
        assert!(points.len() <= POINTS, "{}", points.len());
        assert_eq!(points.last().map(|(_, done)| *done), Some(1_000));
    }

    #[test]
    fn the_rest_takes_as_long_as_its_longest_chain_or_all_of_it_shared_out() {
        let rest = |open, chain, at_once| Rest {
            open,
            chain,
            at_once,
        };
        let took = [1_000, 2_000, 60_000];
        assert_eq!(left_ms(&took, rest(6, 1, 2)), Some(6_000));
        assert_eq!(left_ms(&took, rest(6, 5, 6)), Some(10_000));
        assert_eq!(left_ms(&took, rest(0, 0, 2)), None, "nothing is left");
        assert_eq!(
            left_ms(&took[..1], rest(6, 1, 2)),
            None,
            "too little is known"
        );
        assert_eq!(left_ms(&[i64::MAX; 2], rest(6, 1, 1)), Some(i64::MAX));
    }

    #[test]
    fn the_rest_costs_what_the_others_did() {
        assert_eq!(cost_at_end(4.0, 2, 3), Some(10.0));
        assert_eq!(cost_at_end(4.0, 2, 0), Some(4.0));
        assert_eq!(cost_at_end(4.0, 1, 3), None);
        assert_eq!(cost_at_end(0.0, 5, 3), None, "nobody says what it costs");
    }

    #[test]
    fn what_waits_for_a_parked_task_is_not_open() {
        let home = tempfile::tempdir().unwrap();
        let home = store::home::Home::new(home.path().to_owned()).unwrap();
        let name = store::name::Name::new("list", "board").unwrap();
        let board = taskboard::Board::new(&home, name, taskboard::BoardOptions::default());
        let task = |number: u64, after: &[u64]| taskboard::NewTask {
            subject: format!("task {number}"),
            blocked_by: after
                .iter()
                .map(|number| taskboard::Reference::Id(id(*number)))
                .collect(),
            ..taskboard::NewTask::default()
        };
        for new in [
            task(1, &[]),
            task(2, &[]),
            task(3, &[2]),
            task(4, &[3, 1]),
            task(5, &[1]),
        ] {
            board.create(&[new], None).unwrap();
        }
        let enough = |_: &[Attempt]| Some("it failed too often".to_owned());
        let caller = taskboard::Caller::forced("engine");
        board
            .attempt_failed(id(2), &caller, &attempt("no", "t"), &enough)
            .unwrap();
        let snapshot = board.snapshot().unwrap();
        let tally = Tally::of(&snapshot, &[id(1), id(5)]);
        assert_eq!((tally.total, tally.done), (5, 0));
        // 1 and 5; 2 is parked, 3 and 4 wait for it.
        assert_eq!(
            Rest::of(&tally, 0),
            Rest {
                open: 2,
                chain: 2,
                at_once: 1
            }
        );
    }

    #[test]
    fn attempts_are_compared_with_the_one_before() {
        let all = [
            attempt("the check `make` failed: exit code 2:\nboom\x1b[2J", "a"),
            attempt("the check `make` failed: exit code 1:\nboom\x1b[2J", "a"),
            attempt("the check `make` failed: exit code 1:\nboom\x1b[2J", "b"),
            attempt("it ended with exit code 3", "b"),
        ];
        let scenes = attempts(&all);
        let differences: Vec<Difference> = scenes.iter().map(|one| one.difference).collect();
        assert_eq!(
            differences,
            [
                Difference::First,
                Difference::Nothing,
                Difference::SameFailure,
                Difference::NewFailure
            ]
        );
        let red: Vec<bool> = scenes.iter().map(|one| one.check_failed).collect();
        assert_eq!(red, [true, true, true, false]);
        assert_eq!(scenes[0].printed, ["boom\u{fffd}[2J"]);
    }
}
