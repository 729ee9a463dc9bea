//! Everything that talks to git: starting it (`command`), reading its small files (`files`) and
//! commits (`history`), writing commits and refs without a process (`in_process`, with the
//! repositories that `opened` keeps open), its records of linked worktrees and refs (`admin`),
//! links in the place of refs (`links`), locks that a killed git left (`locks`), the times in a new
//! index (`index_times`), untouched worktrees (`untouched`), the entries of a configuration that
//! run programs (`config_code`), how one is written (`config_text`), the worktrees with a private
//! `.git` (`stay`), and git in a repository's places (`places`).

pub(crate) mod admin;
mod command;
mod config_code;
pub(crate) mod config_text;
pub(crate) mod files;
mod history;
pub(crate) mod in_process;
pub(crate) mod index_times;
pub(crate) mod links;
pub(crate) mod locks;
mod opened;
pub(crate) mod pin;
mod places;
mod repository;
pub(crate) mod stay;
pub(crate) mod untouched;

pub(crate) use command::{Git, SKIP_NESTED, line, path_from, zero_split};
pub(crate) use config_code::runs_code;
pub use config_code::{ConfigCode, config_code};
pub(crate) use files::Head;
pub use history::FileStat;
pub(crate) use history::History;
pub use in_process::ConflictPlace;
pub(crate) use places::{REMOTES, head_commit, reference_of};
pub(crate) use repository::MARKER;
pub use repository::Repository;
