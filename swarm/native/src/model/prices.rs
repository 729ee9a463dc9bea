//! The known prices of models. Settings can set the prices of any service and model; an unknown
//! model has no price, which is not the same as costing nothing.

use super::{Prices, Provider, Tokens};

/// Prices of a million tokens, in US dollars: read, written, read from the cache, written to it.
type Row = [f64; 4];

/// A price for requests that are longer than so many tokens.
type Long = Option<(u64, Row)>;

const SONNET_3: Row = [3.0, 15.0, 0.3, 3.75];
const OPUS_4: Row = [15.0, 75.0, 1.5, 18.75];
const OPUS_5: Row = [5.0, 25.0, 0.5, 6.25];
const FABLE_5: Row = [10.0, 50.0, 1.0, 12.5];
const GPT_5: Row = [1.25, 10.0, 0.125, 0.0];
const GPT_5_2: Row = [1.75, 14.0, 0.175, 0.0];

/// Models by their whole names, without dates. Those of Anthropic are from the catalogue in Claude
/// Code 2.1.325, those of OpenAI from the catalogue in opencode 1.18.33 (models.dev); they were not
/// compared with a bill.
const KNOWN: [(&str, Row, Long); 44] = [
    ("claude-3-haiku", [0.25, 1.25, 0.03, 0.3], None),
    ("claude-3-5-haiku", [0.8, 4.0, 0.08, 1.0], None),
    ("claude-haiku-4-5", [1.0, 5.0, 0.1, 1.25], None),
    (
        "claude-haiku-5-5",
        [0.1, 0.5, 0.01, 0.125],
        Some((100_000, [0.5, 2.5, 0.05, 0.625])),
    ),
    ("claude-3-5-sonnet", SONNET_3, None),
    ("claude-3-7-sonnet", SONNET_3, None),
    ("claude-sonnet-4", SONNET_3, None),
    ("claude-sonnet-4-0", SONNET_3, None),
    ("claude-sonnet-4-5", SONNET_3, None),
    ("claude-sonnet-4-6", SONNET_3, None),
    ("claude-sonnet-5", [2.0, 10.0, 0.2, 2.5], None),
    ("claude-sonnet-5-5", [2.0, 10.0, 0.1, 2.5], None),
    ("claude-3-opus", OPUS_4, None),
    ("claude-opus-4", OPUS_4, None),
    ("claude-opus-4-0", OPUS_4, None),
    ("claude-opus-4-1", OPUS_4, None),
    ("claude-opus-4-5", OPUS_5, None),
    ("claude-opus-4-6", OPUS_5, None),
    ("claude-opus-4-7", OPUS_5, None),
    ("claude-opus-4-8", OPUS_5, None),
    ("claude-opus-5", OPUS_5, None),
    ("claude-opus-5-5", [4.0, 20.0, 0.2, 5.0], None),
    ("claude-fable-5", FABLE_5, None),
    ("claude-fable-5-1", [10.0, 50.0, 0.25, 12.5], None),
    ("claude-fable-5-2", [8.0, 40.0, 0.2, 10.0], None),
    ("gpt-4o", [2.5, 10.0, 1.25, 0.0], None),
    ("gpt-4o-mini", [0.15, 0.6, 0.075, 0.0], None),
    ("gpt-4-1", [2.0, 8.0, 0.5, 0.0], None),
    ("gpt-4-1-mini", [0.4, 1.6, 0.1, 0.0], None),
    ("gpt-4-1-nano", [0.1, 0.4, 0.025, 0.0], None),
    ("gpt-5", GPT_5, None),
    ("gpt-5-codex", GPT_5, None),
    ("gpt-5-mini", [0.25, 2.0, 0.025, 0.0], None),
    ("gpt-5-nano", [0.05, 0.4, 0.005, 0.0], None),
    ("gpt-5-1", GPT_5, None),
    ("gpt-5-1-codex", GPT_5, None),
    ("gpt-5-2", GPT_5_2, None),
    ("gpt-5-3-codex", GPT_5_2, None),
    (
        "gpt-5-4",
        [2.5, 15.0, 0.25, 0.0],
        Some((272_000, [5.0, 22.5, 0.5, 0.0])),
    ),
    ("gpt-5-4-mini", [0.75, 4.5, 0.075, 0.0], None),
    ("gpt-5-4-nano", [0.2, 1.25, 0.02, 0.0], None),
    ("o3", [2.0, 8.0, 0.5, 0.0], None),
    ("o3-mini", [1.1, 4.4, 0.55, 0.0], None),
    ("o4-mini", [1.1, 4.4, 0.275, 0.0], None),
];

/// The prices of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    usual: Prices,
    /// The prices of longer requests, and the number of tokens from which they apply.
    long: Option<(u64, Prices)>,
}

impl Rates {
    /// The prices of the model of `provider`; `None` if they are unknown.
    pub(crate) fn of(provider: &Provider) -> Option<Self> {
        if let Some(usual) = provider.prices {
            return Some(Self { usual, long: None });
        }
        let name = plain_name(&provider.model);
        let (_, usual, long) = KNOWN.iter().find(|(known, ..)| *known == name)?;
        Some(Self {
            usual: prices(*usual),
            long: long.map(|(above, row)| (above, prices(row))),
        })
    }

