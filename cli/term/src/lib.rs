//! The terminal as ccb's commands and views use it.
//!
//! # What this room knows
//!
//! Colours ([`style`]), tables ([`table`]), line breaks ([`wrap()`](wrap::wrap)), the line in which a person types
//! ([`prompt`]), and which decision a typed line stands for ([`mod@line`]).
//!
//! # What it must not know (and where to go instead)
//!
//! * Commands, JSON answers, exit codes: `cli`.
//! * The full-screen view and its keys: `cli/top`.
//! * Which bytes are harmful in text of others: `store::text`. This room only shows the result.
//!
//! # The way through
//!
//! 1. A command makes cells and lines; [`table::render`] and [`wrap::wrap`] fit them to the terminal's width.
//! 2. The command prints through [`prompt::above`], which removes the typed line and draws it again below.
//! 3. A thread of [`prompt::Prompt`] reads keys; `prompt::Edit` turns each key into a change of the line.
//! 4. A finished line goes to the session, and [`line::decision`] says what it asks for.
//!
//! # Crash points
//!
//! None: this room writes no files. A process that dies with an open prompt leaves the terminal without
//! echo; `Prompt` restores it when it is dropped and when the process is stopped with Ctrl-Z.

pub mod line;
pub mod prompt;
pub mod style;
pub mod table;
pub mod wrap;
