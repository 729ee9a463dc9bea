//! Files of a team that a power cut or a bad disk left unreadable.
//!
//! Files that can be derived are rebuilt; all others are moved aside, never deleted, so that work
//! continues without them.

use std::path::Path;

use runs::session_file::{SessionFile, SessionFileError};
use runs::{AgentError, Agents};
use store::agent_id::LEAD;
use store::atomic;
use store::name::Name;
use swarm::run::RunError;
use team::{NewMember, NewTeam, Team, TeamError};
use worktrees::HealScope;

use super::Finding;

/// Checks each of them; with `fix`, repairs it or moves it aside.
pub(super) fn files(
    agents: &Agents,
    fix: bool,
    findings: &mut Vec<Finding>,
) -> Result<(), AgentError> {
    roster(agents, fix, findings)?;
    session(agents, fix, findings)?;
    account(agents, fix, findings)?;
    runs(agents, fix, findings)?;
    requests(agents, fix, findings)?;
    repository(agents, fix, findings);
    Ok(())
}

/// The damage of a power cut to git's files, and to the worktrees of agents that ended with it.
fn repository(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) {
    // Outside of a repository there is none; the check of the worktrees reports an unreadable
    // registry.
    let Ok(trees) = agents.trees() else {
        return;
    };
    match trees.heal(fix, HealScope::Agents) {
        Ok(found) => findings.extend(found.into_iter().map(Finding::from)),
        Err(error) => tracing::warn!(%error, "the trees are not looked at"),
    }
}

/// The roster: its members are those with an inbox.
fn roster(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) -> Result<(), AgentError> {
    let team = agents.roster();
    let error = match team.roster() {
        Ok(_) | Err(TeamError::NotFound { .. }) => return Ok(()),
        Err(error) => error,
    };
    let mut finding = Finding::new("unreadable_roster", error.to_string());
    // ccb does not repair a row that another program has written.
    let fix = fix && agents.shared().is_none();
    if let (true, TeamError::Corrupt { path, .. }) = (fix, &error) {
        let aside = atomic::set_unreadable_aside(path)?;
        let count = rebuild(&team, &path.with_file_name("inboxes"))?;
        finding.fixed = Some(format!(
            "moved to {}; the team has its lead and {} again, those with an inbox",
            aside.display(),
            store::counted(count, "member")
        ));
    }
    findings.push(finding);
    Ok(())
}

fn rebuild(team: &Team, inboxes: &Path) -> Result<usize, TeamError> {
    team.create(&NewTeam::default())?;
    let entries = std::fs::read_dir(inboxes).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.path().is_dir());
    let names = dirs.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| !name.eq_ignore_ascii_case(LEAD));
    let mut count = 0;
    for name in names.filter_map(|name| Name::new("agent", &name).ok()) {
        // A name that may not be a member, such as `user`, is none.
        if team.join(&NewMember::new(name)).is_ok() {
            count += 1;
        }
    }
    Ok(count)
}

/// The session's record: the next start writes it anew.
fn session(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) -> Result<(), AgentError> {
    let file = SessionFile::new(agents.home(), agents.team_name());
    let Err(error) = file.session() else {
        return Ok(());
    };
    let mut finding = Finding::new("unreadable_session", error.to_string());
    if let (true, SessionFileError::Unreadable { path, .. }) = (fix, &error) {
        let aside = atomic::set_unreadable_aside(path)?;
        finding.fixed = Some(format!(
            "moved to {}; the next session begins with its flags alone",
            aside.display()
        ));
    }
    findings.push(finding);
    Ok(())
}

/// The team's usage.
fn account(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) -> Result<(), AgentError> {
    let fleet = agents.fleet();
    if !fleet.is_damaged()? {
        return Ok(());
    }
    let path = agents.runs_dir().with_file_name(".ccb/fleet.json");
    let message = format!("{} is unreadable", path.display());
    let mut finding = Finding::new("unreadable_account", message);
    if fix {
        fleet.repair()?;
        finding.fixed = Some("built again from what the runs have used".into());
    }
    findings.push(finding);
    Ok(())
}

/// Runs whose records cannot be read.
fn runs(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) -> Result<(), AgentError> {
    let (_, problems) = agents.list()?;
    for problem in problems {
        let mut finding = Finding::new("unreadable_run", problem.to_string());
        let id = match &problem {
            RunError::Corrupt { path, .. } => path.parent().and_then(Path::file_name),
            _ => None,
        };
        let run = id.and_then(|id| id.to_str()).map(|id| agents.run(id));
        if let (true, Some(run)) = (fix, run) {
            match run.take() {
                Ok(_held) => {
                    let aside = agents.set_run_aside(&run)?;
                    finding.fixed = Some(format!(
                        "moved to {}; its tasks are free again",
                        aside.display()
                    ));
                }
                // Its host writes it again sooner or later.
                Err(RunError::Running { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        findings.push(finding);
    }
    Ok(())
}

/// Unreadable requests: the agent asks again.
fn requests(agents: &Agents, fix: bool, findings: &mut Vec<Finding>) -> Result<(), AgentError> {
    match agents.mailbox().requests() {
        Ok(requests) => {
            for (path, why) in requests.unreadable {
                let message = format!("{}: {why}", path.display());
                let mut finding = Finding::new("unreadable_request", message);
                if fix {
                    let aside = atomic::set_unreadable_aside(&path)?;
                    finding.fixed = Some(format!("moved to {}", aside.display()));
                }
                findings.push(finding);
            }
        }
        Err(error) => findings.push(Finding::new("unreadable_requests", error.to_string())),
    }
    Ok(())
}
