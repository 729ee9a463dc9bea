//! Follows the engine: turns its events into events and outcomes of the plan, and checks for a stop
//! from outside (signals, time, money, quota).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use director::{
    BaseOf, Closed, Control, Director, DirectorError, DirectorEvent, Gate, Interrupted, Level,
    Limits, Remote, Seat, Setup, Stand, TaskEnd, usual_labels,
};
use runs::{Agents, Prove};
use store::agent_id::LEAD;
use store::name::Name;
use swarm::run::{CheckEnd, ExitReason, Proof};
use swarm::runtime::Usage;
use taskboard::{Status, Task, TaskId};

use super::board::Prepared;
use super::error::FanoutError;
use super::event::FanoutEvent;
use super::keep::{Done, Keeper, exit_of};
use super::outcome::{Outcome, Skip};
use super::plan::TaskIsolation;
use super::preview::tool;
use super::report::TaskReport;
use super::run::{Equipment, Events, RunOptions, failed_before, skipped};
use super::task::PlannedTask;

/// Time that agents get to stop: CI systems kill a job a few seconds after they signal it, and the
/// report must be written by then.
const GRACE: Duration = Duration::from_secs(2);

/// The reason why a run stopped, if it did.
#[derive(Debug, Clone, Default)]
pub(super) struct Halt {
    /// The signal that arrived.
    pub(super) signal: Option<u8>,
    /// The exhausted limit.
    pub(super) why: Option<Skip>,
    pub(super) words: Option<String>,
}

/// Follows the engine through a plan.
pub(super) struct Follow<'a> {
    pub(super) tasks: &'a [PlannedTask],
    pub(super) prepared: &'a Prepared,
    pub(super) options: &'a RunOptions,
    pub(super) began: Instant,
    pub(super) ended: Vec<bool>,
    pub(super) reports: Vec<TaskReport>,
    pub(super) events: &'a mut dyn Events,
    pub(super) agents: Agents,
    pub(super) halt: Halt,
    /// The agents of tasks whose checks have not begun.
    pub(super) unchecked: HashMap<usize, String>,
    /// Number of tasks that failed for good.
    pub(super) failed: usize,
    /// The stored work of failed tasks whose worktrees were removed.
    pub(super) put_away: HashMap<usize, Done>,
}

