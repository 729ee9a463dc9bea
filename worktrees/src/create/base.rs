//! The commit a new worktree starts from.

use crate::create::{Base, CreateMode, CreateRequest};
use crate::error::TreeError;
use crate::git::files::is_oid;
use crate::git::{Git, History, admin, reference_of};
use crate::registry::{Registry, removed};
use crate::slug::Slug;
use crate::trees::Trees;

impl Trees {
    /// The commit that `request` asks for, as a full name.
    pub(crate) fn base_commit(
        &self,
        slug: &Slug,
        request: &CreateRequest<'_>,
    ) -> Result<String, TreeError> {
        if request.mode == CreateMode::Resume {
            let registry = Registry::load(&self.layout)?;
            let before = match registry.last_removed(slug) {
                Some(entry) => Some(entry.clone()),
                None => removed::last(&self.layout, slug)?,
            };
            let before = before.filter(|entry| entry.agent == request.agent);
            // If the earlier work has landed, more work builds on the branch it landed on.
            let landed = before.as_ref().and_then(|entry| entry.merged.as_ref());
            if let Some(landed) = landed.filter(|landed| !landed.pending) {
                let branch = reference_of(&landed.into);
                if let Ok(tip) = History::open(request.from).resolve(&branch) {
                    return Ok(tip);
                }
            }
            if let Some(base) = before.and_then(|entry| entry.base) {
                return Ok(base);
            }
        }
        match &request.base {
            // A full name means the same everywhere.
            Base::Given(spec) if is_oid(spec) => self.layout.history().resolve(spec),
            Base::Given(spec) => History::open(request.from).resolve(spec),
            Base::Fresh => self.fresh_base(),
            Base::Head => {
                History::open(request.from)
                    .resolve("HEAD")
                    .map_err(|error| match error {
                        TreeError::BadBase { .. } => TreeError::NoCommit,
                        other => other,
                    })
            }
        }
    }

    /// The default branch of `origin`, as last fetched; fetched now if it never was.
    fn fresh_base(&self) -> Result<String, TreeError> {
        let main = &self.layout.main;
        let history = History::open(main);
        if let Ok(commit) = history.resolve("refs/remotes/origin/HEAD") {
            return Ok(commit);
        }
        // Into a ref of our own: parallel fetches race for FETCH_HEAD.
        let reference = format!("refs/ccb/fetch/{}", uuid::Uuid::new_v4().simple());
        let fetched = Git::at(main, "fetch")
            .args([
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--end-of-options",
            ])
            .args(["origin", &format!("+HEAD:{reference}")])
            .timeout(self.options.checkout_timeout)
            .run();
        fetched.map_err(|error| TreeError::BadBase {
            given: "origin's default branch".into(),
            why: error.to_string(),
        })?;
        let commit = History::open(main).resolve(&reference)?;
        admin::delete_ref(&self.layout, &reference, &commit)?;
        Ok(commit)
    }
}
