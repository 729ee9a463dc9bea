//! The facts that ccb keeps with a task, under the key `ccb` of its metadata.
//!
//! [`own_keys`] knows the names of the keys, their spellings and the errors in them. The creator of
//! a task passes its facts with [`TaskFacts`]; everything else is read and written by methods of
//! [`Task`]. A value of another form than expected is not used, [`Task::trouble`] says so, and
//! unknown keys stay where they are.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use store::clock::{parse_rfc3339, rfc3339};
use store::secret_filter::SecretFilter;

use crate::invalid::Invalid;
use crate::own_keys::{
    self, AGENT, ATTEMPTS, KEY, LEASE, MetadataTrouble, NEEDS, NOT_AN_OBJECT, PARKED, PATHS,
    PRIORITY, RESULT, RUN, VERIFY, WORKTREE,
};
use crate::task::{Status, Task};

/// Higher tokens are damage: counting never gets there, and there is no next one after the highest
/// number.
const MAX_TOKEN: u64 = 1 << 53;

/// True if the key holds a command, which is carried out and so is never changed: a command without
/// its password does something else.
pub(crate) fn is_command(key: &str) -> bool {
    key == RUN || key == VERIFY
}

/// The facts that the creator or editor of a task may set besides its texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TaskFacts {
    /// Higher goes first; 0 if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The command that does the task; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The command that proves it is done; the inner `None` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Option<String>>,
    /// The agent type it is for; `None` for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The files it is about; `None` if it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Labels a machine must have to do it; `None` for any machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<String>>,
}

impl TaskFacts {
    /// Adds these facts to the metadata of a [`NewTask`](crate::NewTask) or
    /// [`Update`](crate::Update).
    pub fn put_into(&self, metadata: &mut Map<String, Value>) {
        let Ok(Value::Object(said)) = serde_json::to_value(self) else {
            return;
        };
        if said.is_empty() {
            return;
        }
        let ours = metadata.entry(KEY).or_insert_with(|| json!({}));
        // A value that is not an object is refused when the task is created.
        if let Some(ours) = ours.as_object_mut() {
            ours.extend(said);
        }
    }

    /// Metadata with nothing else in it.
    pub fn into_metadata(self) -> Map<String, Value> {
        let mut metadata = Map::new();
        self.put_into(&mut metadata);
        metadata
    }
}

/// The evidence for a completed task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskResult {
    /// The task's work, as one commit; `None` without a commit.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit the work started from; `None` if unknown.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// True if the two differ.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// The check the engine made; `None` without one.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub check: Option<TaskCheck>,
    /// The run that did the task, or checked it; `None` if unknown.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// True if a check passed that was not made on a commit of the run's.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// The worktree the commit was made in; `None` if unknown.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// True if the result landed and was undone: it lands again only on request.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub undone: Option<bool>,
    /// The branch it landed on, if several machines land, because each has to know; `None` for one
    /// machine.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub landed: Option<LandedAt>,
    /// All other stored fields.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The landing of a result that several machines could land.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LandedAt {
    /// The branch it landed on.
    pub into: String,
    /// The part of the result that landed: its commit.
    pub commit: String,
    /// The commit the branch got.
    #[serde(rename = "as")]
    pub as_commit: String,
    /// True if it was about to land; the branch shows if it did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// A check as a task's result keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCheck {
    /// True if it passed.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The place that it holds for; `None` if unknown.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Its command, its status, and other stored fields.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A field of another form than expected counts as absent.
fn lenient<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

impl TaskResult {
    /// The result that `noted` contains as JSON; `None` if it is not an object.
    pub fn of(noted: &impl Serialize) -> Option<Self> {
        let noted = serde_json::to_value(noted).ok()?;
        noted
            .is_object()
            .then(|| serde_json::from_value(noted).ok())?
    }

    /// Everything in it, in the form `T`, if that fits.
    pub fn to<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(serde_json::to_value(self).ok()?).ok()
    }

    /// True if the engine's check passed.
    pub fn check_passed(&self) -> bool {
        let check = self.check.as_ref();
        check.is_some_and(|check| check.passed == Some(true))
    }

    /// True if a check passed, wherever that was.
    pub fn is_proof(&self) -> bool {
        self.check_passed() || self.verified == Some(true)
    }

    /// The place of the engine's check; `None` without a check.
    pub fn check_place(&self) -> Option<&str> {
        self.check.as_ref()?.place.as_deref()
    }

    fn fingerprint(&self) -> String {
        let passed = self.check.as_ref().and_then(|check| check.passed);
        let parts = json!([
            self.commit,
            self.base,
            self.worktree,
            self.changed,
            self.verified,
            passed,
            self.check_place(),
        ]);
        format!("{:016x}", store::fingerprint(parts.to_string().as_bytes()))
    }
}

