//! Finding and repairing what other tools, hands or disks broke.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Map;
use store::atomic::{self, Staged};
use store::clock::rfc3339;
use store::fault::reached;
use store::home::create_private_dir;
use store::lockdir::STALE_AFTER;
use store::tree::list;

use crate::error::BoardError;
use crate::facts::Parked;
use crate::fault;
use crate::files::Files;
use crate::files::checks::CheckTrouble;
use crate::files::ids::HighWater;
use crate::files::log;
use crate::files::read::{Read, load, read_task};
use crate::files::section::{ListDir, Section, Stop};
use crate::finding::{Finding, FindingKind};
use crate::format;
use crate::graph::Graph;
use crate::id::TaskId;
use crate::rules::index::{Index, Slim};
use crate::task::{Status, Task};

/// Temporary files are left alone for this long: their owner may be waiting for a hook.
const TEMPORARY_AGE: Duration = Duration::from_secs(24 * 3600);

impl Files {
    /// Searches for damage; with `fix`, repairs what can be repaired without losing anything.
    pub(crate) fn examine_and_treat(&self, fix: bool) -> Result<Vec<Finding>, BoardError> {
        if !self.dir.is_dir() {
            return Ok(Vec::new());
        }
        let mut findings = self.examine()?;
        if fix {
            for finding in &mut findings {
                finding.fixed = self.treat(finding)?;
            }
        }
        Ok(findings.into_iter().map(Case::finding).collect())
    }

    fn examine(&self) -> Result<Vec<Case>, BoardError> {
        let snapshot = load(&self.dir)?;
        let mut cases = Vec::new();
        let mut add = |kind, message: String, subject| {
            cases.push(Case {
                kind,
                message,
                subject,
                fixed: None,
            });
        };
        for (id, bad) in snapshot.unreadable() {
            let message = format!("task {id} is unreadable ({})", bad.detail);
            add(FindingKind::Unreadable, message, Subject::Task(*id));
        }
        for task in snapshot.tasks() {
            if let Some((kind, message, subject)) = self.look_at_check(task)? {
                add(kind, message, subject);
            }
        }
        for (blocker, dependent) in snapshot.half_edges() {
            let message = format!(
                "only one of {blocker} and {dependent} says that {blocker} blocks {dependent}"
            );
            add(
                FindingKind::HalfEdge,
                message,
                Subject::Edge(blocker, dependent),
            );
        }
        for cycle in Graph::new(&snapshot).cycles() {
            let ids: Vec<String> = cycle.iter().map(ToString::to_string).collect();
            let message = format!(
                "tasks {} wait for each other; break the circle with `ccb task unblock`",
                ids.join(", ")
            );
            add(FindingKind::Cycle, message, Subject::Nothing);
        }
        // A mark below an id in use is no damage: other tools do not raise it when they create a
        // task, and every process takes the higher of the two.
        if self.read_high_water()? == HighWater::Unreadable {
            let path = self.high_water_path();
            let message = format!(
                "{} does not hold a number; ids are derived from tasks and history until the \
                 next one is given out",
                path.display()
            );
            add(FindingKind::HighWater, message, Subject::Nothing);
        }
        if self.intent_path().exists() {
            let message = "an interrupted command left a change unfinished".to_owned();
            add(FindingKind::UnfinishedChange, message, Subject::Nothing);
        }
        self.examine_files(&mut add)?;
        Ok(cases)
    }

    /// Files without an owner: locks, temporary files, and files that are no task.
    fn examine_files(
        &self,
        add: &mut impl FnMut(FindingKind, String, Subject),
    ) -> Result<(), BoardError> {
        for path in list(&self.dir)? {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name.ends_with(".lock") && path.is_dir() && age(&path) > STALE_AFTER {
                let message = format!("{name}/ is a lock nobody holds");
                add(FindingKind::StaleLock, message, Subject::Path(path));
            } else if name.ends_with(".json") && TaskId::from_file_name(name).is_none() {
                let message = format!("{name:?} is not a task: its name is not a number");
                add(FindingKind::StrayFile, message, Subject::Nothing);
            }
        }
        for path in list(&self.tmp_dir())? {
            if age(&path) > TEMPORARY_AGE {
                let message = format!("{} was left by an interrupted command", path.display());
                add(FindingKind::OldTemporary, message, Subject::Path(path));
            }
        }
        Ok(())
    }

    /// The error in a task's check; `None` if there is none.
    fn look_at_check(
        &self,
        task: &Task,
    ) -> Result<Option<(FindingKind, String, Subject)>, BoardError> {
        let id = task.id;
        Ok(self.examine_check(task)?.map(|trouble| match trouble {
            CheckTrouble::Changed(words) => {
                let message = format!("task {id}: {words}");
                (FindingKind::CheckChanged, message, Subject::Nothing)
            }
            CheckTrouble::Metadata(words) => {
                let message = format!("task {id}: {words}");
                (FindingKind::Metadata, message, Subject::Nothing)
            }
            CheckTrouble::Unrecorded => {
                let message = format!(
                    "the check of task {id} is not written down outside its file: whoever can \
                     write the file can change it"
                );
                (FindingKind::CheckUnrecorded, message, Subject::Task(id))
            }
        }))
    }

