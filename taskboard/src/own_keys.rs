//! ccb's own keys in the metadata of a task, however they are spelled.
//!
//! `{"ccb": {"verify": "make"}}` and `{"ccb.verify": "make"}` say the same. Tasks in memory have
//! the first form; [`nested`] gives it to metadata from anywhere. Metadata that ccb cannot read
//! stays as it is, and [`trouble`] names the error: an unreadable check must never look like no
//! check. [`checked`] refuses such metadata from callers of the board; files of other programs can
//! have it.

use serde_json::{Map, Value, json};

use crate::id::TaskId;
use crate::invalid::Invalid;
use crate::task::{MAX_TEXT, too_long};

/// The object in a task's metadata that holds all of them.
pub(crate) const KEY: &str = "ccb";

pub(crate) const PRIORITY: &str = "priority";
pub(crate) const RUN: &str = "run";
pub(crate) const VERIFY: &str = "verify";
pub(crate) const AGENT: &str = "agent";
pub(crate) const PATHS: &str = "paths";
pub(crate) const NEEDS: &str = "needs";
pub(crate) const WORKTREE: &str = "worktree";
pub(crate) const LEASE: &str = "lease";
pub(crate) const ATTEMPTS: &str = "attempts";
pub(crate) const PARKED: &str = "parked";
pub(crate) const RESULT: &str = "result";

/// The keys a caller may set.
pub(crate) const SETTABLE: &[&str] = &[PRIORITY, RUN, AGENT, VERIFY, PATHS, NEEDS];

/// The keys that the engine keeps.
pub(crate) const ENGINE_KEYS: &[&str] = &[WORKTREE, LEASE, ATTEMPTS, PARKED, RESULT];

/// The key under which a value is kept that was found in the place of all of them.
pub(crate) const NOT_AN_OBJECT: &str = "stray";

/// Separators that callers have used in place of the dot.
const SEPARATORS: [char; 5] = ['.', '_', '-', '/', ':'];

/// Something in the metadata of a task that ccb cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataTrouble {
    /// The key, as `--meta` takes it: `ccb.verify`.
    pub key: String,
    /// The error, in words.
    pub words: String,
    /// True if ccb acts on the value, so it must not guess; false for a key it does not know.
    pub unclear: bool,
}

impl MetadataTrouble {
    fn unclear(key: String, words: String) -> Self {
        let unclear = true;
        Self {
            key,
            words,
            unclear,
        }
    }

    fn odd(key: String, words: String) -> Self {
        let unclear = false;
        Self {
            key,
            words,
            unclear,
        }
    }

    /// The commands that end the trouble of task `id` on `list`.
    pub fn ways_out(&self, list: &str, id: TaskId) -> String {
        let update = format!("ccb --list {list} task update {id}");
        let remove = format!("{update} --meta '{}=null'", self.key);
        match (self.unclear, self.key.as_str()) {
            (true, "ccb.verify") => {
                format!("Set the check with: {update} --verify CMD. Remove it with: {remove}")
            }
            _ => format!("Remove the key with: {remove}"),
        }
    }
}

/// The name of ccb's key that `key` spells flat: `verify` for `ccb.verify`.
fn flat(key: &str) -> Option<&str> {
    key.strip_prefix(KEY)?.strip_prefix('.')
}

/// The name of a key that a caller can set, if `key` spells it with another separator or in other
/// letters: `verify` for `ccb_verify`.
fn misspelled(key: &str) -> Option<&'static str> {
    let lower = key.to_lowercase();
    let rest = lower.strip_prefix(KEY)?.strip_prefix(SEPARATORS)?;
    let known = SETTABLE.iter().find(|known| **known == rest)?;
    (flat(key) != Some(known)).then_some(*known)
}

/// True if `key` is ccb's, in whatever spelling.
pub(crate) fn is_own(key: &str) -> bool {
    key == KEY || flat(key).is_some() || misspelled(key).is_some()
}

