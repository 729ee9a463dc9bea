//! Checks that board, runs, roster, worktrees and requests agree, and repairs what needs no person.
//! Every session begins with the same check.

mod damaged;
mod models;

use std::collections::BTreeMap;

use project::workplace::Workplace;
use runs::{AgentError, Agents, Finding};
use store::Failure;
use store::agent_id::LEAD;
use swarm::run::RunError;
use taskboard::{Status, Task};
use worktrees::{Entry, Slug};

pub use models::{KnownRuntime, Probe, known_runtimes, probe_models, usable_providers};

/// Checks everything at a workplace: the board, the worktrees, and the team's files.
pub fn doctor_of_all(workplace: &Workplace, fix: bool) -> Result<Vec<Finding>, Failure> {
    let mut findings: Vec<Finding> = Vec::new();
    if !workplace.backends().findings(&mut findings) {
        // Nothing else can be checked.
        return Ok(findings);
    }
    findings.extend(workplace.board().doctor(fix)?.into_iter().map(Into::into));
    // Runs, roster, requests, and their agreement come after the files they build on. Outside of a
    // repository there are no worktrees to check.
    if let Ok(trees) = workplace.trees() {
        findings.extend(trees.doctor(fix)?.into_iter().map(Into::into));
    }
    findings.extend(doctor(&workplace.agents_to_repair()?, fix)?);
    Ok(findings)
}

/// Checks everything of a team; with `fix`, makes the safe repairs.
pub fn doctor(agents: &Agents, fix: bool) -> Result<Vec<Finding>, AgentError> {
    let mut findings = Vec::new();
    // First the files that the rest builds on.
    damaged::files(agents, fix, &mut findings)?;
    runs(agents, fix, &mut findings)?;
    roster(agents, fix, &mut findings);
    let tasks = tasks(agents)?;
    leases(agents, &tasks, fix, &mut findings)?;
    trees(agents, &tasks, fix, &mut findings);
    mail(agents, &mut findings);
    Ok(findings)
}

/// Runs whose supervisors have exited.
fn runs(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) -> Result<(), AgentError> {
    for id in swarm::run::active(agents.runs_dir())? {
        let run = agents.run(&id);
        if run.is_alive()? {
            continue;
        }
        let mut finding = Finding::new(
            "unfinished_run",
            format!("agent {id} is gone, and nobody has seen to what it left"),
        );
        if fix {
            finding.fixed = match agents.reconcile_run(&id)? {
                Some(status) => Some(format!("finished as {}", status.as_str())),
                None => Some("somebody else finished it".into()),
            };
        }
        findings.push(finding);
    }
    half_made_runs(agents, fix, findings)
}

/// Directories of runs that were never completed.
fn half_made_runs(
    agents: &Agents,
    fix: bool,
    findings: &mut Vec<Finding>,
) -> Result<(), AgentError> {
    for id in swarm::run::without_meta(agents.runs_dir())? {
        let run = agents.run(&id);
        // The process that makes one holds it from the first moment.
        let Ok(held) = run.take() else {
            continue;
        };
        if run.is_active() || !matches!(run.meta(), Err(RunError::NotFound { .. })) {
            continue;
        }
        let message = format!(
            "{} is a run that was never written down",
            run.path().display()
        );
        let mut finding = Finding::new("half_made_run", message);
        if fix {
            store::tree::delete(run.path())?;
            finding.fixed = Some("deleted: it had not begun".into());
        }
        drop(held);
        findings.push(finding);
    }
    Ok(())
}

/// Members that are marked as working and are not.
fn roster(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) {
    let team = agents.roster();
    let roster = match team.roster() {
        Ok(roster) => roster,
        // Reported already, if it cannot be read.
        Err(_) => return,
    };
    for member in roster.members.iter().filter(|member| member.is_active) {
        let Some(run) = member.run.as_ref().filter(|_| member.name != LEAD) else {
            continue;
        };
        let gone = match agents.run(run.as_str()).is_alive() {
            Ok(alive) => !alive,
            Err(RunError::NotFound { .. }) => true,
            Err(_) => false,
        };
        if !gone {
            continue;
        }
        let mut finding = Finding::new(
            "absent_member",
            format!(
                "{} is said to be at work, but its run has ended",
                member.name
            ),
        );
        if fix && team.set_active(&member.name, false).is_ok() {
            finding.fixed = Some("noted as absent".into());
        }
        findings.push(finding);
    }
}

