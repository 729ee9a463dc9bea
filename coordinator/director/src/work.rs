//! The work on one task, from its start to its end, on a thread of its own.
//!
//! Nothing here has to survive: the run records on disk how it ended, and its host completes the
//! task or gives it back. A director that is killed meanwhile loses only the wait.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use landing::{Landed, message, put_away_sent};
use runs::progress::Patience;
use runs::{AgentError, KnownWorker, MadeBy, Outcome, Output, Prove, WorksIn};
use store::agent_id::AgentId;
use store::name::Name;
use swarm::run::{ExitReason, ExitStatus, FileRules, Meta};
use swarm::runtime::Usage;
use taskboard::{Attempt, BoardError, Caller, Status, Task, TaskId};
use worktrees::TreeError;

use super::base::{BaseOf, base_for};
use super::control::{Control, Level};
use super::crew::{Job, Seat, Terms};
use super::event::TaskEnd;
use super::not_taken::{NotTaken, not_taken};
use super::setup::Setup;

/// Longest single wait for a run's end; then the wait starts again.
const ROUND: Duration = Duration::from_secs(3600);

/// A message from a work thread to the director.
#[derive(Debug)]
pub(super) enum Said {
    Started {
        seat: usize,
        meta: Box<Meta>,
        attempt: usize,
        adopted: bool,
    },
    Ended(Box<Ended>),
    /// Tasks that others may have changed.
    Changed(Vec<TaskId>),
    /// The set of workers on the same board has changed.
    Workers(Vec<KnownWorker>),
    /// The check of a task that was marked done has finished; the text says why it failed.
    Proved {
        task: TaskId,
        proved: Result<(), String>,
    },
    /// A landing is over.
    Landed(Box<Landing>),
}

/// The result of a landing.
#[derive(Debug)]
pub(super) struct Landing {
    pub(super) task: TaskId,
    pub(super) outcome: Landed,
}

/// The work on a task is over.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) seat: usize,
    pub(super) task: TaskId,
    pub(super) agent: Option<String>,
    pub(super) end: WorkEnd,
    pub(super) usage: Usage,
    pub(super) took: Duration,
}

/// How the work on a task ended.
#[derive(Debug)]
pub(super) enum WorkEnd {
    Task(TaskEnd),
    /// The work could not begin, for a reason that has nothing to do with the task.
    NotNow(String),
    /// The same, because a file could not be read or written.
    Broken(String),
    /// A process of ccb was killed, or failed, before the agent ran. That costs the task nothing
    /// but a pause.
    Hindered(String),
}

/// The failure that the next attempt should know: that of the last attempt that ended by itself. A
/// killed or lost attempt says nothing about the task, and must not hide that failure.
fn last_failure(attempts: &[Attempt]) -> Option<String> {
    let ended = |attempt: &&Attempt| attempt.counts && attempt.status != Attempt::DIED;
    let told = attempts.iter().rfind(ended);
    let told = told.or(attempts.last());
    told.map(|attempt| attempt.why.clone())
}

/// Classifies an error that stopped a task from starting without a fault of the task: a disk that
/// cannot be written concerns all tasks, everything else may concern this one.
fn hindered(error: &AgentError) -> WorkEnd {
    let why = error.to_string();
    match error.is_broken() {
        true => WorkEnd::Broken(why),
        false => WorkEnd::Hindered(why),
    }
}

/// Classifies an error on reading or claiming a task.
fn not_begun(error: BoardError) -> WorkEnd {
    match error {
        BoardError::NotFound { .. } | BoardError::Refused { .. } => WorkEnd::Task(TaskEnd::Taken),
        error => WorkEnd::Broken(error.to_string()),
    }
}

/// True if the task already records how this run ended.
fn noted(task: &Task, meta: &Meta) -> bool {
    let run = meta.life_id();
    task.attempts().iter().any(|attempt| attempt.run == run)
}

