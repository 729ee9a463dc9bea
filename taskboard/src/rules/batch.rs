//! New tasks: one, or many that refer to each other.

use std::collections::HashMap;

use petgraph::algo::toposort;

use serde_json::{Map, Value};
use store::atomic::{Staged, stage_many};

use crate::board::{Board, Hooks};
use crate::cycles::cycle_with;
use crate::error::BoardError;
use crate::format;
use crate::id::TaskId;
use crate::index::Index;
use crate::own_keys;
use crate::section::{Intent, Section, Step, Stop};
use crate::task::{Status, Task, check_description, check_line};

/// What a task is to be.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// A name by which other tasks of the same batch can refer to it.
    pub key: Option<String>,
    /// What is to be done, in one line.
    pub subject: String,
    /// The details.
    pub description: String,
    /// The subject as an activity.
    pub active_form: Option<String>,
    /// What it waits for.
    pub blocked_by: Vec<Reference>,
    /// What waits for it.
    pub blocks: Vec<Reference>,
    /// Anything else; `ccb` may hold `priority`, `run`, `agent`, `verify`, `paths` and `needs`, and
    /// `ccb.verify` is the same as `verify` there.
    pub metadata: Map<String, Value>,
}

/// Another task, existing or of the same batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// One that is on the board.
    Id(TaskId),
    /// One of the batch.
    Key(String),
}

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
    /// Checks everything but its references, as [`Board::create`] does for the whole batch.
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

impl Board {
    /// Puts all of `batch` on the board, or none of it.
    pub fn create(
        &self,
        batch: &[NewTask],
        hooks: Option<&dyn Hooks>,
    ) -> Result<Vec<Task>, BoardError> {
        let batch = resolve(batch)?;
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        #[cfg(feature = "postgres")]
        if self.options.database.is_some() {
            return self.create_in_tables(&batch, hooks);
        }
        loop {
            let ids = self.section(|section| {
                let ids = provisional(section.last_id()?, batch.len());
                check_edges(section, &batch, &ids)?;
                section.reserve_ids(batch.len())
            })?;
            let tasks = self.draw_up(&batch, &ids, hooks)?;
            let files: Vec<Vec<u8>> = tasks.iter().map(format::to_bytes).collect();
            let staged = stage_many(&self.tmp_dir(), &files, self.durability())?;
            if self.publish(&batch, &tasks, staged)? {
                return Ok(tasks);
            }
            // Another tool ignored the high-water mark and took one of our ids.
        }
    }

