//! The services a host needs, from the board, the mail and the worktrees.

use std::time::Duration;

use mailbox::{Draft, Question, RequestState};
use serde_json::Value;
use store::agent_id::LEAD;
use store::clock::{Clock, SystemClock};
use store::name::Name;
use swarm::hooks::HookEvent;
use swarm::run::{
    Asked, Child, Exit, HookCall, HostServices, Mail, MayBegin, Meta, ModeOrder, Proof, RunDir,
    Seal, ServiceError,
};
use swarm::runtime::Usage;
use taskboard::{Status, TaskId};
use worktrees::{Changes, CheckTree, Lease, Slug, TreeError};

use super::agent_mail::AgentMail;
use super::agents::Agents;
use super::error::AgentError;
use super::finish;
use super::heartbeat::{Heartbeat, Standing};
use super::judge::Before;
use super::run_hooks::RunHooks;
use super::stop::stop_request;
use crate::fleet::Gate;

/// The rest of the engine, as a host sees it.
#[derive(Debug)]
pub(super) struct RunServices {
    pub(super) agents: Agents,
    run: RunDir,
    pub(super) meta: Meta,
    tree: Option<Lease>,
    /// The worktree of its check; `None` before the check.
    pub(super) check_tree: Option<CheckTree>,
    /// The worktree's changes after all of the run's work there had ended.
    seen: Option<Changes>,
    /// The usage that the team's account already contains.
    reported: Usage,
    hooks: Option<RunHooks>,
    before: Before,
    /// Notes about the worktree's `.git`.
    git_notes: Vec<String>,
    /// Renews the leases of its tasks if several machines share the board; `None` for files.
    heartbeat: Option<Heartbeat>,
}

/// The resources a run keeps while it has no host.
#[derive(Debug)]
pub struct HeldWhileParked {
    tree: Option<Lease>,
    before: Before,
}

impl RunServices {
    pub(super) fn new(agents: Agents, run: RunDir, meta: &Meta) -> Self {
        Self {
            agents,
            run,
            meta: meta.clone(),
            tree: None,
            check_tree: None,
            seen: None,
            reported: Usage::default(),
            hooks: None,
            before: Before::default(),
            git_notes: Vec::new(),
            heartbeat: None,
        }
    }

    /// Says from now on that the run is alive, where others cannot see it.
    pub(super) fn stay_alive(&mut self) {
        self.heartbeat = self.agents.heartbeat(&self.meta.agent_id);
    }

    /// Records the state before the agent starts. `held` is true if the system can keep its program
    /// from writing.
    pub(super) fn look_before(&mut self, held: bool) {
        self.before = Before::look(&self.meta, held);
    }

    /// Releases everything except the resources to hold.
    pub(super) fn let_go(self) -> HeldWhileParked {
        HeldWhileParked {
            tree: self.tree,
            before: self.before,
        }
    }

    /// Takes over the resources that were held.
    pub(super) fn take_up(&mut self, held: HeldWhileParked) {
        self.tree = held.tree;
        self.before = held.before;
    }

    /// Lets these hooks have their say.
    pub(super) fn with_hooks(mut self, hooks: RunHooks) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// Marks the run's worktree as in use, as long as the host lives. `held` is such a mark
    /// already.
    pub(super) fn hold_tree(&mut self, meta: &Meta, held: Option<Lease>) -> Result<(), AgentError> {
        self.tree = held.or_else(|| self.tree.take());
        if let (Some(tree), None) = (&meta.worktree, &self.tree) {
            let slug = Slug::new(&tree.name)?;
            self.tree = Some(self.agents.trees()?.hold(&slug)?);
        }
        self.enter_tree(meta)
    }

    /// Gives the agent a `.git` of its own in its worktree, if the worktree is the agent's own.
    fn enter_tree(&mut self, meta: &Meta) -> Result<(), AgentError> {
        let confined = meta.launch.sandbox.is_some();
        let wanted = confined || self.agents.options.private_git;
        let (Some(tree), Some(lease)) = (&meta.worktree, &mut self.tree) else {
            return Ok(());
        };
        if !wanted || lease.is_inside() {
            return Ok(());
        }
        let without = self.agents.trees()?.enter(&Slug::new(&tree.name)?, lease)?;
        if let (Some(why), true) = (without, confined) {
            self.git_notes.push(format!(
                "it had no .git of its own, so it could not commit: {why}. What it did to files is kept"
            ));
        }
        Ok(())
    }

