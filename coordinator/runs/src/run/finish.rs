//! The steps at the end of a run, in order.
//!
//! 1. ccb writes down how it ended: `exit.json`, created by the first process to do so. The caller
//!    that waits for the result wakes up.
//! 2. Its tasks: completed if that was its job and it did it, else released.
//! 3. Its worktree: removed if it has no changes, else kept. Its temporary files.
//! 4. Its parent gets one notification: from the caller that waits for the result, or as a message
//!    whose id follows from the run.
//! 5. The run is marked as settled.
//!
//! Host, guard, and any process that finds an unsupervised run do the same, and each step can be
//! repeated.

use mailbox::{RunStatus, TaskNotification, TeammateTerminated, WorktreeLeft};
use store::agent_id::LEAD;
use store::atomic::{self, Durability};
use store::fault::reached;
use store::name::Name;
use swarm::run::{By, Exit, ExitStatus, Meta, Proof, RunDir, Told, TreeOf, TreeOutcome};
use taskboard::{Status, TaskId};
use worktrees::{AgentEnd, Changes, GivenBack, SetUp, Slug, TreeError};

use super::agents::Agents;
use super::error::AgentError;
use super::finish_tasks::{Settled, settle_tasks};
use crate::fault;

/// Finishes a run that ended like this, unless `exit.json` already says otherwise.
///
/// If the disk is full, what the agent printed makes room for how it ended. `seen` is the state of
/// its worktree, if it was read after the run ended.
pub(super) fn finish(
    agents: &Agents,
    run: &RunDir,
    exit: &Exit,
    seen: Option<&Changes>,
    written: &mut dyn FnMut(),
) -> Result<(), AgentError> {
    match carry_out(agents, run, exit, seen, written) {
        Err(error) if is_disk_full(&error) => {
            if run.output_path().exists() {
                tracing::warn!(%error, "what was printed is deleted to make room");
            }
            run.drop_output()?;
            carry_out(agents, run, exit, seen, written)
        }
        outcome => outcome,
    }
}

fn is_disk_full(error: &AgentError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            let kind = error.kind();
            return matches!(
                kind,
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
            );
        }
        cause = error.source();
    }
    false
}

fn carry_out(
    agents: &Agents,
    run: &RunDir,
    exit: &Exit,
    seen: Option<&Changes>,
    written: &mut dyn FnMut(),
) -> Result<(), AgentError> {
    sync_uncommitted(agents, run, exit)?;
    let exit = run.end(&agents.without_secrets(exit), Durability::Full)?;
    let mut meta = note_end(run, &exit)?;
    written();
    reached(fault::FINISH_STATE);
    settle_account(agents, &meta, &exit);
    let tasks = settle_tasks(agents, &meta, &exit)?;
    for (key, why) in [(VETOED, &tasks.vetoed), (REFUSED, &tasks.refused)] {
        if let Some(mut why) = why.clone() {
            agents.starter.secret_filter().text(&mut why);
            meta.other.insert(key.into(), why.into());
        }
    }
    reached(fault::FINISH_TASKS);
    end_tree(agents, &mut meta, &exit, seen);
    // Before the parent gets the notification: from then on another process may be the last one
    // that uses the run.
    if let Some(tmp) = &meta.tmp
        && let Err(error) = store::tree::delete(tmp)
    {
        tracing::warn!(%error, "temporary files are left");
    }
    reached(fault::FINISH_TREE);
    leave_team(agents, &meta, &exit, &tasks);
    tell(agents, run, &mut meta, &exit, &tasks)?;
    reached(fault::FINISH_DONE);
    if meta.told != Some(Told::Waiting) {
        run.settle()?;
    }
    Ok(())
}

/// Writes the files of the directory the agent worked in to the disk before the task is completed,
/// because a proof without a commit rests on them. A commit is on the disk since it was made.
fn sync_uncommitted(agents: &Agents, run: &RunDir, exit: &Exit) -> Result<(), AgentError> {
    let uncommitted = |proof: &Proof| proof.commit.is_none();
    if exit.status == ExitStatus::Completed && exit.proof.as_ref().is_some_and(uncommitted) {
        let directory = run.meta()?.cwd;
        if directory.is_dir() {
            let durability = Durability::of(agents.options.trees_durable);
            atomic::sync_file_system(&directory, durability)?;
        }
    }
    Ok(())
}

/// Writes down the state of the run. Under the run's lock, because a process that has seen how it
/// ended may write down that its parent was notified.
fn note_end(run: &RunDir, exit: &Exit) -> Result<Meta, AgentError> {
    let lock = run.lock()?;
    let mut meta = run.meta()?;
    meta.state = exit.status.state();
    meta.ended_at = Some(exit.ended_at.clone());
    meta.pid = None;
    run.write_meta(&meta)?;
    drop(lock);
    Ok(meta)
}

