//! The fields of an object, read one by one, with errors that name the key: settings, the front
//! matter of definitions, hooks.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::duration::DurationFormat;

/// An error in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Its key, without the names of the objects around it.
    pub key: String,
    /// The message, with the key's full name.
    pub why: String,
}

/// The result of reading a field.
pub type Read<T> = Result<T, FieldError>;

/// An object whose fields are read.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// The prefix of a key in its full name.
    prefix: String,
    /// True if names stand without quotes, and `null` is a value.
    settings: bool,
}

impl<'a> Fields<'a> {
    /// The fields of an object. Names stand in quotes, and `null` counts as absent.
    pub fn new(map: &'a Map<String, Value>) -> Self {
        Self::of(map, "", false)
    }

    /// The fields of an object within others, whose names begin with `prefix`.
    pub fn within(map: &'a Map<String, Value>, prefix: &str) -> Self {
        Self::of(map, prefix, false)
    }

    /// The fields of a settings file. Names stand without quotes, and `null` is a value.
    pub fn of_settings(map: &'a Map<String, Value>) -> Self {
        Self::of(map, "", true)
    }

    fn of(map: &'a Map<String, Value>, prefix: &str, settings: bool) -> Self {
        Self {
            map,
            prefix: prefix.to_owned(),
            settings,
        }
    }

    /// A field's name in errors.
    pub fn name(&self, key: &str) -> String {
        match self.settings {
            true => format!("{}{key}", self.prefix),
            false => self.quoted(key),
        }
    }

    fn quoted(&self, key: &str) -> String {
        format!("\"{}{key}\"", self.prefix)
    }

    /// An error about `key`.
    pub fn wrong(&self, key: &str, why: impl Into<String>) -> FieldError {
        FieldError {
            key: key.to_owned(),
            why: why.into(),
        }
    }

    /// An error that says what `key` must be.
    pub fn must_be(&self, key: &str, what: &str) -> FieldError {
        self.wrong(key, format!("{} must be {what}", self.name(key)))
    }

    /// Refuses unknown keys, and names the known key that is nearest.
    pub fn check_keys(&self, known: &[&str]) -> Read<()> {
        match self.unknown_keys(known).into_iter().next() {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }

    /// One error for each key that is none of these.
    pub fn unknown_keys(&self, known: &[&str]) -> Vec<FieldError> {
        let keys = self.map.keys();
        let unknown = keys.filter(|key| !known.contains(&key.as_str()));
        unknown.map(|key| self.unknown_key(key, known)).collect()
    }

    fn unknown_key(&self, key: &str, known: &[&str]) -> FieldError {
        let tail = match crate::nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean {}?", self.quoted(near)),
            None if self.settings => format!("known here: {}", known.join(", ")),
            None => format!("known are {}", known.join(", ")),
        };
        self.wrong(key, format!("unknown key {}; {tail}", self.quoted(key)))
    }