fn is_known(name: &str) -> bool {
    SETTABLE.contains(&name) || ENGINE_KEYS.contains(&name)
}

/// The metadata with every known flat key in the object `ccb`, unless another value is there
/// already or `ccb` is no object.
pub(crate) fn nested(mut metadata: Map<String, Value>) -> Map<String, Value> {
    let known = |key: &&String| flat(key).is_some_and(is_known);
    let keys: Vec<String> = metadata.keys().filter(known).cloned().collect();
    for key in keys {
        let name = flat(&key).unwrap_or_default().to_owned();
        let value = metadata.get(&key).cloned().unwrap_or_default();
        let there = metadata.get(KEY).and_then(|ours| ours.get(&name));
        let free = match metadata.get(KEY) {
            None => true,
            Some(Value::Object(_)) => there.is_none_or(Value::is_null) || there == Some(&value),
            Some(_) => false,
        };
        if value.is_null() {
            metadata.shift_remove(&key);
        } else if free {
            metadata.shift_remove(&key);
            let ours = metadata.entry(KEY).or_insert_with(|| json!({}));
            if let Some(ours) = ours.as_object_mut() {
                ours.insert(name, value);
            }
        }
    }
    metadata
}

/// The first thing in nested metadata that ccb cannot read; unclear values come first.
pub(crate) fn trouble(metadata: &Map<String, Value>) -> Option<MetadataTrouble> {
    let ours: Option<&Map<String, Value>> = match metadata.get(KEY) {
        None | Some(Value::Null) => None,
        Some(Value::Object(ours)) => Some(ours),
        Some(_) => return Some(not_an_object()),
    };
    let inside = ours.into_iter().flatten();
    let inside = inside.filter_map(|(name, value)| trouble_inside(name, value));
    let beside = metadata.iter();
    let beside = beside.filter_map(|(key, value)| trouble_beside(key, value, ours));
    let mut first = None;
    for found in inside.chain(beside) {
        if found.unclear {
            return Some(found);
        }
        first.get_or_insert(found);
    }
    first
}

fn not_an_object() -> MetadataTrouble {
    let words = "metadata.ccb is not an object".to_owned();
    MetadataTrouble::unclear(format!("{KEY}.{NOT_AN_OBJECT}"), words)
}

/// The error in a key of the object `ccb`; `None` if there is none.
fn trouble_inside(name: &str, value: &Value) -> Option<MetadataTrouble> {
    let key = format!("{KEY}.{name}");
    if name == NOT_AN_OBJECT {
        return Some(not_an_object());
    }
    if ENGINE_KEYS.contains(&name) || value.is_null() {
        return None;
    }
    if !SETTABLE.contains(&name) {
        return Some(MetadataTrouble::odd(key, unknown(name)));
    }
    let expected = wrong_type(name, value)?;
    let words = format!("{key} is {value}; {expected}");
    Some(MetadataTrouble {
        key,
        words,
        unclear: decides(name),
    })
}

/// The error in a key beside the object `ccb`, if it is one of ccb's. Readable values are in the
/// object.
fn trouble_beside(
    key: &str,
    value: &Value,
    ours: Option<&Map<String, Value>>,
) -> Option<MetadataTrouble> {
    if let Some(known) = misspelled(key) {
        let words = format!("unknown key {key}; did you mean {KEY}.{known}?");
        return Some(MetadataTrouble::odd(key.to_owned(), words));
    }
    let name = flat(key)?;
    if !is_known(name) {
        return Some(MetadataTrouble::odd(key.to_owned(), unknown(name)));
    }
    let other = ours.and_then(|ours| ours.get(name)).unwrap_or_default();
    Some(MetadataTrouble {
        key: key.to_owned(),
        words: format!("{key} is given twice and differs: {value} and {other}"),
        unclear: decides(name),
    })
}