/// The end of a run whose agent did not start.
pub(super) fn failed_to_launch(meta: &Meta, status: ExitStatus, why: String) -> Exit {
    Exit {
        duration_ms: 0,
        ..Exit::now(meta, status, Some(why), By::Host)
    }
}

/// Adds the run's usage to the team's; agents that wait for this one's result stop waiting.
fn settle_account(agents: &Agents, meta: &Meta, exit: &Exit) {
    let left = agents
        .fleet()
        .left(&meta.agent_id, &meta.life_id(), &exit.usage);
    if let Err(error) = left {
        tracing::warn!(%error, "the team's account is not up to date");
    }
}

/// The key in a run's `meta.json` for a hook's veto on its task; removed when the run resumes.
pub(super) const VETOED: &str = "taskVetoed";
pub(super) const REFUSED: &str = "taskRefused";

fn said_of_task<'m>(meta: &'m Meta, key: &str) -> Option<&'m str> {
    meta.other.get(key).and_then(serde_json::Value::as_str)
}

/// The reason of a hook that refused to complete the run's task; `None` if no hook did.
pub(super) fn task_vetoed(meta: &Meta) -> Option<&str> {
    said_of_task(meta, VETOED)
}

/// The reason of the board for refusing the run's change of its task; `None` if it did not.
pub fn task_refused(meta: &Meta) -> Option<&str> {
    said_of_task(meta, REFUSED)
}

/// Removes the run's worktree if it has no changes. A failure here is no reason to keep the parent
/// waiting: then the worktree stays.
fn end_tree(agents: &Agents, meta: &mut Meta, exit: &Exit, seen: Option<&Changes>) {
    let Some(mut tree) = meta.worktree.clone() else {
        return;
    };
    if let Some(kept) = kept_commit(meta, exit) {
        match use_again(agents, meta, &tree, &kept) {
            Ok(GivenBack::Yes) => {
                tree.outcome = Some(TreeOutcome {
                    kept: false,
                    why: "its commit is kept, and the worktree is used for other tasks".into(),
                });
                meta.worktree = Some(tree);
                return;
            }
            Ok(GivenBack::No(why)) => tracing::info!(why, "the tree is not used again"),
            Err(error) => tracing::info!(%error, "the tree is not used again"),
        }
    }
    let ended = (|| {
        let trees = agents.trees()?;
        let slug = Slug::new(&tree.name)?;
        // The process that made it may have died half way.
        trees.settle(&slug)?;
        let ended = match seen {
            Some(seen) => trees.agent_left(&slug, seen.clone()),
            None => trees.agent_ended(&slug),
        };
        if let (Ok(AgentEnd::Removed(removed)), Some(id)) = (&ended, &removed_task(meta)) {
            agents.board().unbind_worktree(*id, slug.as_str()).ok();
            trees.forget_task(&removed.entry).ok();
        }
        Ok::<_, AgentError>(ended)
    })();
    let outcome = match ended {
        Ok(Ok(AgentEnd::Removed(_))) => TreeOutcome {
            kept: false,
            why: "nothing was changed in it".into(),
        },
        Ok(Ok(AgentEnd::Kept { changes, why, .. })) => TreeOutcome {
            kept: true,
            why: why.unwrap_or_else(|| changes.describe()),
        },
        // It was removed before, by this run or by another process; or it was never made.
        Ok(Err(TreeError::NotFound { .. })) => {
            agents.forget_awaited(meta);
            match tree.outcome.take() {
                Some(outcome) => outcome,
                None => TreeOutcome {
                    kept: false,
                    why: "it is gone".into(),
                },
            }
        }
        Ok(Err(error)) => kept_for(&error),
        Err(error) => kept_for(&error),
    };
    tree.outcome = Some(outcome);
    meta.worktree = Some(tree);
}

/// The result of a run that is kept under a name of its own, so that its worktree is not needed: a
/// commit that counts, or the one it began with.
fn kept_commit(meta: &Meta, exit: &Exit) -> Option<Kept> {
    let name = meta.launch.prove.as_ref()?.keep_as.clone()?;
    let proof = exit.proof.as_ref()?;
    let commit = proof.commit.clone()?;
    let counts = exit.status == ExitStatus::Completed && task_vetoed(meta).is_none();
    counts.then_some(Kept {
        name: proof.changed.then_some(name),
        commit,
    })
}

/// A commit, and the name it is kept under if it is not there anyway.
struct Kept {
    name: Option<String>,
    commit: String,
}

/// Keeps the commit, and releases the worktree for the next agent that needs one.
fn use_again(
    agents: &Agents,
    meta: &Meta,
    tree: &TreeOf,
    kept: &Kept,
) -> Result<GivenBack, AgentError> {
    let trees = agents.trees()?;
    let slug = Slug::new(&tree.name)?;
    // Asks the board, because the task may have been reopened.
    let task = removed_task(meta);
    let done = match task {
        Some(id) => agents.board().get(id)?.status == Status::Completed,
        None => false,
    };
    if !done {
        return Ok(GivenBack::No("its task is not done".into()));
    }
    if let Some(name) = &kept.name {
        trees.pin(name, &kept.commit)?;
    }
    let set_up: SetUp = serde_json::from_value(tree.set_up.clone()).unwrap_or_default();
    let given = trees.give_back(&slug, &kept.commit, &set_up)?;
    if let (GivenBack::Yes, Some(id)) = (&given, task) {
        agents.board().unbind_worktree(id, slug.as_str()).ok();
    }
    Ok(given)
}