/// One failed attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The id of the attempt: stored twice, it counts once.
    pub run: String,
    /// The status at its end, in one word.
    pub status: String,
    /// The error.
    pub why: String,
    /// True if the task is to blame: an agent that was killed says nothing about its task.
    pub counts: bool,
    /// A fingerprint of the worktree it left, which stays the same as long as nothing changes
    /// there; `None` if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The time, RFC 3339.
    #[serde(default)]
    pub at: String,
    /// The attempt's work, if it was complete and a person rejected it: the next attempt continues
    /// from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<RejectedWork>,
}

/// Work that a person sent back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RejectedWork {
    /// The whole work as a commit; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The run that did it; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Attempt {
    /// The status of an attempt whose program was killed by an unknown process.
    pub const DIED: &str = "died";
    /// The status of an attempt whose result a person rejected.
    pub const REJECTED: &str = "rejected";

    /// One the task is to blame for.
    pub fn new(run: String, status: &str, why: &str) -> Self {
        Self {
            run,
            status: status.to_owned(),
            why: why.to_owned(),
            counts: true,
            tree: None,
            at: String::new(),
            work: None,
        }
    }
}

/// The reason and the time of parking a task.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Parked {
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// The recorded check, if the task's file has another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<Option<String>>,
    /// The path to which its unreadable file was moved, and the time; `None` if its file is
    /// readable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
}

/// A claim that can be lost: made for a run of the engine, or for a limited time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The agent it was given to.
    pub agent: String,
    /// The run that holds it, if the engine started the agent.
    pub run: Option<String>,
    /// Grows with every lease of the task; a write with an older one is refused.
    pub token: u64,
    /// The time when it ends without help (epoch milliseconds); `None` if it does not.
    pub expires_at: Option<i64>,
}

/// The end of a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeaseTerm {
    /// The end of this many milliseconds.
    Milliseconds(i64),
    /// The end of the run with this id; the supervisor of runs returns its tasks.
    Run(String),
    /// The end of the run, or this time without [`renewal`](crate::Board::renew): for a run without
    /// a supervisor on this machine.
    Heartbeat {
        /// The run's id.
        run: String,
        /// Maximum time without renewal.
        milliseconds: i64,
    },
}

impl Task {
    /// Higher goes first; 0 if there is none.
    pub fn priority(&self) -> i64 {
        self.ours(PRIORITY).and_then(Value::as_i64).unwrap_or(0)
    }

    /// The command that does it, if a command does.
    pub fn run_command(&self) -> Option<&str> {
        self.ours(RUN).and_then(Value::as_str)
    }

    /// The command that proves it is done. None also if the metadata is unclear: see
    /// `is_unclear`. A blank command proves nothing, so it is none.
    pub fn verify_command(&self) -> Option<&str> {
        let command = self.ours(VERIFY).and_then(Value::as_str);
        command.filter(|it| !it.trim().is_empty() && !self.is_unclear())
    }

    /// The first thing in its metadata that ccb cannot read. Only files of other programs have such.
    pub fn trouble(&self) -> Option<MetadataTrouble> {
        own_keys::trouble(self.metadata.as_ref()?)
    }

    /// True if its metadata holds a value that ccb acts on and cannot read. It may have a check.
    pub(crate) fn is_unclear(&self) -> bool {
        self.trouble().is_some_and(|trouble| trouble.unclear)
    }

    /// The files it is about, if it names any.
    pub fn paths(&self) -> Vec<String> {
        self.texts(PATHS)
    }

    /// The labels a machine must have to do it: `gpu`, `os=linux`.
    pub fn needs(&self) -> Vec<String> {
        self.texts(NEEDS)
    }

    fn texts(&self, key: &str) -> Vec<String> {
        let texts = self.ours(key).and_then(Value::as_array);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        texts.map_or_else(Vec::new, |all| all.iter().filter_map(text).collect())
    }

