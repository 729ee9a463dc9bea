//! A board as a view shows it.

use std::collections::BTreeMap;

use landing::LandState;
use runs::failure_text::FailureText;
use store::text::{clean, clean_cut, clean_line, cut_bytes};
use taskboard::{Graph, Snapshot, Status, Task, TaskId};

use super::progress::{Times, attempts, check_state, stuck};
use super::scene::{GraphScene, TaskScene, TaskState};
use super::{CheckState, TROUBLE};

/// Maximum bytes of a description.
const DESCRIPTION: usize = 16 * 1024;

/// The tasks a person sees, by number.
pub(super) fn tasks_of(
    board: &Snapshot,
    times: &Times,
    landings: &BTreeMap<TaskId, LandState>,
) -> Vec<TaskScene> {
    let visible = board.tasks().filter(|task| !task.is_internal());
    let mut all: Vec<TaskScene> = visible
        .map(|task| {
            let landing = landings.get(&task.id).copied();
            TaskScene {
                landing: landing.unwrap_or(LandState::NotDone),
                done_ms: times.done_ms(task.id),
                ..task_scene(task, board)
            }
        })
        .collect();
    for (id, bad) in board.unreadable() {
        all.push(unreadable(*id, &bad.detail));
    }
    all.sort_by_key(|task| task.id);
    all
}

fn task_scene(task: &Task, board: &Snapshot) -> TaskScene {
    let parked = task.parked().map(|why| FailureText::of(why).what);
    let blocked_by = match task.status {
        Status::Completed => Vec::new(),
        _ => board.open_blockers(task.id),
    };
    let result = task.result();
    let tree = result.and_then(|result| result.worktree);
    let (description, _) = cut_bytes(&task.description, DESCRIPTION);
    TaskScene {
        id: task.id,
        subject: clean_line(&task.subject),
        description: clean(description),
        active_form: clean_line(task.active_form()),
        state: state_of(task, !blocked_by.is_empty()),
        owner: task.owner.as_deref().map(clean_line),
        blocked_by,
        why: parked.map(|why| clean_cut(&why, TROUBLE)),
        priority: task.priority(),
        command: task.run_command().map(clean_line),
        check: task.verify_command().map(clean_line),
        check_state: check_state(task),
        unchecked: task.unchecked().map(|why| clean_line(&why.to_string())),
        attempts: attempts(&task.attempts()),
        stuck: stuck(task),
        landing: LandState::NotDone,
        worktree: tree.or(task.worktree().map(str::to_owned)),
        done_ms: None,
    }
}

fn state_of(task: &Task, blocked: bool) -> TaskState {
    match task.status {
        Status::Completed if task.is_reported() => TaskState::Reported,
        Status::Completed => TaskState::Completed,
        Status::InProgress => TaskState::InProgress,
        Status::Pending if task.parked().is_some() => TaskState::Parked,
        Status::Pending if blocked => TaskState::Blocked,
        Status::Pending if task.owner.is_some() => TaskState::Assigned,
        Status::Pending => TaskState::Ready,
    }
}

fn unreadable(id: TaskId, why: &str) -> TaskScene {
    TaskScene {
        id,
        subject: format!("task {id}"),
        description: String::new(),
        active_form: String::new(),
        state: TaskState::Unreadable,
        owner: None,
        blocked_by: Vec::new(),
        why: Some(clean_cut(why, TROUBLE)),
        priority: 0,
        command: None,
        check: None,
        check_state: CheckState::None,
        unchecked: None,
        attempts: Vec::new(),
        stuck: None,
        landing: LandState::NotDone,
        worktree: None,
        done_ms: None,
    }
}

/// The dependencies among the tasks a person sees.
pub(super) fn graph_of(board: &Snapshot) -> GraphScene {
    let graph = Graph::new(board);
    let is_shown = |id: &TaskId| board.get(*id).is_none_or(|task| !task.is_internal());
    let shown = |mut ids: Vec<TaskId>| {
        ids.retain(is_shown);
        ids
    };
    let mut edges = Vec::new();
    for task in board.tasks().filter(|task| is_shown(&task.id)) {
        let blockers = board.blockers(task.id).into_iter().filter(is_shown);
        edges.extend(blockers.map(|blocker| (blocker, task.id)));
    }
    edges.sort_unstable();
    let levels = graph.levels().into_iter().map(shown);
    GraphScene {
        edges,
        levels: levels.filter(|level| !level.is_empty()).collect(),
        critical_path: shown(graph.critical_path()),
        cycles: graph.cycles(),
    }
}
