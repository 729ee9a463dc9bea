//! The facts about every task that a decision about any of them needs.
//!
//! A few fields per task, without its texts, and their consequences: the edges, the ready tasks,
//! the owners. It is the same whether it was built from the files (by a reader), loaded from disk,
//! or kept up to date from the change log (by a lock section).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

use petgraph::graphmap::DiGraphMap;
use store::atomic::Stamp;

use crate::error::Refusal;
use crate::id::TaskId;
use crate::rules::cycles;
use crate::rules::ready::{self, Dependencies, Rank};
use crate::task::{Status, Task};

/// The fields of a task that decisions depend on.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Slim {
    pub(crate) status: Status,
    pub(crate) owner: Option<Box<str>>,
    /// The reason why it is parked; `None` if it is not.
    pub(crate) parked: Option<Box<str>>,
    pub(crate) internal: bool,
    /// True if the task checks something: it has a `verify`, or its subject says so.
    pub(crate) checks: bool,
    pub(crate) priority: i64,
    pub(crate) blocked_by: Box<[TaskId]>,
    pub(crate) blocks: Box<[TaskId]>,
    /// The end of its lease, if it has one that ends without help.
    pub(crate) lease_end: Option<i64>,
    /// The run that holds its lease; `None` without one.
    pub(crate) run: Option<Box<str>>,
    /// Of the file's bytes.
    pub(crate) fingerprint: u64,
    pub(crate) stamp: Stamp,
}

impl Slim {
    pub(crate) fn of(task: &Task, fingerprint: u64, stamp: Stamp) -> Self {
        let lease = task.lease();
        Self {
            status: task.status,
            owner: task.owner.as_deref().map(Into::into),
            parked: task.parked().map(Into::into),
            internal: task.is_internal(),
            checks: task.verify_command().is_some()
                || task.subject.to_lowercase().contains("verif"),
            priority: task.priority(),
            blocked_by: task.blocked_by.as_slice().into(),
            blocks: task.blocks.as_slice().into(),
            lease_end: lease.as_ref().and_then(|lease| lease.expires_at),
            run: lease.and_then(|lease| lease.run).map(Into::into),
            fingerprint,
            stamp,
        }
    }

    fn is_open(&self) -> bool {
        self.status != Status::Completed
    }
}

/// Ready tasks by rank: mostly those of one moment, sorted, which is cheaper to consume than a
/// heap, and those that became ready since.
#[derive(Debug, Default)]
struct Ready {
    sorted: Vec<Rank>,
    later: BinaryHeap<Rank>,
}

impl Ready {
    fn pop(&mut self) -> Option<Rank> {
        if self.later.peek() > self.sorted.last() {
            self.later.pop()
        } else {
            self.sorted.pop()
        }
    }

    /// Puts back what was popped, worst last.
    fn put_back(&mut self, ranks: Vec<Rank>) {
        for rank in ranks.into_iter().rev() {
            if self.sorted.last().is_none_or(|last| *last <= rank) {
                self.sorted.push(rank);
            } else {
                self.later.push(rank);
            }
        }
    }

    fn len(&self) -> usize {
        self.sorted.len() + self.later.len()
    }
}

type Owners = HashMap<Box<str>, BTreeSet<TaskId>>;

/// The slim side of a whole board.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Boxed, because a tree moves its elements around.
    entries: BTreeMap<TaskId, Box<Slim>>,
    /// Files that are there but cannot be read as tasks.
    unreadable: BTreeMap<TaskId, Stamp>,
    /// Edges that only one of their two tasks names, as (blocker, dependent).
    half_edges: BTreeSet<(TaskId, TaskId)>,
    /// Tasks that name a task that does not exist.
    mentions: HashMap<TaskId, BTreeSet<TaskId>>,
    /// Leases that end without help, soonest first.
    leases: BTreeSet<(i64, TaskId)>,
    /// Pending tasks with an owner, by owner.
    assigned: Owners,
    /// Number of tasks shown in lists that are not completed.
    open: usize,
    /// Lengths of chains longer than one; computed when needed, `None` after edges change.
    chains: Option<HashMap<TaskId, usize>>,
    /// At least all ready tasks; an entry that is no longer ready, or ranks differently by now, is
    /// dropped when it comes up.
    ready: Option<Ready>,
}

