//! The write points of worktrees; those of single files are the store's.

store::fault_points! {
    /// A new worktree is in the registry, and unknown to git.
    CREATE_RECORDED = "create.recorded";
    /// git has the branch and the worktree, which is empty.
    CREATE_REGISTERED = "create.registered";
    /// The record says that a worktree is about to have a private `.git`; it has the ordinary one.
    ENTER_RECORDED = "enter.recorded";
    /// The private repository is there, beside its place.
    ENTER_MADE = "enter.made";
    /// It is the worktree's `.git`; the ordinary one is where it was.
    ENTER_EXCHANGED = "enter.exchanged";
    /// The ordinary `.git` is there again, beside its place.
    LEAVE_PREPARED = "leave.prepared";
    /// It is the worktree's `.git`; the private one is where it was.
    LEAVE_EXCHANGED = "leave.exchanged";
    /// The private repository is among ccb's own files.
    LEAVE_MOVED = "leave.moved";
    /// Its commits that are nowhere else are recorded; the stay is not over.
    LEAVE_SAVED = "leave.saved";
    /// The agent's commits are in the repository, and no branch has them.
    IMPORT_OBJECTS = "import.objects";
    /// The index is that of the agent's last commit, the branch is not.
    IMPORT_INDEX = "import.index";
    /// The branch has the agent's commits; the record does not say so yet.
    IMPORT_MOVED = "import.moved";
    /// Files are about to be checked out.
    CREATE_CHECKOUT = "create.checkout";
    /// The files are there, the set-up has not run.
    CREATE_CHECKED_OUT = "create.checked-out";
    /// Everything is there, but the worktree still counts as half made.
    CREATE_SET_UP = "create.set-up";
    /// A worktree whose directory was gone has one again, with nothing in it.
    REFILL_REGISTERED = "refill.registered";
    /// Its files are back.
    REFILL_FILLED = "refill.filled";
    /// The record says that the worktree is being removed; it is unchanged.
    REMOVE_RECORDED = "removal.recorded";
    /// ccb's refs hold the commits that git could forget.
    REMOVE_RESCUED = "removal.rescued";
    /// git has an order not to touch its directory for the worktree.
    REMOVE_LOCKED = "removal.locked";
    /// The files are in the trash.
    REMOVE_TREE_MOVED = "removal.tree-moved";
    /// git's directory for the worktree is there, too.
    REMOVE_ADMIN_MOVED = "removal.admin-moved";
    /// The branch is gone.
    REMOVE_BRANCH_GONE = "removal.branch-gone";
    /// The record says that the worktree is being restored.
    UNDO_RECORDED = "undo.recorded";
    /// Its branch is back.
    UNDO_BRANCH = "undo.branch";
    /// git's directory for it is back.
    UNDO_ADMIN = "undo.admin";
    /// The files are back.
    UNDO_TREE = "undo.tree";
    /// The files of a worktree in the trash are held by a ref.
    TRASH_SNAPSHOT = "trash.snapshot";
    /// A worktree in the trash is marked as deleted, and still there.
    TRASH_EMPTIED = "trash.emptied";
    /// The commit that is to land exists, and nothing names it.
    MERGE_BUILT = "merge.built";
    /// The record says that a check worktree is in use; it is unchanged, or missing.
    CHECK_CLAIMED = "check.claimed";
    /// Its repository is there; its files are not those of the commit.
    CHECK_MADE = "check.made";
    /// A check can run in it.
    CHECK_READY = "check.ready";
    /// The check is over; the worktree still counts as in use.
    CHECK_OVER = "check.over";
    /// The check passed and its worktree is free again.
    MERGE_CHECKED = "merge.checked";
    /// The record says where the worktree is about to land.
    MERGE_NOTED = "merge.noted";
    /// The target has moved.
    MERGE_MOVED = "merge.moved";
    /// The moved target is on the disk.
    MERGE_DURABLE = "merge.durable";
    /// The landing is in the list of landings, the worktree's record still says that it is about to
    /// land.
    MERGE_LISTED = "merge.listed";
    /// The record says that a landing is about to be undone; its branch is unchanged.
    TAKE_BACK_NOTED = "take-back.noted";
    /// The files of the checkout are reverted, the branch is not.
    TAKE_BACK_FILES = "take-back.files";
    /// The branch has moved.
    TAKE_BACK_MOVED = "take-back.moved";
    /// The moved branch is on the disk.
    TAKE_BACK_DURABLE = "take-back.durable";
    /// A worktree for the pool is whole, but not in it.
    POOL_FILLED = "pool.filled";
    /// The record says which worktree of the pool goes where.
    POOL_RECORDED = "pool.recorded";
    /// git has it there already; its files are not.
    POOL_POINTED = "pool.pointed";
    /// Its files are there, too.
    POOL_MOVED = "pool.moved";
    /// It has its branch.
    POOL_BRANCHED = "pool.branched";
    /// The record says that the worktree goes to the pool.
    GIVE_BACK_RECORDED = "give-back.recorded";
    /// git has it there already; its files are not.
    GIVE_BACK_POINTED = "give-back.pointed";
    /// Its files are there, too.
    GIVE_BACK_MOVED = "give-back.moved";
    /// It is on no branch any more, and its branch is gone.
    GIVE_BACK_DETACHED = "give-back.detached";
    /// A worktree of the pool that was changed is now an ordinary one.
    POOL_GIVEN_UP = "pool.given-up";
}
