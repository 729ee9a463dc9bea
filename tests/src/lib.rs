//! Shared code of the cross-crate tests: a hermetic home directory, the binary under test, a
//! stand-in for the other tool on the same files, and waiting with a deadline.

mod board_files;
pub mod ci_runner;
pub mod collector;
pub mod contract;
pub mod fake;
mod fan;
mod faults;
mod foreign;
/// Histories of calls to a board, and the right answers.
pub mod history;
mod home;
mod inside;
/// The search for a sequential explanation of a concurrent history.
pub mod linearize;
mod mail;
mod marked;
mod mcp;
pub mod model;
pub mod native_fan;
mod native_team;
pub mod native_world;
/// Pictures of screens.
pub mod picture;
/// Boards in a database.
pub mod postgres;
mod random;
mod real;
mod real_team;
/// The repository of `worktrees`' own tests.
#[path = "../../worktrees/tests/it/repo.rs"]
mod repo;
/// Agents in tests.
pub mod runs;
/// The part of a long list of cases that one run tries.
pub mod sample;
pub mod sample_project;
pub mod scene_processes;
mod schema;
pub mod script;
/// A staged team: files as agents leave them while they work.
pub mod staged_team;
mod talk;
mod team_files;
pub mod team_session;
pub mod terminal;
pub mod tls;
mod wait;
mod workplace;

pub use fan::{Fan, kinds};
pub use faults::Pass;
pub use foreign::{ForeignLock, ForeignTool, make_stale, set_mtime};
pub use home::{Answer, TestHome};
pub use inside::Inside;
pub use mail::{MailScenario, mail_command, mail_state, message_numbers};
pub use mcp::{McpClient, McpEnd, texts};
pub use native_team::{KEY as NATIVE_KEY, NativeTeam, tools_of};
pub use random::Random;
pub use real::{
    RealWorld, accepted, fake_tools, find_real_program, freely, is_waiting, let_go, message,
    real_program, shell, waiting,
};
pub use real_team::RealTeam;
pub use repo::{TestRepo, git, git_command, slug, write};
pub use schema::check_task_file;
pub use talk::Talk;
pub use wait::wait_until;
pub use workplace::{Workplace, path_with_ccb};
