//! The task file: the same JSON other tools read and write.
//!
//! Known keys are checked, unknown ones survive, `null` means absent. The order of the known keys
//! is fixed, so that a rewrite changes only the changed values.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::id::TaskId;
use crate::own_keys;
use crate::task::Task;

/// Reads the file of task `id`; the error says what is wrong with it.
pub(crate) fn parse(id: TaskId, bytes: &[u8]) -> Result<Task, String> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let Value::Object(map) = value else {
        return Err("it is not a JSON object".into());
    };
    let mut fields = Fields(map);
    let found: TaskId = fields
        .text("id")?
        .parse()
        .map_err(|_| "\"id\" is not a task id")?;
    if found != id {
        return Err(format!("it says that it is task {found}"));
    }
    Ok(Task {
        id,
        subject: fields.text("subject")?,
        description: fields.optional_text("description")?.unwrap_or_default(),
        active_form: fields.optional_text("activeForm")?,
        owner: fields
            .optional_text("owner")?
            .filter(|owner| !owner.is_empty()),
        status: fields
            .text("status")?
            .parse()
            .map_err(|error| format!("{error}"))?,
        blocks: fields.ids("blocks")?,
        blocked_by: fields.ids("blockedBy")?,
        metadata: match fields.take("metadata") {
            None => None,
            Some(Value::Object(map)) => Some(own_keys::nested(map)),
            Some(_) => return Err("\"metadata\" is not an object".into()),
        },
        extra: fields.0,
    })
}

/// The task as a JSON value, in the order of its file.
pub(crate) fn to_value(task: &Task) -> Value {
    let ids = |ids: &[TaskId]| Value::Array(ids.iter().map(|id| id.to_string().into()).collect());
    let mut map = Map::new();
    map.insert("id".into(), task.id.to_string().into());
    map.insert("subject".into(), task.subject.clone().into());
    map.insert("description".into(), task.description.clone().into());
    if let Some(text) = &task.active_form {
        map.insert("activeForm".into(), text.clone().into());
    }
    if let Some(owner) = &task.owner {
        map.insert("owner".into(), owner.clone().into());
    }
    map.insert("status".into(), task.status.as_str().into());
    map.insert("blocks".into(), ids(&task.blocks));
    map.insert("blockedBy".into(), ids(&task.blocked_by));
    if let Some(meta) = &task.metadata {
        map.insert("metadata".into(), Value::Object(meta.clone()));
    }
    map.extend(task.extra.clone());
    Value::Object(map)
}

/// The bytes of the task's file.
pub(crate) fn to_bytes(task: &Task) -> Vec<u8> {
    // `{:#}` on a JSON value is its pretty form and cannot fail.
    let mut text = format!("{:#}", to_value(task));
    text.push('\n');
    text.into_bytes()
}

impl Task {
    /// The task as JSON, as in its file; ccb's own keys are in the object `ccb` of its metadata.
    pub fn to_json(&self) -> Value {
        to_value(self)
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    fn take(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key).filter(|value| !value.is_null())
    }

    fn optional_text(&mut self, key: &str) -> Result<Option<String>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("\"{key}\" is not a string")),
        }
    }

    fn text(&mut self, key: &str) -> Result<String, String> {
        self.optional_text(key)?
            .ok_or_else(|| format!("\"{key}\" is missing"))
    }

    fn ids(&mut self, key: &str) -> Result<Vec<TaskId>, String> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        let Value::Array(items) = value else {
            return Err(format!("\"{key}\" is not a list"));
        };
        let mut ids = Vec::with_capacity(items.len());
        let mut seen = HashSet::new();
        for item in items {
            let id: Option<TaskId> = item.as_str().and_then(|text| text.parse().ok());
            let id = id.ok_or_else(|| format!("\"{key}\" holds {item}, which is not a task id"))?;
            if seen.insert(id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> TaskId {
        TaskId::new(1).unwrap()
    }

    #[test]
    fn unknown_keys_order_and_numbers_survive() {
        let text = r#"{
  "id": "1",
  "subject": "s",
  "description": "",
  "status": "pending",
  "blocks": [],
  "blockedBy": [
    "2"
  ],
  "metadata": {
    "z": 0.1,
    "a": 12345678901234567
  },
  "zeta": {
    "deep": [
      null,
      1e-7
    ]
  },
  "alpha": true
}
"#;
        let task = parse(one(), text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(to_bytes(&task)).unwrap(), text);
    }

    #[test]
    fn many_blockers_are_read_in_time_that_grows_with_their_number() {
        let ids: Vec<String> = (2..300_002).map(|n| format!("\"{n}\"")).collect();
        let ids = ids.join(",");
        let text =
            format!(r#"{{"id":"1","subject":"s","status":"pending","blockedBy":[{ids},"2"]}}"#);
        let before = std::time::Instant::now();
        let task = parse(one(), text.as_bytes()).unwrap();
        assert_eq!(task.blocked_by.len(), 300_000);
        // Comparing each with all before it takes minutes.
        assert!(before.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn null_means_absent() {
        let text = r#"{"id":"1","subject":"s","status":"pending","owner":null,"blocks":null,"metadata":null}"#;
        let task = parse(one(), text.as_bytes()).unwrap();
        assert_eq!((task.owner.clone(), task.metadata.clone()), (None, None));
        assert!(!String::from_utf8(to_bytes(&task)).unwrap().contains("null"));
    }

    #[test]
    fn what_is_not_a_task_says_why() {
        for (text, why) in [
            ("", "empty"),
            ("{", "EOF"),
            ("[]", "not a JSON object"),
            (r#"{"id":"2","subject":"s","status":"pending"}"#, "task 2"),
            (
                r#"{"id":1,"subject":"s","status":"pending"}"#,
                "\"id\" is not a string",
            ),
            (r#"{"id":"1","status":"pending"}"#, "\"subject\" is missing"),
            (
                r#"{"id":"1","subject":"s","status":"open"}"#,
                "status \"open\"",
            ),
            (
                r#"{"id":"1","subject":"s","status":"pending","blocks":["x"]}"#,
                "not a task id",
            ),
            (
                r#"{"id":"1","subject":"s","status":"pending","metadata":[]}"#,
                "not an object",
            ),
        ] {
            let error = parse(one(), text.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
