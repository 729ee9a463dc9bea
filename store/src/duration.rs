//! Lengths of time as people write them: `250ms`, `90s`, `1h30m`, `2d`.
//!
//! Every flag, setting and plan reads them here, so all of them take the same forms and say the
//! same about a mistake.

use std::time::Duration;

use serde_json::Value;

/// Units, longest first, with their milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// The meaning of a number without a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    Refused,
    Seconds,
    Milliseconds,
}

/// Which lengths of time are accepted, and how.
///
/// ```
/// use std::time::Duration;
/// use store::duration::{DurationFormat, short};
///
/// let format = DurationFormat::SECONDS.at_most(Duration::from_secs(86_400));
/// assert_eq!(format.read("1h30m"), format.read("5400"));
/// assert_eq!(short(Duration::from_secs(5400)), "1h30m");
/// assert!(format.read("soon").is_err());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DurationFormat {
    plain: Plain,
    least: Duration,
    most: Option<Duration>,
}

impl DurationFormat {
    /// Every number has a unit.
    pub const WITH_UNIT: Self = Self::new(Plain::Refused);
    /// A number without a unit means seconds.
    pub const SECONDS: Self = Self::new(Plain::Seconds);
    /// A number without a unit means milliseconds.
    pub const MILLISECONDS: Self = Self::new(Plain::Milliseconds);

    const fn new(plain: Plain) -> Self {
        Self {
            plain,
            least: Duration::ZERO,
            most: None,
        }
    }

    /// The same, with nothing shorter than `least`.
    #[must_use]
    pub const fn at_least(mut self, least: Duration) -> Self {
        self.least = least;
        self
    }

    /// The same, with nothing longer than `most`.
    #[must_use]
    pub const fn at_most(mut self, most: Duration) -> Self {
        self.most = Some(most);
        self
    }

    /// Reads a text. The error says what is expected ("must be …").
    pub fn read(&self, text: &str) -> Result<Duration, String> {
        self.accept(self.parse(text.trim()))
    }

    /// Reads a JSON value: a text, or a number in the unit that numbers without one have.
    pub fn read_json(&self, value: &Value) -> Result<Duration, String> {
        self.accept(match (value, self.plain) {
            (Value::String(text), _) => self.parse(text.trim()),
            (Value::Number(seconds), Plain::Seconds) => seconds
                .as_f64()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            (Value::Number(ms), Plain::Milliseconds) => ms.as_u64().map(Duration::from_millis),
            _ => None,
        })
    }

    fn accept(&self, time: Option<Duration>) -> Result<Duration, String> {
        let fits = |time: &Duration| *time >= self.least && self.most.is_none_or(|it| *time <= it);
        time.filter(fits)
            .ok_or_else(|| format!("must be {}", self.expected()))
    }

    fn parse(&self, mut text: &str) -> Option<Duration> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().ok();
            return match self.plain {
                Plain::Refused => None,
                Plain::Seconds => number.map(Duration::from_secs),
                Plain::Milliseconds => number.map(Duration::from_millis),
            };
        }
        let mut total = None::<u64>;
        while !text.is_empty() {
            let digits = text.find(|c: char| !c.is_ascii_digit())?;
            let (number, rest) = text.split_at(digits);
            let end = rest.find(|c: char| c.is_ascii_digit());
            let (unit, rest) = rest.split_at(end.unwrap_or(rest.len()));
            let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
            let ms = number.parse::<u64>().ok()?.checked_mul(*ms)?;
            total = Some(total.unwrap_or(0).checked_add(ms)?);
            text = rest;
        }
        total.map(Duration::from_millis)
    }

    /// The expected form, in words.
    pub fn expected(&self) -> String {
        let plain = match self.plain {
            Plain::Refused => "",
            Plain::Seconds => " (a plain number means seconds)",
            Plain::Milliseconds => " (a plain number means milliseconds)",
        };
        let least = match self.least {
            Duration::ZERO => String::new(),
            least => format!(", at least {}", short(least)),
        };
        let most = self.most.map(|most| format!(", at most {}", short(most)));
        format!(
            "a time such as 250ms, 90s, 10m or 1h30m{plain}{least}{}",
            most.unwrap_or_default()
        )
    }
}

/// The shortest form that is read back as the same time, to the millisecond.
pub fn short(time: Duration) -> String {
    let mut ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, length) in UNITS {
        if ms >= length {
            text.push_str(&format!("{}{unit}", ms / length));
            ms %= length;
        }
    }
    match text.is_empty() {
        true => "0s".into(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read_as_people_write_them_and_written_as_they_are_read() {
        for (text, ms) in [
            ("250ms", 250),
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("1m5ms", 60_005),
            ("0s", 0),
        ] {
            let time = Duration::from_millis(ms);
            assert_eq!(DurationFormat::WITH_UNIT.read(text), Ok(time), "{text}");
            assert_eq!(DurationFormat::WITH_UNIT.read(&short(time)), Ok(time));
        }
        assert_eq!(short(Duration::from_secs(5430)), "1h30m30s");
        for bad in [
            "",
            "m",
            "1x",
            "1h30",
            "-5s",
            "1.5h",
            "1 h",
            "99999999999999999999h",
            "5",
            "1ſ",
        ] {
            assert!(DurationFormat::WITH_UNIT.read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_plain_number_means_what_it_always_meant_there() {
        let (seconds, ms) = (DurationFormat::SECONDS, DurationFormat::MILLISECONDS);
        assert_eq!(seconds.read(" 90 "), Ok(Duration::from_secs(90)));
        assert_eq!(ms.read("90"), Ok(Duration::from_millis(90)));
        assert_eq!(seconds.read_json(&json!(1.5)), ms.read_json(&json!(1500)));
        assert_eq!(ms.read_json(&json!("2m")), seconds.read_json(&json!(120)));
        for bad in [json!(-1), json!(true), json!(null), json!([1])] {
            assert!(seconds.read_json(&bad).is_err(), "{bad}");
            assert!(ms.read_json(&bad).is_err(), "{bad}");
        }
        assert!(ms.read_json(&json!(1.5)).is_err());
    }

    #[test]
    fn the_error_says_what_is_accepted() {
        let format = DurationFormat::SECONDS
            .at_least(Duration::from_secs(1))
            .at_most(Duration::from_secs(86_400));
        assert_eq!(format.read("1d"), Ok(Duration::from_secs(86_400)));
        assert_eq!(
            format.read("25h"),
            Err(
                "must be a time such as 250ms, 90s, 10m or 1h30m (a plain number means seconds), \
                 at least 1s, at most 1d"
                    .into()
            )
        );
        assert!(format.read("0").is_err());
    }
}
