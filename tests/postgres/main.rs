//! The tests of behaviour once more, on a board and mail in PostgreSQL: the same files as in `it`, with
//! homes whose `ccb` is told to use a database. What is about files is not here.
//!
//! `run.sh` looks for a server program and runs all of it.

const CCB: &str = concat!("in-a-database:", env!("CARGO_BIN_EXE_ccb-under-test"));
const MAIL_WORKER: &str = env!("CARGO_BIN_EXE_mail-worker");
const BOARD_WORKER: &str = env!("CARGO_BIN_EXE_board-worker");

#[path = "../it/claims.rs"]
mod claims;
#[path = "../it/commands.rs"]
mod commands;
#[path = "../it/create_from.rs"]
mod create_from;
#[path = "../it/graph_watch.rs"]
mod graph_watch;
#[path = "../it/history.rs"]
mod history;
#[path = "../it/mail_commands.rs"]
mod mail_commands;
#[path = "../it/mail_kills.rs"]
mod mail_kills;

mod words;
