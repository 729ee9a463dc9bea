//! The runtime a run was started with.

use std::ffi::{OsStr, OsString};

use swarm::run::RuntimeSpec;
use swarm::runtime::{self, Runtime, RuntimeError};

/// The runtime, or why there is none. Programs are looked for where the agent's `env` says.
pub(super) fn of(
    spec: &RuntimeSpec,
    env: &[(OsString, OsString)],
) -> Result<Box<dyn Runtime>, RuntimeError> {
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(""), |(_, path)| path.as_os_str());
    let command = (!spec.command.is_empty()).then_some(spec.command.as_slice());
    runtime::from_spec(&spec.name, Some(&spec.kind), command, path)
}
