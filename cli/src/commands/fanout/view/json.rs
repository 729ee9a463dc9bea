//! One JSON object per event, on standard output.

use fanout::{FanoutEvent, Progress};
use serde_json::Value;

use super::Show;
use crate::output::Output;

pub(super) struct Json {
    out: Output,
}

impl Json {
    pub(super) fn new(out: Output) -> Self {
        Self { out }
    }
}

impl Show for Json {
    fn show(&mut self, event: &FanoutEvent, _: &Progress, _: u64) {
        if let Some(value) = to_json(event) {
            // A reader that has gone does not stop the run.
            self.out.json(&value).ok();
        }
    }
}

fn to_json(event: &FanoutEvent) -> Option<Value> {
    // The command itself prints the last line.
    if matches!(event, FanoutEvent::Tick | FanoutEvent::Ended) {
        return None;
    }
    let mut value = serde_json::to_value(event).ok()?;
    value["ts"] = super::now().into();
    Some(value)
}
