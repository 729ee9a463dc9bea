//! The agents over time, computed from transcripts; and the chain of tasks that decided the
//! duration. Reads no file.

use std::collections::BTreeMap;

use store::clock::parse_rfc3339;

use super::model::{CriticalStep, Span, SpanKind, TaskPart};

/// An entry of a transcript, with the fields for the timeline.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Moment {
    /// The time, RFC 3339.
    pub ts: String,
    /// The kind of entry.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The facts about an agent besides its transcript.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// The time its record was made.
    pub(super) created_ms: i64,
    /// The end of its last life; now for a running agent.
    pub(super) end_ms: i64,
    /// Duration of the check at the end of its last life.
    pub(super) check_ms: i64,
}

/// The spans of an agent, from the first moment to the last.
pub(super) fn spans(moments: &[Moment], known: Known) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut at = known.created_ms;
    let mut now = SpanKind::Starting;
    let mut over = false;
    for moment in moments {
        let Some(ms) = parse_rfc3339(&moment.ts) else {
            continue;
        };
        let next = match moment.kind.as_str() {
            "started" | "output" | "text" | "tool_use" | "tool_result" | "answer" | "message" => {
                SpanKind::Working
            }
            "permission" | "turn_ended" | "ended" => SpanKind::Waiting,
            _ => now,
        };
        over = moment.kind == "ended" || (over && next == SpanKind::Waiting);
        if next != now {
            push(&mut spans, now, at, ms);
            at = ms.max(at);
            now = next;
        }
    }
    let end = known.end_ms.max(at);
    let check_from = (end - known.check_ms).max(known.created_ms);
    if known.check_ms > 0 {
        // The check is the last event, regardless of the times in the transcript.
        for span in &mut spans {
            span.to_ms = span.to_ms.min(check_from);
        }
        spans.retain(|span| span.to_ms > span.from_ms);
        push(&mut spans, now, at, check_from);
        let from = spans.last().map_or(check_from, |last| last.to_ms);
        push(&mut spans, SpanKind::Check, from, end);
    } else if !over {
        push(&mut spans, now, at, end);
    }
    spans.retain(|span| span.to_ms > span.from_ms);
    spans
}

fn push(spans: &mut Vec<Span>, what: SpanKind, from_ms: i64, to_ms: i64) {
    if to_ms <= from_ms {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.what == what && last.to_ms == from_ms => last.to_ms = to_ms,
        _ => spans.push(Span {
            what,
            from_ms,
            to_ms,
        }),
    }
}

/// The total duration of the spans of this kind.
pub(super) fn sum(spans: &[Span], what: SpanKind) -> i64 {
    let of_it = spans.iter().filter(|span| span.what == what);
    of_it.map(|span| span.to_ms - span.from_ms).sum()
}

