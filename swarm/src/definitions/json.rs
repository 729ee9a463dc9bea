//! The JSON form of `--agents`: definitions by name.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::read::Mistake;

/// The entries in the order they were written.
///
/// Read one by one, because a map would keep the last of two of the same name and say nothing.
pub(super) fn entries(text: &str) -> Result<Vec<(String, Value)>, Mistake> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let entries = deserializer
        .deserialize_map(Entries)
        .and_then(|entries| deserializer.end().map(|()| entries));
    entries.map_err(|error| Mistake {
        line: (error.line() > 1).then(|| error.line()),
        ..Mistake::whole(format!(
            "it must be a JSON object of definitions by name: {error}"
        ))
    })
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}
