use serde_json::Value;

/// Checks that the other tool accepts a task file; the error names the wrong part.
///
/// Strict on purpose: that tool drops a task whose known keys have other types.
pub fn check_task_file(id: u64, bytes: &[u8]) -> Result<(), String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let Value::Object(task) = &value else {
        return Err("not an object".into());
    };
    for key in ["id", "subject", "description", "status"] {
        if !task.get(key).is_some_and(Value::is_string) {
            return Err(format!("{key} must be a string: {value}"));
        }
    }
    if task["id"].as_str() != Some(id.to_string().as_str()) {
        return Err(format!("the id is not that of its file {id}: {value}"));
    }
    if !["pending", "in_progress", "completed"]
        .map(Value::from)
        .contains(&task["status"])
    {
        return Err(format!("an unknown status: {value}"));
    }
    for key in ["blocks", "blockedBy"] {
        let is_text_list = |list: &Value| {
            list.as_array()
                .is_some_and(|list| list.iter().all(Value::is_string))
        };
        if !task.get(key).is_some_and(is_text_list) {
            return Err(format!("{key} must be a list of strings: {value}"));
        }
    }
    for key in ["activeForm", "owner"] {
        // Absent is fine, null is not.
        if !task.get(key).is_none_or(Value::is_string) {
            return Err(format!("{key} must be a string or absent: {value}"));
        }
    }
    if !task.get("metadata").is_none_or(Value::is_object) {
        return Err(format!("metadata must be an object or absent: {value}"));
    }
    Ok(())
}
