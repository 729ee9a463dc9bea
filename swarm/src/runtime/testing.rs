//! Playing recorded lines to a translator.

use serde_json::{Map, Value};

use super::translator::{Step, Steps, Translator};
use super::{Event, TurnEnd, TurnStatus};

/// Plays `recorded`, one JSON object per line.
pub(super) fn play(translator: &mut impl Translator, recorded: &str) -> Steps {
    let lines = recorded.lines().filter(|line| !line.trim().is_empty());
    lines.flat_map(|line| say(translator, line)).collect()
}

/// Plays one line, which must be part of the protocol.
pub(super) fn say(translator: &mut impl Translator, line: &str) -> Steps {
    let message: Map<String, Value> = serde_json::from_str(line).unwrap();
    translator.heard(&message).unwrap()
}

/// The events for the host.
pub(super) fn events(steps: &Steps) -> Vec<Event> {
    let events = steps.iter().filter_map(|step| match step {
        Step::Event(event) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

/// The lines to the program.
pub(super) fn lines(steps: &Steps) -> Vec<Value> {
    let lines = steps.iter().filter_map(|step| match step {
        Step::Line(line) => Some(line.clone()),
        _ => None,
    });
    lines.collect()
}

/// The events, one word each.
pub(super) fn words(steps: &Steps) -> Vec<String> {
    let words = events(steps).into_iter().map(|event| match event {
        Event::Started { .. } => "started".to_owned(),
        Event::Output { .. } => "output".to_owned(),
        Event::Text(text) => format!("text {text}"),
        Event::ToolUse { name, .. } => format!("use {name}"),
        Event::ToolResult { is_error, .. } => format!("result {is_error}"),
        Event::Accepted { message } => format!("accepted {}", &message.to_string()[35..]),
        Event::Usage(usage) => format!("usage {} {}", usage.input_tokens, usage.output_tokens),
        Event::Permission { tool, .. } => format!("may {tool}"),
        Event::Stalled { .. } => "stalled".to_owned(),
        Event::Mode { mode, refused } => format!("mode {mode} {}", refused.is_none()),
        Event::TurnEnded(end) => format!("{:?} {}", end.status, end.text)
            .trim_end()
            .to_owned(),
        Event::Ended(_) => "ended".to_owned(),
    });
    words.collect()
}

/// The ends of turns among `steps`.
pub(super) fn ends(steps: &Steps) -> Vec<TurnEnd> {
    let ends = events(steps).into_iter().filter_map(|event| match event {
        Event::TurnEnded(end) => Some(end),
        _ => None,
    });
    ends.collect()
}

/// The only end among `steps`; its error contains `words`.
pub(super) fn failed(steps: &Steps, status: TurnStatus, words: &str) {
    let ends = ends(steps);
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0].status, status, "{ends:?}");
    let error = ends[0].error.clone().unwrap();
    assert!(error.contains(words), "{error}");
}

/// Plays `recorded` and lets `host` answer every event with orders.
pub(super) fn converse(
    translator: &mut impl Translator,
    recorded: &str,
    mut host: impl FnMut(&Event) -> Vec<super::Order>,
) -> Steps {
    let mut all = translator.begin();
    for line in recorded.lines() {
        let mut steps = say(translator, line);
        let orders: Vec<_> = events(&steps).iter().flat_map(&mut host).collect();
        for order in orders {
            steps.extend(translator.told(order));
        }
        all.extend(steps);
    }
    all
}

/// A message whose id ends with `last`.
pub(super) fn message(last: char, now: bool) -> super::Message {
    let id = format!("00000000-0000-4000-8000-00000000000{last}");
    super::Message {
        id: id.parse().unwrap(),
        text: format!("message {last}"),
        now,
    }
}
