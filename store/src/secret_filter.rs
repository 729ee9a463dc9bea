//! Removes secrets from texts before they are stored where others read them.
//!
//! The crates that store texts do not know what a secret is. The caller that opens a board or a
//! mailbox passes a filter once, and every text written through it passes here.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// Returns a text as others may read it; `None` if it may stay as it is.
type Change = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Removes from texts what must not be stored. The default changes nothing.
#[derive(Clone, Default)]
pub struct SecretFilter(Option<Arc<Change>>);

impl SecretFilter {
    /// A filter that replaces a text by what `change` returns, if anything.
    pub fn new(change: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(change)))
    }

    /// True if the filter changes no text.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Filters a text.
    pub fn text(&self, text: &mut String) {
        if let Some(changed) = self.0.as_ref().and_then(|change| change(text)) {
            *text = changed;
        }
    }

    /// Filters every text in a JSON value, but no key.
    pub fn value(&self, value: &mut Value) {
        if self.is_none() {
            return;
        }
        match value {
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for SecretFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_none() { "none" } else { "some" };
        write!(f, "SecretFilter({what})")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_of_a_value_is_changed_and_nothing_else() {
        let filter = SecretFilter::new(|text| text.contains("pw").then(|| text.replace("pw", "*")));
        let mut value = json!({"pw": ["a pw", 1, {"x": "pw"}], "y": "plain"});
        filter.value(&mut value);
        assert_eq!(value, json!({"pw": ["a *", 1, {"x": "*"}], "y": "plain"}));
        let mut same = json!("pw");
        SecretFilter::default().value(&mut same);
        assert_eq!(same, json!("pw"));
    }
}
