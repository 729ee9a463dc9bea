//! The request for a worktree, and the answer.

use std::path::Path;

use crate::create::SetUp;
use crate::lease::Lease;
use crate::registry::Entry;
use crate::slug::Slug;

/// Makes a worktree by other means than git and returns its path.
pub type CreateHook<'a> = &'a dyn Fn(&Slug) -> Result<String, String>;

/// The wanted worktree, and its properties if it must be made.
#[derive(Clone)]
pub struct CreateRequest<'a> {
    /// Its name; `None` for a generated one.
    pub name: Option<Slug>,
    /// The commit it starts from.
    pub base: Base,
    /// The caller's directory: its HEAD is the usual base.
    pub from: &'a Path,
    /// The behaviour if it exists already.
    pub mode: CreateMode,
    /// The agent it is for.
    pub agent: Option<String>,
    /// The list and the id of the task it is made for.
    pub task: Option<(String, String)>,
    /// The id and the list of the task that is about to be bound to it, if it is made.
    pub bound_to: Option<(String, String)>,
    /// The files and directories it gets besides the commit's.
    pub set_up: SetUp,
    /// Replaces git entirely.
    pub hook: Option<CreateHook<'a>>,
    /// True to hold the worktree from the start.
    pub hold: bool,
}

impl<'a> CreateRequest<'a> {
    /// A worktree of this name, found or made, based on the HEAD of `from`.
    pub fn new(name: Option<Slug>, from: &'a Path) -> Self {
        Self {
            name,
            base: Base::Head,
            from,
            mode: CreateMode::GetOrCreate,
            agent: None,
            task: None,
            bound_to: None,
            set_up: SetUp::default(),
            hook: None,
            hold: false,
        }
    }
}

impl std::fmt::Debug for CreateRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateRequest")
            .field("name", &self.name)
            .field("base", &self.base)
            .field("from", &self.from)
            .field("mode", &self.mode)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// The commit a new worktree starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// The HEAD of the caller's directory.
    Head,
    /// The default branch of `origin`, fetched if it is not known here.
    Fresh,
    /// A branch, tag or commit.
    Given(String),
}

/// The behaviour if a worktree of that name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateMode {
    /// Use it.
    GetOrCreate,
    /// Refuse: the caller wants it for itself.
    Exclusive,
    /// Use it if it is the same agent's; if it was removed, make it again from the same base.
    Resume,
}

/// A worktree to work in.
#[derive(Debug)]
pub struct Created {
    /// Its entry in the registry.
    pub entry: Entry,
    /// True if this call made it.
    pub created: bool,
    /// The commit its HEAD is at, if known without asking git.
    pub head: Option<String>,
    /// The lease, if the caller asked to hold it.
    pub lease: Option<Lease>,
    /// Notes of the set-up for the user.
    pub notes: Vec<String>,
    /// Duration of the call, in milliseconds.
    pub duration_ms: u64,
}