impl Follow<'_> {
    /// Has the engine do all tasks.
    pub(super) fn work(
        &mut self,
        stage: Equipment,
        without: &HashMap<usize, Option<String>>,
    ) -> Result<Halt, FanoutError> {
        let keeper = Keeper::start(self.agents.clone(), self.tasks.to_vec(), self.options.jobs);
        self.begin(without, &keeper);
        let control = Arc::new(Control::default());
        let interrupted = Arc::clone(&stage.interrupted);
        let spent = Arc::new(Mutex::new(None));
        let setup = self.setup(stage, &spent)?;
        let mut engine = Director::new(setup, Arc::clone(&control))?;
        let ending = engine.run(&mut |event| {
            self.look(&control, &interrupted);
            self.hear(event, &control, &keeper);
        });
        drop(engine);
        let ending = ending?;
        let spent = spent.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.halt.why = self.halt.why.take().or(spent);
        let stopped = ending.stopped.filter(|_| self.halt.signal.is_none());
        self.halt.words = self.halt.words.take().or(ending.spent).or(stopped);
        self.rest(&ending.stand, &keeper);
        let hurry = self.halt.signal.is_some() || self.halt.why == Some(Skip::Deadline);
        self.put_away = keeper.finish(hurry);
        Ok(self.halt.clone())
    }

    fn setup(
        &self,
        stage: Equipment,
        spent: &Arc<Mutex<Option<Skip>>>,
    ) -> Result<Setup, FanoutError> {
        let options = self.options;
        let seat = Seat {
            name: None,
            commands_only: false,
            runtime: None,
        };
        let remote = Remote::of(&stage.agents);
        Ok(Setup {
            gate: Some(self.gate(spent)),
            agents: stage.agents,
            crew: stage.crew,
            seats: vec![seat; options.jobs],
            limits: Limits {
                at_once: options.jobs,
                canary: options.canary,
                max_failures: options.max_failures,
                exclusive_paths: true,
            },
            base: BaseOf::Fixed(options.base.clone()),
            landings: None,
            parent: Name::new("agent", LEAD).map_err(DirectorError::from)?,
            quiet: true,
            linger: false,
            verify_timeout: Prove::TIMEOUT,
            most_grace: Some(GRACE),
            max_attempts: Prove::ATTEMPTS,
            labels: usual_labels(),
            patient: false,
            remote,
        })
    }

    /// Asked before each start: checks that money is left, and that the provider answers.
    fn gate(&self, spent: &Arc<Mutex<Option<Skip>>>) -> Gate {
        let fleet = self.agents.fleet();
        let cost = move |fleet: &runs::fleet::Fleet| {
            let account = fleet.account();
            account.map_or(0.0, |account| account.used.cost_usd)
        };
        let before = cost(&fleet);
        let (budget, spent) = (self.options.budget_usd, Arc::clone(spent));
        let models = self.has_models();
        Box::new(move || {
            // Commands cost nothing, and no provider refuses them.
            if !models {
                return None;
            }
            let over = |what: String| {
                let mut spent = spent.lock().unwrap_or_else(PoisonError::into_inner);
                *spent = Some(Skip::Budget);
                Some(Closed::ForGood(what))
            };
            if let Some(budget) = budget
                && cost(&fleet) - before >= budget
            {
                return over(format!("the budget of ${budget:.2} is spent"));
            }
            match Closed::by(&fleet) {
                Some(Closed::ForGood(what)) => over(what),
                closed => closed,
            }
        })
    }

    fn has_models(&self) -> bool {
        let mut all = self.tasks.iter();
        all.any(|task| matches!(task.work, super::task::Work::Prompt(_)))
    }

    /// Reports the state before the first task starts.
    fn begin(&mut self, without: &HashMap<usize, Option<String>>, keeper: &Keeper) {
        for at in 0..self.tasks.len() {
            if let Some(Some(_)) = without.get(&at) {
                let outcome = self.reports[at].outcome.clone();
                self.finished(at, outcome);
            }
            let Some(id) = self.prepared.ids[at].filter(|_| self.prepared.cached[at]) else {
                continue;
            };
            // A killed run may have left its worktree.
            keeper.done(id, at);
            let outcome = match self.agents.board().get(id) {
                Ok(task) => Outcome::Cached {
                    commit: self.of_result(at, &task).commit().map(str::to_owned),
                },
                Err(error) => Outcome::Internal {
                    why: error.to_string(),
                },
            };
            self.finished(at, outcome);
        }
    }

    /// Checks for a stop request and for the end of the time.
    fn look(&mut self, control: &Control, interrupted: &Interrupted) {
        if let Some(signal) = interrupted() {
            self.halt.signal = self.halt.signal.or(Some(signal));
            if control.interrupt() == Level::Stop {
                let text =
                    "interrupted: agents are asked to stop; run the same command again to resume";
                self.note(text.into());
            }
        }
        let late = |limit: Duration| self.began.elapsed() >= limit;
        if self.options.deadline.is_some_and(late) && self.halt.why.is_none() {
            let words = "the time for everything is up";
            self.halt.why = Some(Skip::Deadline);
            self.halt.words = Some(words.into());
            control.want(Level::Stop, words);
            self.note(words.into());
        }
    }

    fn hear(&mut self, event: DirectorEvent, control: &Control, keeper: &Keeper) {
        match event {
            DirectorEvent::Started {
                task,
                agent,
                attempt,
                ..
            } => {
                if let Some(at) = self.prepared.place(task)
                    && self.tasks[at].verify.is_some()
                {
                    self.unchecked.insert(at, agent.clone());
                }
                let before = self.agents.board().get(task).ok();
                let before = before.map_or(0, |task| failed_before(&task).0);
                if let Some(task) = self.name(task) {
                    let attempt = u32::try_from(attempt + before).unwrap_or(u32::MAX);
                    self.events.event(&FanoutEvent::Started {
                        task,
                        agent,
                        attempt,
                    });
                }
            }
            DirectorEvent::Ended {
                task,
                agent,
                end,
                usage,
                took,
            } => {
                if let Some(at) = self.prepared.place(task) {
                    self.unchecked.remove(&at);
                    self.add(at, usage, took);
                    self.task_ended(at, agent.as_deref(), end, control, keeper);
                }
            }
            DirectorEvent::Paused { why } => self.events.event(&FanoutEvent::Paused { why }),
            DirectorEvent::Resumed => self.events.event(&FanoutEvent::Resumed),
            DirectorEvent::Note { text } => self.note(text),
            DirectorEvent::Tick => {
                self.tell_checks();
                self.events.event(&FanoutEvent::Tick);
            }
            _ => {}
        }
    }

    /// Reports the tasks whose checks have begun. No event says that: a check is run by its host.
    fn tell_checks(&mut self) {
        let (agents, tasks, events) = (&self.agents, self.tasks, &mut *self.events);
        self.unchecked.retain(|at, agent| {
            let begun = agents.run(agent).check_path().exists();
            if begun {
                let task = tasks[*at].id.clone();
                events.event(&FanoutEvent::Checking { task });
            }
            !begun
        });
    }

    fn task_ended(
        &mut self,
        at: usize,
        agent: Option<&str>,
        end: TaskEnd,
        control: &Control,
        keeper: &Keeper,
    ) {
        let stopping = control.level() >= Level::Stop;
        let id = self.prepared.ids[at];
        match end {
            TaskEnd::Done { proof, .. } => {
                if let Some(id) = id {
                    keeper.done(id, at);
                }
                let outcome = self.of_proof(at, proof.as_deref());
                self.finished(at, outcome);
            }
            TaskEnd::Parked { why } => {
                let task = id.and_then(|id| self.agents.board().get(id).ok());
                let outcome = self.of_failure(at, task.as_ref(), why);
                self.keep_few(at, keeper);
                self.finished(at, outcome);
            }
            TaskEnd::Failed { why } => {
                let exit = agent.and_then(|agent| exit_of(&self.agents, agent));
                let quota = exit.is_some_and(|exit| exit.reason == Some(ExitReason::Quota));
                if quota {
                    self.halt.why.get_or_insert(Skip::Quota);
                    self.halt.words.get_or_insert_with(|| why.clone());
                    control.want(Level::Finish, &why);
                    self.finished(at, Outcome::Quota { why });
                } else {
                    self.retrying(at, why);
                }
            }
            TaskEnd::Stopped { why } if stopping => {
                let outcome = match self.halt.signal {
                    None if self.halt.why == Some(Skip::Deadline) => Outcome::Budget { why },
                    _ => Outcome::Killed { why },
                };
                self.finished(at, outcome);
            }
            TaskEnd::Stopped { why } => self.retrying(at, why),
            TaskEnd::Taken => self.retrying(at, "somebody else has it".into()),
        }
    }

    /// Handles a task that failed for good. If thousands fail, not all of their worktrees can be
    /// kept.
    fn keep_few(&mut self, at: usize, keeper: &Keeper) {
        self.failed += 1;
        if let Some(id) = self.prepared.ids[at].filter(|_| self.failed > self.options.keep_failed) {
            keeper.failed(id, at);
        }
    }

    fn add(&mut self, at: usize, usage: Usage, took: Duration) {
        let report = &mut self.reports[at];
        report.attempts += 1;
        report.cost.usd += usage.cost_usd;
        report.cost.tokens = report.cost.tokens.saturating_add(usage.total_tokens());
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        report.duration_ms = report.duration_ms.saturating_add(took);
    }

    fn of_proof(&self, at: usize, proof: Option<&Proof>) -> Outcome {
        let passed = proof.and_then(|proof| Some(proof.check.as_ref()?.passed));
        let passed = passed.unwrap_or(false);
        let in_place = self.tasks[at].isolation == TaskIsolation::None;
        let commit = match in_place {
            // Nothing distinguishes its work from earlier changes.
            true => Some(self.options.base.clone()),
            false => proof
                .filter(|proof| proof.changed)
                .and_then(|proof| proof.commit.clone()),
        };
        match (commit, passed) {
            (Some(commit), true) => Outcome::Proven { commit },
            (Some(commit), false) => Outcome::Unchecked { commit },
            (None, proven) => Outcome::NoChange { proven },
        }
    }

    /// The outcome of a task, from the board.
    fn of_result(&self, at: usize, task: &Task) -> Outcome {
        let proof = task.result().and_then(|result| result.to::<Proof>());
        self.of_proof(at, proof.as_ref())
    }

    fn of_failure(&self, at: usize, task: Option<&Task>, why: String) -> Outcome {
        let planned = &self.tasks[at];
        let attempts = task.map(Task::attempts).unwrap_or_default();
        let last = attempts.last().map(|last| last.run.as_str());
        let Some(exit) = last.and_then(|run| exit_of(&self.agents, run)) else {
            return Outcome::Failed { why };
        };
        if exit.reason == Some(ExitReason::Limit) {
            let after_ms = planned.timeout.map(|time| time.as_millis());
            let after_ms = after_ms.and_then(|ms| u64::try_from(ms).ok());
            return match after_ms.filter(|ms| exit.duration_ms >= *ms) {
                Some(after_ms) => Outcome::TimedOut { after_ms },
                None => Outcome::Budget { why },
            };
        }
        let files = exit.proof.as_ref().map(|proof| proof.out_of_bounds.clone());
        if let Some(files) = files.filter(|files| !files.is_empty()) {
            return Outcome::OutOfBounds { files };
        }
        let checked = exit.proof.and_then(|proof| proof.check);
        match checked.filter(|check| !check.passed) {
            Some(check) => {
                let how = check.how.unwrap_or(why);
                let missing = check.end == Some(CheckEnd::Failed(127));
                match tool(&check.command).filter(|_| missing) {
                    Some(tool) => Outcome::VerifyMissing { tool: tool.into() },
                    None => Outcome::VerifyFailed { why: how },
                }
            }
            None => Outcome::Failed { why },
        }
    }

    /// Adds the outcomes of tasks that the engine did not report.
    fn rest(&mut self, stand: &Stand, keeper: &Keeper) {
        let why = match (self.halt.signal, &self.halt.why, stand) {
            (Some(_), _, _) => Skip::Interrupted,
            (None, Some(why), _) => why.clone(),
            (None, None, Stand::GivenUp(words)) => {
                self.halt.words = Some(format!("nothing new was begun: {words}"));
                match words.contains("first") {
                    true => Skip::Canary,
                    false => Skip::MaxFailures,
                }
            }
            (None, None, _) => Skip::Interrupted,
        };
        for at in 0..self.tasks.len() {
            let Some(id) = self.prepared.ids[at].filter(|_| !self.ended[at]) else {
                continue;
            };
            let Ok(task) = self.agents.board().get(id) else {
                self.finished(
                    at,
                    Outcome::Killed {
                        why: "somebody deleted it".into(),
                    },
                );
                continue;
            };
            let outcome = match (task.status, task.parked(), &task.owner) {
                // It ended before the engine could take it over.
                (Status::Completed, _, _) => {
                    keeper.done(id, at);
                    self.reports[at].attempts += 1;
                    self.of_result(at, &task)
                }
                (_, Some(why), _) => {
                    self.keep_few(at, keeper);
                    self.of_failure(at, Some(&task), why.to_owned())
                }
                (Status::InProgress, _, Some(owner)) => Outcome::Killed {
                    why: format!("{owner} has it"),
                },
                _ => continue,
            };
            self.finished(at, outcome);
        }
        let open: Vec<usize> = (0..self.tasks.len())
            .filter(|at| !self.ended[*at])
            .collect();
        skipped(self.tasks, &mut self.reports, &self.ended, &why);
        for at in open {
            let outcome = self.reports[at].outcome.clone();
            self.finished(at, outcome);
        }
    }

    fn name(&self, id: TaskId) -> Option<String> {
        let at = self.prepared.place(id)?;
        Some(self.tasks[at].id.clone())
    }

    fn note(&mut self, text: String) {
        self.events.event(&FanoutEvent::Note { text });
    }

    fn retrying(&mut self, at: usize, why: String) {
        let task = self.tasks[at].id.clone();
        self.events.event(&FanoutEvent::Retrying { task, why });
    }

    fn finished(&mut self, at: usize, outcome: Outcome) {
        self.ended[at] = true;
        self.reports[at].outcome = outcome.clone();
        let task = self.tasks[at].id.clone();
        self.events.event(&FanoutEvent::Finished { task, outcome });
    }
}
