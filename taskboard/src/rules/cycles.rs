//! Tasks that wait for each other in a circle.

use petgraph::algo::{astar, kosaraju_scc};
use petgraph::graphmap::DiGraphMap;

use crate::id::TaskId;

/// Groups of tasks in a circle of `edges`, counting only those that are open: a completed task
/// blocks no other.
pub(crate) fn cycles(
    edges: &DiGraphMap<TaskId, ()>,
    is_open: impl Fn(TaskId) -> bool,
) -> Vec<Vec<TaskId>> {
    let mut open = DiGraphMap::<TaskId, ()>::new();
    for (from, to, ()) in edges.all_edges() {
        if is_open(from) && is_open(to) {
            open.add_edge(from, to, ());
        }
    }
    let mut cycles: Vec<Vec<TaskId>> = kosaraju_scc(&open)
        .into_iter()
        .filter(|group| group.len() > 1 || open.contains_edge(group[0], group[0]))
        .collect();
    for cycle in &mut cycles {
        cycle.sort_unstable();
    }
    cycles.sort_unstable();
    cycles
}

/// The cycle that an edge would close in `edges`, starting and ending with `blocker`.
pub(crate) fn cycle_with(
    edges: &DiGraphMap<TaskId, ()>,
    blocker: TaskId,
    dependent: TaskId,
) -> Option<Vec<TaskId>> {
    if blocker == dependent {
        return Some(vec![blocker, blocker]);
    }
    if !edges.contains_node(dependent) {
        return None;
    }
    let (_, back) = astar(edges, dependent, |id| id == blocker, |_| 1_u32, |_| 0)?;
    Some(std::iter::once(blocker).chain(back).collect())
}