fn tasks(agents: &Agents) -> Result<BTreeMap<String, Task>, AgentError> {
    let board = agents.board();
    if !board.exists() {
        return Ok(BTreeMap::new());
    }
    let snapshot = board.snapshot()?;
    let all = snapshot.tasks().cloned();
    Ok(all.map(|task| (task.id.to_string(), task)).collect())
}

/// Tasks held by runs that are over.
fn leases(
    agents: &Agents,
    tasks: &BTreeMap<String, Task>,
    fix: bool,
    findings: &mut Vec<Finding>,
) -> Result<(), AgentError> {
    for task in tasks.values() {
        let held = task.lease().filter(|_| task.status == Status::InProgress);
        let Some(run) = held.and_then(|lease| lease.run) else {
            continue;
        };
        // A run that is being finished still has its tasks.
        let active = agents.runs_dir().join(".active").join(&run).exists();
        if active || agents.is_holder_alive(&run).unwrap_or(true) {
            continue;
        }
        let mut finding = Finding::new(
            "orphaned_task",
            format!("task {} belongs to agent {run}, which is gone", task.id),
        );
        if fix {
            agents.board().unassign_run(&run)?;
            finding.fixed = Some("free again".into());
        }
        findings.push(finding);
    }
    Ok(())
}

/// Tasks and worktrees that name each other, or should.
fn trees(agents: &Agents, tasks: &BTreeMap<String, Task>, fix: bool, findings: &mut Vec<Finding>) {
    // Outside of a repository there are none.
    let Ok(trees) = agents.trees() else {
        return;
    };
    let Ok(entries) = trees.list() else {
        return;
    };
    let live: Vec<&Entry> = entries.iter().filter(|entry| entry.is_live()).collect();
    let board = agents.board();
    for task in tasks.values() {
        let Some(name) = task.worktree() else {
            continue;
        };
        if live.iter().any(|entry| entry.name == name) {
            continue;
        }
        let mut finding = Finding::new(
            "tree_gone",
            format!(
                "task {} is to be done in worktree {name}, which is gone",
                task.id
            ),
        );
        if fix && board.unbind_worktree(task.id, name).is_ok() {
            finding.fixed = Some("unbound".into());
        }
        findings.push(finding);
    }
    let list = board.name().to_string();
    for entry in live
        .iter()
        .filter(|entry| entry.task_list.as_ref() == Some(&list))
    {
        let Some(id) = &entry.task_id else {
            continue;
        };
        if tasks
            .get(id)
            .is_some_and(|task| task.worktree() == Some(&entry.name))
        {
            continue;
        }
        let mut finding = Finding::new(
            "tree_unbound",
            format!(
                "worktree {} names task {id}, which does not name it",
                entry.name
            ),
        );
        if fix
            && let Ok(slug) = Slug::new(&entry.name)
            && trees.set_task(&slug, None).is_ok()
        {
            finding.fixed = Some("unbound; the tree stays".into());
        }
        findings.push(finding);
    }
}

/// Messages that cannot be read.
fn mail(agents: &Agents, findings: &mut Vec<Finding>) {
    let mailbox = agents.mailbox();
    let Ok(entries) = std::fs::read_dir(mailbox.dir().join("inboxes")) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let inbox = store::name::Name::new("agent", &name)
            .ok()
            .filter(|_| entry.path().is_dir())
            .and_then(|name| mailbox.inbox(&name).ok());
        let Some(inbox) = inbox else {
            continue;
        };
        match inbox.list(false) {
            Ok(listing) if listing.rejected > 0 => findings.push(Finding::new(
                "rejected_mail",
                format!(
                    "{} to {name} could not be read; look at {} and delete it",
                    store::counted(listing.rejected, "message"),
                    inbox.dir().join("rejected.jsonl").display()
                ),
            )),
            Ok(_) => {}
            Err(error) => findings.push(Finding::new("unreadable_inbox", error.to_string())),
        }
    }
}