    /// The tasks as they are to be, if the hooks agree.
    fn draw_up(
        &self,
        batch: &[Resolved<'_>],
        ids: &[TaskId],
        hooks: Option<&dyn Hooks>,
    ) -> Result<Vec<Task>, BoardError> {
        let mut tasks = build(batch, ids)?;
        for task in &mut tasks {
            task.remove_secrets(&self.options.secret_filter);
        }
        if let Some(hooks) = hooks {
            for task in &tasks {
                hooks.before_create(task)?;
            }
        }
        Ok(tasks)
    }

    #[cfg(feature = "postgres")]
    fn create_in_tables(
        &self,
        batch: &[Resolved<'_>],
        hooks: Option<&dyn Hooks>,
    ) -> Result<Vec<Task>, BoardError> {
        let nowhere = || BoardError::invalid("create", "the board is not in a database");
        let near: Vec<TaskId> = existing(batch).collect();
        let waiting = batch.iter().flat_map(|resolved| &resolved.blocks);
        let below: Vec<TaskId> = waiting.filter_map(|target| target.existing()).collect();
        let check = |index: &Index, ids: &[TaskId]| {
            let gone = near.iter().find(|id| index.get(**id).is_none());
            match gone {
                Some(id) => Err(BoardError::NotFound { id: *id }),
                None => check_cycles(index, batch, ids),
            }
        };
        let ids = self.reserve_in_tables(batch.len(), &near, &below, &check);
        let tasks = self.draw_up(batch, &ids.ok_or_else(nowhere)??, hooks)?;
        let done = self.publish_in_tables(&tasks, &near, &below, &check);
        done.ok_or_else(nowhere)??;
        Ok(tasks)
    }

    fn publish(
        &self,
        batch: &[Resolved<'_>],
        tasks: &[Task],
        staged: Vec<Staged>,
    ) -> Result<bool, BoardError> {
        let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        let links = links_to_existing(batch, &ids);
        let mut staged = Some(staged);
        self.section(|section| {
            check_edges(section, batch, &ids)?;
            if ids.iter().any(|id| self.task_path(*id).exists()) {
                return Ok(false);
            }
            let Some(files) = staged.take() else {
                return Err(BoardError::invalid("create", "tried twice").into());
            };
            match (<[Staged; 1]>::try_from(files), tasks) {
                (Ok([file]), [task]) if links.is_empty() => section.publish(file, task),
                (Ok(one), _) => publish_many(section, &ids, one.into(), &links, &mut staged),
                (Err(files), _) => publish_many(section, &ids, files, &links, &mut staged),
            }
        })
    }
}

/// Publishes the files as one intent; gives them back if it is to be tried again.
fn publish_many(
    section: &mut Section<'_>,
    ids: &[TaskId],
    mut files: Vec<Staged>,
    links: &[Step],
    give_back: &mut Option<Vec<Staged>>,
) -> Result<bool, Stop> {
    let mut steps: Vec<Step> = Vec::with_capacity(ids.len() + links.len());
    for (id, file) in ids.iter().zip(&files) {
        steps.push(Step::Publish {
            id: *id,
            staged: file.name(),
        });
    }
    // The links first: if another tool is busy with one of those tasks, nothing has happened.
    steps.splice(0..0, links.iter().cloned());
    let result = section.carry_out("create", &Intent::new("create", steps));
    match &result {
        Err(Stop::Retry { .. }) => *give_back = Some(files),
        Ok(()) | Err(Stop::Error(BoardError::Unfinished { .. })) => {
            files.iter_mut().for_each(Staged::keep);
        }
        Err(Stop::Error(_)) => {}
    }
    result.map(|()| true)
}

/// Checks every task of the batch and finds what its references mean.
fn resolve(batch: &[NewTask]) -> Result<Vec<Resolved<'_>>, BoardError> {
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
    Ok(resolved)
}

/// The ids the batch would get if it were created now, for naming a cycle before any id is
/// spent on it. None was ever in use: a task may still name a blocker that is gone.
fn provisional(last: u64, count: usize) -> Vec<TaskId> {
    (1..=count as u64)
        .filter_map(|n| TaskId::new(last.saturating_add(n)))
        .collect()
}

/// Refuses references to tasks that are not there, and cycles.
fn check_edges(
    section: &Section<'_>,
    batch: &[Resolved<'_>],
    ids: &[TaskId],
) -> Result<(), BoardError> {
    for id in existing(batch) {
        section.require(id)?;
    }
    check_cycles(section.index(), batch, ids)
}

/// The tasks on the board that the batch refers to.
fn existing(batch: &[Resolved<'_>]) -> impl Iterator<Item = TaskId> {
    let targets = batch
        .iter()
        .flat_map(|resolved| resolved.blocked_by.iter().chain(&resolved.blocks));
    targets.filter_map(|target| target.existing())
}

/// Refuses cycles.
fn check_cycles(index: &Index, batch: &[Resolved<'_>], ids: &[TaskId]) -> Result<(), BoardError> {
    let new = edges_of(batch, ids)?;
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
fn edges_of(batch: &[Resolved<'_>], ids: &[TaskId]) -> Result<Vec<(TaskId, TaskId)>, BoardError> {
    if ids.len() < batch.len() {
        return Err(BoardError::invalid("task ids", "there are none left"));
    }
    let mut edges = Vec::new();
    for (resolved, id) in batch.iter().zip(ids) {
        let (before, after) = (resolved.blocked_by.iter(), resolved.blocks.iter());
        edges.extend(before.map(|blocker| (blocker.id(ids), *id)));
        edges.extend(after.map(|dependent| (*id, dependent.id(ids))));
    }
    Ok(edges)
}

fn build(batch: &[Resolved<'_>], ids: &[TaskId]) -> Result<Vec<Task>, BoardError> {
    let edges = edges_of(batch, ids)?;
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
    batch
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

/// The other side of the edges between the batch and tasks that exist.
fn links_to_existing(batch: &[Resolved<'_>], ids: &[TaskId]) -> Vec<Step> {
    let mut links: HashMap<TaskId, (Vec<TaskId>, Vec<TaskId>)> = HashMap::new();
    for (resolved, id) in batch.iter().zip(ids) {
        for target in &resolved.blocked_by {
            if let Target::Existing(blocker) = target {
                links.entry(*blocker).or_default().0.push(*id);
            }
        }
        for target in &resolved.blocks {
            if let Target::Existing(dependent) = target {
                links.entry(*dependent).or_default().1.push(*id);
            }
        }
    }
    let mut steps: Vec<Step> = links
        .into_iter()
        .map(|(id, (blocks, blocked_by))| Step::Link {
            id,
            blocks,
            blocked_by,
        })
        .collect();
    steps.sort_by_key(Step::id);
    steps
}

#[cfg(test)]
mod tests {
    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::BoardOptions;

    #[test]
    fn a_blocker_that_is_gone_is_not_taken_for_the_new_task() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let name = Name::new("list", "board").unwrap();
        let board = Board::new(&home, name, BoardOptions::default());
        let new = |blocked_by: &[TaskId]| NewTask {
            subject: "task".into(),
            blocked_by: blocked_by.iter().copied().map(Reference::Id).collect(),
            ..NewTask::default()
        };
        let tasks = board.create(&[new(&[]), new(&[])], None).unwrap();
        let (first, gone) = (tasks[0].id, tasks[1].id);
        board.block(gone, first).unwrap();
        // As another tool deletes: the file, and nothing else.
        store::atomic::remove(&board.task_path(gone)).unwrap();
        let created = board.create(&[new(&[first])], None).unwrap();
        assert_eq!(created[0].id.get(), gone.get() + 1);
    }

    #[test]
    fn an_id_is_used_once_although_the_mark_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let open = || {
            let name = Name::new("list", "board").unwrap();
            Board::new(&home, name, BoardOptions::default())
        };
        let new = |subject: &str| NewTask {
            subject: subject.into(),
            ..NewTask::default()
        };
        let made = open().create(&[new("one"), new("two")], None).unwrap();
        open().delete(made[1].id, &crate::Caller::new("a")).unwrap();
        let mut last = made[1].id.get();
        let mark = open().dir().join(".highwatermark");
        for content in ["", "no number", "99999999999999999999"] {
            for history in [true, false] {
                store::atomic::replace(dir.path(), &mark, content.as_bytes(), Default::default())
                    .unwrap();
                if !history {
                    for file in ["log.jsonl", "index"] {
                        store::atomic::remove(&open().dir().join(".ccb").join(file)).unwrap();
                    }
                }
                let found = open().doctor(false).unwrap();
                assert!(
                    found.iter().any(|f| f.message.contains(".highwatermark")),
                    "{found:?}"
                );
                let created = open().create(&[new("more")], None).unwrap();
                assert!(
                    created[0].id.get() > last,
                    "{content:?}, history: {history}"
                );
                last = created[0].id.get();
                open()
                    .delete(created[0].id, &crate::Caller::new("a"))
                    .unwrap();
                assert!(
                    open().doctor(false).unwrap().is_empty(),
                    "it is whole again"
                );
            }
        }
    }
}
