//! The runtime a run was started with.

use swarm::run::RuntimeSpec;
use swarm::runtime::{LinesRuntime, Runtime, ShellRuntime};

/// The runtime of this kind, or why there is none.
pub(super) fn of(spec: &RuntimeSpec) -> Result<Box<dyn Runtime>, String> {
    match (spec.kind.as_str(), spec.command.is_empty()) {
        ("shell", true) => Ok(Box::new(ShellRuntime::default())),
        ("shell", false) => Ok(Box::new(ShellRuntime::new(spec.command.clone()))),
        ("lines", false) => Ok(Box::new(LinesRuntime::new(spec.command.clone()))),
        (kind, _) => Err(format!(
            "runtime {:?} of kind {kind:?} cannot be used",
            spec.name
        )),
    }
}
