//! The whole board at one moment, and what can be read off it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::lockdir::STALE_AFTER;
use store::{StoreError, atomic};

use crate::error::{BoardError, Refusal};
use crate::format;
use crate::id::TaskId;
use crate::task::{Status, Task};

/// All tasks of a list as they were read.
#[derive(Debug)]
pub struct Snapshot {
    tasks: BTreeMap<TaskId, Entry>,
    unreadable: BTreeMap<TaskId, Unreadable>,
    edges: OnceCell<Edges>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) task: Task,
    /// Of the file's bytes; tells whether it changed since.
    pub(crate) fingerprint: u64,
}

/// A task file that cannot be read as a task. Never treated as absent.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub detail: String,
}

/// Both directions of every edge, whichever side it is written on.
#[derive(Debug, Default)]
struct Edges {
    blockers: HashMap<TaskId, BTreeSet<TaskId>>,
    dependents: HashMap<TaskId, BTreeSet<TaskId>>,
}

/// What reading one task file gave.
pub(crate) enum Read {
    Task(Box<Entry>),
    Absent,
    Unreadable(Unreadable),
}

/// How long a file that does not parse may take to become whole: other tools write in place.
const PATIENCE: Duration = Duration::from_secs(1);

impl Snapshot {
    /// Reads every task file in `dir`.
    pub(crate) fn load(dir: &Path) -> Result<Self, BoardError> {
        let mut snapshot = Self {
            tasks: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            edges: OnceCell::new(),
        };
        for id in list_ids(dir)? {
            match read_task(dir, id)? {
                Read::Task(entry) => {
                    snapshot.tasks.insert(id, *entry);
                }
                Read::Absent => {}
                Read::Unreadable(unreadable) => {
                    snapshot.unreadable.insert(id, unreadable);
                }
            }
        }
        Ok(snapshot)
    }

    /// All readable tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().map(|entry| &entry.task)
    }

    /// Files that cannot be read as tasks.
    pub fn unreadable(&self) -> &BTreeMap<TaskId, Unreadable> {
        &self.unreadable
    }

    /// The task with this id, if it is there and readable.
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|entry| &entry.task)
    }

    /// The task with this id, or the error that says why not.
    pub fn require(&self, id: TaskId) -> Result<&Task, BoardError> {
        if let Some(task) = self.get(id) {
            return Ok(task);
        }
        Err(match self.unreadable.get(&id) {
            Some(bad) => BoardError::Corrupt {
                id,
                path: bad.path.clone(),
                detail: bad.detail.clone(),
            },
            None => BoardError::NotFound { id },
        })
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (TaskId, &Entry)> {
        self.tasks.iter().map(|(id, entry)| (*id, entry))
    }

    pub(crate) fn entry(&self, id: TaskId) -> Option<&Entry> {
        self.tasks.get(&id)
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        self.edges = OnceCell::new();
        self.unreadable.remove(&entry.task.id);
        self.tasks.insert(entry.task.id, entry);
    }

    pub(crate) fn take_out(&mut self, id: TaskId) {
        self.edges = OnceCell::new();
        self.tasks.remove(&id);
        self.unreadable.remove(&id);
    }

    /// The highest id in use, 0 on an empty board.
    pub(crate) fn max_id(&self) -> u64 {
        let readable = self.tasks.last_key_value().map_or(0, |(id, _)| id.get());
        let unreadable = self
            .unreadable
            .last_key_value()
            .map_or(0, |(id, _)| id.get());
        readable.max(unreadable)
    }

    /// Tasks that `id` waits for or once waited for, on either side's word.
    pub fn blockers(&self, id: TaskId) -> impl Iterator<Item = TaskId> {
        self.edges()
            .blockers
            .get(&id)
            .into_iter()
            .flatten()
            .copied()
    }

    /// Tasks that wait for `id`, on either side's word.
    pub fn dependents(&self, id: TaskId) -> impl Iterator<Item = TaskId> {
        self.edges()
            .dependents
            .get(&id)
            .into_iter()
            .flatten()
            .copied()
    }

    /// The blockers of `id` that are not completed. One whose file is missing is resolved;
    /// one whose file is unreadable is not.
    pub fn open_blockers(&self, id: TaskId) -> Vec<TaskId> {
        self.blockers(id)
            .filter(|blocker| self.is_open(*blocker))
            .collect()
    }

    fn is_open(&self, id: TaskId) -> bool {
        match self.get(id) {
            Some(task) => task.status != Status::Completed,
            None => self.unreadable.contains_key(&id),
        }
    }

    /// Whether anybody may claim it now.
    pub fn is_ready(&self, task: &Task) -> bool {
        task.owner.is_none() && self.can_start(task)
    }

    /// Pending, not parked, and nothing it waits for is open.
    pub(crate) fn can_start(&self, task: &Task) -> bool {
        task.status == Status::Pending
            && task.parked().is_none()
            && !self.blockers(task.id).any(|blocker| self.is_open(blocker))
    }

    /// What stands in the way of starting `task`, in the order the rules name it.
    pub(crate) fn start_obstacle(&self, task: &Task) -> Option<Refusal> {
        let open = self.open_blockers(task.id);
        if !open.is_empty() {
            return Some(Refusal::Blocked { by: open });
        }
        task.parked().map(|reason| Refusal::Parked {
            reason: reason.to_owned(),
        })
    }

    /// Edges written on one side only, although both tasks are there: (blocker, dependent).
    pub fn half_edges(&self) -> Vec<(TaskId, TaskId)> {
        let mut half = Vec::new();
        for (&dependent, blockers) in &self.edges().blockers {
            for &blocker in blockers {
                let (Some(from), Some(to)) = (self.get(blocker), self.get(dependent)) else {
                    continue;
                };
                if !from.blocks.contains(&dependent) || !to.blocked_by.contains(&blocker) {
                    half.push((blocker, dependent));
                }
            }
        }
        half.sort_unstable();
        half
    }

    fn edges(&self) -> &Edges {
        self.edges.get_or_init(|| {
            let mut edges = Edges::default();
            for task in self.tasks() {
                for &blocker in &task.blocked_by {
                    edges.insert(blocker, task.id);
                }
                for &dependent in &task.blocks {
                    edges.insert(task.id, dependent);
                }
            }
            edges
        })
    }
}

