//! Whose process this is: an agent's, and which, or a person's.
//!
//! Variables and flags are what a process says about itself, so they are not asked. Every process
//! an agent starts, however it detaches, is below the agent's host: the host inherits whatever
//! its descendants abandon, and if the host dies the guard does. So the way up leads to one of
//! them, and its command line names the run. That is believed only if the run has this very
//! process written down as its host or guard; otherwise anybody could be anybody by calling a
//! program with the right arguments. An agent that shares its process with others has a keeper in
//! their place, which starts its commands.
//!
//! Only if nobody of that kind is above us, the run's marker in the environment counts: both
//! supervisors may have been killed, and some systems have no `/proc`. Where that is missing too,
//! the mark of a run's processes still tells that this is some agent's.

use std::ffi::OsString;
use std::path::Path;

use store::Failure;
use store::home::Home;
use store::name::Name;
use swarm::AgentId;
use swarm::process::{KEEPER, ProcessId, find_ancestor};
use swarm::run::{Meta, RunDir};

use crate::run::{GUARD, HOST};

pub(crate) use swarm::run::Standing;

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Nobody of ours: a person, or a program that is none of our agents.
    Person,
    /// An agent that leads its team.
    Lead,
    /// One that leads it by planning alone.
    Coordinator,
    /// An agent that takes part in a team.
    Teammate,
    /// An agent with one piece of work.
    Worker,
    /// An agent, but nobody knows which.
    Unknown,
}

impl Who {
    /// Whether it decides for its team: what tasks are checked by, who works on them.
    pub fn decides(self) -> bool {
        matches!(self, Self::Person | Self::Lead | Self::Coordinator)
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Person => "a person",
            Self::Lead => "the lead",
            Self::Coordinator => "the coordinator",
            Self::Teammate => "a teammate",
            Self::Worker => "a worker",
            Self::Unknown => "an agent nobody knows",
        }
    }
}

/// The run a process is part of.
#[derive(Debug, Clone)]
pub(crate) struct Inside {
    /// The home the run is in.
    pub home: Home,
    /// The run's id.
    pub id: String,
    /// What is known of it; none if that cannot be read, or if nothing confirms that it is the
    /// process's own. Then it is some agent, and nobody knows which.
    pub meta: Option<Box<Meta>>,
}

/// The innermost run above this process.
pub(crate) fn by_ancestors() -> Option<Inside> {
    // One whose files do not confirm it may be made up, or have spoilt its files.
    let mut unconfirmed = None;
    let confirmed = find_ancestor(|pid, command| {
        let (home, run) = supervised(command)?;
        let meta = run.meta().ok();
        let process = ProcessId::of(pid)?;
        let written = |meta: &Meta| {
            let supervisors = [meta.host.as_ref(), meta.guard.as_ref()];
            supervisors.contains(&Some(&process)) || run.is_keeper(&process)
        };
        let id = run.id().to_owned();
        match meta.filter(written) {
            Some(meta) => Some(Inside {
                home,
                id,
                meta: Some(Box::new(meta)),
            }),
            None => {
                let meta = None;
                unconfirmed.get_or_insert(Inside { home, id, meta });
                None
            }
        }
    });
    confirmed.or(unconfirmed)
}

/// The run that a guard, host or keeper with this command line supervises.
fn supervised(command: &[OsString]) -> Option<(Home, RunDir)> {
    let [_, what, dir] = command else {
        return None;
    };
    if what != HOST && what != GUARD && what != KEEPER {
        return None;
    }
    // <home>/teams/<team>/runs/<id>
    let dir = Path::new(dir);
    let run = RunDir::at(dir)?;
    let home = Home::new(dir.ancestors().nth(4)?.to_owned()).ok()?;
    Some((home, run))
}

/// The run with this id in any team of `home`; the one named `team` is looked at first.
pub(crate) fn by_id(home: &Home, team: Option<&str>, id: &str) -> Option<Inside> {
    let id = AgentId::parse(id)?;
    let of_team = |team: &str| {
        let team = Name::new("team", team).ok()?;
        let runs = home.team(&team).join("runs");
        RunDir::new(&runs, id.as_str()).meta().ok()
    };
    let meta = team.and_then(of_team).or_else(|| {
        let teams = std::fs::read_dir(home.teams()).ok()?;
        let mut names = teams
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        names.find_map(|team| of_team(&team))
    })?;
    Some(Inside {
        home: home.clone(),
        id: id.as_str().to_owned(),
        meta: Some(Box::new(meta)),
    })
}

/// A refusal because of who calls.
pub fn not_yours(message: String, hint: &str) -> Failure {
    Failure::refused("not_yours", message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_line_of_a_guard_or_host_names_a_run() {
        let line = |parts: &[&str]| parts.iter().map(OsString::from).collect::<Vec<_>>();
        let dir = "/h/teams/t/runs/a0123456789abcdef";
        for what in [HOST, GUARD, KEEPER] {
            let (home, run) = supervised(&line(&["ccb", what, dir])).unwrap();
            assert_eq!(home.path(), Path::new("/h"));
            assert_eq!(run.id(), "a0123456789abcdef");
        }
        assert!(supervised(&line(&["ccb", "__hooks", "-"])).is_none());
        assert!(supervised(&line(&["sh", "-c", dir])).is_none());
        assert!(supervised(&line(&["ccb", HOST, dir, "more"])).is_none());
        assert!(supervised(&line(&["ccb", HOST, "/short"])).is_none());
    }
}
