//! A board in files that a view reads again and again.
//!
//! Takes no lock, makes no list, writes nothing, and never waits: a file that another tool is
//! writing in place just now is shown as it was, and reported as unreadable only if it stays so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use store::atomic::{self, Stamp};
use store::{IoContext, StoreError};

use crate::backend::Poll;
use crate::error::BoardError;
use crate::files::Files;
use crate::files::log::ChangeReader;
use crate::files::read::list_ids;
use crate::format;
use crate::history::Change;
use crate::id::TaskId;
use crate::snapshot::{Entry, Snapshot, Unreadable};

/// Files that were changed in place, which the directory does not tell, are found this late, in
/// ms.
const EVERY: i64 = 1_000;
/// Maximum time a file may be half written before it is reported as unreadable, in ms.
const PATIENCE: i64 = 1_000;

/// The state of the files at the last read. Reads only what has changed.
#[derive(Debug)]
struct Seen {
    dir: PathBuf,
    log: PathBuf,
    known: BTreeMap<TaskId, Known>,
    /// The directory's stamp, and the time when every file was last read; `None` before that.
    stamp: Option<Stamp>,
    looked: Option<i64>,
    history: ChangeReader,
    log_stamp: Option<Stamp>,
}

/// One task's file.
#[derive(Debug)]
struct Known {
    stamp: Stamp,
    /// The last readable state; `None` if there was none.
    entry: Option<Entry>,
    /// The error of reading it now, and its time, in ms; `None` if it is readable.
    bad: Option<(Unreadable, i64)>,
}

impl Files {
    /// Opens a view that reads this list again and again.
    pub(crate) fn seen(&self) -> Box<dyn Poll> {
        let paths = self.history_paths();
        Box::new(Seen {
            dir: self.dir.clone(),
            log: paths.log.clone(),
            known: BTreeMap::new(),
            stamp: None,
            looked: None,
            history: ChangeReader::from_the_first(paths),
            log_stamp: None,
        })
    }
}

impl Poll for Seen {
    fn look(&mut self, now_ms: i64) -> Result<Option<Snapshot>, BoardError> {
        let stamp = stamp_of(&self.dir)?;
        let due = self
            .looked
            .is_none_or(|at| now_ms - at >= EVERY || now_ms < at);
        if stamp == self.stamp && !due {
            return Ok(None);
        }
        let ids = list_ids(&self.dir)?;
        let before = self.known.len();
        self.known.retain(|id, _| ids.contains(id));
        let mut changed = self.known.len() != before;
        for id in ids {
            changed |= self.look_at(id, now_ms)?;
        }
        (self.stamp, self.looked) = (stamp, Some(now_ms));
        Ok(changed.then(|| self.snapshot(now_ms)))
    }

    fn history(&mut self) -> Result<Vec<Change>, BoardError> {
        let stamp = stamp_of(&self.log)?;
        if stamp.is_none() || stamp == self.log_stamp {
            return Ok(Vec::new());
        }
        let changes = self.history.read()?;
        self.log_stamp = stamp;
        Ok(changes)
    }
}

impl Seen {
    /// Reads one file if it is not as it was; says whether that makes a difference.
    fn look_at(&mut self, id: TaskId, now_ms: i64) -> Result<bool, BoardError> {
        let path = self.dir.join(id.file_name());
        let Some(stamp) = stamp_of(&path)? else {
            return Ok(self.known.remove(&id).is_some());
        };
        let known = self.known.get(&id);
        let ripe = |known: &Known| {
            // A half-written file that has stayed so is read once more.
            let bad = known.bad.as_ref();
            bad.is_some_and(|(_, since)| (0..2 * PATIENCE).contains(&(now_ms - since)))
        };
        if known.is_some_and(|known| known.stamp == stamp && !ripe(known)) {
            return Ok(false);
        }
        let read = match atomic::read_stamped(&path) {
            Ok(None) => return Ok(self.known.remove(&id).is_some()),
            Ok(Some((bytes, stamp))) => format::parse(id, &bytes).map(|task| Entry {
                task,
                fingerprint: store::fingerprint(&bytes),
                stamp,
            }),
            // A link, a directory, an unreadable file: it exists, but is no task.
            Err(StoreError::Io { source, .. }) => Err(source.to_string()),
            Err(error) => return Err(error.into()),
        };
        let before = self.known.remove(&id);
        let known = match read {
            Ok(entry) => Known {
                stamp,
                entry: Some(entry),
                bad: None,
            },
            Err(detail) => {
                let since = before.as_ref().and_then(|known| known.bad.as_ref());
                let since = since.map_or(now_ms, |(_, since)| *since);
                Known {
                    stamp,
                    entry: before.and_then(|known| known.entry),
                    bad: Some((Unreadable { path, detail }, since)),
                }
            }
        };
        self.known.insert(id, known);
        Ok(true)
    }

