//! Following the changes of a list in files.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::time::Duration;

use store::watch::{DirWatch, Look};

use crate::backend::Feed;
use crate::error::BoardError;
use crate::files::Files;
use crate::files::log::ChangeReader;
use crate::history::Change;
use crate::id::TaskId;

/// The log, and what other tools do that is not in it yet.
#[derive(Debug)]
struct Followed<'f> {
    files: &'f Files,
    hints: DirWatch,
    reader: ChangeReader,
    /// The places with possible changes that are not in the log.
    look: Look,
}

impl Files {
    /// Follows the list from change number `since` on, or from now on.
    pub(crate) fn follow(&self, since: Option<u64>) -> Result<Box<dyn Feed + '_>, BoardError> {
        // Creates the list if need be, and numbers what other tools did so far.
        let last = self.number_foreign_changes()?;
        let since = since.unwrap_or(last);
        if since > last {
            return Err(BoardError::beyond(since, last));
        }
        Ok(Box::new(Followed {
            files: self,
            hints: DirWatch::new(&self.dir),
            reader: ChangeReader::new(self.history_paths(), since),
            look: Look::Everywhere,
        }))
    }

    /// Reads every file and gives numbers to the changes of other tools. Returns the last one.
    pub(crate) fn number_foreign_changes(&self) -> Result<u64, BoardError> {
        self.observe(|section| Ok(section.scan(&HashMap::new())?))?;
        self.observe(|section| Ok(section.live().seq()))
    }

    /// True if the files of these tasks are as this process has last seen them; takes no lock.
    fn knows(&self, ids: &[TaskId]) -> Result<bool, BoardError> {
        let dir = &self.dir;
        let known = self.peek(|live| Ok(ids.iter().all(|id| live.knows(dir, *id))))?;
        Ok(known || ids.is_empty())
    }

    /// Gives numbers to what other tools did to these tasks.
    fn take_in(&self, ids: &[TaskId]) -> Result<(), BoardError> {
        self.observe(|section| {
            for id in ids {
                section.take_in(*id)?;
            }
            Ok(())
        })
    }
}

impl Feed for Followed<'_> {
    fn poll(&mut self) -> Result<Vec<Change>, BoardError> {
        let changes = self.reader.read()?;
        if !changes.is_empty() {
            return Ok(changes);
        }
        // No change by ccb. Perhaps something of other tools, which no process has noticed yet.
        match std::mem::take(&mut self.look) {
            Look::At(names) => {
                let ids = tasks_among(&names);
                if self.files.knows(&ids)? {
                    return Ok(changes);
                }
                self.files.take_in(&ids)?;
            }
            Look::Everywhere => {
                self.files.number_foreign_changes()?;
            }
        }
        self.reader.read()
    }

    fn wait(&mut self, limit: Duration) {
        self.look.add(self.hints.wait_where(limit));
    }

    fn last(&self) -> u64 {
        self.reader.last()
    }
}

/// The tasks whose files are among `names`.
fn tasks_among(names: &BTreeSet<OsString>) -> Vec<TaskId> {
    let names = names.iter().filter_map(|name| name.to_str());
    names.filter_map(TaskId::from_file_name).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::board::{Board, Watch};
    use crate::{BoardOptions, NewTask};

    /// Waits for the next changes as a follower of the list does.
    fn next(watch: &mut Watch<'_>) -> Vec<(TaskId, bool)> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let changes = watch.poll().unwrap();
            if !changes.is_empty() {
                let told = changes.iter();
                return told.map(|one| (one.id, one.task.is_some())).collect();
            }
            assert!(Instant::now() < deadline, "nothing came");
            watch.wait(Duration::from_millis(50));
        }
    }

    /// Writes what `of` says, with a change, into `path`: in place, so that the directory shows
    /// nothing.
    #[expect(clippy::disallowed_methods, reason = "other tools write in place")]
    fn write_changed(path: &Path, of: &Path, from: &str, to: &str) {
        let text = std::fs::read_to_string(of).unwrap();
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    #[test]
    fn what_other_tools_do_to_single_files_is_seen_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let name = Name::new("list", "followed").unwrap();
        let board = Board::new(&home, name, BoardOptions::default());
        let tasks = ["one", "two", "three"].map(|subject| NewTask {
            subject: subject.into(),
            ..NewTask::default()
        });
        let made = board.create(&tasks, None).unwrap();
        let ids: Vec<TaskId> = made.iter().map(|task| task.id).collect();
        let mut watch = board.watch(None).unwrap();
        assert!(watch.poll().unwrap().is_empty());
        let file = |id| board.files().task_path(id);
        write_changed(&file(ids[1]), &file(ids[1]), "two", "another");
        assert_eq!(next(&mut watch), [(ids[1], true)]);
        std::fs::remove_file(file(ids[0])).unwrap();
        assert_eq!(next(&mut watch), [(ids[0], false)]);
        let new = TaskId::new(9).unwrap();
        write_changed(&file(new), &file(ids[2]), "\"3\"", "\"9\"");
        assert_eq!(next(&mut watch), [(new, true)]);
    }
}
