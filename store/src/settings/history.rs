//! `history`: the reports of ended sessions that are kept.

use super::set;
use crate::fields::{Fields, Read};

/// Everything under `history`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySettings {
    /// `days`: days for which a report is kept; 0 keeps none.
    pub days: u32,
    /// `maxBytes`: maximum size of all reports together; the oldest are deleted first.
    pub max_bytes: u64,
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self {
            days: 30,
            max_bytes: 256 << 20,
        }
    }
}

impl HistorySettings {
    pub(super) fn read(&mut self, section: &Fields<'_>) -> Read<()> {
        section.check_keys(&["days", "maxBytes"])?;
        let days = section.number("days", 0..=3_650)?;
        set(
            &mut self.days,
            days.and_then(|days| u32::try_from(days).ok()),
        );
        set(
            &mut self.max_bytes,
            section.number("maxBytes", 0..=1 << 40)?,
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn how_long_and_how_much_can_be_set() {
        let settings = load(&[
            r#"{"history":{"days":7}}"#,
            r#"{"history":{"maxBytes":1000}}"#,
        ]);
        let expected = HistorySettings {
            days: 7,
            max_bytes: 1000,
        };
        assert_eq!(settings.unwrap().history, expected);
        assert!(load(&[r#"{"history":{"days":-1}}"#]).is_err());
        let error = load(&[r#"{"history":{"day":1}}"#]).unwrap_err().to_string();
        assert!(error.contains("did you mean \"history.days\""), "{error}");
    }
}
