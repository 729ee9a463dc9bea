//! Reading one settings file, with errors that name the file and the key.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Result, StoreError};

/// The file a section is read from.
pub(super) struct File<'a> {
    pub(super) path: &'a Path,
}

impl File<'_> {
    pub(super) fn error(&self, why: impl Into<String>) -> StoreError {
        StoreError::Settings {
            path: self.path.to_owned(),
            why: why.into(),
        }
    }

    pub(super) fn object<'v>(
        &self,
        value: &'v Value,
        what: &str,
    ) -> Result<&'v Map<String, Value>> {
        value
            .as_object()
            .ok_or_else(|| self.error(format!("{what} must be an object")))
    }

    pub(super) fn boolean(&self, value: &Value, what: &str) -> Result<bool> {
        value
            .as_bool()
            .ok_or_else(|| self.error(format!("{what} must be true or false")))
    }

    /// A whole number from `least` to `most`.
    pub(super) fn number(&self, value: &Value, what: &str, least: u64, most: u64) -> Result<u64> {
        value
            .as_u64()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.error(format!("{what} must be a number from {least} to {most}")))
    }

    /// A list of `of` (a plural, for the error).
    pub(super) fn strings(&self, value: &Value, what: &str, of: &str) -> Result<Vec<String>> {
        let texts = value.as_array().and_then(|list| {
            list.iter()
                .map(|text| text.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
        });
        texts.ok_or_else(|| self.error(format!("{what} must be a list of {of}")))
    }

    pub(super) fn check_keys(
        &self,
        map: &Map<String, Value>,
        prefix: &str,
        known: &[&str],
    ) -> Result<()> {
        let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let tail = crate::nearest(key, known.iter().copied()).map_or_else(
            || format!("; known here: {}", known.join(", ")),
            |near| format!("; did you mean \"{prefix}{near}\"?"),
        );
        Err(self.error(format!("unknown key \"{prefix}{key}\"{tail}")))
    }
}
