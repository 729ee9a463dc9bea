//! The owner of a process: an agent, and which one, or a person.
//!
//! Variables and flags are claims of the process about itself, so ccb does not use them. Every
//! process an agent starts, however it detaches, is below the agent's host: the host inherits the
//! processes that its descendants abandon, and if the host dies the guard does. So the way up leads
//! to one of them, and its command line names the directory its runs are in: they supervise one run
//! after another. The run itself says which one it is now: it records this very process as its host
//! or guard and has not ended; otherwise any process could claim to be any agent by calling a
//! program with the right arguments. An agent that shares its process with others has a keeper in
//! their place, which starts its commands.
//!
//! Only if no such process is above this one, the run's marker in the environment counts: both
//! supervisors may have been killed, and some systems have no `/proc`. Where that is missing too,
//! the mark of a run's processes still tells that this is some agent's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use store::agent_id::AgentId;
use store::home::Home;
use store::name::Name;
use store::settings::RuntimeKind;
use swarm::process::{KEEPER, Mark, ProcessId, command_line, find_ancestor, run_in_environment};
use swarm::run::{Meta, RunDir};

pub use swarm::run::Standing;

/// The first argument of a guard; the second is the directory its runs are in.
pub const GUARD: &str = "__guard";
/// The same of a host.
pub const HOST: &str = "__host";

/// The run of an agent that cannot be identified.
pub const UNKNOWN: &str = "unknown";

/// The run a process is part of.
#[derive(Debug, Clone)]
pub struct Inside {
    /// The home the run is in.
    pub home: Home,
    /// The run's id.
    pub id: String,
    /// The run's record; `None` if it cannot be read, or if nothing confirms that it is the
    /// process's own. Then it is some unidentified agent.
    pub meta: Option<Box<Meta>>,
}

/// The innermost run above this process.
pub fn by_ancestors() -> Option<Inside> {
    above(rustix::process::getpid())
}

/// An agent's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfAgent {
    /// The agent's address; `None` if the agent cannot be identified.
    pub agent: Option<String>,
    /// True if the process is ccb's own loop, which runs no code of the agent's.
    pub is_loop: bool,
}

/// The agent that another process belongs to, by the same signs as for this one: the processes
/// above it, its environment, its mark. None for a supervisor, which is ccb itself.
pub(crate) fn of_process(pid: Pid) -> Option<OfAgent> {
    let above = above(pid);
    if let Some(supervisor) = Supervisor::named_by(&command_line(pid)) {
        let confirmed = ProcessId::of(pid).is_some_and(|it| supervisor.run_of(&it).is_some());
        // A supervisor between two runs has none. An agent's command can call itself anything, but the
        // agent's own supervisors are above it.
        let below_a_run = above.as_ref().is_some_and(|it| it.meta.is_some());
        if confirmed || !below_a_run {
            return None;
        }
    }
    if let Some(inside) = above {
        let meta = inside.meta.as_deref();
        let raw = pid.as_raw_nonzero().get();
        return Some(OfAgent {
            agent: meta.map(|meta| meta.address().to_owned()),
            is_loop: meta.is_some_and(|meta| is_own_loop(meta) && meta.pid == Some(raw)),
        });
    }
    let marked = run_in_environment(pid).is_some() || Mark::of_process(pid).is_some();
    marked.then_some(OfAgent {
        agent: None,
        is_loop: false,
    })
}

fn is_own_loop(meta: &Meta) -> bool {
    meta.runtime.kind == RuntimeKind::Native && meta.runtime.command.is_empty()
}

fn above(process: Pid) -> Option<Inside> {
    // One whose files do not confirm it may be made up, or have spoilt its files.
    let mut unconfirmed = None;
    let confirmed = find_ancestor(process, |pid, command| {
        let supervisor = Supervisor::named_by(command)?;
        let process = ProcessId::of(pid)?;
        let home = supervisor.home.clone();
        match supervisor.run_of(&process) {
            Some((id, meta)) => Some(Inside {
                home,
                id,
                meta: Some(Box::new(meta)),
            }),
            None => {
                unconfirmed.get_or_insert(Inside {
                    home,
                    id: UNKNOWN.to_owned(),
                    meta: None,
                });
                None
            }
        }
    });
    confirmed.or(unconfirmed)
}

/// The data on the command line of a guard, host or keeper.
struct Supervisor {
    home: Home,
    /// The directory in which its run is.
    runs: PathBuf,
    /// Its run, if it has only one, as a keeper has.
    only: Option<RunDir>,
}

