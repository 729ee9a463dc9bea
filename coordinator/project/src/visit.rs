//! A session that works in a worktree for a while and then returns to its directory.
//!
//! The record for the way back is in the team's `session.json`: under `worktree` for the lead's
//! session, under `worktrees` by name for a member's, which is a session of its own. ccb makes the
//! worktree before it writes the record, and removes it before it clears the record, so a crash
//! leaves an unused worktree or a record without a worktree; the next call repairs both.

use std::path::Path;

use runs::session_file::{SessionFile, SessionFileError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::agent_id::AgentId;
use store::name::Name;
use store::{Category, Explain, Facts};
use worktrees::{CreateRequest, Created, Entry, RemoveRequest, Removed, Slug, TreeError, Trees};

/// The keys under which records of worktrees stand.
const RECORDS: [&str; 2] = ["worktree", "worktrees"];

/// A member's key; names are unique without regard to case.
fn key(member: &Name) -> String {
    member.as_str().to_ascii_lowercase()
}

/// The errors of entering or leaving a worktree.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// The worktrees said no.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The session file cannot be read or written.
    #[error(transparent)]
    File(#[from] SessionFileError),
    /// One worktree at a time.
    #[error("this session is in worktree {name:?} already")]
    InTree {
        /// The worktree's name.
        name: String,
    },
    /// There is nothing to leave.
    #[error("this session is in no worktree")]
    InNone,
    /// Another session entered it.
    #[error("worktree {name:?} was entered by another session ({session})")]
    NotYours {
        /// The worktree's name.
        name: String,
        /// The other session.
        session: String,
    },
    /// A team belongs to one repository.
    #[error("team {team} works in another repository ({repository})")]
    OtherRepository {
        /// The team's name.
        team: String,
        /// The repository the session works in.
        repository: String,
    },
}

impl Explain for VisitError {
    fn facts(&self) -> Facts {
        use Category::{NotFound, Refused};
        match self {
            Self::Tree(error) => error.facts(),
            Self::File(error) => error.facts(),
            Self::InTree { .. } => Facts::new(Refused, "in_worktree")
                .hint("leave it first with `ccb worktree exit --keep`, or use another --team"),
            Self::InNone => Facts::new(NotFound, "not_in_worktree"),
            Self::NotYours { .. } => Facts::new(Refused, "not_yours"),
            Self::OtherRepository { .. } => Facts::new(Refused, "other_repository")
                .hint("leave its worktree there first, or use another --team"),
        }
    }
}

/// The record a session in a worktree needs to return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisitRecord {
    /// The session's directory before.
    pub original_cwd: String,
    /// The worktree's directory.
    pub worktree_path: String,
    /// The name of the worktree.
    pub worktree_name: String,
    /// The worktree's branch; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_branch: Option<String>,
    /// The branch before; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_branch: Option<String>,
    /// The commit before; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_head_commit: Option<String>,
    /// The id of the session.
    pub session_id: String,
    /// True if a hook made the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_based: Option<bool>,
    /// Milliseconds that making the worktree took; `None` if it already existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_duration_ms: Option<u64>,
    /// True if only some paths are checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_sparse_paths: Option<bool>,
}

/// One team's session, seen from one repository.
#[derive(Debug)]
pub struct Visit<'a> {
    /// The team's session file.
    pub file: SessionFile,
    /// The team of the session.
    pub team: Name,
    /// The member of a member's session; `None` for the lead's.
    pub member: Option<&'a Name>,
    /// The caller's session, if it has an id.
    pub id: Option<String>,
    /// The worktrees of the repository.
    pub trees: &'a Trees,
}

/// A worktree that was left.
#[derive(Debug)]
pub struct Left {
    /// How the session entered the worktree, and the directory it returns to.
    pub record: VisitRecord,
    /// The worktree as registered now; `None` if it was gone already.
    pub entry: Option<Entry>,
    /// The removed worktree, if removal was requested.
    pub removed: Option<Removed>,
}

