//! The input that a model sent, field by field.

use serde_json::{Map, Value};

/// The input of one call. Errors in it are sentences for the model.
#[derive(Debug)]
pub(super) struct Input {
    fields: Map<String, Value>,
}

impl Input {
    /// Checks that there are no other fields: a misspelt one would silently do nothing.
    pub(super) fn new(input: Value, known: &[&str]) -> Result<Self, String> {
        let Value::Object(fields) = input else {
            return Err("The input must be a JSON object.".into());
        };
        for name in fields.keys() {
            if !known.contains(&name.as_str()) {
                let hint = store::did_you_mean(
                    name,
                    known.iter().copied(),
                    format!("there are: {}", known.join(", ")),
                );
                return Err(format!("There is no field {name:?}; {hint}."));
            }
        }
        Ok(Self { fields })
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{name} must be a string.")),
        }
    }

    pub(super) fn needed(&self, name: &str) -> Result<&str, String> {
        let text = self.text(name)?;
        text.ok_or_else(|| format!("{name} is missing; it must be a string."))
    }

    /// Models send numbers as text at times.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let wrong = || format!("{name} must be a whole number that is not negative.");
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => text.trim().parse().map(Some).map_err(|_| wrong()),
            Some(value) => {
                let whole = |float: f64| {
                    let fits = float >= 0.0 && float.fract() == 0.0 && float < 9e15;
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "checked above"
                    )]
                    fits.then_some(float as u64)
                };
                let number = value.as_u64().or_else(|| value.as_f64().and_then(whole));
                number.map(Some).ok_or_else(wrong)
            }
        }
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        self.flag_or(name, false)
    }

    pub(super) fn flag_or(&self, name: &str, usual: bool) -> Result<bool, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(usual),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(format!("{name} must be true or false.")),
        }
    }
}
