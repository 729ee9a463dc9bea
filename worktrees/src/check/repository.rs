//! The repository of a check worktree: one of its own, that only borrows objects.
//!
//! A linked worktree shares the repository's configuration, hooks, `info/attributes` and
//! `info/exclude`, which an agent can change from its own worktree. A repository that names the
//! user's objects as alternates has none of that, and sees new commits without a fetch. It is the
//! same as a shared clone, made without starting git: a few small files whose form git documents
//! and keeps. They are written again before every check, so that all changes by a check or an agent
//! are gone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use store::atomic::{self, Durability};
use store::home::create_dir;

use crate::error::TreeError;
use crate::git::MARKER;
use crate::git::config_text::{quoted, setting};
use crate::git::{Git, index_times, zero_split};
use crate::layout::Layout;

/// The files of the git directory that are kept from one check to the next. `modules` and `lfs` are
/// what the set-up fetched; all others are rewritten or deleted.
const KEPT_FILES: &[&str] = &[
    MARKER,
    "HEAD",
    "config",
    "index",
    "lfs",
    "modules",
    "objects",
    "packed-refs",
    "refs",
];

/// Given to every git command of ccb in a check worktree: the commit alone decides which files are
/// ignored and how they look.
pub(crate) const CHECK_CONFIG: &[&str] = &[
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "submodule.recurse=false",
];

/// Settings of the repository that check worktrees also have. None of them can run a program or
/// change the files that are checked out.
const COPIED_SETTINGS: &str = "^(user\\.(name|email)|extensions\\.partialclone|\
    remote\\..*\\.(url|fetch|promisor|partialclonefilter)|\
    core\\.(sparsecheckout|sparsecheckoutcone|ignorecase|precomposeunicode))$";

/// Facts that hold for all checks in one check worktree; read when the worktree is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Traits {
    /// The part of the git configuration that does not depend on the set-up.
    pub(crate) config: String,
    /// The patterns of the main worktree, if it is a sparse one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) main_sparse: Option<String>,
    /// True if those patterns are directories.
    pub(crate) cone: bool,
}

impl Traits {
    /// The traits for checks of commits of this repository.
    pub(crate) fn find(layout: &Layout, commit: &str) -> Result<Self, TreeError> {
        let (_, listed) = layout
            .git("config")
            .args(["-z", "--get-regexp", COPIED_SETTINGS])
            .ask()?;
        let (mut traits, sparse) = Self::of_settings(&listed, commit.len() == 64);
        if sparse {
            let patterns = atomic::read(&layout.common.join("info/sparse-checkout"))?;
            let patterns = patterns.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            traits.main_sparse = patterns;
        }
        Ok(traits)
    }

    /// The traits that follow from the output of `git config -z --list`; true if the main worktree
    /// is sparse.
    pub(crate) fn of_settings(listed: &[u8], sha256: bool) -> (Self, bool) {
        let mut traits = Self::default();
        let (mut extensions, mut taken, mut sparse) = (String::new(), String::new(), false);
        if sha256 {
            extensions.push_str("\tobjectFormat = sha256\n");
        }
        for record in zero_split(listed) {
            let record = String::from_utf8_lossy(record);
            // A key without a value means yes.
            let (name, value) = record.split_once('\n').unwrap_or((&record, "true"));
            match name {
                "core.sparsecheckout" => sparse = is_true(value),
                "core.sparsecheckoutcone" => traits.cone = is_true(value),
                "extensions.partialclone" => {
                    extensions.push_str(&format!("\tpartialClone = {}\n", quoted(value)));
                }
                _ => taken.push_str(&setting(name, value)),
            }
        }
        let version = u8::from(!extensions.is_empty());
        traits.config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = false\n\
             \tlogAllRefUpdates = false\n\tuseReplaceRefs = false\n\
             [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
        );
        if !extensions.is_empty() {
            traits.config.push_str("[extensions]\n");
            traits.config.push_str(&extensions);
        }
        traits.config.push_str(&taken);
        (traits, sparse)
    }
}

fn is_true(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "true" | "yes" | "on" | "1"
    )
}