impl Visit<'_> {
    /// The worktree the session is in, if that is still there.
    pub fn current(&self) -> Result<Option<VisitRecord>, VisitError> {
        let record = self.record(&self.file.load()?)?;
        Ok(record.filter(|record| self.tree_of(record).is_some()))
    }

    /// Enters the worktree that `request` names, and makes it if it does not exist; `cwd` is the
    /// directory the session returns to. Entering the session's present worktree changes nothing.
    pub fn enter(
        &self,
        request: &CreateRequest<'_>,
        cwd: &Path,
    ) -> Result<(VisitRecord, Created), VisitError> {
        let _lock = self.file.lock()?;
        let mut file = self.file.load()?;
        self.check_repository(&file)?;
        if let Some(record) = self.record(&file)?
            && self.tree_of(&record).is_some()
        {
            let same = request.name.as_ref().map(Slug::as_str) == Some(&record.worktree_name);
            if !same {
                return Err(VisitError::InTree {
                    name: record.worktree_name,
                });
            }
            self.check_owner(&record)?;
            return Ok((record, self.trees.create(request)?));
        }
        let here = self.trees.whereabouts(cwd)?;
        let created = self.trees.create(request)?;
        let entry = &created.entry;
        let record = VisitRecord {
            original_cwd: cwd.to_string_lossy().into_owned(),
            worktree_path: entry.path.clone(),
            worktree_name: entry.name.clone(),
            worktree_branch: entry.branch.clone(),
            original_branch: here.branch,
            original_head_commit: here.commit,
            session_id: self.own_id(),
            hook_based: entry.hook_based.then_some(true),
            creation_duration_ms: created.created.then_some(created.duration_ms),
            used_sparse_paths: entry.sparse.then_some(true),
        };
        let json = serde_json::to_value(&record).map_err(|error| self.file.unreadable(&error))?;
        let repository = self.trees.common_dir().to_string_lossy().into_owned();
        file.insert("repository".into(), repository.into());
        self.put(&mut file, Some(json));
        self.file.save(file)?;
        Ok((record, created))
    }

    /// Leaves the worktree, which stays.
    pub fn leave_and_keep(&self) -> Result<Left, VisitError> {
        self.leave(|slug| Ok((self.trees.keep(slug)?, None)))
    }

    /// Leaves the worktree and removes it; refused if it has changes, unless `request` allows that.
    pub fn leave_and_remove(&self, request: &RemoveRequest<'_>) -> Result<Left, VisitError> {
        self.leave(|slug| {
            let removed = self.trees.remove(slug, request)?;
            Ok((removed.entry.clone(), Some(removed)))
        })
    }

    fn leave(
        &self,
        end: impl FnOnce(&Slug) -> Result<(Entry, Option<Removed>), TreeError>,
    ) -> Result<Left, VisitError> {
        let _lock = self.file.lock()?;
        let mut file = self.file.load()?;
        self.check_repository(&file)?;
        let record = self.record(&file)?.ok_or(VisitError::InNone)?;
        self.check_owner(&record)?;
        let (entry, removed) = match self.tree_of(&record) {
            Some(_) => {
                let (entry, removed) = end(&Slug::new(&record.worktree_name)?)?;
                (Some(entry), removed)
            }
            None => (None, None),
        };
        self.put(&mut file, None);
        self.file.save(file)?;
        Ok(Left {
            record,
            entry,
            removed,
        })
    }

    /// The worktree of the record; one of the same name elsewhere is another.
    fn tree_of(&self, record: &VisitRecord) -> Option<Entry> {
        let slug = Slug::new(&record.worktree_name).ok()?;
        let entry = self.trees.get(&slug).ok()?;
        (entry.path == record.worktree_path).then_some(entry)
    }

    fn check_owner(&self, record: &VisitRecord) -> Result<(), VisitError> {
        match &self.id {
            Some(id) if *id != record.session_id => Err(VisitError::NotYours {
                name: record.worktree_name.clone(),
                session: record.session_id.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn check_repository(&self, file: &Map<String, Value>) -> Result<(), VisitError> {
        let ours = self.trees.common_dir().to_string_lossy();
        match file.get("repository").and_then(Value::as_str) {
            Some(theirs) if theirs != ours && RECORDS.iter().any(|key| file.contains_key(*key)) => {
                Err(VisitError::OtherRepository {
                    team: self.team.to_string(),
                    repository: theirs.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    fn record(&self, file: &Map<String, Value>) -> Result<Option<VisitRecord>, VisitError> {
        let value = match self.member {
            None => file.get("worktree"),
            Some(name) => file.get("worktrees").and_then(|all| all.get(key(name))),
        };
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value.clone())
                .map(Some)
                .map_err(|error| self.file.unreadable(&error).into()),
        }
    }

    /// Sets or clears the record.
    fn put(&self, file: &mut Map<String, Value>, record: Option<Value>) {
        let Some(name) = self.member else {
            match record {
                Some(record) => file.insert("worktree".into(), record),
                None => file.shift_remove("worktree"),
            };
            return;
        };
        let all = file.entry("worktrees").or_insert(Value::Null);
        if !all.is_object() {
            *all = Value::Object(Map::new());
        }
        if let Some(all) = all.as_object_mut() {
            match record {
                Some(record) => all.insert(key(name), record),
                None => all.shift_remove(&key(name)),
            };
            if all.is_empty() {
                file.shift_remove("worktrees");
            }
        }
    }

    /// The session's id if the caller has no name for it.
    fn own_id(&self) -> String {
        match (&self.id, self.member) {
            (Some(id), _) => id.clone(),
            (None, Some(name)) => AgentId::member(name, &self.team).to_string(),
            (None, None) => self.team.to_string(),
        }
    }
}
