//! A session that works in a tree for a while, and then goes back to where it was.
//!
//! What it takes to go back is in the team's `session.json`: under `worktree` for the lead's
//! session, under `worktrees` by name for a member's, which is a session of its own. The tree is
//! made before that is written and taken away before that is cleared, so a crash leaves a tree
//! nobody is in, or a record of a tree that is gone; both are put right by the next call.

use std::path::Path;

use runs::session_file::{SessionFile, SessionFileError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::agent_id::AgentId;
use store::name::Name;
use store::{Category, Explain, Facts};
use worktrees::{CreateRequest, Created, Entry, RemoveRequest, Removed, Slug, TreeError, Trees};

/// The keys under which records of trees stand.
const RECORDS: [&str; 2] = ["worktree", "worktrees"];

/// A member's key; names are unique without regard to case.
fn key(member: &Name) -> String {
    member.as_str().to_ascii_lowercase()
}

/// Why a session did not enter or leave a tree.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// The trees said no.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// What is known of the session.
    #[error(transparent)]
    File(#[from] SessionFileError),
    /// One tree at a time.
    #[error("this session is in worktree {name:?} already")]
    InTree {
        /// The worktree.
        name: String,
    },
    /// There is nothing to leave.
    #[error("this session is in no worktree")]
    InNone,
    /// Another session entered it.
    #[error("worktree {name:?} was entered by another session ({session})")]
    NotYours {
        /// The worktree.
        name: String,
        /// The other session.
        session: String,
    },
    /// A team belongs to one repository.
    #[error("team {team} works in another repository ({repository})")]
    OtherRepository {
        /// The team.
        team: String,
        /// The one it works in.
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

/// What a session in a tree needs to go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisitRecord {
    /// Where it was.
    pub original_cwd: String,
    /// Where it is.
    pub worktree_path: String,
    /// The name of the tree.
    pub worktree_name: String,
    /// Its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_branch: Option<String>,
    /// The branch it was on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_branch: Option<String>,
    /// The commit it was at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_head_commit: Option<String>,
    /// Which session it is.
    pub session_id: String,
    /// A hook made the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_based: Option<bool>,
    /// How long making it took; none if it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_duration_ms: Option<u64>,
    /// Only some paths are checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_sparse_paths: Option<bool>,
}

/// One team's session, seen from one repository.
#[derive(Debug)]
pub struct Visit<'a> {
    /// What is known of the team's session.
    pub file: SessionFile,
    /// Whose session it is.
    pub team: Name,
    /// The member whose session it is; none for the lead's.
    pub member: Option<&'a Name>,
    /// The caller's session, if it has an id.
    pub id: Option<String>,
    /// The worktrees of the repository.
    pub trees: &'a Trees,
}

/// A tree that was left.
#[derive(Debug)]
pub struct Left {
    /// How the session got there, and where it goes back to.
    pub record: VisitRecord,
    /// The tree as registered now; none if it was gone already.
    pub entry: Option<Entry>,
    /// What was removed, if that was wanted.
    pub removed: Option<Removed>,
}

impl Visit<'_> {
    /// The tree the session is in, if that is still there.
    pub fn current(&self) -> Result<Option<VisitRecord>, VisitError> {
        let record = self.record(&self.file.load()?)?;
        Ok(record.filter(|record| self.tree_of(record).is_some()))
    }

    /// Enters the tree that `request` names, which is made if it is not there; `cwd` is where
    /// the session comes back to. Entering the tree one is in changes nothing.
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

    /// Leaves the tree, which stays.
    pub fn leave_and_keep(&self) -> Result<Left, VisitError> {
        self.leave(|slug| Ok((self.trees.keep(slug)?, None)))
    }

    /// Leaves the tree, which goes; refused if it has changes, unless `request` says so.
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

    /// The tree of the record; one of the same name elsewhere is another.
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

    /// What the session is called where the caller has no name for it.
    fn own_id(&self) -> String {
        match (&self.id, self.member) {
            (Some(id), _) => id.clone(),
            (None, Some(name)) => AgentId::member(name, &self.team).to_string(),
            (None, None) => self.team.to_string(),
        }
    }
}