/// The wanted state of a check worktree's repository.
#[derive(Debug)]
pub(crate) struct CheckRepo<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) tree: &'a Path,
    pub(crate) traits: &'a Traits,
    /// The patterns of the set-up, if only some paths are wanted.
    pub(crate) sparse: Option<String>,
    /// Directories that are linked into the worktree, which a pattern like `node_modules/` would
    /// not match.
    pub(crate) hidden: Vec<String>,
}

impl CheckRepo<'_> {
    pub(crate) fn git_dir(&self) -> PathBuf {
        self.tree.join(".git")
    }

    /// Writes everything but index and objects, and deletes what does not belong there.
    pub(crate) fn write(&self, commit: &str) -> Result<(), TreeError> {
        let dir = self.git_dir();
        for part in ["", "objects", "objects/info"] {
            let part = dir.join(part);
            if !part.is_dir() {
                create_dir(&part)?;
            }
        }
        for path in store::tree::list(&dir)? {
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| KEPT_FILES.contains(&name)) {
                store::tree::delete(&path)?;
            }
        }
        let (sparse, cone) = match (&self.sparse, &self.traits.main_sparse) {
            (Some(patterns), _) => (Some(patterns), false),
            (None, Some(patterns)) => (Some(patterns), self.traits.cone),
            (None, None) => (None, false),
        };
        let mut config = self.traits.config.clone();
        if sparse.is_some() {
            let more = format!("[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = {cone}\n");
            config.push_str(&more);
        }
        self.put("config", config.as_bytes())?;
        self.put(MARKER, self.layout.common.to_string_lossy().as_bytes())?;
        let objects = format!("{}\n", self.layout.common.join("objects").display());
        self.put("objects/info/alternates", objects.as_bytes())?;
        store::tree::delete(&dir.join("refs"))?;
        create_dir(&dir.join("refs"))?;
        create_dir(&dir.join("refs/heads"))?;
        self.put("packed-refs", &self.refs()?)?;
        self.put("HEAD", format!("{commit}\n").as_bytes())?;
        let shallow = atomic::read(&self.layout.common.join("shallow"))?;
        if let Some(bytes) = shallow {
            self.put("shallow", &bytes)?;
        }
        if sparse.is_some() || !self.hidden.is_empty() {
            create_dir(&dir.join("info"))?;
        }
        if let Some(patterns) = sparse {
            self.put("info/sparse-checkout", patterns.as_bytes())?;
        }
        if !self.hidden.is_empty() {
            let lines: String = self.hidden.iter().map(|dir| format!("/{dir}\n")).collect();
            self.put("info/exclude", lines.as_bytes())?;
        }
        Ok(())
    }

    /// The current branches and tags: a check may compare with them.
    fn refs(&self) -> Result<Vec<u8>, TreeError> {
        let refs = self.layout.history().branches_and_tags()?;
        let lines = refs.iter().map(|(name, oid)| format!("{oid} {name}\n"));
        Ok(lines.collect::<String>().into_bytes())
    }

    /// Writes a file unless it has these bytes already. A link in its place counts as no file.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), TreeError> {
        let (dir, path) = (self.git_dir(), self.git_dir().join(name));
        let plain = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
        if plain && atomic::read(&path)?.as_deref() == Some(bytes) {
            return Ok(());
        }
        if !plain {
            store::tree::delete(&path)?;
        }
        Ok(atomic::replace(&dir, &path, bytes, Durability::Relaxed)?)
    }

    /// True if git looks at every file in the index. The bits that prevent it (`assume-unchanged`,
    /// `skip-worktree`) survive a checkout.
    pub(crate) fn index_is_sound(&self) -> bool {
        let sparse = self.sparse.is_some() || self.traits.main_sparse.is_some();
        let index = atomic::read(&self.git_dir().join("index"));
        let Ok(Some(bytes)) = index else {
            return false;
        };
        if let Some(assumed) = index_times::assumes_unchanged(&bytes) {
            return !assumed;
        }
        let listed = Git::with_config(self.tree, "ls-files", CHECK_CONFIG)
            .args(["-v", "-z"])
            .run();
        listed.is_ok_and(|bytes| {
            let tags: BTreeSet<u8> = zero_split(&bytes).map(|record| record[0]).collect();
            tags.iter()
                .all(|tag| *tag == b'H' || (sparse && *tag == b'S'))
        })
    }
}
