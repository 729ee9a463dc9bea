//! The meaning of a `result` of Claude Code.

use serde_json::{Map, Value};

use super::super::{TurnEnd, TurnStatus, Usage};

/// Further facts about the turn that ends.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// True if we asked for it to be broken off.
    pub interrupted: bool,
    /// The kind of error the provider gave last.
    pub error: Option<String>,
    /// True if the provider does not accept the login; the turn was broken off for that.
    pub refused: bool,
    /// The model's last text.
    pub text: String,
}

/// Decides by `is_error` and `terminal_reason`; `subtype` is "success" for failures, too.
pub(super) fn turn_end(result: &Map<String, Value>, turn: Turn) -> TurnEnd {
    let is_error = result.get("is_error").and_then(Value::as_bool);
    let reason = string(result, "terminal_reason").unwrap_or_default();
    let subtype = string(result, "subtype").unwrap_or_default();
    let text = string(result, "result").map_or(turn.text, str::to_owned);
    let end = |status, text, error| TurnEnd {
        status,
        text,
        error,
    };
    let failure = said(result, &text);
    let code = result.get("api_error_status").and_then(Value::as_u64);
    let kind = turn.error.as_deref().unwrap_or_default();
    if turn.refused || (is_error != Some(false) && not_logged_in(kind, code)) {
        return end(TurnStatus::Failed, String::new(), Some(log_in(&failure)));
    }
    if reason.starts_with("aborted") {
        return if turn.interrupted {
            end(TurnStatus::Interrupted, text, None)
        } else {
            let why = "the turn was interrupted from outside".to_owned();
            end(TurnStatus::Failed, text, Some(why))
        };
    }
    if subtype == "error_max_turns" || subtype == "error_max_budget_usd" {
        return end(TurnStatus::LimitReached, text, Some(failure));
    }
    if is_error == Some(false) && subtype == "success" {
        return end(TurnStatus::Completed, text, None);
    }
    let status = if refuses_for_now(kind, code) {
        TurnStatus::Quota
    } else {
        TurnStatus::Failed
    };
    end(status, String::new(), Some(failure))
}

/// True if the provider does not know who asks, or does not let them.
pub(super) fn not_logged_in(kind: &str, code: Option<u64>) -> bool {
    kind == "authentication_failed" || matches!(code, Some(401 | 403))
}

/// True if asking again later may help.
fn refuses_for_now(kind: &str, code: Option<u64>) -> bool {
    matches!(kind, "rate_limit" | "billing_error" | "overloaded") || matches!(code, Some(429 | 529))
}

fn log_in(said: &str) -> String {
    format!(
        "Claude Code is not logged in, or its key is refused ({said}); start `claude` and log in, or \
         set ANTHROPIC_API_KEY, then resume"
    )
}

/// The program's words about the error.
fn said(result: &Map<String, Value>, text: &str) -> String {
    let errors: Vec<&str> = result
        .get("errors")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|error| !error.starts_with("[ede_diagnostic]"))
        .collect();
    if !errors.is_empty() {
        return errors.join("; ");
    }
    if !text.is_empty() {
        return text.to_owned();
    }
    let subtype = string(result, "subtype").unwrap_or("no reason");
    format!("the turn ended with {subtype}")
}

/// The cost of a session so far, for versions that report only the total.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// None: there was something before this process, and we do not know how much.
    so_far: Option<f64>,
}

impl Costs {
    /// The costs of a conversation that is new, or resumed.
    pub(super) fn new(is_new: bool) -> Self {
        Self {
            so_far: is_new.then_some(0.0),
        }
    }

    /// The usage since the last result. `modelUsage` and `total_cost_usd` cover the whole session,
    /// including the resumed part, and are not it.
    pub(super) fn usage(&mut self, result: &Map<String, Value>) -> Usage {
        let total = result.get("total_cost_usd").and_then(Value::as_f64);
        let before = self.so_far;
        self.so_far = total.or(before);
        if let Some(Value::Object(models)) = result.get("model_usage_since_last_result") {
            let mut usage = Usage::default();
            for model in models.values() {
                let read = Usage {
                    input_tokens: sum(
                        model,
                        [
                            "inputTokens",
                            "cacheReadInputTokens",
                            "cacheCreationInputTokens",
                        ],
                    ),
                    cache_read_tokens: number(model, "cacheReadInputTokens"),
                    cache_write_tokens: number(model, "cacheCreationInputTokens"),
                    output_tokens: number(model, "outputTokens"),
                    cost_usd: model.get("costUSD").and_then(Value::as_f64).unwrap_or(0.0),
                    ..Usage::default()
                };
                usage.add(&read.plausible());
            }
            return usage;
        }
        let none = Value::Null;
        let usage = result.get("usage").unwrap_or(&none);
        Usage {
            input_tokens: sum(
                usage,
                [
                    "input_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                ],
            ),
            cache_read_tokens: number(usage, "cache_read_input_tokens"),
            cache_write_tokens: number(usage, "cache_creation_input_tokens"),
            output_tokens: number(usage, "output_tokens"),
            cost_usd: match (before, total) {
                (Some(before), Some(total)) => (total - before).max(0.0),
                _ => 0.0,
            },
            ..Usage::default()
        }
        .plausible()
    }
}

/// The sum of these fields.
fn sum(value: &Value, keys: [&str; 3]) -> u64 {
    let numbers = keys.iter().map(|key| number(value, key));
    numbers.fold(0, u64::saturating_add)
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn string<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(result: Value) -> Usage {
        let Value::Object(result) = result else {
            unreachable!();
        };
        Costs::new(true).usage(&result)
    }

    #[test]
    fn numbers_beyond_all_bounds_are_added_up() {
        let all = usage(serde_json::json!({"usage": {
            "input_tokens": u64::MAX, "cache_read_input_tokens": 5, "output_tokens": 7,
        }}));
        assert_eq!((all.input_tokens, all.output_tokens), (u64::MAX, 7));
        let one = serde_json::json!({"inputTokens": u64::MAX, "cacheReadInputTokens": 1, "costUSD": 1e308});
        let models = serde_json::json!({"model_usage_since_last_result": {"a": one, "b": one}});
        let mut both = usage(models);
        assert_eq!(both.input_tokens, u64::MAX);
        both.add(&both.clone());
        let written = serde_json::to_string(&both).unwrap();
        assert_eq!(serde_json::from_str::<Usage>(&written).unwrap(), both);
    }

    #[test]
    fn a_cost_below_zero_makes_no_room_under_a_limit() {
        let models = |usd: f64| {
            usage(serde_json::json!({"model_usage_since_last_result": {"a": {"costUSD": usd}}}))
        };
        assert_eq!(models(-5.0).cost_usd, 0.0);
        assert_eq!(models(5.0).cost_usd, 5.0);
    }
}
