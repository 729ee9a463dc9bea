//! Agents of other machines, as a team's roster, the readers of its mail and the leases on its
//! tasks tell of them.

use store::agent_id::LEAD;
use store::text::clean_line;
use taskboard::{Snapshot, Status, Task, TaskId};
use team::{Life, Member, Team, TeamError};

/// The name of a machine without a name of its own.
const UNNAMED: &str = "another machine";

/// An agent on another machine. Text is safe to print.
#[derive(Debug, Clone)]
pub struct Away {
    /// The agent's id.
    pub id: String,
    /// The agent's name.
    pub name: String,
    /// The host it is on.
    pub host: String,
    /// The agent type.
    pub agent_type: String,
    /// The model it runs on; `None` if unknown.
    pub model: Option<String>,
    /// The agent's colour, if it has one.
    pub color: Option<String>,
    /// True if it leads the team.
    pub leads: bool,
    /// True if it is on the roster.
    pub member: bool,
    /// True if it reads its mail.
    pub reads_mail: bool,
    /// The task it works on; `None` if it has none.
    pub task: Option<TaskId>,
    /// The agent's activity and its machine, on one line.
    pub doing: String,
    /// The time when it claimed its task, or joined, in milliseconds since the epoch.
    pub since_ms: i64,
}

/// The machines that a team's agents work on.
#[derive(Debug, Default)]
pub struct Whereabouts {
    elsewhere: Vec<Known>,
    /// The names of the agents on this machine.
    here: Vec<String>,
}

#[derive(Debug)]
struct Known {
    member: Member,
    host: String,
    life: Option<Life>,
}

impl Whereabouts {
    /// The agents of a team whose roster several machines share.
    pub fn of(team: &Team) -> Result<Self, TeamError> {
        let roster = match team.roster() {
            Ok(roster) => roster,
            Err(TeamError::NotFound { .. }) => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let living = team.living(&roster)?;
        let life = |name: &str| living.iter().find(|one| one.name == name);
        let mut all = Self::default();
        for member in roster.members {
            match &member.machine {
                Some(machine) if team.is_elsewhere(&member) => all.elsewhere.push(Known {
                    host: clean_line(&machine.host),
                    life: life(&member.name).map(|one| one.why),
                    member,
                }),
                _ => all.here.push(member.name),
            }
        }
        Ok(all)
    }

    /// The agents that work, or could, on other machines, by name. `local` are the names of the
    /// agents that run here.
    pub fn away(&self, board: &Snapshot, local: &[&str]) -> Vec<Away> {
        let mut found: Vec<Away> = Vec::new();
        for known in &self.elsewhere {
            let task = task_of(board, &known.member.name);
            if task.is_some() || known.life.is_some() {
                found.push(known.away(task));
            }
        }
        // A worker's agents are on no roster; what they hold says who they are.
        for task in board.tasks().filter(|task| task.lease().is_some()) {
            let Some(owner) = &task.owner else { continue };
            let same = |name: &str| name.eq_ignore_ascii_case(owner);
            let is_here =
                local.iter().any(|name| same(name)) || self.here.iter().any(|name| same(name));
            if !is_here && !found.iter().any(|agent| same(&agent.name)) {
                found.push(stranger(owner, task));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }
}

/// The task `owner` works on.
fn task_of<'b>(board: &'b Snapshot, owner: &str) -> Option<&'b Task> {
    board.tasks().find(|task| {
        let theirs = |name: &str| name.eq_ignore_ascii_case(owner);
        task.status == Status::InProgress && task.owner.as_deref().is_some_and(theirs)
    })
}

impl Known {
    fn away(&self, task: Option<&Task>) -> Away {
        let member = &self.member;
        let claimed = task.and_then(claimed_ms);
        Away {
            id: clean_line(&member.agent_id),
            agent_type: clean_line(member.agent_type.as_deref().unwrap_or_default()),
            model: member.model.as_deref().map(clean_line),
            color: member.color.clone(),
            leads: member.name == LEAD,
            member: true,
            reads_mail: self.life == Some(Life::Reading),
            since_ms: claimed.or(member.joined_at).unwrap_or(0),
            ..away(&member.name, &self.host, task)
        }
    }
}

fn stranger(owner: &str, task: &Task) -> Away {
    let run = task.lease().and_then(|lease| lease.run);
    Away {
        id: clean_line(&run.unwrap_or_else(|| owner.to_owned())),
        ..away(owner, UNNAMED, Some(task))
    }
}

fn away(name: &str, host: &str, task: Option<&Task>) -> Away {
    Away {
        id: clean_line(name),
        name: clean_line(name),
        host: host.to_owned(),
        agent_type: String::new(),
        model: None,
        color: None,
        leads: false,
        member: false,
        reads_mail: false,
        task: task.map(|task| task.id),
        doing: match task {
            Some(task) => format!("{} (on {host})", clean_line(task.active_form())),
            None => format!("on {host}"),
        },
        since_ms: task.and_then(claimed_ms).unwrap_or(0),
    }
}

/// The time when a task was claimed: tokens are times, unless two claims come within a millisecond.
fn claimed_ms(task: &Task) -> Option<i64> {
    i64::try_from(task.lease()?.token).ok()
}
