//! New task files: their ids are reserved in one section, and they appear in another.

use store::atomic::{Staged, stage_many};

use crate::error::BoardError;
use crate::files::Files;
use crate::files::intent::{Intent, Step};
use crate::files::section::{Section, Stop};
use crate::format;
use crate::id::TaskId;
use crate::rules::batch::Batch;
use crate::task::Task;

impl Files {
    /// Ids for the batch, if nothing speaks against it.
    pub(crate) fn reserve_for(&self, batch: &Batch<'_>) -> Result<Vec<TaskId>, BoardError> {
        self.section(|section| {
            // Lets a cycle be reported before any id is spent on it. None was ever in use: a task
            // may still name a blocker that is gone.
            let ids = batch.ids_after(section.last_id()?);
            check(section, batch, &ids)?;
            section.reserve_ids(batch.len())
        })
    }

    /// Puts the tasks in their places; `false` if another tool ignored the high-water mark and took
    /// one of the ids.
    pub(crate) fn publish_batch(
        &self,
        batch: &Batch<'_>,
        tasks: &[Task],
    ) -> Result<bool, BoardError> {
        let files: Vec<Vec<u8>> = tasks.iter().map(format::to_bytes).collect();
        let mut staged = Some(stage_many(&self.tmp_dir(), &files, self.durability())?);
        let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        let links = batch.links(&ids).into_iter();
        let link = |(id, (blocks, blocked_by))| Step::Link {
            id,
            blocks,
            blocked_by,
        };
        let links: Vec<Step> = links.map(link).collect();
        self.section(|section| {
            check(section, batch, &ids)?;
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

/// Refuses references to tasks that are not there or cannot be read, and cycles.
fn check(section: &Section<'_>, batch: &Batch<'_>, ids: &[TaskId]) -> Result<(), BoardError> {
    for (id, _) in batch.existing() {
        section.require(id)?;
    }
    batch.check_cycles(section.index(), ids)
}

/// Publishes the files as one intent; gives them back if it is to be tried again.
fn publish_many(
    section: &mut Section<'_>,
    ids: &[TaskId],
    mut files: Vec<Staged>,
    links: &[Step],
    give_back: &mut Option<Vec<Staged>>,
) -> Result<bool, Stop> {
    // The links first: if another tool is busy with one of those tasks, nothing has happened.
    let mut steps = links.to_vec();
    steps.extend(ids.iter().zip(&files).map(|(id, file)| Step::Publish {
        id: *id,
        staged: file.name(),
    }));
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

#[cfg(test)]
mod tests {
    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::BoardOptions;
    use crate::board::Board;
    use crate::rules::batch::{NewTask, Reference};

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
        // The same as another tool's deletion: the file, and nothing else.
        store::atomic::remove(&board.files().task_path(gone)).unwrap();
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
