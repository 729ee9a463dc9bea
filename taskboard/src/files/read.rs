//! Reading task files without a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use store::atomic::{self, Stamp};
use store::lockdir::STALE_AFTER;
use store::{IoContext, StoreError};

use crate::error::BoardError;
use crate::format;
use crate::id::TaskId;
use crate::snapshot::{Entry, Snapshot, Unreadable};

/// A task's file as it was when it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version {
    pub(crate) id: TaskId,
    pub(crate) fingerprint: u64,
    pub(crate) stamp: Stamp,
}

impl Version {
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            id: entry.task.id,
            fingerprint: entry.fingerprint,
            stamp: entry.stamp,
        }
    }
}

/// The result of reading one task file.
pub(crate) enum Read {
    Task(Box<Entry>),
    Absent,
    Unreadable(Unreadable),
}

/// Maximum time for a file that does not parse to become whole: other tools write in place.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads every task file in `dir`.
pub(crate) fn load(dir: &Path) -> Result<Snapshot, BoardError> {
    of(dir, list_ids(dir)?)
}

/// Reads one task and those it names.
pub(crate) fn around(dir: &Path, id: TaskId) -> Result<Snapshot, BoardError> {
    let mut ids = BTreeSet::from([id]);
    if let Read::Task(entry) = read_task(dir, id)? {
        ids.extend(entry.task.blocked_by.iter().chain(&entry.task.blocks));
    }
    of(dir, ids)
}

fn of(dir: &Path, ids: BTreeSet<TaskId>) -> Result<Snapshot, BoardError> {
    let mut entries = Vec::new();
    let mut unreadable = BTreeMap::new();
    for id in ids {
        match read_task(dir, id)? {
            Read::Task(entry) => entries.push(*entry),
            Read::Absent => {}
            Read::Unreadable(bad) => {
                unreadable.insert(id, bad);
            }
        }
    }
    Ok(Snapshot::made_of(entries, unreadable))
}

/// The ids that have a file in `dir`.
pub(crate) fn list_ids(dir: &Path) -> Result<BTreeSet<TaskId>, BoardError> {
    let mut ids = BTreeSet::new();
    let entries = std::fs::read_dir(dir).if_there("list", dir)?;
    for entry in entries.into_iter().flatten() {
        let name = entry.context("list", dir)?.file_name();
        ids.extend(name.to_str().and_then(TaskId::from_file_name));
    }
    Ok(ids)
}

/// Reads one task file, waiting a moment for a file that another tool is writing in place.
pub(crate) fn read_task(dir: &Path, id: TaskId) -> Result<Read, BoardError> {
    let path = dir.join(id.file_name());
    let mut deadline = None;
    loop {
        let detail = match atomic::read_stamped(&path) {
            Ok(None) => return Ok(Read::Absent),
            Ok(Some((bytes, stamp))) => match format::parse(id, &bytes) {
                Ok(task) => {
                    let fingerprint = store::fingerprint(&bytes);
                    return Ok(Read::Task(Box::new(Entry {
                        task,
                        fingerprint,
                        stamp,
                    })));
                }
                Err(detail) => detail,
            },
            // A link, a directory, an unreadable file: it exists, but is no task.
            Err(StoreError::Io { source, .. }) => {
                return Ok(Read::Unreadable(Unreadable {
                    path,
                    detail: source.to_string(),
                }));
            }
            Err(error) => return Err(error.into()),
        };
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
        if Instant::now() > deadline || !being_written(dir, &path) {
            return Ok(Read::Unreadable(Unreadable { path, detail }));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// True if another tool may be in the middle of writing `path`: it holds the lock directory of the
/// file or of the list, or the file changed a moment ago.
fn being_written(dir: &Path, path: &Path) -> bool {
    let mut own_lock = path.as_os_str().to_owned();
    own_lock.push(".lock");
    changed_within(path, PATIENCE)
        || changed_within(Path::new(&own_lock), STALE_AFTER)
        || changed_within(&dir.join(".lock.lock"), STALE_AFTER)
}

/// True if `path` is there and was changed less than `limit` ago; a time in the future counts.
fn changed_within(path: &Path, limit: Duration) -> bool {
    std::fs::symlink_metadata(path)
        .and_then(|meta| meta.modified())
        .is_ok_and(|time| time.elapsed().map_or(true, |age| age < limit))
}

#[cfg(test)]
mod tests {
    use store::home::Home;
    use store::name::Name;

    use crate::board::Board;
    use crate::options::BoardOptions;
    use crate::rules::batch::{NewTask, Reference};

    #[test]
    fn one_task_is_shown_without_reading_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let board = || {
            let name = Name::new("list", "l").unwrap();
            Board::new(&home, name, BoardOptions::default())
        };
        let new = |subject: &str, blocked_by: Vec<Reference>| NewTask {
            subject: subject.into(),
            blocked_by,
            ..NewTask::default()
        };
        let first = board().create(&[new("a", Vec::new())], None).unwrap()[0].id;
        let after = vec![Reference::Id(first)];
        let second = board().create(&[new("b", after)], None).unwrap()[0].id;
        let many: Vec<NewTask> = (0..50).map(|_| new("other", Vec::new())).collect();
        let others = board().create(&many, None).unwrap();
        // Many tasks at once take so long that another tool may have written in between; the next
        // section checks.
        board().create(&[new("last", Vec::new())], None).unwrap();
        let around = board().around(second).unwrap();
        assert_eq!(around.tasks().count(), 2, "itself and what it waits for");
        assert_eq!(around.open_blockers(second), [first]);
        assert_eq!(board().around(first).unwrap().dependents(first), [second]);
        // Neither does claiming one by its number rank them all.
        let claimer = board();
        claimer
            .claim(first, &crate::rules::claim::ClaimRequest::new("a"))
            .unwrap();
        let ranked = claimer
            .files()
            .peek(|loaded| Ok(loaded.index.is_ranked()))
            .unwrap();
        assert!(!ranked);
        // Another tool makes it wait for another task, and records that on one side only.
        let mut theirs = board().get(others[0].id).unwrap();
        theirs.blocks.push(second);
        let path = board().files().task_path(others[0].id);
        let modified = || {
            std::fs::metadata(board().dir())
                .unwrap()
                .modified()
                .unwrap()
        };
        let before = modified();
        // Clocks of file systems can be coarse.
        while modified() == before {
            let bytes = crate::format::to_bytes(&theirs);
            let tmp = board().files().tmp_dir();
            store::atomic::replace(&tmp, &path, &bytes, Default::default()).unwrap();
        }
        let around = board().around(second).unwrap();
        assert_eq!(around.open_blockers(second), [first, others[0].id]);
    }
}
