//! Fan-out: one plan, many tasks, one report.
//!
//! | part | what it does |
//! |---|---|
//! | [`PlanFile`] | reads a plan; a mistake names its line and what was probably meant |
//! | [`expand`] | makes tasks of it, with ids and content keys that follow from what they are about |
//! | [`Shard`] | a part of the tasks, for one of several machines |
//! | [`Preview`] | what they would do and cost at worst |
//!
//! Nothing here runs a task.

mod error;
mod expand;
mod graph;
mod items;
mod plan;
mod preview;
mod read;
mod shard;
mod task;
mod template;
#[cfg(test)]
mod tests;

pub use error::FanoutError;
pub use expand::{Basis, MOST_TASKS, expand};
pub use graph::Graph;
pub use items::{Origin, Source};
pub use plan::{
    Budget, Defaults, Foreach, Isolation, PLAN_VERSION, Plan, Span, TaskSpec, Texts, schema,
};
pub use preview::{Preview, Worst, tool};
pub use read::PlanFile;
pub use shard::Shard;
pub use task::{PlannedTask, Work};
