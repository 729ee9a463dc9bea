//! Fan-out: one plan, many tasks, one report.
//!
//! # What this room knows
//!
//! | part | what it does |
//! |---|---|
//! | [`PlanFile`] | reads a plan; an error names its line and a likely correction |
//! | [`expand()`] | makes tasks of it, with ids and content keys that follow from their things |
//! | [`Shard`] | a part of the tasks, for one of several machines |
//! | [`Preview`] | their effects and worst-case cost |
//! | [`Outcome`], [`Report`] | the outcome of each task, and of the whole |
//! | [`Results`] | the directory with every form of the report, patches and logs |
//! | [`apply()`], [`merge_results`] | apply or merge such directories |
//! | [`FanoutEvent`], [`Progress`] | events, progress, and the estimated remaining time |
//! | [`run()`] | puts tasks on a board, has the director work through it, lands proven results |
//!
//! # What it must not know (and where to go instead)
//!
//! * The workplace, definitions and settings of the user: `coordinator::plans` hands them over as
//!   [`Equipment`].
//! * The order of tasks and the agents for them: `director`.
//! * The look of a report's page: `observe::report`, as a function in the [`Equipment`].
//! * Arguments and output: `cli`.
//!
//! # The way through
//!
//! ```text
//! PlanFile ─▶ expand ─▶ PlannedTask, each with its key ─▶ Preview, or run
//! run ─▶ board.rs puts them on a board ─▶ follow.rs has the director work through it
//!     ─▶ keep.rs keeps proven results ─▶ landing.rs lands it together, or finds the culprit
//!     ─▶ Report ─▶ Results: JSON, JUnit, SARIF, Markdown, page, patches
//! ```
//!
//! # Crash points
//!
//! None of its own. A plan that is run again finds its tasks by their keys on the board, and what is
//! proven by its pins in the repository.
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | change what a plan may say, or what it becomes | `coordinator/fanout/src/plan.rs`, `expand.rs`, `maker.rs` (one task), `lines.rs` (where a mistake is); its tasks on the board are made in `board.rs` |
//! | change what a `foreach` reads, and what stays inside the repository | `coordinator/fanout/src/things.rs`, `items.rs`, `findings.rs` (SARIF), `paths.rs`; which tasks are chosen: `select.rs`; whether the user's checkout stays as it is: `coordinator/runs/src/bystander.rs` |
//! | see how results land together, and how the culprit is found | `coordinator/fanout/src/landing.rs`, `worktrees/src/merge/pin.rs` |
//! | change what is said and done about conflicts of a plan | `coordinator/fanout/src/conflicts.rs` |
//! | change the check of everything that lands | `coordinator/fanout/src/whole_check.rs` |
//! | change a report of a plan | `coordinator/fanout/src/{report,junit,sarif,markdown}.rs`, `results.rs` (the directory) |

mod apply;
mod board;
mod code_quality;
mod conflicts;
mod elsewhere;
mod error;
mod event;
mod expand;
mod findings;
mod follow;
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod items;
mod junit;
mod keep;
mod landing;
mod lines;
mod maker;
mod manifest;
mod markdown;
mod merge;
mod outcome;
mod paths;
mod plan;
mod preview;
mod progress;
mod protect;
mod read;
mod report;
mod results;
mod run;
mod sarif;
mod select;
mod shard;
mod task;
mod template;
#[cfg(test)]
mod tests;
mod things;
mod whole_check;

pub use apply::{ApplyAnswer, ApplyOptions, Skipped, apply};
pub use code_quality::code_quality;
pub use conflicts::shell_word;
pub use error::FanoutError;
pub use event::{FanoutEvent, PlannedEvent};
pub use expand::{Basis, Expanded, MOST_TASKS, expand};
pub use graph::Graph;
pub use items::{Origin, Source};
pub use junit::junit;
pub use manifest::{Entry, Loaded, MANIFEST, Manifest, PatchEntry};
pub use markdown::{markdown, time};
pub use merge::merge_results;
pub use outcome::{Outcome, Skip};
pub use paths::Checkout;
pub use plan::{
    Budget, Defaults, Foreach, Outside, PLAN_VERSION, Plan, Span, TaskIsolation, TaskSpec, Texts,
    schema,
};
pub use preview::{Preview, Worst, tool};
pub use progress::{Progress, Stage, remaining};
pub use read::PlanFile;
pub use report::{CheckReport, Cost, FileChange, Landing, REPORT_VERSION, Report, TaskReport};
pub use results::{Keep, KeptPatch, PageOf, Results};
pub use run::{Equipment, Page, failed_before, lock_of, pin_name, planned_as, run};
pub use run::{Events, KEEP_FAILED, Land, RunOptions};
pub use sarif::sarif;
pub use select::Selection;
pub use shard::{Part, Shard, Timings};
pub use task::{PlannedTask, Work};
pub use whole_check::{CheckSpec, NoNewFailures, WholeCheck};
