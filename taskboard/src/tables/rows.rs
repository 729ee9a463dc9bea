//! A task as a row, and back.

use database::{Answer, DatabaseError, Row, Session};
use serde_json::{Value, json};
use store::atomic::Stamp;

use crate::facts::Lease;
use crate::format;
use crate::id::TaskId;
use crate::rules::index::Slim;
use crate::snapshot::Entry;
use crate::task::{Status, Task};

/// The columns that [`task`] reads.
pub(crate) const COLUMNS: &str = "id, status, owner, blocked_by, blocks, lease_agent, lease_run, \
    lease_token, lease_until, body";

/// A task with what only the table knows of it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) task: Task,
    pub(crate) version: i64,
    pub(crate) chain: i32,
    pub(crate) open_blockers: i32,
}

impl Stored {
    pub(crate) fn is_open(&self) -> bool {
        self.task.status != Status::Completed
    }

    pub(crate) fn entry(&self) -> Entry {
        Entry {
            task: self.task.clone(),
            fingerprint: self.version.cast_unsigned(),
            stamp: Stamp::default(),
        }
    }
}

pub(crate) fn stored(session: &Session<'_>, row: &Row) -> Result<Stored, DatabaseError> {
    Ok(Stored {
        task: task(session, row)?,
        version: session.column(row, "version")?,
        chain: session.column(row, "chain")?,
        open_blockers: session.column(row, "open_blockers")?,
    })
}

/// The task of a row with [`COLUMNS`].
pub(crate) fn task(session: &Session<'_>, row: &Row) -> Result<Task, DatabaseError> {
    let id = id(session, session.column(row, "id")?)?;
    let body: &str = session.column(row, "body")?;
    let mut task = format::parse(id, body.as_bytes())
        .map_err(|why| session.unexpected(format!("task {id}: {why}")))?;
    let status: i16 = session.column(row, "status")?;
    task.status = u64::try_from(status)
        .ok()
        .and_then(Status::from_code)
        .ok_or_else(|| session.unexpected(format!("task {id} with status {status}")))?;
    task.owner = session.column(row, "owner")?;
    task.blocked_by = ids(session, session.column(row, "blocked_by")?)?;
    task.blocks = ids(session, session.column(row, "blocks")?)?;
    let token: i64 = session.column(row, "lease_token")?;
    let agent: Option<String> = session.column(row, "lease_agent")?;
    match agent {
        Some(agent) => task.set_lease(&Lease {
            agent,
            run: session.column(row, "lease_run")?,
            token: token.cast_unsigned(),
            expires_at: session.column(row, "lease_until")?,
        }),
        None => task.set_last_token(token.cast_unsigned()),
    }
    Ok(task)
}

pub(crate) fn id(session: &Session<'_>, number: i64) -> Result<TaskId, DatabaseError> {
    let id = u64::try_from(number).ok().and_then(TaskId::new);
    id.ok_or_else(|| session.unexpected(format!("the task id {number}")))
}

pub(crate) fn ids(session: &Session<'_>, numbers: Vec<i64>) -> Result<Vec<TaskId>, DatabaseError> {
    numbers.into_iter().map(|n| id(session, n)).collect()
}

pub(crate) fn numbers<'a>(ids: impl IntoIterator<Item = &'a TaskId>) -> Vec<i64> {
    ids.into_iter().map(|id| id.get().cast_signed()).collect()
}