    /// The cost of these tokens of one request.
    pub(crate) fn cost(&self, tokens: &Tokens) -> f64 {
        let long = self.long.filter(|(above, _)| tokens.all_input() > *above);
        let prices = long.map_or(self.usual, |(_, prices)| prices);
        #[expect(clippy::cast_precision_loss, reason = "no request has 2^52 tokens")]
        let part = |count: u64, price: f64| count as f64 * price / 1_000_000.0;
        part(tokens.input, prices.input)
            + part(tokens.cache_read, prices.cache_read)
            + part(tokens.cache_write, prices.cache_write)
            + part(tokens.output, prices.output)
    }

    /// The amount that `cached` tokens save because they are in the cache already. Otherwise they
    /// would be written to it, and some services charge more for that than for reading.
    pub(crate) fn saved(&self, cached: u64) -> f64 {
        let none = Tokens::default();
        let cost = |tokens: Tokens| self.cost(&tokens);
        let read = cost(Tokens {
            cache_read: cached,
            ..none
        });
        let fresh = cost(Tokens {
            input: cached,
            ..none
        });
        let written = cost(Tokens {
            cache_write: cached,
            ..none
        });
        (fresh.max(written) - read).max(0.0)
    }
}

fn prices([input, output, cache_read, cache_write]: Row) -> Prices {
    Prices {
        input,
        output,
        cache_read,
        cache_write,
    }
}

/// A model's name as the table has it: without a vendor before it, and without a date or the like
/// after it. A version that the table does not have stays another model: the next one may cost ten
/// times as much.
fn plain_name(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.split(['[', ':', '@']).next().unwrap_or(name);
    let name = name.to_lowercase().replace('.', "-");
    let mut parts: Vec<&str> = name.split('-').collect();
    if parts.last() == Some(&"latest") {
        parts.pop();
    }
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is = |part: &&str, length: usize| part.len() == length && digits(part);
    match parts.as_slice() {
        [.., date] if is(date, 8) => parts.truncate(parts.len() - 1),
        [.., year, month, day] if is(year, 4) && is(month, 2) && is(day, 2) => {
            parts.truncate(parts.len() - 3);
        }
        _ => {}
    }
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(model: &str) -> Option<Rates> {
        let provider = Provider {
            model: model.into(),
            ..Provider::default()
        };
        Rates::of(&provider)
    }

    /// The cost of a million tokens read and a million written.
    fn both(model: &str) -> Option<f64> {
        let tokens = |input, output| Tokens {
            input,
            output,
            ..Tokens::default()
        };
        // One by one: no request is so long.
        let cost = |rates: Rates| rates.cost(&tokens(1000, 0)) + rates.cost(&tokens(0, 1000));
        rates(model).map(|rates| (cost(rates) * 1000.0 * 1000.0).round() / 1000.0)
    }

    #[test]
    fn a_model_is_known_by_its_whole_name() {
        for (model, cost) in [
            ("claude-sonnet-4-5-20250929", 18.0),
            ("claude-sonnet-5", 12.0),
            ("claude-opus-5-5", 24.0),
            ("claude-opus-4-20250514", 90.0),
            ("anthropic/claude-opus-4.5", 30.0),
            ("claude-sonnet-4-5[1m]", 18.0),
            ("claude-3-5-haiku-latest", 4.8),
            ("gpt-4.1-mini-2025-04-14", 2.0),
            ("gpt-5", 11.25),
            ("openai/gpt-5.1", 11.25),
            ("o3-mini", 5.5),
        ] {
            assert_eq!(both(model), Some(cost), "{model}");
        }
    }

    #[test]
    fn a_name_that_only_resembles_one_has_no_price() {
        for model in [
            "claude-opus-5-7",
            "claude-sonnet-6",
            "gpt-5-turbo",
            "gpt-51",
            "o3-pro",
            "my-opus",
            "qwen3-coder",
            "",
        ] {
            assert_eq!(rates(model), None, "{model}");
        }
    }

    #[test]
    fn a_long_request_costs_what_long_requests_cost() {
        let rates = rates("claude-haiku-5-5").unwrap();
        let tokens = |input, cache_read| Tokens {
            input,
            cache_read,
            ..Tokens::default()
        };
        let cost = |tokens| (rates.cost(&tokens) * 1e6).round();
        assert_eq!(cost(tokens(100_000, 0)), 10_000.0);
        assert_eq!(cost(tokens(100_001, 0)), 50_001.0);
        // Tokens read from the cache count for the length of a request, too.
        assert_eq!(cost(tokens(1000, 100_000)), 500.0 + 5000.0);
    }

    #[test]
    fn settings_win() {
        let provider = Provider {
            model: "claude-opus-5-5".into(),
            prices: Some(prices([0.0; 4])),
            ..Provider::default()
        };
        let tokens = Tokens {
            input: 1_000_000,
            ..Tokens::default()
        };
        assert_eq!(Rates::of(&provider).unwrap().cost(&tokens), 0.0);
    }
}