    /// The kind of agent it is for.
    pub fn agent_type(&self) -> Option<&str> {
        self.ours(AGENT).and_then(Value::as_str)
    }

    /// The worktree it is done in.
    pub fn worktree(&self) -> Option<&str> {
        self.ours(WORKTREE).and_then(Value::as_str)
    }

    pub(crate) fn set_worktree(&mut self, name: Option<&str>) {
        self.set_ours(WORKTREE, name.map(Value::from));
    }

    /// The result that was stored when the task was completed; `None` if there is none.
    pub fn result(&self) -> Option<TaskResult> {
        let noted = self.ours(RESULT).filter(|noted| noted.is_object())?;
        TaskResult::deserialize(noted).ok()
    }

    pub(crate) fn set_result(&mut self, result: Option<&TaskResult>) {
        self.set_ours(RESULT, result.map(|result| json!(result)));
    }

    /// The fingerprint of its result: the part that others rely on, in a form that no rewrite
    /// changes.
    pub(crate) fn result_fingerprint(&self) -> Option<String> {
        self.ours(RESULT)?;
        Some(self.result().unwrap_or_default().fingerprint())
    }

    /// True if the task is marked done but its check has not passed under ccb.
    pub fn is_reported(&self) -> bool {
        self.status == Status::Completed
            && self.verify_command().is_some()
            && !self.result().as_ref().is_some_and(TaskResult::is_proof)
    }

    /// The failed attempts so far, oldest first.
    pub fn attempts(&self) -> Vec<Attempt> {
        let noted = self.ours(ATTEMPTS).and_then(Value::as_array);
        let read = |value: &Value| Attempt::deserialize(value).ok();
        noted.map_or_else(Vec::new, |all| all.iter().filter_map(read).collect())
    }

    /// Number of failed attempts that count against the task.
    pub fn failures(&self) -> usize {
        self.attempts().iter().filter(|it| it.counts).count()
    }

    pub(crate) fn set_attempts(&mut self, attempts: &[Attempt]) {
        self.set_ours(ATTEMPTS, Some(json!(attempts)));
    }

    pub(crate) fn forget_attempts(&mut self) {
        self.set_ours(ATTEMPTS, None);
    }

    /// True if the task stores a fact about its quality: a check, failed attempts, the reason why
    /// it is parked, or a result.
    pub fn is_judged(&self) -> bool {
        self.ours(VERIFY).is_some()
            || self.is_unclear()
            || self.ours(ATTEMPTS).is_some()
            || self.parked().is_some()
            || self.ours(RESULT).is_some_and(Value::is_object)
    }

    /// The reason why it is parked; `None` if it is not.
    pub fn parked(&self) -> Option<&str> {
        match self.ours(PARKED)? {
            Value::Null | Value::Bool(false) => None,
            Value::String(reason) => Some(reason),
            other => {
                let reason = other.get("reason").and_then(Value::as_str);
                Some(reason.unwrap_or("no reason noted"))
            }
        }
    }

    pub(crate) fn park(&mut self, parked: &Parked) {
        self.set_ours(PARKED, Some(json!(parked)));
    }

    pub(crate) fn unpark(&mut self) {
        self.set_ours(PARKED, None);
    }

    /// True if it is parked because its file has another check than the record.
    pub(crate) fn is_disputed(&self) -> bool {
        self.recorded_check().is_some()
    }

    /// The recorded check, if it is parked because its file has another one.
    fn recorded_check(&self) -> Option<&Value> {
        self.ours(PARKED)?.as_object()?.get("check")
    }

    /// Ends the parking for a wrong check, if the file is readable now and has the recorded check.
    pub(crate) fn end_dispute_if_clear(&mut self) {
        let found = json!(self.verify_command());
        if !self.is_unclear() && self.recorded_check() == Some(&found) {
            self.unpark();
        }
    }

    /// It is no longer parked for that.
    pub(crate) fn end_dispute(&mut self) {
        if self.is_disputed() {
            self.unpark();
        }
    }