fn removed_task(meta: &Meta) -> Option<TaskId> {
    meta.task_id.as_ref()?.parse().ok()
}

fn kept_for(error: &dyn std::fmt::Display) -> TreeOutcome {
    TreeOutcome {
        kept: true,
        why: error.to_string(),
    }
}

/// A member that has ended is not at work any more.
fn leave_team(agents: &Agents, meta: &Meta, exit: &Exit, settled: &Settled) {
    let (true, Some(name)) = (meta.teammate, &meta.name) else {
        return;
    };
    let tree = meta.worktree.as_ref();
    let outcome = tree.and_then(|tree| tree.outcome.as_ref());
    let update = team::MemberUpdate {
        is_active: Some(false),
        worktree_path: outcome.is_some_and(|outcome| !outcome.kept).then_some(None),
        ..team::MemberUpdate::default()
    };
    if let Err(error) = agents.roster().update(name, &update) {
        tracing::warn!(%error, "the roster is not up to date");
    }
    if name == LEAD {
        return;
    }
    let gone = TeammateTerminated {
        teammate: name.clone(),
        reason: exit.error.clone(),
        returned_tasks: settled
            .returned
            .iter()
            .map(|task| task.id.to_string())
            .collect(),
    };
    let names = Name::new("agent", name).and_then(|own| Ok((own, Name::new("agent", LEAD)?)));
    let told = names.map(|(own, lead)| {
        let mailbox = agents.mailbox();
        mailbox.terminated(own, lead, &meta.life_id(), gone)
    });
    if let Ok(Err(error)) = told {
        tracing::warn!(%error, "the lead is not told that {name} is gone");
    }
}

/// Makes sure that the parent gets one notification.
fn tell(
    agents: &Agents,
    run: &RunDir,
    meta: &mut Meta,
    exit: &Exit,
    settled: &Settled,
) -> Result<(), AgentError> {
    // A caller that waits for the result gives up under the same lock.
    let lock = run.lock()?;
    let told = run.meta()?.told;
    if !matches!(told, Some(Told::Delivered | Told::Posted | Told::Nobody)) {
        meta.told = Some(if meta.parent == meta.address() {
            Told::Nobody
        } else if run.has_waiter()? {
            Told::Waiting
        } else {
            notify(agents, run, meta, exit, settled)?;
            Told::Posted
        });
        reached(fault::FINISH_TOLD);
    } else {
        meta.told = told;
    }
    run.write_meta(meta)?;
    drop(lock);
    Ok(())
}

fn notify(
    agents: &Agents,
    run: &RunDir,
    meta: &Meta,
    exit: &Exit,
    settled: &Settled,
) -> Result<(), AgentError> {
    let from = Name::new("agent", meta.address())?;
    let to = Name::new("agent", &meta.parent)?;
    let mut result = exit.text();
    if let Some(note) = &settled.note {
        result.push_str(&format!("\n\n{note}"));
    }
    if let Some(why) = task_vetoed(meta) {
        result.push_str(&format!(
            "\n\n[its task is not completed, a hook said no: {why}]"
        ));
    }
    if !settled.returned.is_empty() {
        let ids: Vec<String> = settled
            .returned
            .iter()
            .map(|task| format!("#{}", task.id))
            .collect();
        result.push_str(&format!("\n\n[free again: task {}]", ids.join(", ")));
    }
    let kept = meta.worktree.as_ref().filter(|tree| tree.is_kept());
    let notification = TaskNotification {
        task_id: meta.agent_id.clone(),
        tool_use_id: meta.tool_use_id.clone(),
        output_file: run.output_path().to_string_lossy().into_owned(),
        status: match exit.status {
            ExitStatus::Completed => RunStatus::Completed,
            ExitStatus::Failed => RunStatus::Failed,
            ExitStatus::Killed => RunStatus::Killed,
            ExitStatus::Lost => RunStatus::Lost,
        },
        description: meta.description.clone(),
        result: Some(result),
        usage: mailbox::Usage {
            total_tokens: exit.usage.total_tokens(),
            tool_uses: exit.usage.tool_uses,
            duration_ms: exit.duration_ms,
        },
        worktree: kept.map(|tree| WorktreeLeft {
            worktree_path: tree.path.clone(),
            worktree_branch: tree.branch.clone(),
        }),
    };
    let life = meta.life_id();
    agents.mailbox().notify(from, to, &life, &notification)?;
    Ok(())
}
