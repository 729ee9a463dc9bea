//! Tests of the library alone, in repositories made for them. Those that need a `ccb` process (the
//! commands, crashes at every step, many processes at once) are in `tests/it/tree_*.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test stops where something is wrong, and does to files what other programs do"
)]

/// The work of an attacked run.
mod attacked;
/// Attacks by an agent's own `.git`: the list.
#[expect(unreachable_pub, reason = "the tests of whole runs use it, too")]
mod attacks;
/// Every change that counts.
mod changes;
/// Worktrees for checks: exactly the commit, every time.
mod check_tree;
/// Worktrees for checks: repaired or made anew, whatever was done to them.
mod check_tree_damage;
/// Made, found, refused.
mod create;
/// The example works.
mod example;
/// Traps of agents for ccb.
mod hostile;
/// The private `.git` of an agent.
mod private;
/// The same in every kind of repository.
mod private_formats;
/// Removed and restored.
mod remove;
/// The repository all of this happens in.
#[expect(unreachable_pub, reason = "the harness of the other tests exports it")]
mod repo;
/// Reused by the next agent.
mod reuse;
/// From a checkout to the commit that is kept.
mod seal;
/// The files a new worktree gets besides the commit's.
mod setup;
/// Old worktrees: collected, deleted from the trash, and differences between registry and git.
mod upkeep;