    /// The lease its owner holds. A lease that does not match the owner is void.
    pub fn lease(&self) -> Option<Lease> {
        let lease = self.ours(LEASE)?;
        let agent = lease.get("agent")?.as_str()?;
        let held = self.owner.as_deref() == Some(agent) && self.status == Status::InProgress;
        held.then(|| Lease {
            agent: agent.to_owned(),
            run: lease.get("run").and_then(Value::as_str).map(str::to_owned),
            token: self.last_token(),
            expires_at: lease
                .get("expiresAt")
                .and_then(Value::as_str)
                .and_then(parse_rfc3339),
        })
    }

    /// True if its lease has run out.
    pub(crate) fn lease_expired(&self, now_ms: i64) -> bool {
        self.lease()
            .and_then(|lease| lease.expires_at)
            .is_some_and(|end| end <= now_ms)
    }

    /// The last token given out for it, 0 if none was.
    pub(crate) fn last_token(&self) -> u64 {
        self.ours(LEASE)
            .and_then(|lease| lease.get("token")?.as_u64())
            .filter(|token| *token <= MAX_TOKEN)
            .unwrap_or(0)
    }

    pub(crate) fn set_lease(&mut self, lease: &Lease) {
        let mut map = Map::new();
        map.insert("agent".into(), lease.agent.clone().into());
        if let Some(run) = &lease.run {
            map.insert("run".into(), run.clone().into());
        }
        map.insert("token".into(), lease.token.into());
        if let Some(end) = lease.expires_at {
            map.insert("expiresAt".into(), rfc3339(end).into());
        }
        self.set_ours(LEASE, Some(map.into()));
    }

    /// Removes the lease; `token` was the last one.
    pub(crate) fn set_last_token(&mut self, token: u64) {
        self.set_ours(LEASE, (token > 0).then(|| json!({ "token": token })));
    }

    /// Ends the lease but remembers its token, so that the next one is larger whatever the
    /// clock says.
    pub(crate) fn end_lease(&mut self) {
        self.set_last_token(self.last_token());
    }

    /// Resets the task: no owner, no lease, not parked, unless its check is unknown.
    pub(crate) fn make_pending(&mut self) {
        self.status = Status::Pending;
        self.owner = None;
        self.end_lease();
        if !self.is_disputed() {
            self.unpark();
        }
    }

    /// Takes secrets out of its texts. Commands stay as they are.
    pub(crate) fn remove_secrets(&mut self, filter: &SecretFilter) {
        if filter.is_none() {
            return;
        }
        filter.text(&mut self.subject);
        filter.text(&mut self.description);
        if let Some(text) = &mut self.active_form {
            filter.text(text);
        }
        for (key, value) in self.metadata.iter_mut().flatten() {
            match value {
                Value::Object(ours) if key == KEY => {
                    let texts = ours.iter_mut().filter(|(key, _)| !is_command(key));
                    texts.for_each(|(_, value)| filter.value(value));
                }
                other => filter.value(other),
            }
        }
    }

    /// The metadata that is not ccb's own.
    pub fn other_metadata(&self) -> impl Iterator<Item = (&String, &Value)> {
        let all = self.metadata.iter().flatten();
        all.filter(|(key, _)| *key != KEY)
    }

    fn ours(&self, key: &str) -> Option<&Value> {
        self.metadata.as_ref()?.get(KEY)?.get(key)
    }

    /// Sets or removes one of ccb's keys, and removes objects that become empty.
    fn set_ours(&mut self, key: &str, value: Option<Value>) {
        if value.is_none() && self.ours(key).is_none() {
            return;
        }
        let meta = self.metadata.get_or_insert_default();
        let ours = meta.entry(KEY).or_insert_with(|| json!({}));
        make_object(ours);
        if let Some(ours) = ours.as_object_mut() {
            match value {
                Some(value) => {
                    ours.insert(key.to_owned(), value);
                }
                None => {
                    ours.shift_remove(key);
                }
            }
        }
        if ours.as_object().is_some_and(Map::is_empty) {
            meta.shift_remove(KEY);
        }
        if meta.is_empty() {
            self.metadata = None;
        }
    }

