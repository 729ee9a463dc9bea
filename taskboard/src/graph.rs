//! The dependency graph: cycles, levels, the critical path, and its pictures.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;

use petgraph::graphmap::DiGraphMap;
use petgraph::visit::Topo;
use serde_json::{Value, json};

use crate::id::TaskId;
use crate::proof::Unchecked;
use crate::rules::ready::Dependencies;
use crate::snapshot::Snapshot;
use crate::task::Status;

/// A snapshot as a graph; an edge leads from a task to one that waits for it.
#[derive(Debug)]
pub struct Graph<'s> {
    snapshot: &'s Snapshot,
    edges: DiGraphMap<TaskId, ()>,
}

/// One line of the graph drawn as a tree.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeLine {
    /// The branches drawn before the task.
    pub prefix: String,
    /// The task.
    pub id: TaskId,
    /// True if it was drawn above, with the tasks below it.
    pub repeated: bool,
}

impl<'s> Graph<'s> {
    /// The graph of all tasks, readable or not.
    pub fn new(snapshot: &'s Snapshot) -> Self {
        let mut edges = DiGraphMap::new();
        let ids = snapshot.tasks().map(|task| task.id);
        for id in ids.chain(snapshot.unreadable().keys().copied()) {
            edges.add_node(id);
        }
        for task in snapshot.tasks() {
            let before = snapshot
                .blockers(task.id)
                .into_iter()
                .map(|other| (other, task.id));
            let after = snapshot
                .dependents(task.id)
                .into_iter()
                .map(|other| (task.id, other));
            for (from, to) in before.chain(after) {
                if edges.contains_node(from) && edges.contains_node(to) {
                    edges.add_edge(from, to, ());
                }
            }
        }
        Self { snapshot, edges }
    }

    /// Groups of unfinished tasks that wait for each other in a circle.
    pub fn cycles(&self) -> Vec<Vec<TaskId>> {
        self.snapshot.index().cycles()
    }

    /// Tasks by how many rounds of others must come first; those on a cycle are left out.
    pub fn levels(&self) -> Vec<Vec<TaskId>> {
        let mut level: BTreeMap<TaskId, usize> = BTreeMap::new();
        let mut order = Topo::new(&self.edges);
        while let Some(id) = order.next(&self.edges) {
            let before = self.edges.neighbors_directed(id, petgraph::Incoming);
            let rank = before
                .filter_map(|b| level.get(&b).map(|rank| rank + 1))
                .max();
            level.insert(id, rank.unwrap_or(0));
        }
        let mut levels = vec![Vec::new(); level.values().max().map_or(0, |max| max + 1)];
        for (id, rank) in level {
            levels[rank].push(id);
        }
        levels
    }

    /// The longest chain of unfinished tasks.
    pub fn critical_path(&self) -> Vec<TaskId> {
        let chains = self.snapshot.index().chains();
        let start = chains
            .iter()
            .max_by_key(|(id, length)| (**length, std::cmp::Reverse(**id)));
        let mut path = Vec::new();
        let mut next = start.map(|(id, _)| *id);
        while let Some(id) = next {
            path.push(id);
            let rest = chains[&id] - 1;
            next = self
                .edges
                .neighbors(id)
                .filter(|n| rest > 0 && chains.get(n) == Some(&rest))
                .min();
        }
        path
    }

    /// The graph drawn from the tasks without blockers down to those that wait for them.
    pub fn tree(&self) -> Vec<TreeLine> {
        let mut lines = Vec::new();
        let mut seen = HashSet::new();
        let incoming = |id| {
            self.edges
                .neighbors_directed(id, petgraph::Incoming)
                .count()
        };
        let nodes: BTreeSet<TaskId> = self.edges.nodes().collect();
        let roots = nodes.iter().copied().filter(|id| incoming(*id) == 0);
        // A group that consists of cycles has no root; start it at its lowest id.
        for root in roots.chain(nodes.iter().copied()) {
            if !seen.contains(&root) {
                self.draw(root, &mut seen, &mut lines);
            }
        }
        lines
    }

    fn draw(&self, root: TaskId, seen: &mut HashSet<TaskId>, lines: &mut Vec<TreeLine>) {
        // Each entry: the task, what is drawn before it, what is drawn before its children.
        let mut stack = vec![(root, String::new(), String::new())];
        while let Some((id, prefix, below)) = stack.pop() {
            let children: BTreeSet<TaskId> = self.edges.neighbors(id).collect();
            let repeated = !seen.insert(id) && !children.is_empty();
            lines.push(TreeLine {
                prefix,
                id,
                repeated,
            });
            if repeated {
                continue;
            }
            for (n, child) in children.iter().rev().enumerate() {
                let (branch, rest) = if n == 0 {
                    ("└─ ", "   ")
                } else {
                    ("├─ ", "│  ")
                };
                stack.push((*child, format!("{below}{branch}"), format!("{below}{rest}")));
            }
        }
    }

