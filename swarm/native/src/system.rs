//! The system prompt of an agent.

use std::ffi::OsString;
use std::path::PathBuf;

use store::clock::{Clock, SystemClock, rfc3339};
use swarm::sandbox::{self, tree_around};

use super::Opening;
use super::context::{Context, Surroundings};
use super::model::variable;

/// The instructions and skills around the agent.
pub(super) fn context(opening: &Opening, env: &[(OsString, OsString)]) -> Context {
    let path = |name| variable(env, name).map(PathBuf::from);
    let now = rfc3339(SystemClock.now_ms());
    Context::gather(&Surroundings {
        cwd: opening.cwd.clone(),
        tree: tree_around(&opening.cwd),
        home: path("CCB_HOME"),
        user: path("HOME"),
        tmp: opening.scratch.clone(),
        scratchpad: path("CCB_SCRATCHPAD"),
        today: now.get(..10).unwrap_or_default().to_owned(),
        confined: opening.sandbox.is_some() && sandbox::support().is_ok(),
    })
}
