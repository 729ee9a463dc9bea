//! A session or a plan as spans and metrics, for exporters.
//!
//! Everything is derived from the disk, by a reader that takes no part in the work: nothing here
//! can slow a session or make it fail. Ids follow from the session and the runs, so the spans of a
//! director that was killed and those of its successor belong to one trace. `docs/reports.md` has
//! the names.
//!
//! | file | what it does |
//! |---|---|
//! | `model.rs` | spans, metrics and ids as values |
//! | `calls.rs` | model calls, from a transcript |
//! | `runs.rs`, `attempts.rs` | news in the runs' files; attempts, runs and checks made of it |
//! | `conventions.rs` | names that OpenTelemetry gives |
//! | `recorder.rs` | tasks, landings and the session |
//! | `figures.rs` | the metrics |
//! | `ledger.rs` | the delivered spans, also of a process that has exited |

mod attempts;
mod calls;
mod conventions;
mod figures;
mod ledger;
mod model;
mod recorder;
mod runs;

pub(crate) use self::calls::Calls;
pub use self::model::{
    Attribute, Data, Histogram, Metric, Point, Span, SpanId, SpanKind, TraceId, Value,
};
pub use self::recorder::{About, Recorder};
