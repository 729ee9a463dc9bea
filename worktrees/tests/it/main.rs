//! Tests of the library alone, in repositories made for them. Those that need a `ccb` process (the
//! commands, crashes at every step, many processes at once) are in `tests/it/tree_*.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test stops where something is wrong, and does to files what other programs do"
)]

/// What becomes of it.
mod attacked;
/// What agents may leave in their own `.git`: the list.
#[expect(unreachable_pub, reason = "the tests of whole runs use it, too")]
mod attacks;
/// What counts as a change.
mod changes;
/// Worktrees for checks: exactly the commit, every time.
mod check_tree;
/// Worktrees for checks: repaired or made anew, whatever was done to them.
mod check_tree_damage;
/// Made, found, refused.
mod create;
/// The example works.
mod example;
/// What agents leave for ccb to stumble over.
mod hostile;
/// The `.git` that an agent has to itself.
mod private;
/// The same in every kind of repository.
mod private_formats;
/// Taken away and brought back.
mod remove;
/// The repository all of this happens in.
#[expect(unreachable_pub, reason = "the harness of the other tests exports it")]
mod repo;
/// Used again by the next one.
mod reuse;
/// From a checkout to the commit that is kept.
mod seal;
/// What a new worktree gets besides its files.
mod setup;
/// Old worktrees: collected, deleted from the trash, and where registry and git disagree.
mod upkeep;
