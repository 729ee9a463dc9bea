//! The permissions of a native agent without a question, in each permission mode, as a model finds
//! them.

use harness::Talk;
use harness::model::{Step, prompt};
use harness::native_world::NativeWorld;
use serde_json::json;
use swarm::provider::Wire;
use swarm::runtime::{Event, Order};
use swarm::sandbox::Sandbox;

use crate::CCB;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Runs,
    Asks,
    Denied,
}

use Came::{Asks, Denied, Runs};

fn came(talk: &mut Talk) -> Came {
    let came = talk.until("what becomes of the call", |event| match event {
        Event::Permission { id, .. } => Some((Asks, Some(id))),
        Event::ToolResult { is_error, .. } => Some((if is_error { Denied } else { Runs }, None)),
        _ => None,
    });
    if let (_, Some(id)) = &came {
        let (id, allow, reason) = (id.clone(), false, Some("not now".to_owned()));
        talk.order(Order::Answer { id, allow, reason });
    }
    came.0
}

/// The outcomes of these calls in a mode.
fn in_mode(mode: &str, confined: bool) -> [Came; 5] {
    let world = NativeWorld::new(CCB, Wire::Anthropic);
    std::fs::write(world.path("cwd/there"), "x\n").unwrap();
    let bash = |line: &str| Step::tool("Bash", json!({ "command": line }));
    let calls = [
        Step::tool("Read", json!({ "file_path": "there" })),
        Step::tool("Write", json!({ "file_path": "new", "content": "x" })),
        bash("ls"),
        bash("touch made"),
        bash("curl http://127.0.0.1:1"),
    ];
    calls.map(|call| {
        let steps = [call, Step::text("done")];
        let mut launch = world.launch(&prompt("Go.", &steps));
        launch.permission_mode = Some(mode.to_owned());
        launch.sandbox = confined.then(Sandbox::default);
        let mut talk = world.start(launch);
        let came = came(&mut talk);
        assert_eq!(talk.turn().text, "done", "a denial does not end the turn");
        talk.finish();
        // A refused call leaves nothing behind.
        for file in ["cwd/new", "cwd/made"] {
            let file = world.path(file);
            assert!(came == Runs || !file.exists(), "{mode}: {}", file.display());
            std::fs::remove_file(file).ok();
        }
        came
    })
}

#[test]
fn each_mode_runs_asks_and_denies_as_documented() {
    // Read, Write, a command that only reads, one that writes, one that uses the network.
    for (mode, expected) in [
        ("default", [Runs, Asks, Runs, Asks, Asks]),
        ("bubble", [Runs, Asks, Runs, Asks, Asks]),
        ("acceptEdits", [Runs, Runs, Runs, Asks, Asks]),
        ("plan", [Runs, Denied, Runs, Denied, Denied]),
        ("dontAsk", [Runs, Denied, Runs, Denied, Denied]),
    ] {
        assert_eq!(in_mode(mode, false), expected, "{mode}");
    }
    // curl fails by itself there: no server listens.
    assert_eq!(
        in_mode("bypassPermissions", false),
        [Runs, Runs, Runs, Runs, Denied]
    );
}

#[test]
fn a_confined_agent_runs_commands_that_stay_inside() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("not tested here: {why}");
        return;
    }
    let accept = in_mode("acceptEdits", true);
    assert_eq!(accept, [Runs, Runs, Runs, Runs, Asks]);
    // It runs, and the kernel refuses to write.
    let plan = in_mode("plan", true);
    assert_eq!(plan[..4], [Runs, Denied, Runs, Denied]);
}
