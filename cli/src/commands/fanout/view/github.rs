//! Annotations as GitHub reads them from a job's output.

use fanout::{FanoutEvent, Outcome, Progress};

/// The annotation for an event, if it is a failure or important to every reader.
pub(super) fn annotation(event: &FanoutEvent, progress: &Progress) -> Option<String> {
    match event {
        FanoutEvent::Finished { task, outcome } if !outcome.is_success() => {
            let level = match outcome {
                Outcome::Skipped { .. } => return None,
                Outcome::Conflict { .. } => "warning",
                _ => "error",
            };
            let mut properties = Vec::new();
            let planned = progress.task(task);
            if let Some((file, line)) = planned.and_then(|task| task.place.as_ref()) {
                properties.push(format!("file={}", property(file)));
                properties.extend(line.map(|line| format!("line={line}")));
            }
            properties.push(format!("title={}", property(&format!("ccb: {task}"))));
            let subject = planned
                .map(|task| task.subject.as_str())
                .unwrap_or_default();
            let text = format!("{subject}: {}", outcome.words());
            Some(format!(
                "::{level} {}::{}",
                properties.join(","),
                data(&text)
            ))
        }
        FanoutEvent::Paused { why } => Some(format!("::warning title=ccb::{}", data(why))),
        FanoutEvent::Note { text } => Some(format!("::notice title=ccb::{}", data(text))),
        _ => None,
    }
}

/// The annotation for a plan that did not begin; its message may start with a location.
pub(super) fn not_run(message: &str) -> String {
    let place = message.split_once(": ").and_then(|(place, _)| {
        let (file, line) = place.rsplit_once(':')?;
        Some((file, line.parse::<u64>().ok()?))
    });
    let place = place.map(|(file, line)| format!("file={},line={line},", property(file)));
    let place = place.unwrap_or_default();
    format!("::error {place}title=ccb fanout::{}", data(message))
}

/// An annotation about a file and an event with these texts, for the fuzz target.
pub(crate) fn annotated(text: &str) -> String {
    let place = not_run(&format!("{text}:1: {text}"));
    format!("{place}\n::error file={}::{}", property(text), data(text))
}

/// Text with line ends escaped, so that it stays on its line.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The same for a property, whose separators are escaped too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanout::{PlannedEvent, Skip};

    #[test]
    fn a_mistake_in_a_plan_is_annotated_where_it_is() {
        assert_eq!(
            not_run("a,b.yaml:3: unknown key \"x\""),
            "::error file=a%2Cb.yaml,line=3,title=ccb fanout::a,b.yaml:3: unknown key \"x\""
        );
        assert_eq!(
            not_run("there is no plan: x\n::y"),
            "::error title=ccb fanout::there is no plan: x%0A::y"
        );
    }

    #[test]
    fn nothing_in_a_task_becomes_a_command() {
        let mut progress = Progress::default();
        let task = PlannedEvent {
            id: "a".into(),
            subject: "100% sure\n::set-env name=X::y".into(),
            place: Some(("src/a,b:c.rs".into(), Some(7))),
            ..PlannedEvent::default()
        };
        progress.take(
            &FanoutEvent::Planned {
                tasks: vec![task],
                jobs: 1,
                team: "t".into(),
            },
            0,
        );
        let finished = |outcome| FanoutEvent::Finished {
            task: "a".into(),
            outcome,
        };
        let failed = finished(Outcome::Failed {
            why: "x\r\n::error::y".into(),
        });
        assert_eq!(
            annotation(&failed, &progress).unwrap(),
            "::error file=src/a%2Cb%3Ac.rs,line=7,title=ccb%3A a::100%25 sure%0A::set-env \
             name=X::y: the agent failed: x%0D%0A::error::y"
        );
        let skipped = finished(Outcome::Skipped { why: Skip::Canary });
        assert_eq!(annotation(&skipped, &progress), None);
        assert_eq!(
            annotation(&finished(Outcome::NoChange { proven: true }), &progress),
            None
        );
        let note = FanoutEvent::Note {
            text: "a\nb".into(),
        };
        assert_eq!(
            annotation(&note, &progress).unwrap(),
            "::notice title=ccb::a%0Ab"
        );
    }
}
