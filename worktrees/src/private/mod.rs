//! The private repository of an agent at work.
//!
//! While an agent works in a worktree, the worktree's `.git` is a directory of the agent's own:
//! HEAD, refs, index, reflogs and configuration, with the user's objects as alternates (`make`).
//! So the agent needs to write nothing below the repository's own `.git`. What it leaves there is
//! bytes from outside: ccb reads a few of them as plain files (`claims`, `claimed_index`), takes
//! commits over as a checked stream (`stream`, `import`), and moves the whole directory away at the
//! end, whatever it has become (`leave`). The files of the worktree are compared and committed
//! through git's own record of the worktree, which no confined agent can write.
//!
//! ```text
//! <common dir>/ccb/private/<flat>/stay.json   an agent is in the worktree: its .git is private
//! <common dir>/ccb/private/<flat>/new         a private repository that is being made
//! <common dir>/ccb/private/<flat>/out         what is being moved away
//! <common dir>/ccb/private/<flat>/git         one that was moved away
//! <common dir>/ccb/private/<flat>/left.json   what in it is nowhere else (stash, branches, …)
//! ```
//!
//! Crash points: each step of `enter` and `leave` can be repeated. From the first to the last of
//! them `stay.json` is there, and whoever finds it with nobody inside does the rest (`leave`).
//!
//! Locks: `<flat>.stay` is held, shared, by everybody whose agent is inside; `<flat>.private` for as
//! long as one of the steps takes.

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
