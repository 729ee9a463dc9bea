use std::time::Duration;

use crate::process::{Ending, Processes};
use crate::runtime::{Event, Launch, LaunchError, Runtime, ShellRuntime, TurnEnd, TurnStatus};

fn launch(command: &str) -> Launch {
    Launch {
        prompt: command.into(),
        cwd: std::env::temp_dir(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        scratch: std::env::temp_dir(),
        ..Launch::default()
    }
}

/// Runs the command and returns its end.
async fn run(command: &str) -> (TurnEnd, Ending) {
    let processes = Processes::own().expect("signals");
    let agent = ShellRuntime::default().launch(launch(command), &processes);
    let mut agent = agent.expect("it starts");
    let mut turn = None;
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), agent.events.recv());
        match next.await.expect("something happens").expect("an end") {
            Event::TurnEnded(end) => turn = Some(end),
            Event::Ended(ending) => return (turn.expect("a turn"), ending),
            _ => {}
        }
    }
}

#[tokio::test]
async fn the_exit_code_is_the_result() {
    let (turn, ending) = run("echo fine").await;
    assert_eq!(
        (turn.status, ending),
        (TurnStatus::Completed, Ending::Exited(0))
    );
    assert_eq!((turn.text.as_str(), turn.error), ("fine", None));
    let (turn, ending) = run("echo some; echo odd >&2; exit 3").await;
    assert_eq!(
        (turn.status, ending),
        (TurnStatus::Failed, Ending::Exited(3))
    );
    assert_eq!(turn.text, "some");
    let error = "the command ended with exit code 3; it printed:\nodd";
    assert_eq!(turn.error.as_deref(), Some(error));
    let (turn, ending) = run("kill -9 $$").await;
    assert_eq!(
        (turn.status, ending),
        (TurnStatus::Failed, Ending::Signaled(9))
    );
    assert_eq!(
        turn.error.as_deref(),
        Some("the command was ended by signal 9")
    );
}

#[tokio::test]
async fn the_result_is_the_end_of_the_output() {
    let (turn, _) = run("yes 'grüße' | head -n 100000; echo last").await;
    let (first, rest) = turn.text.split_once('\n').expect("two lines");
    assert_eq!(first, "[the beginning is in the output file]");
    assert!(
        rest.len() <= 16 * 1024 && rest.len() > 16 * 1024 - 10,
        "{}",
        rest.len()
    );
    assert!(rest.ends_with("grüße\nlast"));
    assert!(!rest.contains('\u{fffd}'), "a character was torn");
}

#[tokio::test]
async fn a_command_with_nul_is_refused() {
    let processes = Processes::own().expect("signals");
    let refused = ShellRuntime::default().launch(launch("echo \0"), &processes);
    assert!(
        matches!(refused, Err(LaunchError::Unsupported(_))),
        "{refused:?}"
    );
    let refused = ShellRuntime::new(Vec::new()).launch(launch("echo"), &processes);
    assert!(
        matches!(refused, Err(LaunchError::Unsupported(_))),
        "{refused:?}"
    );
    assert!(processes.running().is_empty());
}
