//! The busy or idle state of an agent, in `activity.json` of its inbox.

use std::path::Path;

use serde_json::Value;
use store::atomic::{self, Durability};

use crate::activity::Activity;
use crate::cursor::{check_version, replace};
use crate::error::{MailError, Result};
use crate::files::inbox::FileInbox;

/// Reads the state. A file that does not parse was lost in a power cut: the agent counts as busy,
/// for the `now_ms`-th time, a number that no message has used.
pub(super) fn load(path: &Path, now_ms: i64) -> Result<Activity> {
    let Some(bytes) = atomic::read(path)? else {
        return Ok(Activity::START);
    };
    if let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
        check_version(&value, path)?;
        if let Ok(activity) = serde_json::from_value(value) {
            return Ok(activity);
        }
    }
    tracing::warn!(path = %path.display(), "unreadable, starting over");
    Ok(Activity {
        times: u64::try_from(now_ms).unwrap_or(1),
        ..Activity::START
    })
}

/// Writes it down.
pub(super) fn save(activity: Activity, inbox: &FileInbox) -> Result<()> {
    let mut text = serde_json::to_string(&activity)
        .map_err(|error| MailError::invalid("activity", error.to_string()))?;
    text.push('\n');
    let (tmp, path) = (&inbox.paths.tmp, &inbox.paths.activity);
    replace(tmp, path, text.as_bytes(), Durability::Relaxed)
}
