//! The screen and the keys of a person at a terminal of 80 by 24.

use std::process::Command;

use harness::script::{Do, Script};
use harness::team_session::SessionScene;
use harness::terminal::Terminal;
use harness::{Fan, Workplace, let_go, waiting};
use serde_json::json;

use crate::{CCB, FAKE_AGENT, ON_TERMINAL};

/// Green, as ccb prints it.
const GREEN: vt100::Color = vt100::Color::Idx(2);

fn terminal(command: &Command) -> Terminal {
    Terminal::start(ON_TERMINAL, command, 80, 24)
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

#[test]
fn a_program_sees_the_size_and_gets_the_keys() {
    let mut terminal = Terminal::start(ON_TERMINAL, &shell("stty size; cat"), 100, 30);
    terminal.wait_for_text("30 100");
    terminal.type_keys("hello\r");
    terminal.wait_for("the echo and the answer", |screen| {
        screen.rows()[1..3] == ["hello", "hello"]
    });
    terminal.type_keys("\x04");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn an_interrupt_is_a_key_and_colours_are_seen() {
    // An interrupt between two commands would leave the shell waiting for the second.
    let script = r"trap 'exit 3' INT; printf '\033[32mgo\033[0m\n'; sh -c 'echo up; exec cat'";
    let mut terminal = terminal(&shell(script));
    let screen = terminal.wait_for_text("up");
    assert_eq!(screen.colour_of("go"), GREEN);
    terminal.type_keys("\x03");
    assert_eq!(terminal.end().0, Some(3));
}

/// A model leads, and does not answer; the person at the terminal sees the question and does.
#[test]
fn a_person_answers_a_question_although_a_model_leads() {
    let scene = SessionScene::new(CCB);
    scene
        .home
        .with_fake_runtime(FAKE_AGENT, r#""agents":{"stopGraceMs":300}"#);
    let ask = Do::Ask {
        id: "q".into(),
        tool: "Bash".into(),
        input: json!({"command": "make install"}),
        allowed: vec![Do::Write {
            path: "one".into(),
            text: "1\n".into(),
        }],
        denied: Vec::new(),
    };
    let work = Script::new().then(ask).done("did it").to_prompt();
    let task = json!({"subject": "install", "description": work});
    let never = scene.home.path().join("never");
    let lead = Script::new().call("TaskCreate", task).wait_file(never);
    let prompt = lead.to_prompt();
    let session = [
        "--plain",
        "--runtime",
        "fake",
        "--mates",
        "1",
        "--merge",
        "auto",
        prompt.as_str(),
    ];
    let mut terminal = terminal(&scene.command(&session));
    terminal.wait_for_text("mate-1 asks to use Bash: make install");
    terminal.type_keys("/approve mate-1\r");
    terminal.wait_for_text("approved: use Bash: make install");
    terminal.wait_for_text("#1 is on main");
    assert_eq!(scene.repo.git(&["show", "main:one"]), "1\n");
    terminal.type_keys("/quit\r");
    terminal.end();
}

/// A fan-out of one task with a long name that waits for [`let_go`].
fn gated_fan() -> Fan {
    let fan = Fan::new(CCB);
    let gate = waiting(fan.0.home.path(), "gate");
    let subject = format!("a {} subject", "very long ".repeat(20));
    fan.plan(&json!({ "tasks": [
        { "id": "gated", "subject": subject, "run": format!("{gate} > out"), "verify": "test -s out" },
    ] }));
    fan
}

#[test]
fn a_fanout_draws_within_the_screen_and_gives_the_cursor_back() {
    let fan = gated_fan();
    let mut terminal = terminal(&fan.0.command(&["fanout", "plan.json"]));
    let screen = terminal.wait_for("the running task", |screen| {
        let rows = screen.rows();
        rows.iter()
            .any(|row| row.contains("gated") && row.contains("very long"))
    });
    assert_eq!(screen.wrapped(), Vec::<String>::new(), "{screen:?}");
    assert!(!screen.has_cursor(), "{screen:?}");
    let_go(fan.0.home.path(), "gate", "words");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.has_cursor());
    assert!(screen.text().contains("1 proven"), "{screen:?}");
    assert_eq!(screen.colour_of("✔ gated"), GREEN);
}

#[test]
fn a_fanout_without_colours_is_drawn_without_them() {
    let fan = gated_fan();
    let mut command = fan.0.command(&["fanout", "plan.json"]);
    command.env("NO_COLOR", "1");
    let mut terminal = terminal(&command);
    terminal.wait_for_text("gated");
    let_go(fan.0.home.path(), "gate", "words");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(!screen.has_colours(), "{screen:?}");
}

#[test]
fn logs_are_followed_until_the_agent_ends() {
    let scene = SessionScene::new(CCB);
    let gate = waiting(scene.home.path(), "gate");
    let script = format!("echo first; {gate}; echo second");
    scene.ok(&["team", "create", "board"]);
    scene.ok(&[
        "agent",
        "spawn",
        "--runtime",
        "shell",
        "--name",
        "talker",
        "--background",
        &script,
    ]);
    let mut terminal = terminal(&scene.command(&["agent", "logs", "talker", "--follow"]));
    terminal.wait_for_text("first");
    let_go(scene.home.path(), "gate", "between\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.text().contains("second"), "{screen:?}");
}

#[test]
fn a_watch_shows_changes_until_it_is_interrupted() {
    let scene = SessionScene::new(CCB);
    scene.task("the first one", &[]);
    let mut terminal = terminal(&scene.command(&["task", "watch", "--since", "0"]));
    terminal.wait_for_text("the first one");
    scene.task("the second one", &[]);
    terminal.wait_for_text("the second one");
    terminal.type_keys("\x03");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen:?}");
}

#[test]
fn a_board_fits_the_width_of_the_terminal() {
    let scene = SessionScene::new(CCB);
    scene.task(&"one word after the other ".repeat(10), &[]);
    scene.task("漢字 ".repeat(60).trim(), &[]);
    for columns in [80, 40] {
        let command = scene.command(&["task", "list"]);
        let mut terminal = Terminal::start(ON_TERMINAL, &command, columns, 24);
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(0), "{screen:?}");
        assert!(screen.text().contains("2 tasks"), "{screen:?}");
        assert_eq!(screen.wrapped(), Vec::<String>::new(), "{screen:?}");
    }
}

#[test]
fn trust_shows_what_it_trusts() {
    let place = Workplace::new(CCB);
    let settings = json!({ "worktree": { "setup": "touch made.ignored" } });
    place.repo.write(".claude/ccb.json", &settings.to_string());
    let (code, screen) = terminal(&place.command(&["trust", "--show"])).end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.text().contains("touch made.ignored"), "{screen:?}");
    assert!(
        screen.text().contains("`ccb trust` trusts it"),
        "{screen:?}"
    );
    let (code, screen) = terminal(&place.command(&["trust"])).end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.text().contains("1 newly trusted"), "{screen:?}");
    assert_eq!(screen.colour_of("✔"), GREEN);
}
