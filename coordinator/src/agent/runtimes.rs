//! The runtime of an agent: one of the settings, or a built-in one.

use project::workplace::Workplace;
use store::Failure;
use store::settings::RuntimeSettings;
use swarm::definitions::Definition;
use swarm::run::RuntimeSpec;
use swarm::runtime::{self, RuntimeError, RuntimeKind};
use swarm::trust::{Item, Places};
use taskboard::Task;

use super::describe::Wish;
use super::providers::check_key;

/// The runtime of a session's agents: the named one, else the default, else the shell, because a
/// session can run without a model.
pub fn session_runtime(named: Option<&str>, workplace: &Workplace) -> Result<RuntimeSpec, Failure> {
    let usual = workplace.agent_settings().default_runtime.as_deref();
    match (named, usual) {
        (Some(name), _) | (None, Some(name)) => usable_runtime(name, workplace),
        (None, None) => installed(workplace).or_else(|_| find_runtime("shell", workplace)),
    }
}

/// The runtime of a requested agent.
pub(super) fn runtime(
    wish: &Wish,
    definition: &Definition,
    workplace: &Workplace,
) -> Result<RuntimeSpec, Failure> {
    let command = wish.task.as_ref().and_then(Task::run_command);
    match wish.runtime.as_ref().or(definition.runtime.as_ref()) {
        Some(name) => find_runtime(name, workplace),
        None if wish.prompt.is_none() && command.is_some() => find_runtime("shell", workplace),
        None => match (
            own_runtime(workplace),
            &workplace.agent_settings().default_runtime,
        ) {
            (Some(own), _) => Ok(own),
            (None, Some(name)) => find_runtime(name, workplace),
            (None, None) => installed(workplace),
        },
    }
}

/// The runtime of the calling agent: agents it starts run on the same program by default. Never the
/// shell, for which a prompt is a command.
fn own_runtime(workplace: &Workplace) -> Option<RuntimeSpec> {
    let own = workplace.agents().ok()?.find(workplace.run()?).ok()?;
    Some(own.runtime).filter(|runtime| runtime.kind.has_model())
}

/// The error if a model is needed and none is available: programs to install, in one screen.
pub(crate) fn no_agent_program() -> Failure {
    let message = "no key for a model is set and no agent program is installed; this needs one";
    let hint = "set a key, and run the same command again:\n\
                export ANTHROPIC_API_KEY=…                 # or: OPENAI_API_KEY\n\
                another service, or a model of your own: `providers` in the settings \
                (docs/native.md)\n\
                or install an agent program and sign in to it once:\n\
                npm install -g @anthropic-ai/claude-code   # then: claude\n\
                npm install -g @openai/codex               # then: codex\n\
                npm install -g @google/gemini-cli          # then: gemini\n\
                npm install -g opencode-ai                 # then: opencode\n\
                another program: `runtimes` in the settings (docs/runtimes.md)\n\
                without a model: ccb --team NAME task create SUBJECT --run CMD, then ccb --team \
                NAME --runtime shell";
    Failure::usage("no_runtime", message).with_hint(hint)
}

/// The first installed built-in agent; else ccb itself, if it has a model. Never the shell: a
/// prompt for a model must not run as a command.
fn installed(workplace: &Workplace) -> Result<RuntimeSpec, Failure> {
    let models = runtime::built_in()
        .filter(|name| runtime::kind_of(name).is_some_and(RuntimeKind::has_model));
    // ccb itself is the last of them, because it is always available.
    let mut found = models.filter_map(|name| usable_runtime(name, workplace).ok());
    found.next().ok_or_else(no_agent_program)
}

/// The runtime of this name, if agents on it could have a model.
fn usable_runtime(name: &str, workplace: &Workplace) -> Result<RuntimeSpec, Failure> {
    let runtime = find_runtime(name, workplace)?;
    check_key(&runtime, workplace)?;
    Ok(runtime)
}

/// The runtime of this name: one of the settings, or a built-in one.
fn find_runtime(name: &str, workplace: &Workplace) -> Result<RuntimeSpec, Failure> {
    let configured = workplace.runtimes();
    if let Some(runtime) = configured.get(name) {
        let item = |places: Places<'_>| Item::runtime(name, runtime, places);
        if !workplace.may_use(&runtime.file, item)? {
            return Err(not_trusted(name, runtime, workplace));
        }
        let mut command = runtime.command.clone();
        command.extend(runtime.args.iter().cloned());
        return Ok(RuntimeSpec {
            name: name.to_owned(),
            kind: runtime.kind,
            command,
            env: runtime.env.clone(),
        });
    }
    let path = swarm::starter::own_variable("PATH").unwrap_or_default();
    match runtime::from_spec(name, None, None, &path) {
        Ok(_) => Ok(RuntimeSpec {
            name: name.to_owned(),
            kind: runtime::kind_of(name).unwrap_or_default(),
            ..RuntimeSpec::default()
        }),
        Err(RuntimeError::UnknownName { .. }) => {
            let mut known: Vec<String> = configured.keys().cloned().collect();
            known.extend(runtime::built_in().map(str::to_owned));
            known.sort_unstable();
            known.dedup();
            let near = store::nearest(name, known.iter().map(String::as_str));
            let near = near.map(|near| format!("did you mean {near:?}? "));
            let hint = format!(
                "{}there are: {}; `runtimes` in the settings adds others",
                near.unwrap_or_default(),
                known.join(", ")
            );
            let message = format!("there is no runtime {name:?}");
            Err(Failure::usage("unknown_runtime", message).with_hint(hint))
        }
        Err(error) => Err(Failure::usage("no_runtime", error.to_string())),
    }
}

fn not_trusted(name: &str, runtime: &RuntimeSettings, workplace: &Workplace) -> Failure {
    Failure::refused(
        "not_trusted",
        format!(
            "runtime {name:?} comes from {}, and you have not trusted this repository",
            runtime.file.display()
        ),
    )
    .with_hint(format!(
        "look at it and run `ccb trust`, or put it into {}",
        workplace.own_settings().display()
    ))
}
