//! The plain design: one lock directory for the list, taken with `mkdir` and retries; under it
//! every task file is read, and the claimed one is written in place.
//!
//! Its model runs on Node; this port is compiled code and so several times faster, but its cost has
//! the same shape.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Claimer;
use crate::Failure;

const RETRIES: u32 = 30;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// A directory of task files.
pub(crate) struct Files {
    dir: PathBuf,
    durable: bool,
}

/// The lock directory, held.
struct Locked(PathBuf);

impl Drop for Locked {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).ok();
    }
}

impl Files {
    pub(crate) fn open(dir: &Path, durable: bool) -> Self {
        Self {
            dir: dir.to_owned(),
            durable,
        }
    }

    fn lock(&self) -> Result<Locked, Failure> {
        let path = self.dir.join(".lock.lock");
        let mut pause = FIRST_PAUSE;
        for attempt in 0..=RETRIES {
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Locked(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
            if attempt < RETRIES {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        Err("the lock directory was there at every retry".into())
    }
}

impl Claimer for Files {
    fn claim(&mut self, agent: &str) -> Result<Option<u64>, Failure> {
        let _locked = self.lock()?;
        let mut tasks = read_all(&self.dir)?;
        let Some(id) = best(&tasks) else {
            return Ok(None);
        };
        let task = tasks.entry(id).or_default();
        task["owner"] = agent.into();
        task["status"] = "in_progress".into();
        let mut file = std::fs::File::create(self.dir.join(format!("{id}.json")))?;
        file.write_all(format!("{task:#}\n").as_bytes())?;
        if self.durable {
            file.sync_all()?;
        }
        Ok(Some(id))
    }
}

/// The owner of each task.
pub(crate) fn owners(dir: &Path) -> Result<HashMap<u64, String>, Failure> {
    let owner = |(id, task): (u64, Value)| Some((id, task["owner"].as_str()?.to_owned()));
    Ok(read_all(dir)?.into_iter().filter_map(owner).collect())
}

fn read_all(dir: &Path) -> Result<BTreeMap<u64, Value>, Failure> {
    let mut tasks = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|n| n.strip_suffix(".json"));
        if let Some(id) = id.and_then(|id| id.parse().ok()) {
            tasks.insert(id, serde_json::from_slice(&std::fs::read(dir.join(name))?)?);
        }
    }
    Ok(tasks)
}

/// Highest priority, then lowest id, of the pending, unowned tasks without blockers.
fn best(tasks: &BTreeMap<u64, Value>) -> Option<u64> {
    let open = |id: &Value| {
        let id = id.as_str().and_then(|id| id.parse().ok());
        let blocker = id.and_then(|id: u64| tasks.get(&id));
        blocker.is_some_and(|task| task["status"] != "completed")
    };
    let ready = |task: &Value| {
        let mut blockers = task["blockedBy"].as_array().into_iter().flatten();
        task["status"] == "pending" && task["owner"].is_null() && !blockers.any(open)
    };
    let priority = |task: &Value| task["metadata"]["ccb"]["priority"].as_i64().unwrap_or(0);
    tasks
        .iter()
        .filter(|(_, task)| ready(task))
        .min_by_key(|(id, task)| (std::cmp::Reverse(priority(task)), **id))
        .map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::designs::write_files;

    #[test]
    fn claims_every_task_once_in_order_of_priority() {
        let dir = tempfile::tempdir().unwrap();
        write_files(dir.path(), 50).unwrap();
        let mut files = Files::open(dir.path(), false);
        let mut claimed = Vec::new();
        while let Some(id) = files.claim("a").unwrap() {
            claimed.push(id);
        }
        assert_eq!(claimed.len(), 45);
        assert_eq!(claimed[..2], [9, 14]);
        assert!(!dir.path().join(".lock.lock").exists());
    }
}