    fn snapshot(&self, now_ms: i64) -> Snapshot {
        let mut entries = Vec::new();
        let mut unreadable = BTreeMap::new();
        for (id, known) in &self.known {
            match (&known.entry, &known.bad) {
                (Some(entry), None) => entries.push(entry.clone()),
                (Some(entry), Some((_, since))) if now_ms - since < PATIENCE => {
                    entries.push(entry.clone());
                }
                (_, Some((bad, _))) => {
                    unreadable.insert(*id, bad.clone());
                }
                (None, None) => {}
            }
        }
        Snapshot::made_of(entries, unreadable)
    }
}

fn stamp_of(path: &Path) -> Result<Option<Stamp>, BoardError> {
    let found = std::fs::symlink_metadata(path).if_there("read", path)?;
    Ok(found.map(|meta| Stamp::of(&meta)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::board::Board;
    use crate::caller::Caller;
    use crate::options::BoardOptions;
    use crate::rules::batch::NewTask;
    use crate::rules::claim::ClaimRequest;

    fn board(dir: &tempfile::TempDir) -> Board {
        let home = Home::new(dir.path().to_owned()).unwrap();
        let name = Name::new("list", "l").unwrap();
        Board::new(&home, name, BoardOptions::default())
    }

    fn create(board: &Board, subject: &str) -> TaskId {
        let task = NewTask {
            subject: subject.into(),
            ..NewTask::default()
        };
        board.create(&[task], None).unwrap()[0].id
    }

    fn ids(snapshot: &Snapshot) -> BTreeSet<TaskId> {
        snapshot.tasks().map(|task| task.id).collect()
    }

    fn write(board: &Board, id: TaskId, text: &str) {
        let path = board.dir().join(id.file_name());
        let mut file = std::fs::File::options()
            .write(true)
            .truncate(true)
            .open(path)
            .unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }

    #[test]
    fn a_look_finds_what_was_made_changed_and_deleted_and_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let board = board(&dir);
        let mut glance = board.glance();
        assert!(!glance.look(0).unwrap());
        assert!(!board.dir().exists(), "looking makes no list");
        let (one, two) = (create(&board, "one"), create(&board, "two"));
        assert!(glance.look(1).unwrap());
        assert_eq!(ids(glance.snapshot()), BTreeSet::from([one, two]));
        assert!(!glance.look(2).unwrap());
        board.claim(one, &ClaimRequest::new("mate")).unwrap();
        // Clocks of file systems are coarse: the second read is the one by the clock.
        let seen = glance.look(3).unwrap() | glance.look(5_000).unwrap();
        assert!(seen);
        let task = glance.snapshot().get(one).unwrap();
        assert_eq!(task.owner.as_deref(), Some("mate"));
        board.delete(two, &Caller::new("user")).unwrap();
        let seen = glance.look(5_001).unwrap() | glance.look(10_000).unwrap();
        assert!(seen);
        assert_eq!(ids(glance.snapshot()), BTreeSet::from([one]));
        let history = glance.history().unwrap();
        let ops: Vec<&str> = history.iter().map(|change| change.op.as_str()).collect();
        assert_eq!(ops, ["create", "create", "claim", "delete"]);
        assert!(glance.history().unwrap().is_empty());
    }

    #[test]
    fn half_a_file_is_shown_as_it_was_and_called_unreadable_if_it_stays_so() {
        let dir = tempfile::tempdir().unwrap();
        let board = board(&dir);
        let id = create(&board, "one");
        let mut glance = board.glance();
        glance.look(0).unwrap();
        let whole = std::fs::read_to_string(board.dir().join(id.file_name())).unwrap();
        write(&board, id, &whole[..whole.len() / 2]);
        assert!(glance.look(1_000).unwrap());
        assert_eq!(ids(glance.snapshot()), BTreeSet::from([id]));
        assert!(glance.snapshot().unreadable().is_empty());
        glance.look(2_100).unwrap();
        assert_eq!(ids(glance.snapshot()), BTreeSet::new());
        assert_eq!(glance.snapshot().unreadable().len(), 1);
        // Nothing more is read as long as nothing changes.
        assert!(!glance.look(9_000).unwrap());
        write(&board, id, &whole);
        assert!(glance.look(10_100).unwrap());
        assert!(glance.snapshot().unreadable().is_empty());
    }
}
