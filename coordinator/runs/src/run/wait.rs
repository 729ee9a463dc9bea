//! Waiting for a run's result.

use std::time::{Duration, Instant};

use store::fault::reached;
use swarm::run::{Exit, Meta, RunDir, Told, Waiter};

use super::agents::Agents;
use super::entry::FINISHING;
use super::error::AgentError;
use super::start::Launched;
use crate::fault;

/// The end of a run, for the caller that waited.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The run's present record.
    pub meta: Meta,
    /// The run's end.
    pub exit: Exit,
}

impl Agents {
    /// Waits until the run has ended and is finished, at most `limit`. None if it has not by then.
    ///
    /// A caller that gets an outcome passes it on and then says so with [`Self::delivered`].
    pub fn wait(
        &self,
        launched: &Launched,
        limit: Duration,
    ) -> Result<Option<Outcome>, AgentError> {
        self.wait_for(&launched.run, launched.meta.life, limit)
    }

    /// Waits for a run that another process may have started, without marking its result as
    /// delivered.
    pub fn wait_for(
        &self,
        run: &RunDir,
        life: u32,
        limit: Duration,
    ) -> Result<Option<Outcome>, AgentError> {
        if run.wait_exit(life, limit)?.is_none() && run.is_alive()? {
            return Ok(None);
        }
        // The answer contains the state of its task and its worktree, so this waits for the process
        // that finishes the run, and if that dies, for the next one.
        let deadline = Instant::now() + FINISHING;
        // A run that already resumed was finished before that.
        while run.meta()?.life == life {
            run.wait_dead(deadline.saturating_duration_since(Instant::now()))?;
            self.reconcile_one(run)?;
            if !run.is_alive()? || Instant::now() >= deadline {
                break;
            }
        }
        match run.exit(life)? {
            Some(exit) => Ok(Some(Outcome {
                meta: run.meta()?,
                exit,
            })),
            None => Ok(None),
        }
    }

    /// Records that the result was passed on: no notification is needed.
    pub fn delivered(&self, launched: &Launched) -> Result<(), AgentError> {
        mark_delivered(&launched.run)
    }

    /// Stops waiting; the run continues in the background, and its parent will be notified. Unless
    /// it has just ended: then this is its outcome.
    pub fn to_background(&self, mut launched: Launched) -> Result<Option<Outcome>, AgentError> {
        let lock = launched.run.lock()?;
        let meta = launched.run.meta()?;
        if meta.told == Some(Told::Waiting)
            && let Some(exit) = launched.run.exit(meta.life)?
        {
            mark_delivered_locked(&launched.run, meta.clone())?;
            drop(launched.waiter.take());
            return Ok(Some(Outcome { meta, exit }));
        }
        drop(launched.waiter.take());
        drop(lock);
        Ok(None)
    }

    /// The result of a run for `reader`, who asks for it: waits for its end at most `limit`.
    pub fn output(
        &self,
        meta: &Meta,
        reader: &str,
        limit: Duration,
    ) -> Result<Option<Output>, AgentError> {
        let run = self.run(&meta.agent_id);
        self.reconcile_one(&run)?;
        // Another reader takes nothing away from the parent, which must be notified.
        let waiter = match meta.parent.eq_ignore_ascii_case(reader) {
            true => Some(run.waiter()?),
            false => None,
        };
        let exit = run.wait_exit(meta.life, limit)?;
        let exit = match exit {
            None if !run.is_alive()? => {
                self.reconcile_one(&run)?;
                run.exit(meta.life)?
            }
            exit => exit,
        };
        let Some(exit) = exit else {
            return Ok(None);
        };
        let outcome = Outcome {
            meta: run.meta()?,
            exit,
        };
        Ok(Some(Output {
            outcome,
            run,
            waiter,
        }))
    }
}

/// A result that a reader has asked for. The parent gets it by mail, unless the parent itself
/// asked, and has got it.
#[derive(Debug)]
pub struct Output {
    /// The end of the run.
    pub outcome: Outcome,
    run: RunDir,
    waiter: Option<Waiter>,
}

impl Output {
    /// Records that the reader has the result.
    pub fn passed_on(self) -> Result<(), AgentError> {
        let Some(waiter) = self.waiter else {
            return Ok(());
        };
        // Its host may still be busy with its worktree; the notification is this reader's part.
        let lock = self.run.lock()?;
        let meta = self.run.meta()?;
        if meta.life == self.outcome.exit.life && matches!(meta.told, None | Some(Told::Waiting)) {
            mark_delivered_locked(&self.run, meta)?;
        }
        drop(lock);
        drop(waiter);
        Ok(())
    }
}

fn mark_delivered(run: &RunDir) -> Result<(), AgentError> {
    let lock = run.lock()?;
    let meta = run.meta()?;
    mark_delivered_locked(run, meta)?;
    drop(lock);
    Ok(())
}

fn mark_delivered_locked(run: &RunDir, mut meta: Meta) -> Result<(), AgentError> {
    let waiting = meta.told == Some(Told::Waiting);
    meta.told = Some(Told::Delivered);
    run.write_meta(&meta)?;
    reached(fault::FINISH_TOLD);
    if waiting {
        run.settle()?;
    }
    Ok(())
}
