//! The rules that need more than one task or the input.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use taskboard::Status;

use crate::naive::{Edges, Model};
use crate::naive_task::ModelTask;
use crate::ops::{Draft, ForeignEdit, Hook, Op, Ref};
use crate::outcome::{Answer, Outcome, refused, refused_by};

pub(crate) fn valid_line(text: &str) -> Result<(), Outcome> {
    if text.is_empty() || text.contains('\n') {
        return Err(refused("invalid"));
    }
    Ok(())
}

/// The engine's keys in `metadata.ccb` cannot be set from outside.
pub(crate) fn valid_metadata(metadata: &Map<String, Value>) -> Result<(), Outcome> {
    let valid = match metadata.get("ccb") {
        None => true,
        Some(Value::Object(ours)) => ours.iter().all(|(key, value)| match key.as_str() {
            "priority" => value.is_null() || value.is_i64(),
            "verify" => value.is_null() || value.is_string(),
            _ => false,
        }),
        Some(_) => false,
    };
    if valid {
        Ok(())
    } else {
        Err(refused("invalid"))
    }
}

/// True if `dependent` already comes before `blocker`.
pub(crate) fn closes_cycle(edges: &Edges, blocker: u64, dependent: u64) -> bool {
    let mut reached = BTreeSet::from([dependent]);
    loop {
        let next: BTreeSet<u64> = edges
            .iter()
            .filter(|(from, _)| reached.contains(from))
            .map(|(_, to)| *to)
            .chain(reached.iter().copied())
            .collect();
        if next.len() == reached.len() {
            return reached.contains(&blocker);
        }
        reached = next;
    }
}

/// The number of unfinished tasks on the longest chain that starts with `id`.
pub(crate) fn chain_length(model: &Model, id: u64) -> i64 {
    if model.tasks[&id].status == Status::Completed {
        return 0;
    }
    let dependents = model.edges.iter().filter(|(blocker, _)| *blocker == id);
    let longest = dependents
        .map(|(_, dependent)| chain_length(model, *dependent))
        .max();
    1 + longest.unwrap_or(0)
}

impl Model {
    pub(crate) fn apply(&mut self, op: &Op) -> Outcome {
        let answer = match op {
            Op::Create { batch, hook } => self.create(batch, *hook),
            Op::Claim { id, terms } => self.claim(*id, terms),
            Op::Next { terms } => self.next(terms),
            Op::Release { id, by } => self.release(*id, by),
            Op::Complete { id, by, hook } => self.complete(*id, by, *hook, &Default::default()),
            Op::Delete { id, by } => self.delete(*id, by),
            Op::Block { blocker, dependent } => self.block(*blocker, *dependent),
            Op::Unblock { blocker, dependent } => self.unblock(*blocker, *dependent),
            Op::Update {
                id,
                by,
                change,
                hook,
            } => self.update(*id, by, change, *hook),
            Op::Reset { force } => self.reset(*force),
            Op::Unassign { agent } => self.return_tasks(|task| task.is_mine(agent)),
            Op::UnassignRun { run } => self.return_tasks(|task| {
                task.held_lease()
                    .is_some_and(|lease| lease.run.as_deref() == Some(*run))
            }),
            Op::Clock { by_ms } => {
                self.now += by_ms;
                Ok(Outcome::Nothing)
            }
            Op::Foreign { id, edit } => {
                self.foreign(*id, edit);
                self.begin();
                Ok(Outcome::Nothing)
            }
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    /// All of the batch or none of it: input first, then unknown ids, then cycles.
    fn create(&mut self, batch: &[Draft], hook: Hook) -> Answer {
        let mut keys = BTreeMap::new();
        for (n, draft) in batch.iter().enumerate() {
            if let Some(key) = draft.key
                && keys.insert(key, n as u64).is_some()
            {
                return Err(refused("invalid"));
            }
        }
        for draft in batch {
            valid_line(draft.subject)?;
            valid_metadata(&draft.metadata)?;
            for reference in draft.blocked_by.iter().chain(&draft.blocks) {
                if matches!(reference, Ref::Key(key) if !keys.contains_key(key)) {
                    return Err(refused("invalid"));
                }
            }
        }
        if batch.is_empty() {
            return Ok(Outcome::Created(Vec::new()));
        }
        self.begin();
        let first = self.high_water + 1;
        let mut edges = self.edges.clone();
        for draft in batch {
            for reference in draft.blocked_by.iter().chain(&draft.blocks) {
                if let Ref::Id(id) = reference
                    && !self.tasks.contains_key(id)
                {
                    return Err(refused_by("task_not_found", &id));
                }
            }
        }
        let id_of = |reference: &Ref| match reference {
            Ref::Id(id) => *id,
            Ref::Key(key) => first + keys[key],
        };
        for (id, draft) in (first..).zip(batch) {
            let before = draft
                .blocked_by
                .iter()
                .map(|reference| (id_of(reference), id));
            let after = draft.blocks.iter().map(|reference| (id, id_of(reference)));
            for (blocker, dependent) in before.chain(after) {
                if closes_cycle(&edges, blocker, dependent) {
                    return Err(refused("cycle"));
                }
                edges.insert((blocker, dependent));
            }
        }
        // Ids are reserved before the hook is asked, and lost if it says no.
        self.high_water += batch.len() as u64;
        if hook == Hook::Vetoes {
            return Err(refused("vetoed"));
        }
        self.edges = edges;
        for (id, draft) in (first..).zip(batch) {
            let mut task = ModelTask {
                subject: draft.subject.to_owned(),
                status: Status::Pending,
                owner: None,
                lease: None,
                last_token: 0,
                plain: Map::new(),
                ours: Map::new(),
            };
            task.merge(&draft.metadata);
            self.tasks.insert(id, task);
        }
        Ok(Outcome::Created((first..=self.high_water).collect()))
    }

    /// True if another tool could make this edit and leave a board without cycles.
    pub(crate) fn foreign_applies(&self, id: u64, edit: &ForeignEdit) -> bool {
        let edge = match edit {
            ForeignEdit::BlockedBy(other) => Some((*other, id)),
            ForeignEdit::Blocks(other) => Some((id, *other)),
            ForeignEdit::Park(_) | ForeignEdit::TakeOver(_) | ForeignEdit::Complete => None,
        };
        let known = |id: &u64| self.tasks.contains_key(id);
        known(&id)
            && edge.is_none_or(|(blocker, dependent)| {
                known(&blocker)
                    && known(&dependent)
                    && !closes_cycle(&self.edges, blocker, dependent)
            })
    }

    fn foreign(&mut self, id: u64, edit: &ForeignEdit) {
        if !self.foreign_applies(id, edit) {
            return;
        }
        let task = self.tasks.get_mut(&id).unwrap();
        match edit {
            ForeignEdit::Park(Value::Null) => {
                task.ours.shift_remove("parked");
            }
            ForeignEdit::Park(value) => {
                task.ours.insert("parked".into(), value.clone());
            }
            // Half an edge is completed by the next change.
            ForeignEdit::BlockedBy(other) => {
                self.edges.insert((*other, id));
            }
            ForeignEdit::Blocks(other) => {
                self.edges.insert((id, *other));
            }
            // Open: the lease is void as long as the owner is another one.
            ForeignEdit::TakeOver(agent) => {
                task.owner = Some((*agent).to_owned());
                task.status = Status::InProgress;
            }
            ForeignEdit::Complete => task.status = Status::Completed,
        }
    }
}
