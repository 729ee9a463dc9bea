//! The tasks every design works on.
//!
//! Of N tasks the first tenth is completed, and the next tenth waits for one of those each, so
//! that nine tenths can be claimed and every ninth claim has a blocker to look up. Priorities
//! run from 0 to 4, so that the best task is not simply the first one.

use serde_json::{Value, json};

/// One task of a board, the same in every design.
pub(crate) struct Spec {
    pub(crate) id: u64,
    pub(crate) subject: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) completed: bool,
    pub(crate) blocked_by: Option<u64>,
    pub(crate) blocks: Option<u64>,
}

/// The tasks of a board with `count` of them.
pub(crate) fn specs(count: u64) -> impl Iterator<Item = Spec> {
    let tenth = count / 10;
    (1..=count).map(move |id| Spec {
        id,
        subject: format!("Fix the failing check number {id}"),
        description: DESCRIPTION.to_owned(),
        priority: (id % 5) as i64,
        completed: id <= tenth,
        blocked_by: (id > tenth && id <= 2 * tenth).then(|| id - tenth),
        blocks: (id <= tenth).then(|| id + tenth),
    })
}

/// The number of tasks of a board with `count` that can be claimed.
pub(crate) fn claimable(count: u64) -> u64 {
    count - count / 10
}

/// About what people and models write into a task.
const DESCRIPTION: &str = "The check fails since the last change of the parser. Find out which of \
    the two callers passes an empty list, make it an error there, add a test that fails without \
    the change, and run the whole suite once before reporting. Files: src/parser.rs, \
    src/callers.rs, tests/it/parser.rs.";

impl Spec {
    /// The task's file, in the format the board and other tools share.
    pub(crate) fn to_file(&self) -> String {
        let list = |id: Option<u64>| -> Vec<String> { id.iter().map(u64::to_string).collect() };
        // In the order in which the board itself writes the keys.
        let fields: [(&str, Value); 7] = [
            ("id", json!(self.id.to_string())),
            ("subject", json!(self.subject)),
            ("description", json!(self.description)),
            ("status", json!(self.status())),
            ("blocks", json!(list(self.blocks))),
            ("blockedBy", json!(list(self.blocked_by))),
            ("metadata", self.metadata()),
        ];
        let map: serde_json::Map<String, Value> = fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        format!("{:#}\n", Value::Object(map))
    }

    pub(crate) fn metadata(&self) -> Value {
        json!({"ccb": {"priority": self.priority}})
    }

    pub(crate) fn status(&self) -> &'static str {
        if self.completed {
            "completed"
        } else {
            "pending"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_done_and_a_tenth_waits_for_it() {
        let tasks: Vec<Spec> = specs(100).collect();
        assert_eq!(tasks.iter().filter(|t| t.completed).count(), 10);
        assert_eq!(tasks.iter().filter(|t| t.blocked_by.is_some()).count(), 10);
        assert_eq!(tasks[14].blocked_by, Some(5));
        assert_eq!(tasks[4].blocks, Some(15));
        assert_eq!(claimable(100), 90);
    }
}