impl Setup {
    /// Does `task` in `seat`.
    pub(super) fn work(
        &self,
        id: TaskId,
        number: usize,
        seat: &Seat,
        control: &Control,
        said: &Sender<Said>,
    ) {
        let began = Instant::now();
        let mut agent = None;
        let mut usage = Usage::default();
        let end = match self.begin(id, seat) {
            Err(end) => end,
            Ok((launched, attempt)) => {
                agent = Some(launched.meta.agent_id.clone());
                let started = Said::Started {
                    seat: number,
                    meta: Box::new(launched.meta.clone()),
                    attempt,
                    adopted: false,
                };
                said.send(started).ok();
                if control.level() >= Level::Stop {
                    // It was started while all the others were asked to stop.
                    self.stop(&launched.meta, control);
                }
                let outcome = self.wait(&launched.meta, launched.run.id());
                if self.quiet
                    && let Err(error) = self.agents.delivered(&launched)
                {
                    tracing::warn!(%error, "somebody may be told again");
                }
                self.judge(id, outcome, &mut usage)
            }
        };
        self.put_away_what_others_land(id, &end);
        let ended = Ended {
            seat: number,
            task: id,
            agent,
            end,
            usage,
            took: began.elapsed(),
        };
        said.send(Said::Ended(Box::new(ended))).ok();
    }

    /// Removes the worktree of a task that others land: a machine that works for others and lands
    /// nothing does not need it.
    fn put_away_what_others_land(&self, id: TaskId, end: &WorkEnd) {
        let for_others = matches!(self.base, BaseOf::Remote(_)) && self.landings.is_none();
        if for_others
            && matches!(end, WorkEnd::Task(TaskEnd::Done { .. }))
            && let Err(error) = put_away_sent(&self.agents, id)
        {
            tracing::info!(%error, task = %id, "its tree stays");
        }
    }

    /// Waits for an agent that another process started: an earlier director, or the lead.
    pub(super) fn adopt(
        &self,
        id: TaskId,
        number: usize,
        meta: &Meta,
        adopted: bool,
        said: &Sender<Said>,
    ) {
        let began = Instant::now();
        let attempt = self.board().get(id).map_or(1, |task| task.failures() + 1);
        let started = Said::Started {
            seat: number,
            meta: Box::new(meta.clone()),
            attempt,
            adopted,
        };
        said.send(started).ok();
        let mut usage = Usage::default();
        let outcome = self.wait(meta, &meta.agent_id);
        let passed_on = || {
            let output = self.agents.output(meta, &meta.parent, Duration::ZERO)?;
            output.map_or(Ok(()), Output::passed_on)
        };
        if self.quiet
            && let Err(error) = passed_on()
        {
            tracing::warn!(%error, "somebody may be told again");
        }
        let end = self.judge(id, outcome, &mut usage);
        let ended = Ended {
            seat: number,
            task: id,
            agent: Some(meta.agent_id.clone()),
            end,
            usage,
            took: began.elapsed(),
        };
        said.send(Said::Ended(Box::new(ended))).ok();
    }

    fn begin(&self, id: TaskId, seat: &Seat) -> Result<(runs::Launched, usize), WorkEnd> {
        if self.agents.shared().is_none() {
            let task = self.board().get(id).map_err(not_begun)?;
            return self.begin_with(&task, seat, None);
        }
        // Other machines choose from the same tasks: slow steps come after the claim.
        let run = AgentId::random();
        let who = seat.name.as_ref().map_or(run.as_str(), Name::as_str);
        let claimed = self.agents.reserve(id, who, run.as_str());
        let claimed = claimed.map_err(not_begun)?;
        let _alive = self.agents.heartbeat(run.as_str());
        let begun = self.begin_with(&claimed.task, seat, Some(run.clone()));
        if begun.is_err()
            && let Err(error) = self.board().unassign_run(run.as_str())
        {
            tracing::warn!(%error, %id, "it is free again when its lease ends");
        }
        begun
    }

