//! New tasks: one, or many that refer to each other.

use std::collections::{BTreeMap, HashMap};

use petgraph::algo::toposort;
use serde_json::{Map, Value};

use crate::error::BoardError;
use crate::id::TaskId;
use crate::own_keys;
use crate::rules::cycles::cycle_with;
use crate::rules::index::Index;
use crate::task::{Status, Task, check_description, check_line};

/// The fields of a task to create.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// A name by which other tasks of the same batch can refer to it; `None` without one.
    pub key: Option<String>,
    /// The goal, in one line.
    pub subject: String,
    /// The details.
    pub description: String,
    /// The subject as an activity; `None` without one.
    pub active_form: Option<String>,
    /// The tasks it waits for.
    pub blocked_by: Vec<Reference>,
    /// The tasks that wait for it.
    pub blocks: Vec<Reference>,
    /// Anything else; `ccb` may hold `priority`, `run`, `agent`, `verify`, `paths` and `needs`, and
    /// `ccb.verify` is the same as `verify` there.
    pub metadata: Map<String, Value>,
}

/// Another task, existing or of the same batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A task on the board.
    Id(TaskId),
    /// One of the batch.
    Key(String),
}

/// Tasks that are to be created together, whose own fields are checked.
pub(crate) struct Batch<'n>(Vec<Resolved<'n>>);

/// A task of the batch with its references resolved to existing ids and batch positions.
struct Resolved<'n> {
    new: &'n NewTask,
    blocked_by: Vec<Target>,
    blocks: Vec<Target>,
}

#[derive(Clone, Copy)]
enum Target {
    Existing(TaskId),
    Batch(usize),
}

impl Target {
    fn existing(self) -> Option<TaskId> {
        match self {
            Self::Existing(id) => Some(id),
            Self::Batch(_) => None,
        }
    }

    fn id(self, ids: &[TaskId]) -> TaskId {
        match self {
            Self::Existing(id) => id,
            Self::Batch(n) => ids[n],
        }
    }
}

impl NewTask {
    /// Checks everything but its references, as [`Board::create`](crate::Board::create) does for the whole batch.
    pub fn check(&self) -> Result<(), BoardError> {
        check_line("subject", &self.subject)?;
        check_description(&self.description)?;
        if let Some(text) = &self.active_form {
            check_line("active form", text)?;
        }
        own_keys::checked(&self.metadata, None)?;
        Ok(())
    }
}

