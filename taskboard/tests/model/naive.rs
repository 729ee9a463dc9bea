//! The board as its rules describe it, in memory and as plainly as possible.
//!
//! Written from the rules, not from the code it is compared with. Where the rules leave
//! something open, a comment beginning with "Open:" says what was settled on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use taskboard::Status;

use crate::naive_task::ModelTask;
use crate::ops::{Actor, Change, Hook, Situation, Terms};
use crate::outcome::{Answer, Outcome, refused, refused_by, refused_by_all};
use crate::rules::{chain_length, closes_cycle, valid_line, valid_metadata};

pub(crate) type Edges = BTreeSet<(u64, u64)>;

#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) now: i64,
    pub(crate) high_water: u64,
    pub(crate) tasks: BTreeMap<u64, ModelTask>,
    /// (blocker, dependent)
    pub(crate) edges: Edges,
}

impl Situation for Model {
    fn settle_id(&self, raw: u64) -> u64 {
        let (choice, rest) = (raw % 20, (raw / 20) as usize);
        match choice {
            0 => self.high_water + 1 + rest as u64 % 3,
            // The task may be deleted.
            1 => 1 + rest as u64 % self.high_water.max(1),
            _ if self.tasks.is_empty() => 1,
            _ => *self.tasks.keys().nth(rest % self.tasks.len()).unwrap(),
        }
    }

    fn last_token(&self, id: u64) -> u64 {
        self.tasks.get(&id).map_or(0, |task| task.last_token)
    }
}

impl Model {
    pub(crate) fn new(now: i64) -> Self {
        let (tasks, edges) = (BTreeMap::new(), Edges::new());
        Self {
            now,
            high_water: 0,
            tasks,
            edges,
        }
    }

    /// Every change begins by returning what expired, even if it is then refused.
    pub(crate) fn begin(&mut self) {
        let now = self.now;
        for task in self.tasks.values_mut() {
            // Open: a lease ends at `expiresAt`, not after it.
            if task
                .held_lease()
                .and_then(|lease| lease.expires_at)
                .is_some_and(|end| end <= now)
            {
                task.make_pending();
            }
        }
    }

    pub(crate) fn require(&self, id: u64) -> Result<&ModelTask, Outcome> {
        self.tasks
            .get(&id)
            .ok_or_else(|| refused_by("task_not_found", &id))
    }

    pub(crate) fn open_blockers(&self, id: u64) -> Vec<u64> {
        let blockers = self.edges.iter().filter(|(_, dependent)| *dependent == id);
        let open = |blocker: &u64| self.tasks[blocker].status != Status::Completed;
        blockers.map(|(blocker, _)| *blocker).filter(open).collect()
    }

    pub(crate) fn can_start(&self, id: u64) -> bool {
        let task = &self.tasks[&id];
        task.status == Status::Pending && !task.is_parked() && self.open_blockers(id).is_empty()
    }

    pub(crate) fn is_ready(&self, id: u64) -> bool {
        self.can_start(id) && self.tasks[&id].owner.is_none()
    }

    fn owned(&self, agent: &str, which: impl Fn(u64, &ModelTask) -> bool) -> Vec<u64> {
        let owned = self
            .tasks
            .iter()
            .filter(|(id, task)| task.is_mine(agent) && which(**id, task));
        owned.map(|(id, _)| *id).collect()
    }

    fn check_claim(&self, id: u64, agent: &str, check_busy: bool) -> Result<(), Outcome> {
        let task = self.require(id)?;
        if let Some(owner) = &task.owner
            && owner != agent
        {
            return Err(refused_by("already_claimed", &owner));
        }
        if task.status == Status::Completed {
            return Err(refused("already_resolved"));
        }
        if task.status == Status::InProgress && task.is_mine(agent) {
            return Ok(());
        }
        let open = self.open_blockers(id);
        if !open.is_empty() {
            return Err(refused_by_all("blocked", &open));
        }
        if task.is_parked() {
            return Err(refused("parked"));
        }
        // Open: work that is only assigned keeps an agent from taking more, not from
        // starting what it was assigned.
        let busy_with = if task.is_mine(agent) {
            self.owned(agent, |other, task| {
                other != id && task.status == Status::InProgress
            })
        } else {
            self.owned(agent, |_, task| task.status != Status::Completed)
        };
        if check_busy && !busy_with.is_empty() {
            return Err(refused_by_all("agent_busy", &busy_with));
        }
        Ok(())
    }

