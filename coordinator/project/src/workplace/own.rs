//! The agent a command is part of, if an agent calls it.

use std::path::Path;

use runs::env;
use runs::identity::{self, Inside, Standing};
use store::Failure;
use store::home::Home;
use store::name::Name;
use swarm::process::Mark;

use super::Asked;
use crate::who::{Who, not_yours};

/// The agent of ours that this process belongs to.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) run: String,
    /// Its name; `None` if nobody knows which agent it is.
    pub(super) name: Option<Name>,
    /// Where it belongs; `None` as with its name.
    pub(super) place: Option<Place>,
    pub(super) who: Who,
}

/// The team of an agent, and the list its tasks are on.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) team: Name,
    pub(super) list: Name,
}

/// The home, and the agent this is part of. What a process above us says comes first; the
/// environment counts only where there is none.
pub(super) fn find(
    asked: &Asked,
    home: impl FnOnce() -> Result<Home, Failure>,
) -> Result<(Home, Option<Own>), Failure> {
    // In a process of several agents the thread says whose it is, and nothing above the process does.
    let above = match swarm::scope::current() {
        Some(_) => None,
        None => identity::by_ancestors(),
    };
    if let Some(inside) = above {
        if let Some(given) = &asked.home {
            check_home(given, &inside.home)?;
        }
        let own = match inside.meta {
            Some(_) => known(&inside),
            None => None,
        };
        // Somebody above us says that it is a host, and nothing confirms it.
        let own = own.unwrap_or_else(|| Own {
            run: inside.id.clone(),
            name: None,
            place: None,
            who: Who::Unknown,
        });
        return Ok((inside.home, Some(own)));
    }
    let home = home()?;
    let Some(run) = env::var(env::RUN_ID) else {
        // Both supervisors may be gone, and its environment cleared: the mark is still there.
        let own = Mark::own().map(|_| Own {
            run: identity::UNKNOWN.into(),
            name: None,
            place: None,
            who: Who::Unknown,
        });
        return Ok((home, own));
    };
    let team = env::var(env::TEAM);
    let inside = identity::by_id(&home, team.as_deref(), &run);
    let own = inside.as_ref().and_then(known);
    // A run nobody knows, and nobody above us: what its variables say has to do.
    let own = own.unwrap_or(Own {
        run,
        name: None,
        place: None,
        who: Who::Teammate,
    });
    Ok((home, Some(own)))
}

/// `None` if what is written down about the run is not whole.
fn known(inside: &Inside) -> Option<Own> {
    let meta = inside.meta.as_deref()?;
    Some(Own {
        run: inside.id.clone(),
        name: Some(Name::new("agent", meta.address()).ok()?),
        place: Some(Place {
            team: Name::new("team", &meta.team).ok()?,
            list: Name::new("list", &meta.list).ok()?,
        }),
        who: match Standing::of(meta) {
            Standing::Lead => Who::Lead,
            Standing::Coordinator => Who::Coordinator,
            Standing::Teammate => Who::Teammate,
            Standing::Worker => Who::Worker,
        },
    })
}

fn check_home(given: &Path, own: &Home) -> Result<(), Failure> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(given) == real(own.path()) {
        return Ok(());
    }
    let (given, own) = (given.display(), own.path().display());
    Err(not_yours(
        format!("this agent's state is in {own}; it cannot use {given}"),
        "leave out --home",
    ))
}

impl Own {
    /// The name it acts under. A flag that says another one is refused.
    pub(super) fn agent(&self, asked: &Asked) -> Result<Name, Failure> {
        let fixed = match (&self.name, env::var(env::AGENT)) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(name)) if self.who != Who::Unknown => Some(Name::new("agent", &name)?),
            (None, _) => None,
        };
        match (fixed, &asked.agent) {
            (Some(fixed), Some(given)) if *given != fixed.as_str() => Err(not_yours(
                format!("this agent is {fixed} and cannot act as {given}"),
                "leave out --as",
            )),
            (Some(fixed), _) => Ok(fixed),
            (None, _) => Ok(Name::new("agent", "unknown")?),
        }
    }

    /// The team it acts in, where that is known. A flag that says another one is refused.
    pub(super) fn team(&self, asked: &Asked) -> Result<Option<Name>, Failure> {
        let own = self.place.as_ref().map(|place| &place.team);
        match (own, &asked.team) {
            (Some(own), Some(given)) if given != own.as_str() => Err(not_yours(
                format!("this agent is in team {own} and cannot act in team {given}"),
                "leave out --team",
            )),
            (own, _) => Ok(own.cloned()),
        }
    }
}