impl<'n> Batch<'n> {
    /// Checks every task of the batch and finds what its references mean.
    pub(crate) fn resolve(batch: &'n [NewTask]) -> Result<Self, BoardError> {
        let mut keys: HashMap<&str, usize> = HashMap::new();
        for (n, new) in batch.iter().enumerate() {
            if let Some(key) = &new.key
                && keys.insert(key, n).is_some()
            {
                return Err(BoardError::invalid(
                    format!("key {key:?}"),
                    "it is used twice",
                ));
            }
        }
        let target = |reference: &Reference| match reference {
            Reference::Id(id) => Ok(Target::Existing(*id)),
            Reference::Key(key) => keys
                .get(key.as_str())
                .map(|n| Target::Batch(*n))
                .ok_or_else(|| {
                    let near = store::nearest(key, keys.keys().copied());
                    let hint = near
                        .map(|near| format!("; did you mean {near:?}?"))
                        .unwrap_or_default();
                    BoardError::invalid(
                        format!("{key:?}"),
                        format!("neither a task id nor the key of a task in this batch{hint}"),
                    )
                }),
        };
        let mut resolved = Vec::with_capacity(batch.len());
        for new in batch {
            new.check()?;
            resolved.push(Resolved {
                new,
                blocked_by: new
                    .blocked_by
                    .iter()
                    .map(target)
                    .collect::<Result<_, _>>()?,
                blocks: new.blocks.iter().map(target).collect::<Result<_, _>>()?,
            });
        }
        Ok(Self(resolved))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The next `len` ids after `last`, as far as there are so many.
    pub(crate) fn ids_after(&self, last: u64) -> Vec<TaskId> {
        (1..=self.len() as u64)
            .filter_map(|n| TaskId::new(last.saturating_add(n)))
            .collect()
    }

    /// The tasks on the board that the batch refers to; `true` for those that are to wait for it.
    pub(crate) fn existing(&self) -> impl Iterator<Item = (TaskId, bool)> {
        self.0.iter().flat_map(|resolved| {
            let before = resolved.blocked_by.iter().map(|target| (target, false));
            let all = before.chain(resolved.blocks.iter().map(|target| (target, true)));
            all.filter_map(|(target, waits)| Some((target.existing()?, waits)))
        })
    }

    /// Refuses references to tasks that are not in `index`, and cycles.
    pub(crate) fn check(&self, index: &Index, ids: &[TaskId]) -> Result<(), BoardError> {
        match self.existing().find(|(id, _)| index.get(*id).is_none()) {
            Some((id, _)) => Err(BoardError::NotFound { id }),
            None => self.check_cycles(index, ids),
        }
    }

    /// Refuses cycles.
    pub(crate) fn check_cycles(&self, index: &Index, ids: &[TaskId]) -> Result<(), BoardError> {
        let new = self.edges(ids)?;
        if new.is_empty() {
            return Ok(());
        }
        let mut edges = index.edges();
        let mut all = edges.clone();
        all.extend(new.iter().copied());
        if toposort(&all, None).is_ok() {
            return Ok(());
        }
        // There is a cycle somewhere; it counts against the batch only if the batch closes it.
        for (blocker, dependent) in new {
            if let Some(path) = cycle_with(&edges, blocker, dependent) {
                return Err(BoardError::Cycle { path });
            }
            edges.add_edge(blocker, dependent, ());
        }
        Ok(())
    }

    /// All edges of the batch as (blocker, dependent).
    fn edges(&self, ids: &[TaskId]) -> Result<Vec<(TaskId, TaskId)>, BoardError> {
        if ids.len() < self.len() {
            return Err(BoardError::invalid("task ids", "there are none left"));
        }
        let mut edges = Vec::new();
        for (resolved, id) in self.0.iter().zip(ids) {
            let (before, after) = (resolved.blocked_by.iter(), resolved.blocks.iter());
            edges.extend(before.map(|blocker| (blocker.id(ids), *id)));
            edges.extend(after.map(|dependent| (*id, dependent.id(ids))));
        }
        Ok(edges)
    }

    /// The tasks with these ids.
    pub(crate) fn build(&self, ids: &[TaskId]) -> Result<Vec<Task>, BoardError> {
        let edges = self.edges(ids)?;
        let mut blocks: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
        let mut blocked_by: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
        for (blocker, dependent) in edges {
            blocks.entry(blocker).or_default().push(dependent);
            blocked_by.entry(dependent).or_default().push(blocker);
        }
        let sorted = |list: Option<Vec<TaskId>>| {
            let mut list = list.unwrap_or_default();
            list.sort_unstable();
            list.dedup();
            list
        };
        self.0
            .iter()
            .zip(ids)
            .map(|(Resolved { new, .. }, id)| {
                let mut task = Task {
                    id: *id,
                    subject: new.subject.clone(),
                    description: new.description.clone(),
                    active_form: new.active_form.clone(),
                    owner: None,
                    status: Status::Pending,
                    blocks: sorted(blocks.remove(id)),
                    blocked_by: sorted(blocked_by.remove(id)),
                    metadata: None,
                    extra: Map::new(),
                };
                // Merged rather than copied, because `null` means absent.
                task.merge_metadata(&new.metadata)?;
                Ok(task)
            })
            .collect()
    }

    /// The other side of the edges between the batch and tasks that exist: what each of those is to name
    /// in `blocks` and in `blocked_by`.
    pub(crate) fn links(&self, ids: &[TaskId]) -> BTreeMap<TaskId, (Vec<TaskId>, Vec<TaskId>)> {
        let mut links: BTreeMap<TaskId, (Vec<TaskId>, Vec<TaskId>)> = BTreeMap::new();
        for (resolved, id) in self.0.iter().zip(ids) {
            for blocker in resolved.blocked_by.iter().filter_map(|it| it.existing()) {
                links.entry(blocker).or_default().0.push(*id);
            }
            for dependent in resolved.blocks.iter().filter_map(|it| it.existing()) {
                links.entry(dependent).or_default().1.push(*id);
            }
        }
        links
    }
}