    /// Begins a task; if several machines could do it, it is claimed for `run` already.
    fn begin_with(
        &self,
        task: &Task,
        seat: &Seat,
        run: Option<AgentId>,
    ) -> Result<(runs::Launched, usize), WorkEnd> {
        let id = task.id;
        let verify = match self.board().check_of(task) {
            Ok(verify) => verify,
            // Its check is not the one that was approved: the task is parked with that reason.
            Err(BoardError::Refused { reason, .. }) => {
                let why = reason.to_string();
                return Err(WorkEnd::Task(TaskEnd::Parked { why }));
            }
            Err(error) => return Err(WorkEnd::Broken(error.to_string())),
        };
        let attempt = task.failures() + 1;
        let terms = self.crew.terms(task);
        let attempts = terms.attempts.unwrap_or(self.max_attempts);
        let base = match self.base(task) {
            Ok(base) => base,
            Err(AgentError::Tree(TreeError::Conflicts { files, .. })) => {
                let why = format!(
                    "the tasks it builds on change the same lines: {}",
                    files.join(", ")
                );
                return Err(self.failed(task, why, 1));
            }
            Err(error) if error.is_passing() => return Err(hindered(&error)),
            Err(error) => return Err(self.failed(task, error.to_string(), attempts)),
        };
        // A run to resume may be on another machine.
        let own = run.is_none().then_some(task);
        if let Some(launched) = own.and_then(|task| self.resume_rejected(task, verify.as_deref())) {
            return Ok((launched, attempt));
        }
        let job = Job {
            task,
            seat,
            base,
            attempt,
            last_failure: last_failure(&task.attempts()),
        };
        let mut spawn = match self.crew.agent_for(&job) {
            Ok(spawn) => spawn,
            Err(why) => return Err(self.failed(task, why, 1)),
        };
        spawn.id = run;
        spawn.task = Some(id);
        spawn.parent = self.parent.clone();
        spawn.background = !self.quiet;
        // If several machines share the board, a failure concerns this machine only.
        let alone = self.agents.shared().is_none();
        if let WorksIn::Worktree { made_by, .. } = &mut spawn.isolation
            && alone
            && !spawn.teammate
        {
            *made_by = MadeBy::Host;
        }
        spawn.plan.prove = Some(self.proof_wanted(&job, verify, terms));
        match self.agents.spawn(&spawn) {
            Ok(launched) => Ok((launched, attempt)),
            Err(AgentError::Board(BoardError::Refused { .. } | BoardError::NotFound { .. })) => {
                Err(WorkEnd::Task(TaskEnd::Taken))
            }
            Err(
                error @ (AgentError::TooMany { .. }
                | AgentError::NameTaken { .. }
                | AgentError::Paused { .. }
                | AgentError::TooFast { .. }
                | AgentError::Spent { .. }),
            ) => Err(WorkEnd::NotNow(error.to_string())),
            Err(error) if error.is_passing() => Err(hindered(&error)),
            Err(error) => Err(self.failed(task, error.to_string(), attempts)),
        }
    }

    /// The required proof of the task.
    fn proof_wanted(&self, job: &Job<'_>, verify: Option<String>, terms: Terms) -> Prove {
        let list = self.board().name().as_str();
        let message = || message::of_work(job.task, list, verify.as_deref());
        let timeout = terms.verify_timeout.unwrap_or(self.verify_timeout);
        Prove {
            commit: job.base.is_some().then(message),
            verify,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            max_attempts: terms.attempts.unwrap_or(self.max_attempts),
            all_attempts: terms.all_attempts,
            check_retries: terms.check_retries,
            keep_as: terms.keep_as,
            files: FileRules {
                paths: job.task.paths(),
                protect: terms.protect,
            },
        }
    }

    fn base(&self, task: &Task) -> Result<Option<String>, AgentError> {
        if self.base == BaseOf::NoTrees {
            return Ok(None);
        }
        let trees = self.agents.trees()?;
        base_for(&self.base, task, self.board(), &trees, self.remote.as_ref())
    }

    fn wait(&self, meta: &Meta, id: &str) -> Result<Outcome, AgentError> {
        let run = self.agents.run(id);
        loop {
            if let Some(outcome) = self.agents.wait_for(&run, meta.life, ROUND)? {
                return Ok(outcome);
            }
        }
    }

    /// Ends a run that is not wanted any more.
    pub(super) fn stop(&self, meta: &Meta, control: &Control) {
        let usual = Duration::from_millis(meta.options.stop_grace_ms);
        let grace = match control.level() {
            Level::Force => Some(Duration::ZERO),
            _ => self.most_grace.map(|most| most.min(usual)),
        };
        let stopped = self
            .agents
            .stop(meta, "the engine", Some(control.why()), grace);
        match stopped {
            Ok(_) | Err(AgentError::NotRunning { .. }) => {}
            Err(error) => tracing::warn!(%error, agent = meta.agent_id, "it does not stop"),
        }
    }