/// The rows of many tasks, column by column, as one statement takes them.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) ids: Vec<i64>,
    pub(crate) status: Vec<i16>,
    pub(crate) owner: Vec<Option<String>>,
    pub(crate) priority: Vec<i64>,
    pub(crate) chain: Vec<i32>,
    pub(crate) open_blockers: Vec<i32>,
    pub(crate) parked: Vec<bool>,
    pub(crate) internal: Vec<bool>,
    pub(crate) checks: Vec<bool>,
    /// As text, because an array of arrays must be rectangular.
    pub(crate) blocked_by: Vec<String>,
    pub(crate) blocks: Vec<String>,
    pub(crate) lease_agent: Vec<Option<String>>,
    pub(crate) lease_run: Vec<Option<String>>,
    pub(crate) lease_token: Vec<i64>,
    pub(crate) lease_until: Vec<Option<i64>>,
    pub(crate) body: Vec<String>,
    /// The operation for the history; `None` if only a derived column changed.
    pub(crate) op: Vec<Option<&'static str>>,
}

impl Columns {
    pub(crate) fn push(&mut self, stored: &Stored, op: Option<&'static str>) {
        let task = &stored.task;
        let slim = Slim::of(task, 0, Stamp::default());
        let lease = task.lease();
        self.ids.push(task.id.get().cast_signed());
        self.status.push(task.status.code().into());
        self.owner.push(task.owner.clone());
        self.priority.push(slim.priority);
        self.chain.push(stored.chain);
        self.open_blockers.push(stored.open_blockers);
        self.parked.push(slim.parked.is_some());
        self.internal.push(slim.internal);
        self.checks.push(slim.checks);
        self.blocked_by.push(array(&task.blocked_by));
        self.blocks.push(array(&task.blocks));
        self.lease_token.push(task.last_token().cast_signed());
        self.lease_agent
            .push(lease.as_ref().map(|lease| lease.agent.clone()));
        self.lease_until
            .push(lease.as_ref().and_then(|lease| lease.expires_at));
        self.lease_run.push(lease.and_then(|lease| lease.run));
        self.body.push(body(task));
        self.op.push(op);
    }
}

/// A list of numbers as PostgreSQL writes it.
fn array(ids: &[TaskId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("{{{}}}", ids.join(","))
}

/// The task without the parts that have a column of their own and change with every claim.
fn body(task: &Task) -> String {
    let mut rest = task.clone();
    (rest.owner, rest.status) = (None, Status::Pending);
    (rest.blocks, rest.blocked_by) = (Vec::new(), Vec::new());
    rest.set_last_token(0);
    rest.to_json().to_string()
}

/// The answer to a change, as stored for a caller that lost it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answered {
    pub(crate) tasks: Vec<Task>,
    /// The other ids of the answer.
    pub(crate) ids: Vec<TaskId>,
    pub(crate) text: Option<String>,
}

impl Answered {
    pub(crate) fn one(task: Task) -> Self {
        Self::many(vec![task])
    }

    pub(crate) fn many(tasks: Vec<Task>) -> Self {
        Self {
            tasks,
            ..Self::default()
        }
    }
}

impl Answer for Answered {
    fn write(&self) -> String {
        let tasks: Vec<Value> = self.tasks.iter().map(Task::to_json).collect();
        json!({"tasks": tasks, "ids": self.ids, "text": self.text}).to_string()
    }

    fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let task = |value: &Value| {
            let id = value.get("id")?.as_str()?.parse().ok()?;
            format::parse(id, value.to_string().as_bytes()).ok()
        };
        Some(Self {
            tasks: value
                .get("tasks")?
                .as_array()?
                .iter()
                .map(task)
                .collect::<Option<_>>()?,
            ids: serde_json::from_value(value.get("ids")?.clone()).ok()?,
            text: value.get("text").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let json = json!({"id": "3", "subject": "s", "status": "completed", "blocks": ["4"],
            "metadata": {"ccb": {"lease": {"token": 7}}, "x": "\u{0}"}, "zeta": 1});
        let task = format::parse(TaskId::new(3).unwrap(), json.to_string().as_bytes()).unwrap();
        let answer = Answered {
            ids: vec![task.id],
            text: Some("verify".into()),
            tasks: vec![task],
        };
        assert_eq!(Answered::read(&answer.write()), Some(answer));
        assert_eq!(Answered::read("{}"), None);
    }
}
