//! The tests of behaviour once more, on a board and mail in PostgreSQL: the same files as in `it`,
//! with homes whose `ccb` uses a database. Tests about files are not here.
//!
//! `run.sh` looks for a server program and runs all of it.

const CCB: &str = concat!("in-a-database:", env!("CARGO_BIN_EXE_ccb-under-test"));
const MAIL_WORKER: &str = env!("CARGO_BIN_EXE_mail-worker");
const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");
const ON_TERMINAL: &str = env!("CARGO_BIN_EXE_on-terminal");
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
#[path = "../it/mcp_bad_input.rs"]
mod mcp_bad_input;
#[path = "../it/mcp_mail.rs"]
mod mcp_mail;
#[path = "../it/mcp_tools.rs"]
mod mcp_tools;
#[path = "../it/team_commands.rs"]
mod team_commands;
#[path = "../it/team_concurrency.rs"]
mod team_concurrency;
#[path = "../it/team_delete.rs"]
mod team_delete;

mod examples;
mod machines;
mod site;
mod together;
mod views;
mod words;
mod workers;