impl Edges {
    fn insert(&mut self, blocker: TaskId, dependent: TaskId) {
        self.blockers.entry(dependent).or_default().insert(blocker);
        self.dependents
            .entry(blocker)
            .or_default()
            .insert(dependent);
    }
}

/// The ids that have a file in `dir`.
pub(crate) fn list_ids(dir: &Path) -> Result<BTreeSet<TaskId>, BoardError> {
    let failed = |source| StoreError::Io {
        verb: "list",
        path: dir.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(failed(error).into()),
    };
    let mut ids = BTreeSet::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        ids.extend(name.to_str().and_then(TaskId::from_file_name));
    }
    Ok(ids)
}

/// Reads one task file, waiting a moment for one that somebody is writing in place.
pub(crate) fn read_task(dir: &Path, id: TaskId) -> Result<Read, BoardError> {
    let path = dir.join(id.file_name());
    let mut deadline = None;
    loop {
        let detail = match atomic::read(&path) {
            Ok(None) => return Ok(Read::Absent),
            Ok(Some(bytes)) => match format::parse(id, &bytes) {
                Ok(task) => {
                    let fingerprint = store::fingerprint(&bytes);
                    return Ok(Read::Task(Box::new(Entry { task, fingerprint })));
                }
                Err(detail) => detail,
            },
            // A link, a directory, a file we may not read: there, but not a task.
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

/// Whether another tool may be in the middle of writing `path`: it holds the lock directory
/// of the file or of the list, or the file changed a moment ago.
fn being_written(dir: &Path, path: &Path) -> bool {
    let mut own_lock = path.as_os_str().to_owned();
    own_lock.push(".lock");
    changed_within(path, PATIENCE)
        || changed_within(Path::new(&own_lock), STALE_AFTER)
        || changed_within(&dir.join(".lock.lock"), STALE_AFTER)
}

/// Whether `path` is there and was changed less than `limit` ago; a time in the future counts.
fn changed_within(path: &Path, limit: Duration) -> bool {
    std::fs::symlink_metadata(path)
        .and_then(|meta| meta.modified())
        .is_ok_and(|time| time.elapsed().map_or(true, |age| age < limit))
}