    /// The JSON object `{"nodes","edges","levels","criticalPath","ready","cycles","halfEdges"}`.
    pub fn to_json(&self) -> Value {
        let nodes: Vec<Value> = self
            .snapshot
            .tasks()
            .map(|task| {
                json!({
                    "id": task.id,
                    "subject": task.subject,
                    "status": task.status.as_str(),
                    "owner": task.owner,
                    "ready": self.snapshot.is_ready(task),
                    "blockedBy": self.snapshot.open_blockers(task.id),
                })
            })
            .chain(
                self.snapshot
                    .unreadable()
                    .keys()
                    .map(|id| json!({"id": id, "status": "unreadable", "ready": false})),
            )
            .collect();
        let ready: Vec<TaskId> = self
            .snapshot
            .tasks()
            .filter(|t| self.snapshot.is_ready(t))
            .map(|t| t.id)
            .collect();
        let edge = |from: TaskId, to: TaskId| json!({"from": from, "to": to});
        json!({
            "nodes": nodes,
            "edges": self.sorted_edges().into_iter().map(|(a, b)| edge(a, b)).collect::<Vec<_>>(),
            "levels": self.levels(),
            "criticalPath": self.critical_path(),
            "ready": ready,
            "cycles": self.cycles(),
            "halfEdges": self.snapshot.half_edges().into_iter()
                .map(|(a, b)| edge(a, b)).collect::<Vec<_>>(),
        })
    }

    /// The graph for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut text = String::from("digraph tasks {\n  rankdir=LR;\n  node [shape=box];\n");
        for id in self.edges.nodes().collect::<BTreeSet<_>>() {
            let style = match self.mark(id) {
                Mark::Completed => ", style=filled, fillcolor=palegreen",
                Mark::InProgress => ", style=filled, fillcolor=lightyellow",
                Mark::Ready => ", style=bold",
                Mark::Waiting => "",
                Mark::Unreadable => ", style=filled, fillcolor=salmon",
            };
            let label = self.label(id).replace('\\', "\\\\").replace('"', "\\\"");
            writeln!(text, "  t{id} [label=\"{label}\"{style}];").ok();
        }
        for (from, to) in self.sorted_edges() {
            writeln!(text, "  t{from} -> t{to};").ok();
        }
        text.push_str("}\n");
        text
    }

    /// For Mermaid, as Markdown pages render it.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("graph LR\n");
        for id in self.edges.nodes().collect::<BTreeSet<_>>() {
            let class = match self.mark(id) {
                Mark::Completed => ":::completed",
                Mark::InProgress => ":::inProgress",
                Mark::Ready => ":::ready",
                Mark::Waiting => "",
                Mark::Unreadable => ":::unreadable",
            };
            let mut label = String::new();
            for c in self.label(id).chars() {
                // Mermaid has no backslash escapes; it takes numeric entities for anything.
                if c.is_alphanumeric() || " .,-_/:".contains(c) {
                    label.push(c);
                } else {
                    write!(label, "#{};", u32::from(c)).ok();
                }
            }
            writeln!(text, "  t{id}[\"{label}\"]{class}").ok();
        }
        for (from, to) in self.sorted_edges() {
            writeln!(text, "  t{from} --> t{to}").ok();
        }
        text.push_str("  classDef completed fill:#b7e4b7\n  classDef inProgress fill:#fff3b0\n");
        text.push_str("  classDef ready stroke-width:3px\n  classDef unreadable fill:#f4a3a3\n");
        text
    }

    fn sorted_edges(&self) -> Vec<(TaskId, TaskId)> {
        let mut edges: Vec<_> = self.edges.all_edges().map(|(a, b, ())| (a, b)).collect();
        edges.sort_unstable();
        edges
    }

    fn label(&self, id: TaskId) -> String {
        let task = self.snapshot.get(id);
        let subject = task.map_or("unreadable", |task| task.subject.as_str());
        let unchecked = task.is_some_and(|task| task.unchecked().is_some());
        let doubt = if unchecked {
            format!(" {}", Unchecked::MARK)
        } else {
            String::new()
        };
        let short: String = subject
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(60)
            .collect();
        format!("{id}: {short}{doubt}")
    }

    fn mark(&self, id: TaskId) -> Mark {
        match self.snapshot.get(id) {
            None => Mark::Unreadable,
            Some(task) => match task.status {
                Status::Completed => Mark::Completed,
                Status::InProgress => Mark::InProgress,
                Status::Pending if self.snapshot.is_ready(task) => Mark::Ready,
                Status::Pending => Mark::Waiting,
            },
        }
    }
}

enum Mark {
    Completed,
    InProgress,
    Ready,
    Waiting,
    Unreadable,
}