impl Index {
    pub(crate) fn get(&self, id: TaskId) -> Option<&Slim> {
        self.entries.get(&id).map(|slim| &**slim)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskId, &Slim)> {
        self.entries.iter().map(|(id, slim)| (*id, &**slim))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn unreadable(&self) -> &BTreeMap<TaskId, Stamp> {
        &self.unreadable
    }

    /// The highest id in use, 0 on an empty board.
    pub(crate) fn max_id(&self) -> u64 {
        let readable = self.entries.last_key_value().map_or(0, |(id, _)| id.get());
        let unreadable = self
            .unreadable
            .last_key_value()
            .map_or(0, |(id, _)| id.get());
        readable.max(unreadable)
    }

    /// Takes in the task as it is now.
    pub(crate) fn put(&mut self, id: TaskId, slim: Slim) {
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&id);
        }
        // The place in the tree stays; only what is in it changes.
        let old = self
            .entries
            .get_mut(&id)
            .map(|place| std::mem::take(&mut **place));
        if let Some(old) = &old {
            self.uncount(id, old);
        }
        let edges_changed = match &old {
            Some(old) => old.blocked_by != slim.blocked_by || old.blocks != slim.blocks,
            None => !slim.blocked_by.is_empty() || !slim.blocks.is_empty(),
        };
        // Chains consist of unfinished tasks. A task whose blockers are all completed is at the
        // beginning of its chains, so completing it shortens no other task's.
        let was_open = old.as_ref().is_none_or(Slim::is_open);
        let ends_chain =
            was_open != slim.is_open() && slim.blocked_by.iter().any(|b| self.is_open(*b));
        let reopened = old.is_some() && !was_open && slim.is_open();
        if edges_changed || ends_chain || reopened {
            self.chains = None;
            self.ready = None;
        }
        self.count(id, &slim);
        // A task in progress is not ready, and neither are the tasks that wait for it.
        let started = slim.status == Status::InProgress;
        match self.entries.get_mut(&id) {
            Some(place) => **place = slim,
            None => {
                self.entries.insert(id, Box::new(slim));
            }
        }
        // The tasks that named it while it did not exist, and the tasks it no longer names.
        let mut others = BTreeSet::new();
        if !self.mentions.is_empty() {
            others = self.mentions.remove(&id).unwrap_or_default();
        }
        if edges_changed || !others.is_empty() {
            others.extend(
                old.iter()
                    .flat_map(|old| old.blocked_by.iter().chain(&old.blocks)),
            );
            self.compare_edges(id, others);
        }
        if !started {
            self.note_ready(id);
        }
    }

    /// The index of these tasks and unreadable files; the same as taking them in one by one,
    /// but cheaper.
    pub(crate) fn build(
        tasks: impl IntoIterator<Item = (TaskId, Slim)>,
        unreadable: BTreeMap<TaskId, Stamp>,
    ) -> Self {
        let entries: BTreeMap<TaskId, Box<Slim>> = tasks
            .into_iter()
            .map(|(id, slim)| (id, Box::new(slim)))
            .collect();
        let mut index = Self {
            unreadable,
            ..Self::default()
        };
        for (id, slim) in &entries {
            index.count(*id, slim);
            for blocker in &slim.blocked_by {
                match entries.get(blocker) {
                    Some(their) if their.blocks.contains(id) => {}
                    Some(_) => _ = index.half_edges.insert((*blocker, *id)),
                    None => _ = index.mentions.entry(*blocker).or_default().insert(*id),
                }
            }
            for dependent in &slim.blocks {
                match entries.get(dependent) {
                    Some(their) if their.blocked_by.contains(id) => {}
                    Some(_) => _ = index.half_edges.insert((*id, *dependent)),
                    None => _ = index.mentions.entry(*dependent).or_default().insert(*id),
                }
            }
        }
        index.entries = entries;
        index
    }

    /// Removes a task whose file is gone.
    pub(crate) fn remove(&mut self, id: TaskId) {
        self.unreadable.remove(&id);
        let Some(old) = self.forget(id) else { return };
        let half: Vec<(TaskId, TaskId)> = self
            .half_edges
            .iter()
            .filter(|(a, b)| *a == id || *b == id)
            .copied()
            .collect();
        let others = half.iter().flat_map(|(a, b)| [a, b]);
        let others: Vec<TaskId> = others
            .chain(&old.blocked_by)
            .chain(&old.blocks)
            .copied()
            .collect();
        for other in others {
            let names = |their: &Slim| their.blocks.contains(&id) || their.blocked_by.contains(&id);
            if self.get(other).is_some_and(names) {
                self.mentions.entry(id).or_default().insert(other);
            }
        }
        self.half_edges.retain(|(a, b)| *a != id && *b != id);
        self.chains = None;
        self.ready = None;
    }

    /// The task's file cannot be read.
    pub(crate) fn put_unreadable(&mut self, id: TaskId, stamp: Stamp) {
        self.remove(id);
        self.unreadable.insert(id, stamp);
    }

    fn forget(&mut self, id: TaskId) -> Option<Slim> {
        let old = self.entries.remove(&id)?;
        self.uncount(id, &old);
        Some(*old)
    }

    /// Takes a task into what is derived from single entries.
    fn count(&mut self, id: TaskId, slim: &Slim) {
        if slim.is_open() && !slim.internal {
            self.open += 1;
        }
        if let Some(end) = slim.lease_end {
            self.leases.insert((end, id));
        }
        if let (Some(owner), Status::Pending) = (&slim.owner, slim.status) {
            self.assigned.entry(owner.clone()).or_default().insert(id);
        }
    }

    /// Takes it out again.
    fn uncount(&mut self, id: TaskId, old: &Slim) {
        if old.is_open() && !old.internal {
            self.open -= 1;
        }
        if let Some(end) = old.lease_end {
            self.leases.remove(&(end, id));
        }
        if let (Some(owner), Status::Pending) = (&old.owner, old.status)
            && let Some(ids) = self.assigned.get_mut(owner)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.assigned.remove(owner);
            }
        }
    }

    /// Finds out which edges of `id` are on one side only, after its lists or those of the
    /// tasks in `others` changed.
    fn compare_edges(&mut self, id: TaskId, others: impl IntoIterator<Item = TaskId>) {
        self.half_edges.retain(|(a, b)| *a != id && *b != id);
        let Some(slim) = self.entries.get(&id) else {
            return;
        };
        let named = slim.blocked_by.iter().chain(&slim.blocks).copied();
        let others: BTreeSet<TaskId> = named.chain(others).collect();
        for other in others {
            let Some(their) = self.entries.get(&other) else {
                self.mentions.entry(other).or_default().insert(id);
                continue;
            };
            if slim.blocked_by.contains(&other) != their.blocks.contains(&id) {
                self.half_edges.insert((other, id));
            }
            if slim.blocks.contains(&other) != their.blocked_by.contains(&id) {
                self.half_edges.insert((id, other));
            }
        }
    }

    /// Edges that only one of their two tasks names, as (blocker, dependent).
    pub(crate) fn half_edges(&self) -> &BTreeSet<(TaskId, TaskId)> {
        &self.half_edges
    }

    /// Tasks that wait for `id`, on either side's word.
    pub(crate) fn dependents(&self, id: TaskId) -> impl Iterator<Item = TaskId> {
        let named = self.get(id).map_or(&[][..], |slim| &slim.blocks);
        let half = self
            .half_edges
            .iter()
            .filter(move |(from, _)| *from == id)
            .map(|(_, to)| *to);
        named
            .iter()
            .copied()
            .chain(half.filter(move |to| !named.contains(to)))
    }

    /// True if it is pending and nothing stands in its way.
    pub(crate) fn may_start(&self, id: TaskId) -> bool {
        self.get(id)
            .is_some_and(|slim| self.can_start(id, slim.status, slim.parked.is_some()))
    }

    /// True if any agent may claim it now.
    pub(crate) fn is_ready(&self, id: TaskId) -> bool {
        self.get(id).is_some_and(|slim| slim.owner.is_none()) && self.may_start(id)
    }

    /// The reason why `id` cannot start, in the order the rules name them; `None` if it can.
    pub(crate) fn start_obstacle(&self, id: TaskId) -> Option<Refusal> {
        let open = self.open_blockers(id);
        if !open.is_empty() {
            return Some(Refusal::Blocked { by: open });
        }
        let reason = self.get(id)?.parked.as_deref()?;
        Some(Refusal::Parked {
            reason: reason.to_owned(),
        })
    }

    /// The tasks that `agent` is working on. Reads every task.
    pub(crate) fn working_on(&self, agent: &str) -> impl Iterator<Item = TaskId> {
        let its = move |slim: &Slim| {
            slim.status == Status::InProgress && slim.owner.as_deref() == Some(agent)
        };
        self.iter()
            .filter(move |(_, slim)| its(slim))
            .map(|(id, _)| id)
    }

    /// The assigned tasks that `agent` has not started.
    pub(crate) fn assigned_to(&self, agent: &str) -> impl Iterator<Item = TaskId> {
        self.assigned.get(agent).into_iter().flatten().copied()
    }

    /// Tasks whose lease ran out.
    pub(crate) fn expired(&self, now_ms: i64) -> Vec<TaskId> {
        self.leases
            .iter()
            .take_while(|(end, _)| *end <= now_ms)
            .map(|(_, id)| *id)
            .collect()
    }

    /// True if nothing is left to do.
    pub(crate) fn all_completed(&self) -> bool {
        self.open == 0 && self.unreadable.is_empty()
    }

    /// The task `agent` should do next, one assigned to it or the best ready one, leaving out
    /// those in `reserved`.
    pub(crate) fn pick(&mut self, agent: &str, reserved: &HashSet<TaskId>) -> Option<TaskId> {
        self.rank_all();
        let visible = |id: &TaskId| self.get(*id).is_some_and(|slim| !slim.internal);
        let assigned = self
            .assigned_to(agent)
            .filter(|id| visible(id) && self.may_start(*id));
        if let Some(best) = assigned.max_by_key(|id| self.rank(*id)) {
            return Some(best);
        }
        let mut ready = self.ready.take()?;
        let mut aside = Vec::new();
        let mut best = None;
        while let Some(rank) = ready.pop() {
            let id = rank.2.0;
            let visible = self.get(id).is_some_and(|slim| !slim.internal);
            if !visible || !self.is_ready(id) || self.rank(id) != rank {
                continue;
            }
            // It stays in the heap: it is ready until it is really claimed.
            aside.push(rank);
            if !reserved.contains(&id) {
                best = Some(id);
                break;
            }
        }
        ready.put_back(aside);
        self.ready = Some(ready);
        best
    }

    /// All ready tasks, best first.
    pub(crate) fn ready(&mut self) -> Vec<TaskId> {
        self.rank_all();
        let mut ids: Vec<TaskId> = self
            .iter()
            .filter(|(id, slim)| !slim.internal && self.is_ready(*id))
            .map(|(id, _)| id)
            .collect();
        ids.sort_by_key(|id| Reverse(self.rank(*id)));
        ids
    }

    pub(crate) fn rank(&self, id: TaskId) -> Rank {
        let priority = self.get(id).map_or(0, |slim| slim.priority);
        let chain = self.chains.as_ref().and_then(|chains| chains.get(&id));
        ready::rank(id, priority, chain.copied().unwrap_or(1))
    }

    #[cfg(test)]
    pub(crate) fn is_ranked(&self) -> bool {
        self.chains.is_some() || self.ready.is_some()
    }

    pub(crate) fn rank_all(&mut self) {
        if self.chains.is_none() {
            let mut chains = self.chains();
            chains.retain(|_, length| *length > 1);
            self.chains = Some(chains);
            self.ready = None;
        }
        if self.ready.is_none() {
            let mut sorted: Vec<Rank> = self
                .iter()
                .filter(|(id, _)| self.is_ready(*id))
                .map(|(id, _)| self.rank(id))
                .collect();
            sorted.sort_unstable();
            self.ready = Some(Ready {
                sorted,
                later: BinaryHeap::new(),
            });
        }
    }

    /// Adds `id`, and what waits for it, to the ready ones where they have become ready.
    fn note_ready(&mut self, id: TaskId) {
        if self.ready.is_none() || self.chains.is_none() {
            return;
        }
        if self
            .ready
            .as_ref()
            .is_some_and(|ready| ready.len() > 2 * self.entries.len() + 64)
        {
            // Mostly things that are no longer ready.
            self.ready = None;
            return;
        }
        let concerned: Vec<TaskId> = std::iter::once(id).chain(self.dependents(id)).collect();
        for id in concerned {
            if self.is_ready(id) {
                let rank = self.rank(id);
                if let Some(ready) = &mut self.ready {
                    ready.later.push(rank);
                }
            }
        }
    }

    /// All edges, on either side's word; an edge leads to the task that waits.
    pub(crate) fn edges(&self) -> DiGraphMap<TaskId, ()> {
        let mut edges = DiGraphMap::new();
        for (id, slim) in self.iter() {
            edges.add_node(id);
            for blocker in &slim.blocked_by {
                edges.add_edge(*blocker, id, ());
            }
        }
        for (blocker, dependent) in &self.half_edges {
            edges.add_edge(*blocker, *dependent, ());
        }
        edges
    }

    /// Groups of unfinished tasks that wait for each other in a circle.
    pub(crate) fn cycles(&self) -> Vec<Vec<TaskId>> {
        cycles::cycles(&self.edges(), |id| self.is_open(id))
    }
}

impl Dependencies for Index {
    fn is_open(&self, id: TaskId) -> bool {
        self.get(id)
            .map_or_else(|| self.unreadable.contains_key(&id), Slim::is_open)
    }

    fn open(&self) -> impl Iterator<Item = TaskId> {
        let readable = self.iter().filter(|(_, slim)| slim.is_open());
        let unreadable = self.unreadable.keys().copied();
        readable.map(|(id, _)| id).chain(unreadable)
    }

    /// On either side's word.
    fn blockers(&self, id: TaskId) -> impl Iterator<Item = TaskId> {
        let named = self.get(id).map_or(&[][..], |slim| &slim.blocked_by);
        let half = self
            .half_edges
            .iter()
            .filter(move |(_, to)| *to == id)
            .map(|(from, _)| *from);
        named
            .iter()
            .copied()
            .chain(half.filter(move |from| !named.contains(from)))
    }
}
