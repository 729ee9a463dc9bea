//! Makes a worktree: the request (`request`), the commit it starts from (`base`), the steps
//! (`new`), a worktree whose directory was deleted or that a hook makes (`again`), and preparing
//! its files (`setup`).

mod again;
mod base;
mod new;
mod request;
pub(crate) mod setup;

pub(crate) use new::{SPARSE, created_event};
pub use request::{Base, CreateHook, CreateMode, CreateRequest, Created};
pub use setup::SetUp;