    fn judge(
        &self,
        id: TaskId,
        outcome: Result<Outcome, AgentError>,
        usage: &mut Usage,
    ) -> WorkEnd {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return WorkEnd::Broken(error.to_string()),
        };
        *usage = outcome.exit.usage;
        let why = || {
            let exit = &outcome.exit;
            exit.error.clone().unwrap_or_else(|| exit.text())
        };
        match outcome.exit.status {
            ExitStatus::Completed => match self.board().get(id) {
                Ok(task) if task.status == Status::Completed => WorkEnd::Task(TaskEnd::Done {
                    result: outcome.exit.text(),
                    proof: outcome.exit.proof.map(Box::new),
                }),
                // A hook vetoed it.
                Ok(task) if noted(&task, &outcome.meta) => self.stand_of(id, why()),
                Ok(task) => match not_taken(&task, &outcome.meta) {
                    NotTaken::OpenedAgain => WorkEnd::Task(TaskEnd::Done {
                        result: outcome.exit.text(),
                        proof: outcome.exit.proof.map(Box::new),
                    }),
                    // The run took too long, or lost its connection: then others may have the task.
                    NotTaken::Refused(_) if self.agents.shared().is_some() => {
                        WorkEnd::Task(TaskEnd::Taken)
                    }
                    NotTaken::Refused(why) => {
                        let why = format!("it was done, but the board did not take it: {why}");
                        self.failed(&task, why, self.max_attempts)
                    }
                    NotTaken::Elsewhere => WorkEnd::Task(TaskEnd::Taken),
                },
                Err(_) => WorkEnd::Task(TaskEnd::Taken),
            },
            ExitStatus::Killed => WorkEnd::Task(TaskEnd::Stopped { why: why() }),
            ExitStatus::Lost if outcome.meta.host.is_none() => {
                match outcome.exit.reason == Some(ExitReason::Broken) {
                    true => WorkEnd::Broken(why()),
                    false => WorkEnd::Hindered(why()),
                }
            }
            ExitStatus::Failed | ExitStatus::Lost => self.stand_of(id, why()),
        }
    }

    /// The state of a task whose run did not succeed.
    fn stand_of(&self, id: TaskId, why: String) -> WorkEnd {
        WorkEnd::Task(match self.board().get(id) {
            Ok(task) => match task.parked() {
                Some(_) => TaskEnd::Parked { why },
                None => TaskEnd::Failed { why },
            },
            Err(_) => TaskEnd::Taken,
        })
    }

    /// Records that a task cannot start, and will not be retried unless a person acts.
    pub(super) fn give_up(&self, id: TaskId, why: String) -> WorkEnd {
        match self.board().get(id) {
            Ok(task) => self.failed(&task, why, 1),
            Err(BoardError::NotFound { .. }) => WorkEnd::Task(TaskEnd::Taken),
            Err(error) => WorkEnd::Broken(format!("{why}; {error}")),
        }
    }

    /// Records a failure that no run recorded.
    fn failed(&self, task: &Task, why: String, most: usize) -> WorkEnd {
        let run = format!("engine-{}", uuid::Uuid::new_v4());
        let attempt = Attempt::new(run, "failed", &why);
        let patience = Patience::of(most);
        let caller = Caller::new(task.owner.clone().unwrap_or_default());
        match self
            .board()
            .attempt_failed(task.id, &caller, &attempt, &|all| patience.is_over(all))
        {
            Ok(_) => self.stand_of(task.id, why),
            Err(BoardError::Refused { .. } | BoardError::NotFound { .. }) => {
                WorkEnd::Task(TaskEnd::Taken)
            }
            Err(error) => WorkEnd::Broken(format!("{why}; {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(status: &str, why: &str, counts: bool) -> Attempt {
        Attempt {
            counts,
            ..Attempt::new(format!("run-{why}"), status, why)
        }
    }

    #[test]
    fn the_next_one_is_told_what_the_work_failed_by_not_what_killed_an_agent() {
        let check = || attempt("completed", "the check failed", true);
        let died = || attempt(Attempt::DIED, "ended by signal 9", true);
        let lost = || attempt("lost", "its host died", false);
        for (attempts, told) in [
            (vec![], None),
            (vec![check()], Some("the check failed")),
            (vec![check(), died()], Some("the check failed")),
            (vec![check(), lost(), died()], Some("the check failed")),
            // Nothing better is known.
            (vec![died()], Some("ended by signal 9")),
            (vec![died(), lost()], Some("its host died")),
        ] {
            assert_eq!(last_failure(&attempts).as_deref(), told, "{attempts:?}");
        }
    }
}