    /// Merges `changes` into the metadata; `null` removes a key. Of ccb's keys only those can be set
    /// that are a caller's business.
    pub(crate) fn merge_metadata(&mut self, changes: &Map<String, Value>) -> Result<(), Invalid> {
        let changes = own_keys::checked(changes, self.metadata.as_ref())?;
        if changes.contains_key(KEY)
            && let Some(ours) = self.metadata.as_mut().and_then(|all| all.get_mut(KEY))
        {
            make_object(ours);
        }
        for (key, value) in changes {
            match value {
                Value::Object(ours) if key == KEY => {
                    for (name, value) in ours {
                        // The rest of the other spelling is unreadable.
                        self.remove_metadata(&format!("{KEY}.{name}"));
                        self.set_ours(&name, (!value.is_null()).then_some(value));
                    }
                }
                Value::Null => self.remove_metadata(&key),
                value => drop(self.metadata.get_or_insert_default().insert(key, value)),
            }
        }
        Ok(())
    }

    fn remove_metadata(&mut self, key: &str) {
        if let Some(meta) = &mut self.metadata {
            meta.shift_remove(key);
            if meta.is_empty() {
                self.metadata = None;
            }
        }
    }
}

/// Keeps a value that is not an object, and so was not written by ccb, out of the way rather than
/// lose it.
fn make_object(ours: &mut Value) {
    if !ours.is_object() {
        let stray = std::mem::replace(ours, json!({}));
        ours[NOT_AN_OBJECT] = stray;
    }
}

/// The name of the first fact about a task that these changes of metadata say, if they say one.
pub(crate) fn first_fact(changes: &Map<String, Value>) -> Option<String> {
    let key = changes.keys().find(|key| own_keys::is_own(key))?;
    let inside = changes.get(key).and_then(Value::as_object);
    let first = inside
        .filter(|_| key == KEY)
        .and_then(|it| it.keys().next());
    Some(match first {
        Some(name) => format!("`{name}`"),
        None if key == KEY => "metadata.ccb".to_owned(),
        None => format!("`{key}`"),
    })
}

/// True if these changes of metadata say what the task is proved by.
pub(crate) fn decide_check(changes: &Map<String, Value>) -> bool {
    let ours = changes.get(KEY);
    ours.is_some_and(|ours| ours.get(VERIFY).is_some())
        || changes.contains_key(&format!("{KEY}.{VERIFY}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format;
    use crate::id::TaskId;

    fn task(ours: &Value) -> Task {
        let file =
            json!({"id": "1", "subject": "t", "status": "completed", "metadata": {"ccb": ours}});
        format::parse(TaskId::new(1).unwrap(), file.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_result_is_written_as_it_was_read_and_odd_fields_count_as_absent() {
        let noted = json!({
            "commit": "c", "base": "b", "changed": true, "run": "r", "worktree": "w", "new": [1],
            "check": {"command": "make", "passed": true, "place": "commit", "how": null},
        });
        let result = task(&json!({"result": noted})).result().unwrap();
        assert_eq!(json!(result), noted);
        assert!(result.check_passed());
        let mut again = task(&json!({"verify": "make"}));
        again.set_result(Some(&result));
        assert_eq!(again.result(), Some(result));
        let odd =
            task(&json!({"result": {"commit": 5, "changed": "yes", "check": [], "run": "r"}}));
        let expected = TaskResult {
            run: Some("r".into()),
            ..TaskResult::default()
        };
        assert_eq!(odd.result(), Some(expected));
        assert_eq!(task(&json!({"result": "done"})).result(), None);
    }

    #[test]
    fn a_lease_with_the_highest_number_there_is_has_a_next_one() {
        let mut task = task(&json!({"lease": {"token": u64::MAX}}));
        task.make_pending();
        let request = crate::ClaimRequest {
            lease: Some(LeaseTerm::Milliseconds(1000)),
            ..crate::ClaimRequest::new("a")
        };
        crate::rules::claim::start(&mut task, &request, 5);
        assert_eq!(task.lease().unwrap().token, 5);
        crate::rules::claim::start(&mut task, &request, 5);
        assert_eq!(task.lease().unwrap().token, 6);
    }

    #[test]
    fn facts_are_added_to_what_the_metadata_says_already() {
        let mut metadata = Map::new();
        metadata.insert(KEY.into(), json!({"priority": 1, "agent": "a"}));
        let facts = TaskFacts {
            priority: Some(2),
            verify: Some(None),
            ..TaskFacts::default()
        };
        facts.put_into(&mut metadata);
        let expected = json!({"priority": 2, "agent": "a", "verify": null});
        assert_eq!(metadata[KEY], expected);
        assert!(TaskFacts::default().into_metadata().is_empty());
    }
}