    /// The user sees what the agent has committed so far.
    fn show_commits(&self) {
        let (Some(tree), Some(_lease)) = (&self.meta.worktree, &self.tree) else {
            return;
        };
        let shown = (|| {
            let trees = self.agents.trees()?;
            Ok::<_, AgentError>(trees.catch_up(&trees.get(&Slug::new(&tree.name)?)?)?)
        })();
        if let Err(error) = shown {
            tracing::warn!(%error, "what it has committed is shown later");
        }
    }

    /// Ends the use of the worktree: takes over the agent's commits.
    pub(super) fn leave_tree(&mut self) -> Result<(), AgentError> {
        let (Some(tree), Some(lease)) = (&self.meta.worktree, &mut self.tree) else {
            return Ok(());
        };
        if !lease.is_inside() {
            return Ok(());
        }
        let slug = Slug::new(&tree.name)?;
        if let Some(why) = self.agents.trees()?.leave(&slug, Some(lease))? {
            self.git_notes.push(format!(
                "the commits it made itself were not taken over: {why}. Its files are"
            ));
        }
        Ok(())
    }

    fn tell(&self, from: Name, to: Name, summary: &str, text: &str) -> Result<(), ServiceError> {
        let draft = Draft {
            summary: Some(summary.chars().take(200).collect()),
            ..Draft::text(from, to, text)
        };
        self.agents.mailbox().send(&draft).map_err(port)?;
        Ok(())
    }

    pub(super) fn own_name(&self) -> Result<Name, ServiceError> {
        name(self.meta.address())
    }
}

pub(super) fn name(text: &str) -> Result<Name, ServiceError> {
    Name::new("agent", text).map_err(port)
}

pub(super) fn port(error: impl std::fmt::Display) -> ServiceError {
    ServiceError {
        why: error.to_string(),
        passing: false,
    }
}

/// The same for errors of worktrees, which know if the agent is at fault.
pub(super) fn tree_port(error: TreeError) -> ServiceError {
    ServiceError {
        passing: error.is_passing(),
        ..port(error)
    }
}

impl HostServices for RunServices {
    fn mail(&mut self) -> Result<Box<dyn Mail>, ServiceError> {
        let inbox = self.agents.mailbox().inbox(&self.own_name()?);
        let consumer = inbox.and_then(|inbox| inbox.consumer()).map_err(port)?;
        Ok(Box::new(AgentMail {
            consumer,
            mailbox: self.agents.mailbox(),
            own: self.own_name()?,
            parent: self.meta.parent.clone(),
            most: self.meta.launch.most_mode.clone(),
        }))
    }

    fn lost_task(&mut self) -> Result<Option<String>, ServiceError> {
        let (Some(id), Some(token)) = (&self.meta.task_id, self.meta.token) else {
            return Ok(None);
        };
        let Ok(id) = id.parse::<TaskId>() else {
            return Ok(None);
        };
        match self.heartbeat.as_ref().map(|it| it.standing(id, token)) {
            Some(Standing::Held) => return Ok(None),
            Some(Standing::CutOff(why)) => {
                return Ok(Some(format!(
                    "the board could not be reached, and soon task {id} is given to others: {why}"
                )));
            }
            Some(Standing::NotHeld) | None => {}
        }
        let task = match self.agents.board().get(id) {
            Ok(task) => task,
            Err(taskboard::BoardError::NotFound { .. }) => {
                return Ok(Some(format!("task {id} was deleted")));
            }
            Err(error) => return Err(port(error)),
        };
        // The agent itself may have completed it.
        let ours = task.status == Status::Completed
            || task.lease().is_some_and(|lease| lease.token == token);
        if ours {
            return Ok(None);
        }
        let now = match &task.owner {
            Some(owner) => format!("task {id} belongs to {owner} now"),
            None => format!("task {id} was taken back"),
        };
        Ok(Some(now))
    }

