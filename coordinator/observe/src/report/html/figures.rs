//! Numbers in a form for people.

/// A length of time.
pub(super) fn time(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        _ if ms < 1000 => format!("{} ms", ms.max(0)),
        (0, 0, s) if s < 10 => format!("{s}.{} s", ms % 1000 / 100),
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// A number of tokens.
pub(super) fn tokens(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// US dollars; empty if there was no charge.
pub(super) fn money(usd: f64) -> String {
    match usd {
        usd if usd <= 0.0 => "–".into(),
        usd if usd < 0.01 => "under $0.01".into(),
        usd => format!("${usd:.2}"),
    }
}

/// RFC 3339 as day and time.
pub(super) fn moment(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..19)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_said_as_people_do() {
        for (ms, said) in [
            (-5, "0 ms"),
            (420, "420 ms"),
            (4_250, "4.2 s"),
            (42_500, "42 s"),
            (134_000, "2 min 14 s"),
            (7_500_000, "2 h 5 min"),
        ] {
            assert_eq!(time(ms), said);
        }
        assert_eq!(tokens(950), "950");
        assert_eq!(tokens(12_345), "12.3k");
        assert_eq!(tokens(4_210_000), "4.2M");
        assert_eq!(money(0.0), "–");
        assert_eq!(money(0.001), "under $0.01");
        assert_eq!(money(1.239), "$1.24");
        assert_eq!(
            moment("2026-11-17T13:31:22.123Z"),
            "2026-11-17 13:31:22 UTC"
        );
        assert_eq!(moment("x"), "x");
    }
}
