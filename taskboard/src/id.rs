use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use store::{Category, Explain, Facts};

/// A task's number: a positive decimal, written as a string in JSON.
///
/// Bounded by what JavaScript holds exactly, because other tools read the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TaskId(u64);

impl TaskId {
    /// The largest id there can be.
    pub const MAX: u64 = (1 << 53) - 1;

    /// The id with this number, if it is a valid one.
    pub fn new(number: u64) -> Option<Self> {
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The name of the task's file.
    pub(crate) fn file_name(self) -> String {
        format!("{}.json", self.0)
    }

    /// The id a file name stands for, if it is a task's.
    pub(crate) fn from_file_name(name: &str) -> Option<Self> {
        name.strip_suffix(".json")?.parse().ok()
    }
}

/// Adds an id to a sorted list, once.
pub(crate) fn insert(list: &mut Vec<TaskId>, id: TaskId) {
    if !list.contains(&id) {
        list.push(id);
        list.sort_unstable();
    }
}

/// Something that is not a task id.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a task id")]
pub struct BadId(pub String);

impl Explain for BadId {
    fn facts(&self) -> Facts {
        Facts::new(Category::Invalid, "bad_id").hint("task ids are numbers such as 12")
    }
}

impl FromStr for TaskId {
    type Err = BadId;

    /// Accepts exactly the canonical form: `12`, not `012`, `+12` or `12 `.
    fn from_str(text: &str) -> Result<Self, BadId> {
        let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
        canonical
            .then(|| text.parse().ok().and_then(Self::new))
            .flatten()
            .ok_or_else(|| BadId(text.to_owned()))
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for TaskId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        text.parse()
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_an_id() {
        assert_eq!("12".parse::<TaskId>().unwrap().get(), 12);
        assert_eq!(
            "9007199254740991".parse::<TaskId>().unwrap().get(),
            TaskId::MAX
        );
        for bad in [
            "",
            "0",
            "007",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "../../x",
            "1\0",
            "٣",
            "0x1",
            "1e3",
            "9007199254740992",
            "99999999999999999999999",
        ] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad:?} must be refused");
        }
        assert_eq!(TaskId::from_file_name("3.json").map(TaskId::get), Some(3));
        assert_eq!(TaskId::from_file_name("03.json"), None);
        assert_eq!(TaskId::from_file_name("3.json.lock"), None);
    }
}
