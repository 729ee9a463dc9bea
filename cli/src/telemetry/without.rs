//! ccb without the feature `otel`: if a collector is named, says how to get the feature.

use std::sync::Arc;

use coordinator::session::SessionUi;
use coordinator::session::Verdict;
use fanout::{Events, FanoutEvent};
use project::workplace::Workplace;
use runs::env;

fn say(note: impl FnOnce(&str)) {
    let asked = [
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    ];
    let asked = asked.into_iter().find(|name| env::var(name).is_some());
    if let Some(name) = asked.filter(|_| !env::is_set("OTEL_SDK_DISABLED")) {
        note(&format!(
            "{name} is set, but this ccb was built without OpenTelemetry; build it with: \
             cargo install --path cli --features otel"
        ));
    }
}

pub(crate) fn session(ui: Arc<dyn SessionUi>, note: impl FnOnce(&str)) -> Arc<dyn SessionUi> {
    say(note);
    ui
}

/// Does nothing, in place of the exporter.
#[derive(Debug)]
pub(crate) struct OfPlan;

impl OfPlan {
    pub(crate) fn new(_: &Workplace, note: impl FnOnce(&str)) -> Self {
        say(note);
        Self
    }

    pub(crate) fn events<'a>(&mut self, events: &'a mut dyn Events) -> impl Events + 'a {
        Listening(events)
    }

    pub(crate) fn finish(self, _: Option<Verdict>, _: impl FnOnce(&str)) {}
}

/// Passes events on.
struct Listening<'a>(&'a mut dyn Events);

impl Events for Listening<'_> {
    fn event(&mut self, event: &FanoutEvent) {
        self.0.event(event);
    }
}