    /// All keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &'a String> {
        self.map.keys()
    }

    /// A field as it is.
    pub fn value(&self, key: &str) -> Option<&'a Value> {
        let value = self.map.get(key);
        value.filter(|value| self.settings || !value.is_null())
    }

    /// True if a field is there and `null`.
    pub fn is_null(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(Value::is_null)
    }

    /// A field as `read` understands it; if it does not, an error says that the field must be
    /// `what`.
    pub fn read<T>(
        &self,
        key: &str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Read<Option<T>> {
        match self.value(key).map(read) {
            None => Ok(None),
            Some(Some(found)) => Ok(Some(found)),
            Some(None) => Err(self.must_be(key, what)),
        }
    }

    /// An object.
    pub fn object(&self, key: &str) -> Read<Option<&'a Map<String, Value>>> {
        self.read(key, "an object", Value::as_object)
    }

    /// The fields of an object within this one.
    pub fn section(&self, key: &str) -> Read<Option<Self>> {
        let map = self.object(key)?;
        let prefix = format!("{}{key}.", self.prefix);
        Ok(map.map(|map| Self::of(map, &prefix, self.settings)))
    }

    /// True or false.
    pub fn boolean(&self, key: &str) -> Read<Option<bool>> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// A whole number in `range`.
    pub fn number(&self, key: &str, range: RangeInclusive<u64>) -> Read<Option<u64>> {
        let what = format!("a number from {} to {}", range.start(), range.end());
        self.read(key, &what, |value| {
            value.as_u64().filter(|number| range.contains(number))
        })
    }

    /// A length of time in this form.
    pub fn time(&self, key: &str, format: &DurationFormat) -> Read<Option<Duration>> {
        let read = |value: &'a Value| format.read_json(value).ok();
        self.read(key, &format.expected(), read)
    }

    /// A length of time; a number without a unit is in milliseconds.
    pub fn millis(&self, key: &str, range: RangeInclusive<u64>) -> Read<Option<Duration>> {
        let format = DurationFormat::MILLISECONDS
            .at_least(Duration::from_millis(*range.start()))
            .at_most(Duration::from_millis(*range.end()));
        self.time(key, &format)
    }

    /// Text that is not blank, without the space around it.
    pub fn text(&self, key: &str) -> Read<Option<&'a str>> {
        let Some(text) = self.read(key, "text", Value::as_str)? else {
            return Ok(None);
        };
        let name = self.name(key);
        match text.trim() {
            text if text.contains('\0') => {
                Err(self.wrong(key, format!("{name} contains a NUL byte")))
            }
            "" => Err(self.wrong(key, format!("{name} is empty"))),
            text => Ok(Some(text)),
        }
    }

    /// One of a few words.
    pub fn word<T: Copy>(
        &self,
        key: &str,
        all: &[T],
        as_str: fn(T) -> &'static str,
    ) -> Read<Option<T>> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let word = value.as_str().unwrap_or_default().trim();
        if let Some(found) = all.iter().find(|one| as_str(**one) == word) {
            return Ok(Some(*found));
        }
        let words: Vec<&str> = all.iter().map(|one| as_str(*one)).collect();
        let near = crate::nearest(word, words.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        let words = match words.as_slice() {
            [one, other] => format!("{one:?} or {other:?}"),
            words => format!("one of {}", words.join(", ")),
        };
        let name = self.name(key);
        Err(self.wrong(key, format!("{name} is {value}; it must be {words}{near}")))
    }

    /// A list of `of` (a plural, for the error).
    pub fn strings(&self, key: &str, of: &str) -> Read<Option<Vec<String>>> {
        self.read(key, &format!("a list of {of}"), |value| {
            let texts = value.as_array()?.iter();
            texts.map(|text| text.as_str().map(str::to_owned)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_the_field_as_its_file_does() {
        let agents = json!({"maxTurns": "x", "list": ["a", 1], "word": "rde"});
        let map = json!({"agents": agents});
        let map = map.as_object().unwrap();
        let why = |error: FieldError| error.why;
        let plain = Fields::new(map).section("agents").unwrap().unwrap();
        let settings = Fields::of_settings(map).section("agents").unwrap().unwrap();
        assert_eq!(
            plain.number("maxTurns", 1..=9).map_err(why).unwrap_err(),
            "\"agents.maxTurns\" must be a number from 1 to 9"
        );
        assert_eq!(
            settings.boolean("maxTurns").map_err(why).unwrap_err(),
            "agents.maxTurns must be true or false"
        );
        let unknown = settings.check_keys(&["maxTurn", "list", "word"]);
        let unknown = unknown.unwrap_err();
        assert_eq!(unknown.key, "maxTurns");
        assert!(unknown.why.contains("did you mean \"agents.maxTurn\"?"));
        assert!(plain.strings("list", "names").is_err());
        let word = plain.word("word", &["red", "blue"], |word| word);
        let word = word.map_err(why).unwrap_err();
        assert!(word.contains("did you mean \"red\"?"), "{word}");
    }

    #[test]
    fn null_is_a_value_in_settings_alone() {
        let map = json!({"a": null});
        let map = map.as_object().unwrap();
        assert_eq!(Fields::new(map).boolean("a"), Ok(None));
        assert!(Fields::of_settings(map).boolean("a").is_err());
        assert!(Fields::of_settings(map).is_null("a"));
    }
}