impl Supervisor {
    fn named_by(command: &[OsString]) -> Option<Self> {
        let [_, what, dir] = command else {
            return None;
        };
        let dir = Path::new(dir);
        let (runs, only) = if what == HOST || what == GUARD {
            (dir.to_owned(), None)
        } else if what == KEEPER {
            (dir.parent()?.to_owned(), Some(RunDir::at(dir)?))
        } else {
            return None;
        };
        // <home>/teams/<team>/runs
        let home = Home::new(runs.ancestors().nth(3)?.to_owned()).ok()?;
        Some(Self { home, runs, only })
    }

    /// The run that `process` supervises now, if that run records it.
    fn run_of(&self, process: &ProcessId) -> Option<(String, Meta)> {
        if let Some(run) = &self.only {
            let meta = run.is_keeper(process).then(|| run.meta().ok())??;
            return Some((run.id().to_owned(), meta));
        }
        let mut ids = swarm::run::active(&self.runs).unwrap_or_default();
        // The mark identifies the agent, where it could be set. Then ccb need not check any other
        // sign.
        let mark = Pid::from_raw(process.pid).and_then(Mark::of_process);
        ids.sort_by_key(|id| mark != Some(Mark::of_run(id)));
        ids.into_iter().find_map(|id| {
            let run = RunDir::new(&self.runs, &id);
            let meta = run.meta().ok()?;
            let supervisors = [meta.host.as_ref(), meta.guard.as_ref()];
            // The process may have supervised earlier runs, which have ended.
            let over = || !matches!(run.exit(meta.life), Ok(None));
            (supervisors.contains(&Some(process)) && !over()).then_some((id, meta))
        })
    }
}

/// The run with this id in any team of `home`; ccb searches the team named `team` first.
pub fn by_id(home: &Home, team: Option<&str>, id: &str) -> Option<Inside> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_line_of_a_supervisor_says_where_its_run_is() {
        let line = |parts: &[&str]| parts.iter().map(OsString::from).collect::<Vec<_>>();
        let named = |parts: &[&str]| Supervisor::named_by(&line(parts));
        let (runs, run) = ("/h/teams/t/runs", "/h/teams/t/runs/a0123456789abcdef");
        for (what, dir, only) in [
            (HOST, runs, None),
            (GUARD, runs, None),
            (KEEPER, run, Some("a0123456789abcdef")),
        ] {
            let found = named(&["ccb", what, dir]).unwrap();
            assert_eq!(found.home.path(), Path::new("/h"));
            assert_eq!(found.runs, Path::new(runs));
            assert_eq!(found.only.as_ref().map(RunDir::id), only);
        }
        assert!(named(&["ccb", "__hooks", "-"]).is_none());
        assert!(named(&["sh", "-c", runs]).is_none());
        assert!(named(&["ccb", HOST, runs, "more"]).is_none());
        assert!(named(&["ccb", HOST, "/short"]).is_none());
    }

    #[test]
    fn a_supervisor_s_run_is_the_one_that_has_not_ended() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("home/teams/t/runs");
        let process = ProcessId::own();
        let run = |id: &str, host: Option<&ProcessId>| {
            let run = RunDir::new(&runs, id);
            let meta = Meta {
                agent_id: id.to_owned(),
                life: 1,
                host: host.cloned(),
                ..Meta::default()
            };
            run.create(&meta, "true").unwrap();
            run
        };
        let supervisor = Supervisor {
            home: Home::new(dir.path().join("home")).unwrap(),
            runs: runs.clone(),
            only: None,
        };
        let now = || supervisor.run_of(&process).map(|(id, _)| id);
        run("a0000000000000001", None);
        assert_eq!(now(), None);
        let before = run("a0000000000000002", Some(&process));
        assert_eq!(now().as_deref(), Some("a0000000000000002"));
        let exit = serde_json::json!({
            "v": 1, "life": 1, "status": "completed", "durationMs": 1, "by": "host",
            "endedAt": "2026-01-01T00:00:00.000Z",
        });
        let exit = serde_json::from_value(exit).unwrap();
        before
            .end(&exit, store::atomic::Durability::Ordered)
            .unwrap();
        assert_eq!(
            now(),
            None,
            "it is over, though somebody has still to hear of it"
        );
        run("a0000000000000003", Some(&process));
        assert_eq!(now().as_deref(), Some("a0000000000000003"));
    }
}