/// The chain that decided the total duration: from the task that ended last back to the dependency
/// it waited for longest, and so on.
pub(super) fn critical_path(tasks: &[TaskPart], begin_ms: i64) -> Vec<CriticalStep> {
    let times: BTreeMap<&str, (i64, i64)> = tasks
        .iter()
        .filter_map(|task| Some((task.id.as_str(), (task.from_ms?, task.to_ms?))))
        .collect();
    let by_id: BTreeMap<&str, &TaskPart> =
        tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    let last = times.iter().max_by_key(|(_, (_, to))| *to);
    let mut here = last.map(|(id, _)| *id);
    let mut chain: Vec<CriticalStep> = Vec::new();
    while let Some(id) = here.take() {
        let (from, to) = times[id];
        let before = by_id.get(id).into_iter().flat_map(|task| &task.after);
        let before = before.filter_map(|id| Some((id.as_str(), times.get(id.as_str())?.1)));
        let held_up_by = before.max_by_key(|(_, to)| *to);
        let could_begin = held_up_by.map_or(begin_ms, |(_, to)| to);
        chain.push(CriticalStep {
            task: id.to_owned(),
            waited_ms: (from - could_begin).max(0),
            took_ms: (to - from).max(0),
        });
        // Other tools can make tasks wait for each other.
        here = held_up_by
            .map(|(id, _)| id)
            .filter(|id| !chain.iter().any(|step| step.task == *id));
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_700_000_000_000;

    fn moments(of: &[(i64, &str)]) -> Vec<Moment> {
        let one = |(ms, kind): &(i64, &str)| Moment {
            ts: store::clock::rfc3339(T + ms),
            kind: (*kind).to_owned(),
        };
        of.iter().map(one).collect()
    }

    fn shown(spans: &[Span]) -> Vec<(SpanKind, i64, i64)> {
        let one = |span: &Span| (span.what, span.from_ms - T, span.to_ms - T);
        spans.iter().map(one).collect()
    }

    #[test]
    fn an_agent_starts_works_waits_for_an_answer_and_is_checked() {
        let all = moments(&[
            (5, "prompt"),
            (100, "started"),
            (200, "tool_use"),
            (300, "permission"),
            (900, "answer"),
            (1000, "turn_ended"),
        ]);
        let known = Known {
            created_ms: T,
            end_ms: T + 1600,
            check_ms: 500,
        };
        use SpanKind::{Check, Starting, Waiting, Working};
        let expected = [
            (Starting, 0, 100),
            (Working, 100, 300),
            (Waiting, 300, 900),
            (Working, 900, 1000),
            (Waiting, 1000, 1100),
            (Check, 1100, 1600),
        ];
        assert_eq!(shown(&spans(&all, known)), expected);
        assert_eq!(sum(&spans(&all, known), Working), 300);
    }

    #[test]
    fn between_two_lives_nothing_is_drawn_after_the_last() {
        let all = moments(&[
            (10, "started"),
            (50, "ended"),
            (200, "started"),
            (260, "ended"),
        ]);
        let known = Known {
            created_ms: T,
            end_ms: T + 261,
            check_ms: 0,
        };
        let spans = shown(&spans(&all, known));
        assert_eq!(spans.last(), Some(&(SpanKind::Working, 200, 260)));
        assert_eq!(spans[2], (SpanKind::Waiting, 50, 200));
    }

    #[test]
    fn a_transcript_that_says_nothing_or_lies_about_time_does_no_harm() {
        let known = Known {
            created_ms: T + 100,
            end_ms: T,
            check_ms: 700,
        };
        assert_eq!(spans(&[], known), []);
        // A check that began before the agent's last words were written.
        let late = moments(&[(100, "started"), (160, "turn_ended")]);
        let known = Known {
            created_ms: T,
            end_ms: T + 200,
            check_ms: 90,
        };
        let expected = [
            (SpanKind::Starting, 0, 100),
            (SpanKind::Working, 100, 110),
            (SpanKind::Check, 110, 200),
        ];
        assert_eq!(shown(&spans(&late, known)), expected);
        let odd = moments(&[(500, "started"), (-900, "text"), (20, "ended")]);
        let known = Known {
            created_ms: T,
            end_ms: T + 300,
            check_ms: 10_000,
        };
        for span in spans(&odd, known) {
            assert!(span.to_ms > span.from_ms, "{span:?}");
        }
    }

    #[test]
    fn the_critical_path_goes_back_over_what_ended_last() {
        let task = |id: &str, after: &[&str], from: i64, to: i64| TaskPart {
            id: id.into(),
            after: after.iter().map(|id| (*id).to_owned()).collect(),
            from_ms: Some(T + from),
            to_ms: Some(T + to),
            ..TaskPart::default()
        };
        let tasks = [
            task("1", &[], 10, 100),
            task("2", &[], 10, 40),
            task("3", &["1", "2"], 130, 200),
            task("4", &["2"], 50, 90),
        ];
        let chain = critical_path(&tasks, T);
        let ids: Vec<&str> = chain.iter().map(|step| step.task.as_str()).collect();
        assert_eq!(ids, ["1", "3"]);
        assert_eq!((chain[0].waited_ms, chain[0].took_ms), (10, 90));
        assert_eq!((chain[1].waited_ms, chain[1].took_ms), (30, 70));
        // Tasks that wait for each other end the chain, not the program.
        let round = [task("1", &["2"], 0, 10), task("2", &["1"], 0, 12)];
        assert_eq!(critical_path(&round, T).len(), 2);
        assert!(critical_path(&[], T).is_empty());
    }
}