    pub(crate) fn claim(&mut self, id: u64, terms: &Terms) -> Answer {
        valid_line(terms.agent)?;
        self.begin();
        self.check_claim(id, terms.agent, terms.check_busy)?;
        Ok(self.take(id, terms))
    }

    fn take(&mut self, id: u64, terms: &Terms) -> Outcome {
        let now = self.now;
        let task = self.tasks.get_mut(&id).unwrap();
        task.start(terms.agent, terms.lease.as_ref(), now);
        let token = task.held_lease().map(|lease| lease.token);
        Outcome::Claimed { id, token }
    }

    pub(crate) fn next(&mut self, terms: &Terms) -> Answer {
        valid_line(terms.agent)?;
        self.begin();
        // Open: only work in progress counts here, for what is assigned is what comes next.
        let busy_with = self.owned(terms.agent, |_, task| task.status == Status::InProgress);
        if terms.check_busy && !busy_with.is_empty() {
            return Ok(Outcome::Busy(busy_with));
        }
        let best_of = |eligible: &dyn Fn(u64, &ModelTask) -> bool| {
            let visible = self.tasks.iter().filter(|(_, task)| !task.is_internal());
            visible
                .filter(|(id, task)| eligible(**id, task))
                .min_by_key(|(id, task)| (-task.priority(), -chain_length(self, **id), **id))
                .map(|(id, _)| *id)
        };
        let assigned = best_of(&|id, task| task.is_mine(terms.agent) && self.can_start(id));
        if let Some(id) = assigned.or_else(|| best_of(&|id, _| self.is_ready(id))) {
            return Ok(self.take(id, terms));
        }
        // A cycle cannot come about through the board itself, so that answer is not here.
        let done = self.visible_all_completed();
        Ok(Outcome::NothingToDo(if done {
            "all_done"
        } else {
            "nothing_ready"
        }))
    }

    fn visible_all_completed(&self) -> bool {
        let mut visible = self.tasks.values().filter(|task| !task.is_internal());
        visible.all(|task| task.status == Status::Completed)
    }

    pub(crate) fn release(&mut self, id: u64, by: &Actor) -> Answer {
        self.begin();
        let task = self.require(id)?;
        task.check_token(by)?;
        if task.status == Status::Completed {
            return Err(refused("already_resolved"));
        }
        task.check_owner(by)?;
        self.tasks.get_mut(&id).unwrap().make_pending();
        Ok(Outcome::Task(id))
    }

    pub(crate) fn complete(&mut self, id: u64, by: &Actor, hook: Hook, change: &Change) -> Answer {
        self.begin();
        let task = self.require(id)?;
        task.check_token(by)?;
        // Open: unlike a claim, "already completed" comes before another owner.
        if task.status == Status::Completed {
            return Err(refused("already_resolved"));
        }
        task.check_owner(by)?;
        let open = self.open_blockers(id);
        if !open.is_empty() && !by.force {
            return Err(refused_by_all("blocked", &open));
        }
        if hook == Hook::Vetoes {
            return Err(refused("vetoed"));
        }
        valid_metadata(&change.metadata)?;
        let could_start: BTreeSet<u64> = self
            .tasks
            .keys()
            .copied()
            .filter(|id| self.can_start(*id))
            .collect();
        let task = self.tasks.get_mut(&id).unwrap();
        task.subject = change.subject.map_or(task.subject.clone(), str::to_owned);
        task.merge(&change.metadata);
        // Open: an unowned task stays unowned, no matter which agent completes it, unless an owner
        // is given.
        if let Some(owner) = change.owner {
            task.owner = owner.map(str::to_owned);
        }
        task.status = Status::Completed;
        task.lease = None;
        task.ours.shift_remove("parked");
        if hook == Hook::Proves {
            task.ours.insert("result".into(), json!({ "run": "proof" }));
        }
        let can_start_now = self.tasks.keys().copied().filter(|id| self.can_start(*id));
        let unblocked = can_start_now
            .filter(|id| !could_start.contains(id))
            .collect();
        Ok(Outcome::Changed {
            id,
            unblocked,
            nudge: self.nudges(),
        })
    }

    fn nudges(&self) -> bool {
        let visible = self
            .tasks
            .values()
            .filter(|task| !task.is_internal())
            .count();
        // Open: a hidden task can be the check, but does not count as one of the three.
        let checks = |task: &ModelTask| {
            task.ours.contains_key("verify") || task.subject.to_lowercase().contains("verif")
        };
        self.visible_all_completed() && visible >= 3 && !self.tasks.values().any(checks)
    }

