//! Reads the definition of a type of agents, runs a command as an agent, and prints what happens:
//! `cargo run -p ccb-swarm --example shell_agent`.
#![expect(clippy::print_stdout, reason = "the example shows what happens")]

use std::error::Error;

use swarm::definitions::{Definitions, Sources};
use swarm::process::Processes;
use swarm::run::RuntimeSpec;
use swarm::runtime::{Event, Launch, RuntimeKind};

const TYPES: &str = r#"{"greeter": {
    "description": "Greets whoever asks",
    "prompt": "You greet people, and do nothing else.",
    "tools": ["Read"]
}}"#;

fn main() -> Result<(), Box<dyn Error>> {
    for line in example()? {
        println!("{line}");
    }
    Ok(())
}

fn example() -> Result<Vec<String>, Box<dyn Error>> {
    let types = Definitions::load(&Sources {
        json: Some(TYPES.to_owned()),
        ..Sources::default()
    });
    let greeter = &types.get("greeter")?.definition;
    let mut lines = vec![format!("{}: {}", greeter.name, greeter.description)];

    // A runtime starts a program and translates what it says. For a shell the prompt is a command.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let shell = RuntimeSpec {
        name: "shell".to_owned(),
        kind: RuntimeKind::Shell,
        ..RuntimeSpec::default()
    };
    let runtime = shell.find(&path)?;
    let launch = Launch {
        prompt: "echo hello from $NAME".to_owned(),
        cwd: std::env::temp_dir(),
        env: vec![("NAME".into(), greeter.name.as_str().into())],
        ..Launch::default()
    };
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio.block_on(async {
        let mut agent = runtime.launch(launch, &Processes::own()?)?;
        while let Some(event) = agent.events.recv().await {
            lines.push(match event {
                Event::Output { bytes, .. } => format!("it printed {} bytes", bytes.len()),
                Event::TurnEnded(turn) => format!("{:?}: {}", turn.status, turn.text),
                event => format!("{event:?}"),
            });
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    Ok(lines)
}

#[test]
fn it_runs() {
    let lines = example().unwrap();
    assert_eq!(lines[0], "greeter: Greets whoever asks");
    assert!(lines.contains(&"Completed: hello from greeter".to_owned()));
    assert_eq!(lines.last().unwrap(), "Ended(Exited(0))");
}
