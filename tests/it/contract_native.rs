//! The contract of runtimes on ccb's own loop, for each protocol of a model. Nothing is skipped:
//! where ccb's own program never acts so by itself (garbage on its output, an end without a
//! result), a fake one takes its place, driven by the same runtime.

use std::ffi::OsString;

use harness::contract::{ASKED, Act, OnModel, Session, ShellTool, Subject};
use harness::model::{MARK, ModelServer};
use harness::script::{Do, Grandchild, Script, To};
use native::{Ports, SharedNative, Together};
use serde_json::json;
use swarm::process::Processes;
use swarm::provider::{Provider, Wire};
use swarm::runtime::{Abilities, Agent, Launch, LaunchError, NativeRuntime, Runtime};

use crate::{CCB, FAKE_AGENT};

/// ccb's loop where a model has the script, a fake program where the program has it.
#[derive(Debug)]
struct Either {
    own: Box<dyn Runtime>,
    fake: NativeRuntime,
}

impl Runtime for Either {
    fn abilities(&self) -> Abilities {
        self.own.abilities()
    }

    fn launch(&self, launch: Launch, processes: &Processes) -> Result<Agent, LaunchError> {
        match launch.prompt.contains(MARK) {
            true => self.own.launch(launch, processes),
            false => self.fake.launch(launch, processes),
        }
    }
}

struct Native {
    on_model: OnModel<ModelServer>,
    has_program: bool,
}

fn native(wire: Wire) -> Native {
    let own = NativeRuntime::new(vec![CCB.to_owned(), NativeRuntime::ROLE.to_owned()]);
    native_by(Box::new(own), true, wire)
}

/// The same loop on a thread of this process.
fn shared(wire: Wire) -> Native {
    let together = Together::new(Ports::default(), || ()).expect("a thread");
    native_by(Box::new(SharedNative::new(together)), false, wire)
}

fn native_by(own: Box<dyn Runtime>, has_program: bool, wire: Wire) -> Native {
    let server = ModelServer::start();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let environment: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), path),
        ("SCRIPTED_URL".into(), server.url().into()),
        ("SCRIPTED_KEY".into(), "sk-scripted-key".into()),
        ("SCRIPTED_WIRE".into(), wire.as_str().into()),
    ];
    let on_model = OnModel {
        world: server,
        server: |server| server,
        runtime: Box::new(Either {
            own,
            fake: NativeRuntime::new(vec![FAKE_AGENT.to_owned()]),
        }),
        broken: || Box::new(NativeRuntime::new(vec!["ccb-no-such-agent".to_owned()])),
        tool: ShellTool {
            name: "Bash",
            input: |command| json!({ "command": command }),
        },
        fake_agent: FAKE_AGENT,
        environment,
        adds: &[],
        prepare: |launch| {
            let var = |name: &str| {
                let found = launch.env.iter().find(|(known, _)| known == name);
                let found = found.map(|(_, value)| value.to_string_lossy().into_owned());
                found.unwrap_or_default()
            };
            launch.provider = Some(Provider {
                name: "scripted".into(),
                wire: Wire::parse(&var("SCRIPTED_WIRE")).expect("a form"),
                base_url: var("SCRIPTED_URL"),
                key_env: Some("SCRIPTED_KEY".into()),
                model: "scripted-1".into(),
                ..Provider::default()
            });
            // Questions are for the checks that are about them.
            if !launch.prompt.contains(ASKED) {
                launch.permission_mode = Some("bypassPermissions".into());
            }
        },
    };
    Native {
        on_model,
        has_program,
    }
}

/// The acts that only a foreign program can do.
fn odd(script: Script, act: Act<'_>) -> Option<Script> {
    let to = To::Stdout;
    Some(match act {
        Act::Say(text) => script.say(text),
        Act::Touch(path) => script.touch(path),
        Act::Quit => script.exit(0),
        Act::PrintError(text) => script.print_error(&format!("{text}\n")),
        Act::Garbage(count) => script.then(Do::Garbage { count, to }).print("\n"),
        Act::LongLine(megabytes) => script.then(Do::LongLine { megabytes, to }),
        Act::CloseOutputUntil(path) => script
            .then(Do::Close { what: To::Stdout })
            .then(Do::Close { what: To::Stderr })
            .wait_file(path),
        Act::LeaveBehind { pids, noisy } => script.spawn(Grandchild {
            noisy,
            pids: Some(pids.to_owned()),
            role: "left behind".into(),
            ..Grandchild::default()
        }),
        _ => return None,
    })
}

impl Subject for Native {
    fn runtime(&self) -> &dyn Runtime {
        self.on_model.runtime()
    }

    fn without_program(&self) -> Box<dyn Runtime> {
        self.on_model.without_program()
    }

    fn prompt(&self, acts: &[Act<'_>], result: &str) -> Option<String> {
        self.on_model.prompt(acts, result).or_else(|| {
            let mut all = acts.iter();
            let script = all.try_fold(Script::new(), |script, act| odd(script, *act));
            Some(script?.done(result).serve().to_prompt())
        })
    }

    fn has_program(&self) -> bool {
        self.has_program
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        self.on_model.environment()
    }

    fn hides(&self, variable: &str) -> bool {
        variable == "SCRIPTED_KEY"
    }

    fn prepare(&self, launch: &mut Launch) {
        self.on_model.prepare(launch);
    }

    fn was_told(&self, session: &Session<'_>, text: &str) -> bool {
        self.on_model.was_told(session, text)
    }
}

mod anthropic {
    use super::*;

    harness::contract_tests!(native(Wire::Anthropic), cannot: []);
}

mod chat {
    use super::*;

    harness::contract_tests!(native(Wire::Chat), cannot: []);
}

mod responses {
    use super::*;

    harness::contract_tests!(native(Wire::Responses), cannot: []);
}

mod shared_process {
    use super::*;

    harness::contract_tests!(
        shared(Wire::Anthropic),
        cannot: ["the_environment_is_what_was_given", "it_works_where_it_was_told"]
    );
}
