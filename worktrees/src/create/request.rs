//! The request for a worktree, and the answer.

use std::path::Path;

use crate::create::SetUp;
use crate::lease::Lease;
use crate::registry::Entry;
use crate::slug::Slug;

/// Makes a tree by other means than git and prints where it is.
pub type CreateHook<'a> = &'a dyn Fn(&Slug) -> Result<String, String>;

/// Which tree is wanted, and what it is to be like if it has to be made.
#[derive(Clone)]
pub struct CreateRequest<'a> {
    /// Its name; one is made up if there is none.
    pub name: Option<Slug>,
    /// What it starts from.
    pub base: Base,
    /// The directory the caller is in: its HEAD is the usual base.
    pub from: &'a Path,
    /// What to do if it is there already.
    pub mode: CreateMode,
    /// The agent it is for.
    pub agent: Option<String>,
    /// The list and the id of the task it is made for.
    pub task: Option<(String, String)>,
    /// The id and the list of the task that is about to be bound to it, if it is made.
    pub bound_to: Option<(String, String)>,
    /// What it gets besides its files.
    pub set_up: SetUp,
    /// Replaces git entirely.
    pub hook: Option<CreateHook<'a>>,
    /// Hold the tree from the start.
    pub hold: bool,
}

impl<'a> CreateRequest<'a> {
    /// A tree of this name, found or made, based on the HEAD of `from`.
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

/// The commit a new tree starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// Where the caller is.
    Head,
    /// The default branch of `origin`, fetched if it is not known here.
    Fresh,
    /// A branch, tag or commit.
    Given(String),
}

/// What to do if a tree of that name is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateMode {
    /// Take it.
    GetOrCreate,
    /// Refuse: the caller wants it for itself.
    Exclusive,
    /// Take it if it is the same agent's; if it was removed, make it again from the same base.
    Resume,
}

/// A tree to work in.
#[derive(Debug)]
pub struct Created {
    /// As registered.
    pub entry: Entry,
    /// It was made by this call.
    pub created: bool,
    /// The commit its HEAD is at, where that is known without asking git.
    pub head: Option<String>,
    /// Held for the caller, if it asked for that.
    pub lease: Option<Lease>,
    /// Notes of the set-up for the user.
    pub notes: Vec<String>,
    /// How long it took.
    pub duration_ms: u64,
}
