//! OpenTelemetry: sessions and plans as spans and metrics, sent to a collector.
//!
//! Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` (or that of one signal) is set. What is sent is decided
//! in [`coordinator::telemetry`]; how it is sent, here. See `docs/reports.md`.
//!
//! | file | what it does |
//! |---|---|
//! | `settings.rs` | what the variables say |
//! | `protobuf.rs` | OTLP as bytes |
//! | `exporter.rs` | a thread that looks, sends and keeps what could not be sent |
//! | `observed.rs` | listens in on a session or a plan |

mod exporter;
mod observed;
mod protobuf;
mod settings;

pub use self::observed::{OfPlan, session};
