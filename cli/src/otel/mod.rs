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

#[cfg(feature = "otel")]
mod exporter;
#[cfg(feature = "otel")]
mod observed;
#[cfg(feature = "otel")]
mod protobuf;
#[cfg(feature = "otel")]
mod settings;

#[cfg(feature = "otel")]
pub(crate) use self::observed::{OfPlan, session};
#[cfg(not(feature = "otel"))]
pub(crate) use self::without::{OfPlan, session};

/// ccb without the feature: says once that somebody asks for it.
#[cfg(not(feature = "otel"))]
mod without {
    use std::sync::Arc;

    use coordinator::env;
    use coordinator::fanout::{Events, FanoutEvent, Verdict};
    use coordinator::session::SessionUi;
    use coordinator::workplace::Workplace;

    use crate::output::Output;

    fn say(out: &Output) {
        let asked = [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        ];
        let asked = asked.into_iter().find(|name| env::var(name).is_some());
        if let Some(name) = asked.filter(|_| !env::is_set("OTEL_SDK_DISABLED")) {
            out.clone().note(&format!(
                "{name} is set, but this ccb was built without OpenTelemetry; build it with: \
                 cargo install --path cli --features otel"
            ));
        }
    }

    pub(crate) fn session(ui: Arc<dyn SessionUi>, out: &Output) -> Arc<dyn SessionUi> {
        say(out);
        ui
    }

    /// Nobody listens.
    #[derive(Debug)]
    pub(crate) struct OfPlan;

    impl OfPlan {
        pub(crate) fn new(_: &Workplace, out: &Output) -> Self {
            say(out);
            Self
        }

        pub(crate) fn events<'a>(&mut self, events: &'a mut dyn Events) -> Listening<'a> {
            Listening(events)
        }

        pub(crate) fn finish(self, _: Option<Verdict>, _: &Output) {}
    }

    /// Passes events on.
    pub(crate) struct Listening<'a>(&'a mut dyn Events);

    impl Events for Listening<'_> {
        fn event(&mut self, event: &FanoutEvent) {
            self.0.event(event);
        }
    }
}
