//! Deleting a team, in steps that can be taken again after a crash at any point.
//!
//! 1. [`Team::begin_delete`]: the roster says that the team is being deleted, so that no agent
//!    joins or starts any more.
//! 2. The coordinator deletes the parts that swarm does not know: worktrees, tasks.
//! 3. [`Team::finish_delete`]: everything beside the roster is set aside by renames and deleted;
//!    `config.json` is last, so that until then the team can be found, and deleted again.
//!
//! The file `.ccb/lock` is kept: a lock file that is deleted would let two processes hold "the
//! same" lock.

use store::IoContext;
use store::atomic;
use store::clock::rfc3339;
use store::fault::{pass, reached};
use store::home::create_private_dir;
use store::tree::names_in;

use super::error::TeamError;
use super::format::Document;
use super::{Living, Roster, Team};
use crate::fault;

/// The team's files beside its roster and the directories in `inboxes/`.
const PARTS: [&str; 8] = [
    ".ccb/fleet.json",
    "broadcast.jsonl",
    "broadcast.lock",
    "plans",
    "requests",
    "runs",
    "scratchpad",
    "session.json",
];

impl Team {
    /// From here on no agent joins. Refused while members are alive, unless forced; returns the
    /// roster as it was and the members that were alive.
    pub fn begin_delete(&self, force: bool) -> Result<(Roster, Vec<Living>), TeamError> {
        let mut found = None;
        self.change(|document, roster, now| {
            let living = self.living(roster)?;
            if !living.is_empty() && !force {
                return Err(TeamError::Alive {
                    team: self.name.to_string(),
                    living,
                });
            }
            if roster.deleting_since.is_none() {
                document.set_ours("deletingSince", Some(rfc3339(now).into()));
            }
            found = Some((roster.clone(), living));
            Ok(())
        })?;
        reached(fault::TEAM_MARKED);
        found.ok_or_else(|| self.not_found())
    }

    /// Takes [`Self::begin_delete`] back.
    pub fn cancel_delete(&self) -> Result<(), TeamError> {
        self.change(|document, _, _| {
            document.set_ours("deletingSince", None);
            Ok(())
        })
        .map(drop)
    }

    /// Deletes everything of the team but its lock, the roster last.
    pub fn finish_delete(&self) -> Result<(), TeamError> {
        self.backend.delete(self)
    }

    /// The caller holds the lock.
    pub(super) fn set_all_aside(&self) -> Result<(), TeamError> {
        create_private_dir(&self.trash_dir())?;
        for part in PARTS {
            self.set_aside(part)?;
        }
        // Ours are directories; the files beside them are Claude Code's and stay.
        let inboxes = self.dir.join("inboxes");
        for name in names_in(&inboxes)? {
            let meta = inboxes.join(&name).symlink_metadata();
            if meta.is_ok_and(|meta| meta.is_dir()) {
                self.set_aside(&format!("inboxes/{name}"))?;
            }
        }
        remove_if_empty(&inboxes)
    }

    /// Outside the lock: transcripts can be large.
    pub(super) fn empty_trash(&self) -> Result<(), TeamError> {
        store::tree::delete(&self.trash_dir())?;
        reached(fault::TEAM_EMPTIED);
        Ok(())
    }

    fn set_aside(&self, part: &str) -> Result<(), TeamError> {
        let path = self.dir.join(part);
        pass(fault::TEAM_SET_ASIDE).context("set aside", &path)?;
        atomic::set_aside(&path, &self.trash_dir())?;
        Ok(())
    }

    /// Refuses unless the roster says that the team is being deleted.
    pub(super) fn check_marked(&self, document: &Document) -> Result<(), TeamError> {
        let roster = self.understood(document)?;
        self.check_writable(document, &roster)?;
        match roster.deleting_since {
            Some(_) => Ok(()),
            None => Err(TeamError::NotDeleting {
                team: self.name.to_string(),
            }),
        }
    }
}

/// Removes a directory unless something is in it.
fn remove_if_empty(dir: &std::path::Path) -> Result<(), TeamError> {
    match std::fs::remove_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
        removed => drop(removed.if_there("remove", dir)?),
    }
    Ok(())
}
