//! Reads the present and past state of teams.
//!
//! # What this room knows
//!
//! The state of teams for a view that stays open ([`live`]), for one look ([`overview`]), and for a
//! report at the end ([`report`]); the items that need a person; and the command for each action of
//! a person ([`act`]). It takes no lock, and changes no board, mail, run or worktree: any number of
//! views may read at the same time. It only writes copies of reports ([`report::history`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * The execution of an action: `coordinator::perform`.
//! * The look of a frame, a page or a line: `cli`.
//! * Spans and metrics: `coordinator::telemetry`.
//! * The decision about the next step: `director`.
//!
//! # The way through
//!
//! ```text
//! Live::look ─▶ reads only files that have changed, or asks the database ─▶ Scene
//! overview::look ─▶ teams, agents, tasks, Attention: items for a person
//! report::find ─▶ gather: board, runs, transcripts ─▶ Report ─▶ trim ─▶ html, or JSON
//! Act ─▶ Act::command: the words of the command line that do the same
//! ```
//!
//! # Crash points
//!
//! None: what a killed reader leaves is as it was.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change what a live view knows | `coordinator/observe/src/live/`: `scene.rs` (what it is given), `team.rs`, `runs.rs`, `board.rs`, `post.rs` (what is read again, and when), `presence.rs` (whether a team is there), `elsewhere.rs` (agents of other machines), `outage.rs` (a database that does not answer), `transcript.rs`, `changes.rs`, `waiter.rs` (when to look); agents of other machines for all who show them: `coordinator/project/src/away.rs`; a board without a lock: `taskboard/src/files/glance.rs`; a log as it grows: `store/src/follow.rs` |
//! | change what counts as progress, repeating or changing nothing | `coordinator/observe/src/live/progress.rs`, `habits.rs` (both pure) |
//! | change what a person can do from a view | `coordinator/observe/src/act.rs` (what), `coordinator/src/perform.rs` (how), `coordinator/src/actions/steer.rs` (what a session's own terminal does, too) |
//! | change what `ccb status` shows | `coordinator/observe/src/overview/` (`attention.rs`: what needs a person); its words: `cli/src/commands/status.rs` |
//! | change what a report says, or how its page looks | `coordinator/observe/src/report/`: `model.rs` (what it says), `gather.rs`, `plan.rs` (where that comes from), `timeline.rs` (spans, critical path), `trim.rs` (lengths, secrets), `html/`; what is kept of ended runs: `history.rs` |

pub mod act;
pub mod live;
pub mod overview;
pub mod report;
