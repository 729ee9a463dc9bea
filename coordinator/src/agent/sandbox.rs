//! The confinement of an agent's commands.

use std::path::PathBuf;

use project::workplace::Workplace;
use store::Failure;
use store::settings::{RuntimeKind, SandboxMode};
use swarm::run::RuntimeSpec;
use swarm::sandbox::Sandbox;

/// The sandbox that the settings give an agent of this runtime. Commands of ccb's own loop are
/// confined by default, other programs only if the settings ask for it. A repository can make it
/// narrower; only the user's own file can make it wider. A program that talks to a model itself
/// cannot be cut off from the network, which is an error.
pub(super) fn of(runtime: &RuntimeSpec, workplace: &Workplace) -> Result<Option<Sandbox>, Failure> {
    let own_file = workplace.home().settings();
    let mut mode = match runtime.kind {
        RuntimeKind::Native => SandboxMode::Tree,
        _ => SandboxMode::Off,
    };
    let mut sandbox = Sandbox::default();
    for setting in &workplace.agent_settings().sandbox {
        let own = setting.file == own_file;
        match setting.mode {
            Some(SandboxMode::Off) if !own => ignored("sandbox", &setting.file),
            Some(given) => mode = given,
            None => {}
        }
        match setting.network {
            Some(true) if !own && !sandbox.network => ignored("sandboxNetwork", &setting.file),
            Some(network) => sandbox.network = network,
            None => {}
        }
        match own {
            true => sandbox
                .write
                .extend(setting.write.iter().map(|path| whole(path))),
            false if !setting.write.is_empty() => ignored("sandboxWrite", &setting.file),
            false => {}
        }
    }
    let runtimes = &workplace.settings().runtimes;
    if let Some(given) = runtimes.get(&runtime.name).and_then(|it| it.sandbox) {
        mode = given;
    }
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    let talks = matches!(
        runtime.kind,
        RuntimeKind::Acp | RuntimeKind::Claude | RuntimeKind::Codex
    );
    match talks && !sandbox.network {
        true => Err(needs_network(&runtime.name)),
        false => Ok(Some(sandbox)),
    }
}

fn needs_network(runtime: &str) -> Failure {
    let message = format!(
        "agents.sandboxNetwork is false, and {runtime} is confined as a whole: it could not reach its \
         model"
    );
    let hint = format!(
        "use --runtime native, which confines its commands alone; or set agents.sandboxNetwork to \
         true, or runtimes.{runtime}.sandbox to \"off\""
    );
    Failure::usage("needs_network", message).with_hint(hint)
}

fn ignored(key: &str, file: &std::path::Path) {
    let file = file.display();
    tracing::warn!("{file}: agents.{key} is ignored: only your own ccb.json lets agents do more");
}

fn whole(path: &str) -> PathBuf {
    let home = swarm::starter::own_variable("HOME").map(PathBuf::from);
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
