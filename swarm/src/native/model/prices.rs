//! What models cost, as far as it is known. Settings can say it for any service.

use super::{Prices, Provider, Tokens};

/// A part of a model's name, and what a million tokens cost: read, written, read from the cache,
/// written to it. The first that fits counts.
const KNOWN: [(&str, [f64; 4]); 19] = [
    ("claude-3-haiku", [0.25, 1.25, 0.03, 0.3]),
    ("claude-3-5-haiku", [0.8, 4.0, 0.08, 1.0]),
    ("haiku", [1.0, 5.0, 0.1, 1.25]),
    ("sonnet", [3.0, 15.0, 0.3, 3.75]),
    ("claude-3-opus", [15.0, 75.0, 1.5, 18.75]),
    ("opus-4-0", [15.0, 75.0, 1.5, 18.75]),
    ("opus-4-1", [15.0, 75.0, 1.5, 18.75]),
    ("opus-4-2025", [15.0, 75.0, 1.5, 18.75]),
    ("opus", [5.0, 25.0, 0.5, 6.25]),
    ("gpt-5-nano", [0.05, 0.4, 0.005, 0.0]),
    ("gpt-5-mini", [0.25, 2.0, 0.025, 0.0]),
    ("gpt-5", [1.25, 10.0, 0.125, 0.0]),
    ("gpt-4.1-nano", [0.1, 0.4, 0.025, 0.0]),
    ("gpt-4.1-mini", [0.4, 1.6, 0.1, 0.0]),
    ("gpt-4.1", [2.0, 8.0, 0.5, 0.0]),
    ("gpt-4o-mini", [0.15, 0.6, 0.075, 0.0]),
    ("gpt-4o", [2.5, 10.0, 1.25, 0.0]),
    ("o4-mini", [1.1, 4.4, 0.275, 0.0]),
    ("o3", [2.0, 8.0, 0.5, 0.0]),
];

impl Provider {
    /// What its model costs; none if nobody says.
    pub(crate) fn known_prices(&self) -> Option<Prices> {
        self.prices.or_else(|| {
            let model = self.model.to_lowercase();
            let known = KNOWN.iter().find(|(part, _)| model.contains(part));
            known.map(|(_, [input, output, cache_read, cache_write])| Prices {
                input: *input,
                output: *output,
                cache_read: *cache_read,
                cache_write: *cache_write,
            })
        })
    }
}

impl Prices {
    /// What these tokens cost.
    pub(in crate::native) fn cost(&self, tokens: &Tokens) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "no request has 2^52 tokens")]
        let part = |count: u64, price: f64| count as f64 * price / 1_000_000.0;
        part(tokens.input, self.input)
            + part(tokens.cache_read, self.cache_read)
            + part(tokens.cache_write, self.cache_write)
            + part(tokens.output, self.output)
    }
}
