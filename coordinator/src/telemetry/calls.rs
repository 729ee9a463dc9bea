//! Model calls, as far as a transcript records them.
//!
//! A runtime reports the usage of a call with its answer. No record has the start of the call: the
//! reader assumes the time of the last tool result, message or answer before it.

use serde::Deserialize;
use store::clock::parse_rfc3339;
use swarm::runtime::Usage;

/// Bytes at the beginning of a line that contain its time, life and kind.
const HEAD: usize = 160;

/// A call to a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The life of the run.
    pub(crate) life: u32,
    /// Counts the calls of a run, from 1.
    pub(crate) number: u64,
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
    pub(crate) usage: Usage,
    /// The model that answered, if it is known.
    pub(crate) model: Option<String>,
}

/// Reads a transcript line by line.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    number: u64,
    asked_ms: Option<i64>,
    model: Option<String>,
}

/// The parts of a line that are needed, of those lines that are read whole.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default)]
    model: Option<String>,
    #[serde(flatten)]
    usage: Usage,
}

impl Calls {
    /// The last reported model.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Applies a line; returns the call that ended with it.
    pub(crate) fn take(&mut self, line: &[u8]) -> Option<Call> {
        let head = Head::of(line)?;
        match head.kind {
            "started" => {
                let said: Option<Line> = serde_json::from_slice(line).ok();
                self.model = said.and_then(|line| line.model).or(self.model.take());
                self.asked_ms = Some(head.at_ms);
                None
            }
            "prompt" | "message" | "tool_result" | "answer" => {
                self.asked_ms = Some(head.at_ms);
                None
            }
            "usage" => {
                let said: Line = serde_json::from_slice(line).ok()?;
                if said.usage.total_tokens() == 0 && said.usage.cost_usd <= 0.0 {
                    return None;
                }
                self.number += 1;
                let from_ms = self.asked_ms.unwrap_or(head.at_ms).min(head.at_ms);
                self.asked_ms = Some(head.at_ms);
                Some(Call {
                    life: head.life,
                    number: self.number,
                    from_ms,
                    to_ms: head.at_ms,
                    usage: said.usage,
                    model: self.model.clone(),
                })
            }
            _ => None,
        }
    }
}

/// The beginning of every line, before any text of an agent.
struct Head<'a> {
    at_ms: i64,
    life: u32,
    kind: &'a str,
}

impl<'a> Head<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let head = &line[..line.len().min(HEAD)];
        // A character may be cut at the end; ccb's own fields are before it.
        let text = match std::str::from_utf8(head) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
        };
        let after = |key: &str| Some(text.split_once(key)?.1);
        let ts = after("\"ts\":\"")?.split('"').next()?;
        let life = after("\"life\":")?;
        let life = life.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(Self {
            at_ms: parse_rfc3339(ts)?,
            life: life.parse().ok()?,
            kind: after("\"type\":\"")?.split('"').next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_700_000_000_000;

    fn line(ms: i64, rest: &str) -> Vec<u8> {
        let ts = store::clock::rfc3339(T + ms);
        format!("{{\"ts\":\"{ts}\",\"life\":1,{rest}}}\n").into_bytes()
    }

    #[test]
    fn a_call_begins_with_what_the_model_was_given_and_ends_with_what_it_used() {
        let lines = [
            line(0, r#""type":"prompt","text":"go""#),
            line(50, r#""type":"started","model":"m-1""#),
            line(900, r#""type":"text","text":"\"type\":\"usage\" 🙂""#),
            line(1000, r#""type":"tool_use","id":"1","name":"Bash""#),
            line(
                1001,
                r#""type":"usage","inputTokens":100,"outputTokens":7,"costUsd":0.5,"toolUses":0"#,
            ),
            line(1500, r#""type":"tool_result","id":"1","output":"ok""#),
            line(1600, r#""type":"tool_result","id":"2","output":"ok""#),
            line(
                2000,
                r#""type":"usage","inputTokens":120,"outputTokens":9,"costUsd":0.0,"toolUses":0"#,
            ),
            line(
                2100,
                r#""type":"usage","inputTokens":0,"outputTokens":0,"costUsd":0.0,"toolUses":1"#,
            ),
        ];
        let mut calls = Calls::default();
        let found: Vec<Call> = lines.iter().filter_map(|line| calls.take(line)).collect();
        let times: Vec<_> = found
            .iter()
            .map(|call| (call.number, call.from_ms - T, call.to_ms - T))
            .collect();
        assert_eq!(times, [(1, 50, 1001), (2, 1600, 2000)]);
        assert_eq!(found[0].usage.input_tokens, 100);
        assert_eq!(found[1].usage.output_tokens, 9);
        assert_eq!(found[0].model.as_deref(), Some("m-1"));
    }

    #[test]
    fn lines_that_are_no_lines_are_passed_over() {
        let mut calls = Calls::default();
        for line in [
            "",
            "{}",
            "{\"ts\":\"x\",\"life\":1,\"type\":\"usage\"}",
            "\u{0}",
        ] {
            assert_eq!(calls.take(line.as_bytes()), None, "{line}");
        }
        let half = &line(5, r#""type":"usage","inputTokens":1"#)[..70];
        assert_eq!(calls.take(half), None);
    }
}