    fn treat(&self, case: &Case) -> Result<Option<String>, BoardError> {
        Ok(match (case.kind, &case.subject) {
            (FindingKind::Unreadable, Subject::Task(id)) => self
                .section(|section| section.replace_by_tombstone(*id))?
                .map(|path| format!("moved to {}; the task is parked", path.display())),
            (FindingKind::HalfEdge, Subject::Edge(blocker, dependent)) => {
                self.section(|_| Ok(()))?;
                let left = load(&self.dir)?
                    .half_edges()
                    .contains(&(*blocker, *dependent));
                (!left).then(|| "completed".to_owned())
            }
            (FindingKind::CheckUnrecorded, Subject::Task(id)) => {
                self.record_check(*id)?;
                Some("written down as its file says it".to_owned())
            }
            (FindingKind::HighWater, _) => {
                let mark =
                    self.section(|section: &mut Section<'_>| section.rebuild_high_water())?;
                Some(format!("set to {mark}"))
            }
            (FindingKind::UnfinishedChange, _) => {
                self.section(|_| Ok(()))?;
                Some("finished".to_owned())
            }
            (FindingKind::StaleLock, Subject::Path(path)) => {
                self.section(|section| section.clear_stale_dir(path))?;
                Some("removed".to_owned())
            }
            (FindingKind::OldTemporary, Subject::Path(path)) => {
                self.section(|_| {
                    if path.is_dir() {
                        std::fs::remove_dir(path).ok();
                        return Ok(());
                    }
                    atomic::remove(path).map(|_| ()).map_err(Stop::from)
                })?;
                Some("removed".to_owned())
            }
            _ => None,
        })
    }

    /// Moves an unreadable file out of the way. The caller holds the lock.
    pub(crate) fn set_aside(&self, id: TaskId) -> Result<PathBuf, BoardError> {
        let dest = self.aside_path(id)?;
        atomic::rename(&self.task_path(id), &dest)?;
        Ok(dest)
    }

    fn aside_path(&self, id: TaskId) -> Result<PathBuf, BoardError> {
        let dir = self.dir.join(".ccb/corrupt");
        create_private_dir(&dir)?;
        Ok(dir.join(format!("{id}-{}.json", self.now_ms())))
    }
}

impl Section<'_> {
    /// Puts a parked task in the place of an unreadable file, which is kept elsewhere. The
    /// tombstone still blocks what waited for the task. `None` if the file is fine by now.
    fn replace_by_tombstone(&mut self, id: TaskId) -> Result<Option<PathBuf>, Stop> {
        let Read::Unreadable(bad) = read_task(&self.files.dir, id)? else {
            return Ok(None);
        };
        let logged = log::last_logged(&self.files.history_paths(), id)?;
        let aside = self.files.aside_path(id)?;
        let now = rfc3339(self.files.now_ms());
        let task = tombstone(id, logged, self.index(), &bad.detail, &aside, &now);
        let bytes = format::to_bytes(&task);
        let staged = Staged::write(&self.files.tmp_dir(), &bytes, self.files.durability())?;
        let held = self.take_dirs(ListDir::Leave, &[id])?;
        // A second name first, so that the file is never without one; what cannot have one
        // (a directory) is moved.
        let path = self.files.task_path(id);
        if std::fs::hard_link(&path, &aside).is_err() {
            atomic::rename(&path, &aside)?;
        }
        reached(fault::SET_ASIDE);
        atomic::sync_parent(&aside, self.files.durability())?;
        staged.replace(&path)?;
        drop(held);
        self.note_changed("set-aside", id)?;
        Ok(Some(aside))
    }

    fn clear_stale_dir(&mut self, path: &Path) -> Result<(), Stop> {
        self.take_paths(&[path.to_owned()]).map(drop)
    }
}

/// The replacement of an unreadable task: the facts in its history, parked.
fn tombstone(
    id: TaskId,
    logged: Option<Task>,
    index: &Index,
    detail: &str,
    aside: &Path,
    now: &str,
) -> Task {
    // The other tasks' edges are all that is left if the history has nothing.
    let naming = |list: fn(&Slim) -> &[TaskId]| -> Vec<TaskId> {
        index
            .iter()
            .filter(|(_, slim)| list(slim).contains(&id))
            .map(|(id, _)| id)
            .collect()
    };
    let mut task = logged.unwrap_or_else(|| Task {
        id,
        subject: format!("Task {id}, whose file was unreadable"),
        description: String::new(),
        active_form: None,
        owner: None,
        status: Status::Pending,
        blocks: naming(|slim| &slim.blocked_by),
        blocked_by: naming(|slim| &slim.blocks),
        metadata: None,
        extra: Map::new(),
    });
    task.make_pending();
    task.park(&Parked {
        reason: format!("its file was unreadable ({detail}); this is what was known of it"),
        file: Some(aside.display().to_string()),
        at: Some(now.to_owned()),
        ..Parked::default()
    });
    task
}

struct Case {
    kind: FindingKind,
    message: String,
    subject: Subject,
    fixed: Option<String>,
}

enum Subject {
    Task(TaskId),
    Edge(TaskId, TaskId),
    Path(PathBuf),
    Nothing,
}

impl Case {
    fn finding(self) -> Finding {
        Finding {
            kind: self.kind,
            message: self.message,
            fixed: self.fixed,
        }
    }
}

fn age(path: &Path) -> Duration {
    let modified = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
    modified
        .ok()
        .and_then(|time| time.elapsed().ok())
        .unwrap_or_default()
}
