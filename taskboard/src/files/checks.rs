//! The checks of tasks, written down in a place to which the agents that work on the tasks do not
//! write.
//!
//! `.ccb/checks/<id>.json` holds the check of a task since an authorised caller set it: with the
//! task itself, or by a change through the board. A task's file with another check was changed by
//! other means. Such a task is *disputed*: it is parked and says why, it cannot be completed, and
//! [`Board::check_of`](crate::Board::check_of) refuses to name a check for it.
//!
//! The same record says which result the board itself wrote: if a file claims another one, the task
//! was completed without a check that passed under ccb.
//!
//! A record can be lost like everything in `.ccb`. Then the task's file counts, and the next lock
//! section that sees it records it again.

use std::path::{Path, PathBuf};

use store::StoreError;
use store::atomic::{self, Durability};
use store::clock::rfc3339;
use store::fault::reached;
use store::home::create_private_dir;

use crate::error::BoardError;
use crate::facts::Parked;
use crate::fault;
use crate::files::live::Loaded;
use crate::files::prepared::Prepared;
use crate::files::read::{Read, Version, read_task};
use crate::files::section::{ListDir, Section, Stop};
use crate::files::{Files, records_dir};
use crate::id::TaskId;
use crate::own_keys::MetadataTrouble;
use crate::record::{Record, changed_check, unclear};
use crate::snapshot::Entry;
use crate::task::{Status, Task};

fn record_path(dir: &Path, id: TaskId) -> PathBuf {
    records_dir(dir).join(id.file_name())
}

/// The record of task `id`. An unreadable record counts as lost.
fn read(dir: &Path, id: TaskId) -> Result<Option<Record>, StoreError> {
    let bytes = atomic::read(&record_path(dir, id))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn write(dir: &Path, id: TaskId, record: &Record) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(record).unwrap_or_default();
    let (tmp, path) = (dir.join(".ccb/tmp"), record_path(dir, id));
    // Not synced: after a power cut the task's file counts again.
    let put = || atomic::replace(&tmp, &path, &bytes, Durability::Relaxed);
    match put() {
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            create_private_dir(&records_dir(dir))?;
            put()
        }
        done => done,
    }
}

/// The comparison of a file's check with its record.
enum Compared {
    /// There is no record, and nothing to record.
    Nothing,
    Agree,
    /// The recorded check, which the file does not have.
    Differ(Option<String>),
    /// It says that it is done, and shows something that the board has not seen.
    MadeUp,
    /// The file has an unreadable value that may be a check. With the recorded check.
    Unclear(MetadataTrouble, Option<String>),
}

/// Compares a task's file with the record, and records a check that has no record.
fn compare(dir: &Path, task: &Task) -> Result<Compared, StoreError> {
    let found = task.verify_command();
    let record = read(dir, task.id)?;
    if let Some(trouble) = task.trouble().filter(|trouble| trouble.unclear) {
        let recorded = record.and_then(|record| record.verify);
        return Ok(Compared::Unclear(trouble, recorded));
    }
    match record {
        None if found.is_none() => Ok(Compared::Nothing),
        None => {
            write(dir, task.id, &Record::of(task))?;
            Ok(Compared::Agree)
        }
        Some(record) if record.allows(found) && !record.believes(task) => Ok(Compared::MadeUp),
        Some(record) if record.allows(found) => {
            if record.was.is_some() {
                // The process that was changing it is gone; the file shows how far it got.
                write(dir, task.id, &Record::of(task))?;
            }
            Ok(Compared::Agree)
        }
        Some(record) => Ok(Compared::Differ(record.verify)),
    }
}

impl Loaded {
    /// Checks a task whose file changed by other means than a change of its own: by another tool,
    /// by hand, or by being created. `was_done` is true if it was completed before.
    pub(crate) fn attend_check(&mut self, dir: &Path, task: &Task, was_done: bool) {
        match compare(dir, task) {
            Ok(Compared::Nothing | Compared::Agree) if !task.is_disputed() => {}
            Ok(_) => {
                self.disputed.insert(task.id, was_done);
            }
            // The board works without; the check is compared again before it is used.
            Err(error) => tracing::warn!(id = %task.id, %error, "its check is not compared"),
        }
    }

    /// Removes the record of a task that ccb deleted.
    pub(crate) fn forget_check(&mut self, dir: &Path, id: TaskId) {
        self.disputed.remove(&id);
        if let Err(error) = atomic::remove(&record_path(dir, id)) {
            tracing::warn!(%id, %error, "the record of its check stays");
        }
    }
}

