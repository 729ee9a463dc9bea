//! The subject of a run's check: the commit of its agent's work, in a worktree for checks.

use std::ffi::OsString;

use swarm::run::{CheckDir, Proof, Prove, ServiceError};
use worktrees::{AfterCheck, Sealed, SetUp, Slug, TreeError};

use super::services::{RunServices, port, tree_port};
use crate::file_rules;

impl RunServices {
    /// The agent's work as a commit, if the agent has a worktree of its own. A check needs one in
    /// any case, even if the start did not ask for it.
    pub(super) fn seal_tree(&self, prove: &Prove) -> Result<Option<Sealed>, ServiceError> {
        let asked = prove.commit.clone();
        let message =
            asked.or_else(|| prove.verify.as_ref().map(|_| self.meta.description.clone()));
        let (Some(message), Some(tree)) = (message, &self.meta.worktree) else {
            return Ok(None);
        };
        let slug = Slug::new(&tree.name).map_err(port)?;
        match self.agents.trees()?.seal(&slug, &message) {
            // Another version control has no commit of git's to check.
            Err(TreeError::HookBased { .. }) if prove.commit.is_none() => Ok(None),
            sealed => sealed.map(Some).map_err(tree_port),
        }
    }

    /// Notes which files the agent changed and must not change, and says why that does not count.
    pub(super) fn refuse_files(
        &self,
        prove: &Prove,
        proof: &mut Proof,
    ) -> Result<Option<String>, ServiceError> {
        let (Some(base), Some(commit)) = (&proof.base, &proof.commit) else {
            return Ok(None);
        };
        if prove.files.is_empty() || !proof.changed {
            return Ok(None);
        }
        let changed = self.agents.trees()?.changed_paths(base, commit);
        proof.out_of_bounds = file_rules::out_of_bounds(&prove.files, &changed.map_err(tree_port)?);
        let refused = !proof.out_of_bounds.is_empty();
        Ok(refused.then(|| file_rules::words(&prove.files, &proof.out_of_bounds)))
    }

    /// A worktree with exactly `commit`, for the check.
    pub(super) fn check_dir(&mut self, commit: &str) -> Result<CheckDir, ServiceError> {
        let kept = self.meta.worktree.as_ref().map(|tree| tree.set_up.clone());
        let set_up: SetUp = serde_json::from_value(kept.unwrap_or_default()).unwrap_or_default();
        let tree = self.agents.trees()?.check_tree(commit, &set_up);
        let tree = tree.map_err(tree_port)?;
        let mut env: Vec<(OsString, OsString)> = vec![
            ("CCB_WORKTREE".into(), tree.path().into()),
            ("CCB_MAIN_TREE".into(), tree.main_tree().into()),
        ];
        if let Some(tmp) = &self.meta.tmp {
            // The agent used its own directory, and may have left something there.
            let tmp = tmp.join("check");
            store::tree::delete(&tmp).map_err(port)?;
            store::home::create_private_dir(&tmp).map_err(port)?;
            env.push(("TMPDIR".into(), tmp.into()));
        }
        let check_dir = CheckDir {
            dir: tree.path().to_owned(),
            env,
            set_up: set_up.command,
            set_up_timeout: set_up.command_timeout,
        };
        self.check_tree = Some(tree);
        Ok(check_dir)
    }

    /// While a director runs the team there will be more checks, and the director clears up at the
    /// end.
    pub(super) fn after_check(&self) -> AfterCheck {
        match self.agents.are_directed() {
            Ok(true) => AfterCheck::Keep,
            _ => AfterCheck::Leave,
        }
    }
}
