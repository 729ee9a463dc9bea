//! The private repository of an agent at work.
//!
//! While an agent works in a worktree, the worktree's `.git` is a directory of the agent's own:
//! HEAD, refs, index, reflogs and configuration, with the user's objects as alternates (`make`). So
//! the agent needs to write nothing below the repository's own `.git`. The directory it leaves
//! there is untrusted: ccb reads a few files of it as plain files (`claims`, `claimed_index`),
//! takes commits over as a checked stream (`stream`, `import`), and moves the whole directory away
//! at the end, in whatever state (`leave`). The files of the worktree are compared and committed
//! through git's own record of the worktree, which no confined agent can write.
//!
//! ```text
//! <common dir>/ccb/private/<flat>/stay.json   an agent is in the worktree: its .git is private
//! <common dir>/ccb/private/<flat>/new         a private repository that is being made
//! <common dir>/ccb/private/<flat>/out         one that is being moved away
//! <common dir>/ccb/private/<flat>/git         one that was moved away
//! <common dir>/ccb/private/<flat>/left.json   work that is only in it (stash, branches, …)
//! ```
//!
//! Crash points: each step of `enter` and `leave` can be repeated. From the first to the last of
//! them `stay.json` exists, and a process that finds it with no agent inside takes the remaining
//! steps (`leave`).
//!
//! Locks: `<flat>.stay` is held, shared, by every process whose agent is inside; `<flat>.private`
//! for as long as one of the steps takes.

mod claimed_index;
mod claims;
mod enter;
mod import;
mod leave;
mod lfs;
mod make;
mod modules;
mod own_making;
mod stream;

pub(crate) use claims::Claims;

pub(crate) use leave::what_is_left;
pub(crate) use own_making::own_branches;
