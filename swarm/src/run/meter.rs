//! The limits of one life of an agent, and its usage against them.
//!
//! A turn here is a call of the model, as in a definition's `maxTurns`. Runtimes do not say when a
//! call begins; the model's first output after a tool's result is the answer to the next one.

use std::time::Duration;

use store::settings::AgentLimits;
use tokio::time::Instant;

use crate::runtime::{Event, Usage};

/// Counts what a life uses.
#[derive(Debug)]
pub(super) struct Meter {
    limits: AgentLimits,
    begun: Instant,
    calls: u32,
    /// True while the model's answer arrives.
    in_answer: bool,
    /// Tools that have not answered.
    open: u32,
}

impl Meter {
    pub(super) fn new(limits: AgentLimits) -> Self {
        Self {
            limits,
            begun: Instant::now(),
            calls: 0,
            in_answer: false,
            open: 0,
        }
    }

    /// The time at which its time is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.begun.checked_add(self.limits.wall_clock?)
    }

    /// The limit that stops it after this event, in words. The usage only counts when the agent
    /// would use more: a turn that is over is over.
    pub(super) fn heard(&mut self, event: &Event, used: &Usage) -> Option<String> {
        match event {
            Event::Text(_) | Event::ToolUse { .. } => {
                if !std::mem::replace(&mut self.in_answer, true) {
                    self.calls = self.calls.saturating_add(1);
                }
                if let Event::ToolUse { .. } = event {
                    self.open += 1;
                }
                self.reached(self.calls.saturating_sub(1), used)
            }
            Event::ToolResult { .. } => {
                self.open = self.open.saturating_sub(1);
                if self.open > 0 {
                    return None;
                }
                self.in_answer = false;
                self.reached(self.calls, used)
            }
            Event::TurnEnded(_) => {
                (self.in_answer, self.open) = (false, 0);
                None
            }
            _ => None,
        }
    }

    /// The limit that keeps it from beginning another turn.
    pub(super) fn before_turn(&self, used: &Usage) -> Option<String> {
        self.reached(self.calls, used)
    }

    fn reached(&self, calls: u32, used: &Usage) -> Option<String> {
        let AgentLimits {
            turns,
            tokens,
            cost_usd,
            ..
        } = self.limits;
        if let Some(most) = turns.filter(|most| calls >= *most) {
            return Some(format!("it has reached its limit of {most} turns"));
        }
        let total = used.total_tokens();
        if let Some(most) = tokens.filter(|most| total >= *most) {
            let why = format!("it has reached its limit of {most} tokens: {total} are used");
            return Some(why);
        }
        let cost = used.cost_usd;
        if let Some(most) = cost_usd.filter(|most| cost >= *most) {
            let why = format!("it has reached its limit of ${most:.2}: ${cost:.2} are spent");
            return Some(why);
        }
        None
    }

    /// The text for a life whose time is over.
    pub(super) fn late(&self) -> String {
        let limit = self.limits.wall_clock.unwrap_or_default();
        format!("it has reached its limit of {}", in_words(limit))
    }
}

/// A time as a person says it.
pub(super) fn in_words(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (0, ms) => format!("{ms} ms"),
        (s @ 1..=119, _) => format!("{s} s"),
        (s, _) => format!("{} min", s.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{TurnEnd, TurnStatus};

    fn tool() -> Event {
        Event::ToolUse {
            id: "1".into(),
            name: "Bash".into(),
            input: serde_json::Value::Null,
        }
    }

    fn result() -> Event {
        Event::ToolResult {
            id: "1".into(),
            output: String::new(),
            is_error: false,
        }
    }

    fn end() -> Event {
        Event::TurnEnded(TurnEnd {
            status: TurnStatus::Completed,
            text: String::new(),
            error: None,
        })
    }

    /// At which of the events a limit is reached.
    fn stops_at(limits: AgentLimits, used: Usage, events: &[Event]) -> Option<usize> {
        let mut meter = Meter::new(limits);
        events
            .iter()
            .position(|event| meter.heard(event, &used).is_some())
    }

    fn turns(most: u32) -> AgentLimits {
        AgentLimits {
            turns: Some(most),
            ..AgentLimits::default()
        }
    }

    #[tokio::test]
    async fn calls_of_the_model_are_counted_by_what_follows_a_result() {
        let text = || Event::Text("hm".into());
        let none = Usage::default();
        // Two tools in one answer are one call.
        let work = [text(), tool(), tool(), result(), result(), text(), end()];
        assert_eq!(
            stops_at(turns(1), none, &work),
            Some(4),
            "before the next call"
        );
        assert_eq!(
            stops_at(turns(2), none, &work),
            None,
            "an answer that ends it is fine"
        );
        let two = [text(), end(), text(), end()];
        assert_eq!(stops_at(turns(1), none, &two), Some(2));
        assert_eq!(stops_at(AgentLimits::default(), none, &two), None);
    }

    #[tokio::test]
    async fn tokens_and_money_are_looked_at_before_more_is_used() {
        let used = Usage {
            input_tokens: 90,
            output_tokens: 10,
            cost_usd: 0.5,
            ..Usage::default()
        };
        let tokens = |most| AgentLimits {
            tokens: Some(most),
            ..AgentLimits::default()
        };
        let money = |most| AgentLimits {
            cost_usd: Some(most),
            ..AgentLimits::default()
        };
        let over = [Event::Usage(used), end()];
        assert_eq!(stops_at(tokens(1), used, &over), None, "it is over anyway");
        let goes_on = [Event::Usage(used), tool(), result()];
        assert_eq!(stops_at(tokens(100), used, &goes_on), Some(1));
        assert_eq!(stops_at(tokens(101), used, &goes_on), None);
        assert_eq!(stops_at(money(0.5), used, &goes_on), Some(1));
        assert_eq!(stops_at(money(0.51), used, &goes_on), None);
        let meter = Meter::new(tokens(100));
        let why = meter.before_turn(&used).unwrap();
        assert!(why.contains("100 tokens"), "{why}");
    }

    #[tokio::test(start_paused = true)]
    async fn time_runs_from_the_beginning() {
        let limits = AgentLimits {
            wall_clock: Some(Duration::from_secs(90)),
            ..AgentLimits::default()
        };
        let meter = Meter::new(limits);
        let late = meter.deadline().unwrap() - Instant::now();
        assert_eq!(late, Duration::from_secs(90));
        assert!(meter.late().contains("90 s"));
        assert_eq!(in_words(Duration::from_millis(5)), "5 ms");
        assert_eq!(in_words(Duration::from_secs(600)), "10 min");
        assert_eq!(Meter::new(AgentLimits::default()).deadline(), None);
    }
}