/// True if ccb does something else because of this key, not only earlier or later.
fn decides(name: &str) -> bool {
    SETTABLE.contains(&name) && name != PRIORITY
}

fn unknown(name: &str) -> String {
    let near = store::nearest(name, SETTABLE.iter().copied());
    match near {
        Some(near) => format!("unknown key ccb.{name}; did you mean ccb.{near}?"),
        None => format!("unknown key ccb.{name}; known are {}", listed()),
    }
}

fn listed() -> String {
    let all: Vec<String> = SETTABLE.iter().map(|name| format!("ccb.{name}")).collect();
    all.join(", ")
}

/// The type that the value of a caller's key must have; `None` if it has it.
fn wrong_type(name: &str, value: &Value) -> Option<&'static str> {
    let texts = |all: &Vec<Value>| all.iter().all(Value::is_string);
    let (right, expected) = match name {
        PRIORITY => (value.is_i64(), "it must be a whole number"),
        PATHS | NEEDS => (
            value.as_array().is_some_and(texts),
            "it must be a list of strings",
        ),
        _ => (
            value.as_str().is_some_and(|text| !text.contains('\0')),
            "it must be text without NUL characters",
        ),
    };
    (!right).then_some(expected)
}

/// Metadata that a caller wants to set, nested. `null` removes a key; it is the only value that an
/// unknown key can have, and only if it is in `present`.
pub(crate) fn checked(
    changes: &Map<String, Value>,
    present: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, Invalid> {
    if serde_json::to_string(changes).is_ok_and(|text| text.len() > MAX_TEXT) {
        return Err(too_long("metadata", MAX_TEXT));
    }
    let mut rest = Map::new();
    let mut ours = match changes.get(KEY) {
        None => None,
        Some(Value::Object(ours)) => Some(ours.clone()),
        Some(_) => return Err(Invalid::new("metadata.ccb", "it must be an object")),
    };
    for (key, value) in changes.iter().filter(|(key, _)| *key != KEY) {
        let removed = || value.is_null() && present.is_some_and(|all| all.contains_key(key));
        if let Some(name) = flat(key) {
            let ours = ours.get_or_insert_default();
            match ours.get(name) {
                Some(other) if other != value => {
                    let why = "it is also in metadata.ccb, with another value; give one of them";
                    return Err(Invalid::new(format!("metadata {key}"), why));
                }
                _ => drop(ours.insert(name.to_owned(), value.clone())),
            }
            continue;
        }
        if let Some(known) = misspelled(key).filter(|_| !removed()) {
            let why = format!("unknown key; did you mean ccb.{known}?");
            return Err(Invalid::new(format!("metadata {key}"), why));
        }
        rest.insert(key.clone(), value.clone());
    }
    let Some(ours) = ours else {
        return Ok(rest);
    };
    let there = |name: &str| {
        present.is_some_and(|all| {
            let inside = match all.get(KEY) {
                Some(Value::Object(ours)) => ours.contains_key(name),
                Some(_) => name == NOT_AN_OBJECT,
                None => false,
            };
            inside || all.contains_key(&format!("{KEY}.{name}"))
        })
    };
    for (name, value) in &ours {
        check_value(name, value, there(name))?;
    }
    rest.insert(KEY.to_owned(), Value::Object(ours));
    Ok(rest)
}

fn check_value(name: &str, value: &Value, there: bool) -> Result<(), Invalid> {
    let what = || format!("metadata.ccb.{name}");
    if ENGINE_KEYS.contains(&name) {
        let why = format!(
            "ccb itself keeps it; only {} can be set",
            SETTABLE.join(", ")
        );
        return Err(Invalid::new(what(), why));
    }
    let removes = value.is_null() && there;
    if !SETTABLE.contains(&name) && !removes {
        let why = match store::nearest(name, SETTABLE.iter().copied()) {
            Some(near) => format!("unknown key; did you mean ccb.{near}?"),
            None => format!("unknown key; only {} can be set", SETTABLE.join(", ")),
        };
        return Err(Invalid::new(what(), why));
    }
    match wrong_type(name, value).filter(|_| !value.is_null() && SETTABLE.contains(&name)) {
        Some(expected) => Err(Invalid::new(what(), expected)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn both_spellings_say_the_same() {
        for (given, expected) in [
            (
                json!({"ccb.verify": "make"}),
                json!({"ccb": {"verify": "make"}}),
            ),
            (
                json!({"ccb": {"priority": 1}, "ccb.verify": "make", "z": 0}),
                json!({"ccb": {"priority": 1, "verify": "make"}, "z": 0}),
            ),
            (
                json!({"ccb": {"verify": "make"}, "ccb.verify": "make"}),
                json!({"ccb": {"verify": "make"}}),
            ),
            (
                json!({"ccb": {"verify": null}, "ccb.verify": "make"}),
                json!({"ccb": {"verify": "make"}}),
            ),
            (json!({"ccb.run": null, "z": 0}), json!({"z": 0})),
        ] {
            let found = nested(map(&given));
            assert_eq!(json!(found), expected);
            assert_eq!(trouble(&found), None, "{given}");
        }
        let set = checked(&map(&json!({"ccb.verify": "make"})), None).unwrap();
        assert_eq!(json!(set), json!({"ccb": {"verify": "make"}}));
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_is_never_no_check() {
        for (given, unclear, said) in [
            (json!({"ccb.verify": 3}), true, "must be text"),
            (json!({"ccb": {"verify": ["make"]}}), true, "must be text"),
            (
                json!({"ccb.verify": "a", "ccb": {"verify": "b"}}),
                true,
                "value",
            ),
            (json!({"ccb": "verify"}), true, "object"),
            (json!({"ccb.needs": "gpu"}), true, "list"),
            (json!({"ccb.priority": "high"}), false, "whole number"),
            (
                json!({"ccb.verfy": "make"}),
                false,
                "did you mean ccb.verify?",
            ),
            (
                json!({"ccb": {"Verify": "make"}}),
                false,
                "did you mean ccb.verify?",
            ),
            (
                json!({"ccb_verify": "make"}),
                false,
                "did you mean ccb.verify?",
            ),
            (
                json!({"CCB.verify": "make"}),
                false,
                "did you mean ccb.verify?",
            ),
            (json!({"ccb.xyz": 1}), false, "verify"),
        ] {
            let found = trouble(&nested(map(&given))).expect("trouble");
            assert_eq!(found.unclear, unclear, "{given}: {found:?}");
            let refused = checked(&map(&given), None).unwrap_err().to_string();
            assert!(refused.contains(said), "{given}: {refused}");
        }
        // Other programs' own keys, and what the engine keeps.
        for fine in [
            json!({"ccbx": 1, "verify": "make", "ccb_ticket": 7}),
            json!({"ccb": {"result": {}, "lease": {"token": 1}}}),
        ] {
            assert_eq!(trouble(&map(&fine)), None, "{fine}");
        }
        let engine = checked(&map(&json!({"ccb.result": {}})), None).unwrap_err();
        assert!(
            engine.to_string().contains("ccb itself keeps it"),
            "{engine}"
        );
    }

    #[test]
    fn an_unknown_key_can_be_removed_and_not_set() {
        let there = map(&json!({"ccb.verfy": "make", "ccb": {"old": 1}, "ccb_run": 1}));
        for key in ["ccb.verfy", "ccb.old", "ccb_run"] {
            let removed = map(&json!({ key: null }));
            assert!(checked(&removed, Some(&there)).is_ok(), "{key}");
            assert!(checked(&removed, None).is_err(), "{key}");
            let set = map(&json!({ key: "x" }));
            assert!(checked(&set, Some(&there)).is_err(), "{key}");
        }
    }
}
