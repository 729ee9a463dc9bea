//! Reads what happens and what has happened.
//!
//! # What this room knows
//!
//! The state of teams for a view that lives on ([`live`]), for one look ([`overview`]), and for a report
//! when all is over ([`report`]); what needs a person; and which action of a person is which command
//! ([`act`]). It takes no lock, and changes no board, mail, run or worktree: any number of views may
//! read at once. The one thing it writes is a copy of a report ([`report::history`]).
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
//! overview::look ─▶ teams, agents, tasks, Attention: what needs a person
//! report::find ─▶ gather: board, runs, transcripts ─▶ Report ─▶ trim ─▶ html, or JSON
//! Act ─▶ Act::command: the words of the command line that do the same
//! ```
//!
//! # Crash points
//!
//! None: what a killed reader leaves is as it was.

pub mod act;
pub mod live;
pub mod overview;
pub mod report;