    fn tell_parent(&mut self, summary: &str, text: &str) -> Result<(), ServiceError> {
        self.tell(self.own_name()?, name(&self.meta.parent)?, summary, text)
    }

    fn mode_set(
        &mut self,
        order: &ModeOrder,
        meta: &Meta,
        refused: Option<&str>,
    ) -> Result<(), ServiceError> {
        let own = self.own_name()?;
        self.meta.permission_mode.clone_from(&meta.permission_mode);
        let allowed = &meta.launch.allowed_commands;
        self.meta.launch.allowed_commands.clone_from(allowed);
        // Also if it refuses: the caller may have recorded the mode that it asked for.
        if let (true, Some(mode)) = (self.meta.teammate, &meta.permission_mode) {
            let set = self.agents.roster().set_mode(own.as_str(), mode);
            set.map_err(port)?;
        }
        if let Some(request) = &order.request {
            let feedback = refused.map(str::to_owned);
            let mailbox = self.agents.mailbox();
            let told = mailbox.answer(request, &own, refused.is_none(), feedback);
            told.map_err(port)?;
        }
        Ok(())
    }

    fn tell_agent(&mut self, summary: &str, text: &str) -> Result<(), ServiceError> {
        self.tell(name(LEAD)?, self.own_name()?, summary, text)
    }

    fn hooks(&mut self, event: HookEvent) -> Result<HookCall, ServiceError> {
        match &self.hooks {
            Some(hooks) if !self.agents.options.in_hook => Ok(hooks.call(event, &self.agents)),
            _ => Ok(HookCall::default()),
        }
    }

    fn children(&mut self) -> Result<Vec<Child>, ServiceError> {
        self.agents.running_children(&self.meta).map_err(port)
    }

    fn stop_child(
        &mut self,
        child: &Child,
        why: &str,
        grace: Duration,
    ) -> Result<(), ServiceError> {
        let run = self.agents.run(&child.id);
        let meta = run.meta().map_err(port)?;
        let by = self.meta.address();
        let why = Some(why.to_owned());
        run.ask_to_stop(&stop_request(&meta, by, why, grace))
            .map_err(port)
    }

    fn ask(&mut self, tool: &str, input: &Value) -> Result<Asked, ServiceError> {
        self.ask_for(tool, input)
    }

    fn leaves(&mut self) -> Result<bool, ServiceError> {
        let own = self.own_name()?;
        let all = self.agents.mailbox().requests().map_err(port)?;
        let since = self.meta.started_at.as_str();
        Ok(all.requests.iter().any(|request| {
            matches!(request.question, Question::Shutdown(_))
                && request.to.eq_ignore_ascii_case(own.as_str())
                && request.state == RequestState::Approved
                && request.created_at.as_str() >= since
        }))
    }

    fn may_park(&mut self) -> bool {
        // No bell rings when a task is taken back, or when the team's time is over; and a lease in
        // a database ends if its holder does not renew it.
        self.meta.task_id.is_none()
            && !self.agents.options.fleet.has_deadline()
            && self.agents.shared().is_none()
    }

    fn idle(&mut self, idle: bool) -> Result<(), ServiceError> {
        if idle {
            self.show_commits();
        }
        if self.meta.address() == LEAD {
            // The lead reads its own mail without this.
            return Ok(());
        }
        let (mailbox, own) = (self.agents.mailbox(), self.own_name()?);
        let noted = if idle {
            let notification = mailbox::IdleNotification {
                idle_reason: mailbox::IdleReason::Available,
                finished_tasks: Vec::new(),
                failure_reason: None,
            };
            let lead = name(LEAD)?;
            mailbox.note_idle(&own, &lead, notification).map(drop)
        } else {
            mailbox.note_busy(&own)
        };
        noted.map_err(port)
    }

