//! `<home>/ccb/trust.json`: what the user has said.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use store::atomic::{self, Durability};
use store::clock::{Clock, rfc3339};
use store::home::{Home, create_durable_dir};
use store::lock::FileLock;
use store::{Result, StoreError};

use super::Item;

const VERSION: u64 = 1;

/// The items of one repository that the user trusts.
#[derive(Debug, Clone)]
pub struct Trust {
    directory: PathBuf,
    /// The git directory all its worktrees share.
    repository: String,
    lock_timeout: Duration,
}

impl Trust {
    /// For the repository with this common git directory.
    pub fn new(home: &Home, repository: &str, lock_timeout: Duration) -> Self {
        Self {
            directory: home.ours(),
            repository: repository.to_owned(),
            lock_timeout,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("trust.json")
    }

    /// The ids of everything that is trusted.
    ///
    /// A file that cannot be read is an error: it is not the same as trusting nothing, and
    /// must not be overwritten.
    pub fn granted(&self) -> Result<Vec<String>> {
        let document = self.read()?;
        let items = document
            .get("repositories")
            .and_then(|all| all.get(&self.repository))
            .and_then(|one| one.get("items"))
            .and_then(Value::as_object);
        Ok(items.map_or_else(Vec::new, |items| items.keys().cloned().collect()))
    }

    /// Trusts these, too. Items that were trusted before stay so until they are revoked: branches
    /// may have different versions of a script.
    pub fn grant(&self, items: &[Item], clock: &dyn Clock) -> Result<()> {
        let now = rfc3339(clock.now_ms());
        self.change(|repositories| {
            let entry = repositories.entry(self.repository.clone());
            let Value::Object(entry) = entry.or_insert_with(|| json!({})) else {
                return Err(self.unreadable("a repository's entry is not an object"));
            };
            entry.insert("grantedAt".into(), now.into());
            let known = entry.entry("items").or_insert_with(|| json!({}));
            let Value::Object(known) = known else {
                return Err(self.unreadable("the items of a repository are not an object"));
            };
            known.extend(items.iter().map(|item| (item.id(), item.to_json())));
            Ok(())
        })
    }

    /// Trusts nothing of the repository any more; true if it did before.
    pub fn revoke(&self) -> Result<bool> {
        let mut was = false;
        self.change(|repositories| {
            was = repositories.shift_remove(&self.repository).is_some();
            Ok(())
        })?;
        Ok(was)
    }

    fn change(&self, change: impl FnOnce(&mut Map<String, Value>) -> Result<()>) -> Result<()> {
        create_durable_dir(&self.directory, Durability::Full)?;
        let lock = self.directory.join("trust.lock");
        let _lock = FileLock::exclusive(&lock, "the record of what is trusted", self.lock_timeout)?;
        let mut document = self.read()?;
        let found = document.get("v").and_then(Value::as_u64).unwrap_or(VERSION);
        StoreError::check_version(&self.path(), found, VERSION)?;
        document.insert("v".into(), VERSION.into());
        let repositories = document
            .entry("repositories")
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(repositories) = repositories else {
            return Err(self.unreadable("\"repositories\" is not an object"));
        };
        change(repositories)?;
        let text = format!("{:#}\n", Value::Object(document));
        atomic::replace(
            &self.directory,
            &self.path(),
            text.as_bytes(),
            Durability::Full,
        )
    }

    fn read(&self) -> Result<Map<String, Value>> {
        let Some(bytes) = atomic::read(&self.path())? else {
            return Ok(Map::new());
        };
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(document)) => Ok(document),
            Ok(_) => Err(self.unreadable("it is not a JSON object")),
            Err(error) => Err(self.unreadable(&error.to_string())),
        }
    }

    fn unreadable(&self, why: &str) -> StoreError {
        StoreError::Settings {
            path: self.path(),
            why: format!("{why}; move the file away to trust nothing"),
        }
    }

    /// The repository it is about.
    pub fn repository(&self) -> &Path {
        Path::new(&self.repository)
    }
}
