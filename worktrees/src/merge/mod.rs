//! Lands the commits of a worktree on a branch: its work as one commit (`seal`), landing it
//! (`land`), the commits that land (`build`), the branch they land on (`target`), landings that
//! were cut short (`interrupted`), the list of landings (`landings`), undoing one (`take_back`,
//! `go_back`), commits kept by refs (`pin`), a `.gitmodules` that git refuses (`modules_file`), and
//! patches (`patch`).

mod build;
mod compare;
mod go_back;
mod interrupted;
mod land;
mod landings;
mod modules_file;
pub mod patch;
mod pin;
mod seal;
mod take_back;
mod target;

pub(crate) use build::{Builder, Built};
pub use compare::FilesNow;
pub use land::{MergeOutcome, MergeRequest, MergeStrategy, Merged, Wanted};
pub(crate) use landings::LandingList;
pub use landings::{Landing, Undone, UndoneBy};
pub use seal::Sealed;
pub use take_back::{TakeBackRequest, TakenBack};
pub(crate) use target::{Target, TargetMove, in_a_line};
