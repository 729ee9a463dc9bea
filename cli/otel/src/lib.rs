//! OpenTelemetry: sessions and plans as spans and metrics, sent to a collector.
//!
//! Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` (or that of one signal) is set. See `docs/reports.md`.
//!
//! # What this room knows
//!
//! The variables of the specification, OTLP in protobuf over HTTP, and when spans are sent, retried and
//! dropped.
//!
//! # What it must not know (and where to go instead)
//!
//! * Which spans and metrics a session has, and what was already sent: [`coordinator::telemetry`].
//! * Where warnings are printed: the caller passes a function that takes a note.
//! * How sessions and plans run. A slow or absent collector costs spans, never a session.
//!
//! # The way through
//!
//! 1. [`session`] and [`OfPlan`] wrap the events of a session or plan and pass all of them on (`observed.rs`).
//! 2. The first event starts a thread (`exporter.rs`), with what the variables say (`settings.rs`).
//! 3. The thread asks the recorder for new spans and metrics, writes them as bytes (`protobuf.rs`) and posts them.
//! 4. At the end it sends the rest, for two seconds at most, and returns what was lost as a note.
//!
//! # Crash points
//!
//! None of its own. The ledger of sent spans belongs to [`coordinator::telemetry`]; after a crash the next
//! process sends what the ledger does not list.

mod exporter;
mod observed;
mod protobuf;
mod settings;

pub use self::observed::{OfPlan, session};
