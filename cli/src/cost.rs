//! Usage of agents, in words.

use runs::Usage;

/// A short count of tokens, such as `10.9k`.
pub(crate) fn short_count(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// The usage on one line; `None` if nothing was used.
///
/// If nothing is known about a cache, the line does not mention it.
pub(crate) fn usage_line(usage: &Usage) -> Option<String> {
    let total = usage.total_tokens();
    if total == 0 && usage.cost_usd <= 0.0 {
        return None;
    }
    let mut text = format!("{} tokens", short_count(total));
    if usage.cache_read_tokens + usage.cache_write_tokens > 0 {
        text.push_str(&format!(
            ": {} from cache, {} to cache, {} uncached, {} out",
            short_count(usage.cache_read_tokens),
            short_count(usage.cache_write_tokens),
            short_count(usage.uncached_tokens()),
            short_count(usage.output_tokens),
        ));
    }
    text.push_str(&match usage.cost_usd > 0.0 {
        true => format!("; {}", usage.cost_in_words()),
        false => "; cost unknown".to_owned(),
    });
    Some(text)
}

/// Tokens that forks read from their parents' cache, and the money that saved; `None` without
/// forks.
pub(crate) fn saved_line(usage: &Usage) -> Option<String> {
    if usage.forked_tokens == 0 {
        return None;
    }
    let tokens = short_count(usage.forked_tokens);
    let money = match usage.saved_usd {
        saved if saved >= 0.005 => format!(" (${saved:.2} saved)"),
        _ => String::new(),
    };
    Some(format!(
        "forks read {tokens} tokens of their parents from the cache{money}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_token_is_counted_and_nothing_is_said_of_nothing() {
        assert_eq!(usage_line(&Usage::default()), None);
        assert_eq!(saved_line(&Usage::default()), None);
        let plain = Usage {
            input_tokens: 900,
            output_tokens: 99,
            ..Usage::default()
        };
        assert_eq!(usage_line(&plain).unwrap(), "999 tokens; cost unknown");
        let used = Usage {
            input_tokens: 1_200_000,
            cache_read_tokens: 1_100_000,
            cache_write_tokens: 40_000,
            output_tokens: 12_000,
            cost_usd: 0.851,
            forked_tokens: 500_000,
            saved_usd: 1.725,
            ..Usage::default()
        };
        assert_eq!(
            usage_line(&used).unwrap(),
            "1.2M tokens: 1.1M from cache, 40.0k to cache, 60.0k uncached, 12.0k out; $0.85"
        );
        assert_eq!(
            saved_line(&used).unwrap(),
            "forks read 500.0k tokens of their parents from the cache ($1.73 saved)"
        );
    }
}