    pub(crate) fn update(&mut self, id: u64, by: &Actor, change: &Change, hook: Hook) -> Answer {
        change.subject.map_or(Ok(()), valid_line)?;
        change.owner.flatten().map_or(Ok(()), valid_line)?;
        let acting_agent = change.owner.flatten().unwrap_or(by.agent);
        if change.status == Some(Status::Completed) {
            // Open: who completes it is the caller; the owner given is who gets the credit.
            return self.complete(id, by, hook, change);
        }
        self.begin();
        let mut task = self.require(id)?.clone();
        task.check_token(by)?;
        let new_owner = change.owner.map(|owner| owner.map(str::to_owned));
        let moves = new_owner.as_ref().is_none_or(|new| *new != task.owner);
        match change.status {
            Some(Status::InProgress) => {
                if !by.force {
                    self.check_claim(id, acting_agent, false)?;
                }
                task.start(acting_agent, None, self.now);
            }
            Some(_) => {
                // Open: any caller may reopen a completed task.
                if task.status != Status::Completed {
                    task.check_owner(by)?;
                }
                task.make_pending();
                task.owner = new_owner.flatten();
            }
            None if new_owner.is_some() && moves => self.move_task(&mut task, new_owner, by)?,
            None => {}
        }
        valid_metadata(&change.metadata)?;
        task.subject = change.subject.map_or(task.subject.clone(), str::to_owned);
        task.merge(&change.metadata);
        self.tasks.insert(id, task);
        Ok(Outcome::Changed {
            id,
            unblocked: Vec::new(),
            nudge: false,
        })
    }

    fn move_task(
        &self,
        task: &mut ModelTask,
        new_owner: Option<Option<String>>,
        by: &Actor,
    ) -> Result<(), Outcome> {
        if task.status == Status::Completed && !by.force {
            return Err(refused("already_resolved"));
        }
        task.check_owner(by)?;
        let new_owner = new_owner.flatten();
        // Open: with force the owner of a completed task changes and nothing else; the new
        // owner of a task in progress has not begun; clearing the owner is a release.
        if task.status == Status::InProgress
            || (task.status == Status::Pending && new_owner.is_none())
        {
            task.make_pending();
        }
        task.owner = new_owner;
        Ok(())
    }

    pub(crate) fn delete(&mut self, id: u64, by: &Actor) -> Answer {
        self.begin();
        let task = self.require(id)?;
        task.check_token(by)?;
        // Open: a task in progress is not deleted while its agent works.
        if task.status == Status::InProgress {
            task.check_owner(by)?;
        }
        self.tasks.remove(&id);
        self.edges
            .retain(|(blocker, dependent)| *blocker != id && *dependent != id);
        Ok(Outcome::Task(id))
    }

    pub(crate) fn reset(&mut self, force: bool) -> Answer {
        self.begin();
        // Open: refused while an agent works.
        let working = self
            .tasks
            .values()
            .find(|task| task.status == Status::InProgress);
        if let Some(task) = working
            && !force
        {
            return Err(refused_by("already_claimed", &task.owner.clone().unwrap()));
        }
        let count = self.tasks.len();
        self.tasks.clear();
        self.edges.clear();
        Ok(Outcome::Removed(count))
    }

    pub(crate) fn block(&mut self, blocker: u64, dependent: u64) -> Answer {
        self.begin();
        self.require(blocker)?;
        self.require(dependent)?;
        if closes_cycle(&self.edges, blocker, dependent) {
            return Err(refused("cycle"));
        }
        self.edges.insert((blocker, dependent));
        Ok(Outcome::Task(dependent))
    }

    pub(crate) fn unblock(&mut self, blocker: u64, dependent: u64) -> Answer {
        self.begin();
        // Open: the blocker may be gone.
        self.require(dependent)?;
        self.edges.remove(&(blocker, dependent));
        Ok(Outcome::Task(dependent))
    }

    /// Returns unfinished tasks of an agent or a run that is gone.
    pub(crate) fn return_tasks(&mut self, belongs: impl Fn(&ModelTask) -> bool) -> Answer {
        self.begin();
        let mut returned = Vec::new();
        for (id, task) in &mut self.tasks {
            if task.status != Status::Completed && belongs(task) {
                task.make_pending();
                returned.push(*id);
            }
        }
        Ok(Outcome::Returned(returned))
    }
}