    fn seal(&mut self) -> Result<Option<Seal>, ServiceError> {
        let Some(prove) = self.meta.launch.prove.clone() else {
            return Ok(None);
        };
        self.leave_tree().map_err(|error| match error {
            AgentError::Tree(error) => tree_port(error),
            error => port(error),
        })?;
        let mut proof = Proof::default();
        if let Some(sealed) = self.seal_tree(&prove)? {
            self.seen = Some(sealed.seen);
            proof = Proof {
                commit: Some(sealed.commit),
                base: sealed.base,
                changed: sealed.changed,
                out_of_bounds: Vec::new(),
                check: None,
            };
        }
        let refused = self.refuse_files(&prove, &mut proof)?;
        if refused.is_some() {
            return Ok(Some(Seal {
                proof,
                refused,
                ..Seal::default()
            }));
        }
        let check_dir = match (&proof.commit, &prove.verify) {
            (Some(commit), Some(_)) => Some(self.check_dir(commit)?),
            _ => None,
        };
        Ok(Some(Seal {
            proof,
            check_dir,
            check: prove.verify,
            timeout: Duration::from_millis(prove.timeout_ms),
            retries: prove.check_retries,
            refused: None,
        }))
    }

    fn checked(&mut self, passed: bool) -> Option<String> {
        let tree = self.check_tree.take()?;
        let hint = match passed {
            true => None,
            false => tree.hidden_in(&self.meta.cwd),
        };
        tree.release(self.after_check());
        hint
    }

    fn judge(&mut self, exit: &mut Exit) {
        if let Err(error) = self.leave_tree() {
            tracing::warn!(%error, "its commits are left to whoever needs the worktree next");
        }
        exit.notes.append(&mut self.git_notes);
        let (agents, run) = (&self.agents, &self.run);
        self.before.judge(agents, run, &self.meta, exit);
    }

    fn may_begin(&mut self) -> Result<MayBegin, ServiceError> {
        // A command asks no model.
        if !self.meta.runtime.kind.has_model() {
            return Ok(MayBegin::Now);
        }
        let gate = self.agents.fleet().enter(&self.meta.agent_id);
        Ok(match gate.map_err(port)? {
            Gate::Paused { until, reason } => MayBegin::Later {
                wait: until_then(until),
                why: format!("the provider refuses: {reason}"),
            },
            Gate::Spent { what } => MayBegin::Never(what),
            // The number of starts does not matter to an agent that already runs.
            _ => MayBegin::Now,
        })
    }

    fn refused(&mut self, retry_after: Option<Duration>, why: &str) -> Result<(), ServiceError> {
        let fleet = self.agents.fleet();
        let noted = fleet.quota(&self.meta.agent_id, retry_after, why);
        noted.map_err(port)
    }

    fn answered(&mut self) -> Result<(), ServiceError> {
        let fleet = self.agents.fleet();
        fleet.answered(&self.meta.agent_id).map_err(port)
    }

    fn used(&mut self, used: &Usage) -> Result<Option<String>, ServiceError> {
        if *used == self.reported {
            return Ok(None);
        }
        let fleet = self.agents.fleet();
        let spent = fleet.spent(&self.meta.life_id(), used).map_err(port)?;
        self.reported = *used;
        Ok(spent)
    }

    fn team_late(&mut self) -> Result<Option<String>, ServiceError> {
        self.agents.fleet().late().map_err(port)
    }

    fn tree_state(&mut self) -> Option<String> {
        worktrees::fingerprint_of(&self.meta.cwd)
    }

    fn finish(&mut self, exit: &Exit, written: &mut dyn FnMut()) -> Result<(), ServiceError> {
        // No process uses the worktree any more.
        if let Err(error) = self.leave_tree() {
            tracing::warn!(%error, "its commits are left to whoever needs the worktree next");
        }
        self.tree = None;
        Ok(finish::finish(
            &self.agents,
            &self.run,
            exit,
            self.seen.as_ref(),
            written,
        )?)
    }
}

/// The time left until then.
fn until_then(until: i64) -> Duration {
    let left = until.saturating_sub(SystemClock.now_ms()).max(1);
    Duration::from_millis(u64::try_from(left).unwrap_or(1))
}
