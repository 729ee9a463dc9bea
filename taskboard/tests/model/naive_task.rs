//! One task of the model.

use serde_json::{Map, Value};
use taskboard::{LeaseTerm, Status};

use crate::ops::Actor;
use crate::outcome::{Outcome, refused_by};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelTask {
    pub(crate) subject: String,
    pub(crate) status: Status,
    pub(crate) owner: Option<String>,
    /// The last lease, as it was given; see [`ModelTask::held_lease`].
    pub(crate) lease: Option<ModelLease>,
    pub(crate) last_token: u64,
    /// `metadata` without `ccb`, and `metadata.ccb` without the lease; no nulls in either.
    pub(crate) plain: Map<String, Value>,
    pub(crate) ours: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelLease {
    pub(crate) agent: String,
    pub(crate) run: Option<String>,
    pub(crate) token: u64,
    pub(crate) expires_at: Option<i64>,
}

impl ModelTask {
    pub(crate) fn is_mine(&self, agent: &str) -> bool {
        self.owner.as_deref() == Some(agent)
    }

    /// The file's owner and status are the truth: a lease that does not fit them is void.
    pub(crate) fn held_lease(&self) -> Option<&ModelLease> {
        let fits =
            |lease: &&ModelLease| self.status == Status::InProgress && self.is_mine(&lease.agent);
        self.lease.as_ref().filter(fits)
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.ours
            .get("parked")
            .is_some_and(|value| *value != Value::Bool(false))
    }

    pub(crate) fn is_internal(&self) -> bool {
        self.plain.get("_internal") == Some(&Value::Bool(true))
    }

    pub(crate) fn priority(&self) -> i64 {
        self.ours
            .get("priority")
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    /// To `pending` clears owner and lease. Open: and takes it out of parking.
    pub(crate) fn make_pending(&mut self) {
        self.status = Status::Pending;
        self.owner = None;
        self.lease = None;
        self.ours.shift_remove("parked");
    }

    pub(crate) fn start(&mut self, agent: &str, term: Option<&LeaseTerm>, now: i64) {
        let again = self.status == Status::InProgress && self.is_mine(agent);
        self.status = Status::InProgress;
        self.owner = Some(agent.to_owned());
        if let Some(term) = term {
            self.last_token = (self.last_token + 1).max(now.max(0) as u64);
            let (run, expires_at) = match term {
                LeaseTerm::Run(run) => (Some(run.clone()), None),
                LeaseTerm::Heartbeat { run, milliseconds } => {
                    (Some(run.clone()), Some(now + milliseconds))
                }
                LeaseTerm::Milliseconds(ms) => (None, Some(now + ms)),
            };
            let (agent, token) = (agent.to_owned(), self.last_token);
            self.lease = Some(ModelLease {
                agent,
                run,
                token,
                expires_at,
            });
        } else if !again {
            // Open: claiming again without a lease keeps the one there is.
            self.lease = None;
        }
    }

    /// `null` removes a key; `metadata.ccb` is merged key by key.
    pub(crate) fn merge(&mut self, changes: &Map<String, Value>) {
        fn put(map: &mut Map<String, Value>, key: &str, value: &Value) {
            if value.is_null() {
                map.shift_remove(key);
            } else {
                map.insert(key.to_owned(), value.clone());
            }
        }
        for (key, value) in changes {
            match value.as_object() {
                Some(ours) if key == "ccb" => {
                    ours.iter()
                        .for_each(|(key, value)| put(&mut self.ours, key, value));
                }
                _ => put(&mut self.plain, key, value),
            }
        }
    }

    pub(crate) fn check_owner(&self, by: &Actor) -> Result<(), Outcome> {
        match &self.owner {
            Some(owner) if owner != by.agent && !by.force => {
                Err(refused_by("already_claimed", &owner))
            }
            _ => Ok(()),
        }
    }

    /// Open: force does not override it.
    pub(crate) fn check_token(&self, by: &Actor) -> Result<(), Outcome> {
        match by.token {
            Some(token) if self.held_lease().is_none_or(|lease| lease.token != token) => {
                Err(refused_by("lease_lost", &token))
            }
            _ => Ok(()),
        }
    }
}
