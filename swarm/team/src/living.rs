//! The members of a team that are alive, as far as the kernel, the roster and the readers of mail
//! tell.

use std::path::Path;

use store::lock::is_held;
use store::tree::names_in;

use super::error::TeamError;
use super::format::OURS;
use super::life::{Life, Living};
use super::{Member, Roster, Team};

impl Team {
    /// The members that are alive, in the order of the roster, then runs and inboxes without a
    /// member.
    pub fn living(&self, roster: &Roster) -> Result<Vec<Living>, TeamError> {
        let runs = Locks::scan(&self.dir.join("runs"), "alive.lock")?;
        let inboxes = match &self.options.beside {
            Some(beside) => Locks::of(beside.inboxes_being_read(&self.name)?),
            None => Locks::scan(&self.dir.join("inboxes"), "consumer.lock")?,
        };
        let mut living = Vec::new();
        for member in &roster.members {
            if let Some(why) = self.life(member, &runs, &inboxes) {
                living.push(Living {
                    name: member.name.clone(),
                    why,
                });
            }
        }
        let strangers = |locks: &Locks, why, known: &dyn Fn(&Member, &str) -> bool| {
            let held = locks
                .held
                .iter()
                .filter(|name| !roster.members.iter().any(|member| known(member, name)));
            held.map(|name| Living {
                name: name.clone(),
                why,
            })
            .collect::<Vec<_>>()
        };
        living.extend(strangers(&runs, Life::Running, &has_run));
        living.extend(strangers(&inboxes, Life::Reading, &has_inbox));
        Ok(living)
    }

    /// True if a member is on another machine, whose runs cannot be seen from here.
    pub fn is_elsewhere(&self, member: &Member) -> bool {
        match (&member.machine, &self.options.machine) {
            (Some(theirs), Some(ours)) => theirs != ours,
            _ => false,
        }
    }

    fn life(&self, member: &Member, runs: &Locks, inboxes: &Locks) -> Option<Life> {
        let any = |names: &[String], known: fn(&Member, &str) -> bool| {
            names.iter().any(|name| known(member, name))
        };
        let elsewhere = self.is_elsewhere(member);
        // A run of ours reads its mail as long as it lives.
        let may_have_run = match elsewhere {
            true => member.backend_type.as_deref() == Some(OURS),
            false => any(&runs.all, has_run),
        };
        if !elsewhere && any(&runs.held, has_run) {
            Some(Life::Running)
        } else if any(&inboxes.held, has_inbox) {
            Some(Life::Reading)
        } else if member.is_active && !may_have_run {
            Some(Life::Joined)
        } else {
            None
        }
    }
}

fn has_run(member: &Member, directory: &str) -> bool {
    member.agent_id == directory || member.run.as_deref() == Some(directory)
}

fn has_inbox(member: &Member, directory: &str) -> bool {
    member.name.eq_ignore_ascii_case(directory)
}

/// The sub-directories of a directory, and those whose lock is held.
///
/// Looked up from the directories there are, never from names in the roster: another tool's
/// file must not lead us to a path of its choice.
struct Locks {
    all: Vec<String>,
    held: Vec<String>,
}

impl Locks {
    fn of(held: Vec<String>) -> Self {
        Self {
            all: held.clone(),
            held,
        }
    }

    fn scan(dir: &Path, lock: &str) -> Result<Self, TeamError> {
        let mut locks = Self {
            all: Vec::new(),
            held: Vec::new(),
        };
        for name in names_in(dir)? {
            let path = dir.join(&name);
            // Claude Code keeps files of its own beside our inboxes.
            if !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                continue;
            }
            if is_held(&path.join(lock))? {
                locks.held.push(name.clone());
            }
            locks.all.push(name);
        }
        Ok(locks)
    }
}