impl Section<'_> {
    /// Parks disputed tasks, and lets those go on that agree with their records again.
    pub(crate) fn settle_checks(&mut self) -> Result<(), Stop> {
        let ids: Vec<TaskId> = self.live().disputed.keys().copied().collect();
        for id in ids {
            self.settle_check(id)?;
        }
        Ok(())
    }

    /// The same for one task, if it is one of those.
    pub(crate) fn settle_check(&mut self, id: TaskId) -> Result<(), Stop> {
        let Some(was_done) = self.live().disputed.get(&id).copied() else {
            return Ok(());
        };
        if let Read::Task(before) = read_task(&self.files.dir, id)? {
            let task = self.judged(&before, was_done)?;
            if task != before.task {
                let prepared = Prepared::new(self.files, task)?;
                self.write("park", Version::of(&before), prepared, ListDir::Leave)?;
            }
        }
        self.live().disputed.remove(&id);
        Ok(())
    }

    /// The task as it is to be.
    fn judged(&self, before: &Entry, was_done: bool) -> Result<Task, StoreError> {
        let mut task = before.task.clone();
        match compare(&self.files.dir, &before.task)? {
            Compared::Nothing | Compared::Agree => task.end_dispute(),
            // It was completed before; its proof is checked before it lands.
            Compared::Differ(_) | Compared::MadeUp | Compared::Unclear(..)
                if was_done && task.status == Status::Completed => {}
            Compared::Differ(recorded) => {
                self.reopen(&mut task);
                let reason = changed_check(&self.files.name, &task, recorded.as_deref());
                self.dispute(&mut task, reason, recorded);
            }
            Compared::Unclear(trouble, recorded) => {
                self.reopen(&mut task);
                let reason = unclear(&self.files.name, &task, &trouble);
                self.dispute(&mut task, reason, recorded);
            }
            Compared::MadeUp => {
                self.reopen(&mut task);
                let reason = format!(
                    "its file says that its check passed, and nobody saw that. To try again: ccb \
                     --list {} task update {} --status pending",
                    self.files.name, task.id
                );
                task.park(&self.parked(reason));
            }
        }
        Ok(task)
    }

    /// Parks a task whose file does not have the recorded check.
    fn dispute(&self, task: &mut Task, reason: String, recorded: Option<String>) {
        if !task.is_disputed() || task.parked() != Some(reason.as_str()) {
            task.park(&Parked {
                check: Some(recorded),
                ..self.parked(reason)
            });
        }
    }

    /// Undoes a completion that was not the board's.
    fn reopen(&self, task: &mut Task) {
        if task.status == Status::Completed {
            task.make_pending();
            task.set_result(None);
        }
    }

    fn parked(&self, reason: String) -> Parked {
        Parked {
            reason,
            since: Some(rfc3339(self.files.now_ms())),
            ..Parked::default()
        }
    }

    /// Puts a prepared file in its place; records its new check or result.
    pub(crate) fn write_change(
        &mut self,
        op: &'static str,
        before: &Entry,
        prepared: Prepared,
        list: ListDir,
    ) -> Result<(), Stop> {
        let (old, new) = (&before.task, &prepared.task);
        let decided = old.verify_command() != new.verify_command()
            || (old.is_disputed() && !new.is_disputed())
            || (new.verify_command().is_some() && old.result() != new.result());
        if !decided {
            return self.write(op, Version::of(before), prepared, list);
        }
        let (dir, id) = (self.files.dir.clone(), old.id);
        let known = read(&dir, id)?;
        let record = Record::of(new);
        let was = known.clone().unwrap_or_else(|| Record::of(old));
        let under_way = Record {
            was: Some(Box::new(Record { was: None, ..was })),
            ..record.clone()
        };
        write(&dir, id, &under_way)?;
        reached(fault::CHECK_NOTED);
        if let Err(stop) = self.write(op, Version::of(before), prepared, list) {
            // The earlier state. If this fails too, either of the two checks is accepted.
            match known {
                Some(known) => write(&dir, id, &known)?,
                None => drop(atomic::remove(&record_path(&dir, id))?),
            }
            return Err(stop);
        }
        write(&dir, id, &record)?;
        self.live().disputed.remove(&id);
        Ok(())
    }
}

impl Files {
    /// The record of the check of task `id`.
    pub(crate) fn recorded(&self, id: TaskId) -> Result<Option<Record>, BoardError> {
        Ok(read(&self.dir, id)?)
    }

    /// Parks a task whose file does not have the recorded check.
    pub(crate) fn park_disputed(&self, task: &Task) -> Result<(), BoardError> {
        let was_done = task.status == Status::Completed;
        self.section(|section| {
            section.live().disputed.insert(task.id, was_done);
            section.settle_check(task.id)
        })
    }

    /// The error in the check of a task; `None` if there is none.
    pub(crate) fn examine_check(&self, task: &Task) -> Result<Option<CheckTrouble>, BoardError> {
        let found = task.verify_command();
        if let Some(trouble) = task.trouble() {
            let ways_out = trouble.ways_out(self.name.as_str(), task.id);
            let words = format!("{}. {ways_out}", trouble.words);
            return Ok(Some(CheckTrouble::Metadata(words)));
        }
        Ok(match read(&self.dir, task.id)? {
            None if found.is_some() => Some(CheckTrouble::Unrecorded),
            Some(record) if !record.allows(found) => {
                let words = changed_check(&self.name, task, record.verify.as_deref());
                Some(CheckTrouble::Changed(words))
            }
            _ => None,
        })
    }

    /// Records the check in a task's file, if there is no record.
    pub(crate) fn record_check(&self, id: TaskId) -> Result<(), BoardError> {
        self.section(|section| {
            if let Read::Task(entry) = read_task(&section.files.dir, id)? {
                compare(&section.files.dir, &entry.task)?;
            }
            Ok(())
        })
    }
}

/// The doctor's findings about a task's check.
pub(crate) enum CheckTrouble {
    /// There is no record.
    Unrecorded,
    /// The file says something else; in words.
    Changed(String),
    /// The metadata has a key or value that ccb cannot read; in words.
    Metadata(String),
}
