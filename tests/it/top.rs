//! The live view at a pseudo-terminal: a team from start to end by keys alone, and a terminal that
//! is restored in every case.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use harness::runs::LONG;
use harness::script::{Do, Script};
use harness::team_session::SessionScene;
use harness::terminal::{Screen, Terminal};
use harness::{wait_until, waiting};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{CCB, FAKE_AGENT, ON_TERMINAL};

fn start(command: &Command) -> Terminal {
    Terminal::start(ON_TERMINAL, command, 100, 30)
}

fn fake() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene
        .home
        .with_fake_runtime(FAKE_AGENT, r#""agents":{"stopGraceMs":300}"#);
    scene
}

fn on_main(scene: &SessionScene, file: &str) -> bool {
    !scene.repo.git(&["ls-tree", "main", file]).is_empty()
}

/// Types and waits for the result. Esc has to be read before the next key, or the two are one.
fn press(terminal: &mut Terminal, keys: &str, leads_to: &str) -> Screen {
    terminal.type_keys(keys);
    terminal.wait_for_text(leads_to)
}

/// Chooses the only row of the present list that matches.
fn choose(terminal: &mut Terminal, what: &str) {
    press(terminal, "/", "filter ›");
    press(terminal, what, &format!("filter › {what}"));
    press(terminal, "\r", &format!("filter: {what}"));
}

/// Waits until all of this is on the screen at once.
fn wait_for_all(terminal: &Terminal, texts: &[&str]) -> Screen {
    terminal.wait_for(&texts.join(", "), |screen| {
        let text = screen.text();
        texts.iter().all(|wanted| text.contains(wanted))
    })
}

/// The subject of the permission, as the view shows it.
const NPM: &str = "\"command\": \"npm publish\"";

fn clear_filter(terminal: &mut Terminal) {
    terminal.type_keys("\x1b");
    terminal.wait_for("no filter", |screen| !screen.text().contains("filter:"));
}

/// Asks for permission to publish a package.
fn asks(allowed: Vec<Do>, denied: Vec<Do>) -> Do {
    Do::Ask {
        id: "q1".into(),
        tool: "Bash".into(),
        input: json!({"command": "npm publish"}),
        allowed,
        denied,
    }
}

fn says(text: &str) -> Vec<Do> {
    vec![Do::Say { text: text.into() }]
}

/// Asks for a permission, hands in a plan, waits for a word, and never ends.
fn four_tasks(scene: &SessionScene) {
    let mode = |mode: &str| Do::WaitMode { mode: mode.into() };
    let (approved, sent) = (
        scene.home.path().join("approved"),
        scene.home.path().join("sent"),
    );
    let one = Script::new()
        .then(asks(says("published"), says("not published")))
        .write("one", "1\n")
        .done("wrote one");
    let two = Script::new()
        .call("EnterPlanMode", json!({}))
        .then(mode("plan"))
        .call(
            "ExitPlanMode",
            json!({"plan": "First the tests, then the code"}),
        )
        .tool_around("Read", "the answer", |tool| tool.wait_file(&approved))
        .write("two", "2\n")
        .done("wrote two");
    let three = Script::new()
        .say("I wait for word")
        .tool_around("Read", "word", |tool| tool.wait_file(&sent))
        .wait_message()
        .write("three", "3\n")
        .done("wrote three");
    let four = Script::new().say("round and round").hang();
    for (subject, script) in [
        ("write one", one),
        ("write two", two),
        ("write three", three),
        ("go round", four),
    ] {
        scene.task(subject, &["-d", &script.to_prompt()]);
    }
}

const SESSION: [&str; 8] = [
    "--runtime",
    "fake",
    "--lead",
    "me",
    "--mates",
    "4",
    "--merge",
    "ask",
];

#[test]
fn a_team_is_taken_from_start_to_end_by_keys_alone() {
    let scene = fake();
    four_tasks(&scene);
    let mut terminal = start(&scene.command(&SESSION));

    // Items that need a person: a permission is denied, a plan approved.
    terminal.wait_for_text("mate-1 asks to use Bash");
    terminal.wait_for_text("mate-2 asks to approve the plan");
    terminal.type_keys("!");
    let screen = wait_for_all(&terminal, &["! 2 need you", NPM]);
    assert!(screen.is_taken() && !terminal.is_cooked(), "{screen:?}");
    terminal.type_keys("n");
    terminal.wait_for("the plan alone", |screen| {
        let text = screen.text();
        text.contains("! 1 needs you") && !text.contains(NPM)
    });
    press(&mut terminal, "a", "Nothing needs you.");
    harness::write(&scene.home.path().join("approved"), "");

    // A view of an agent, and a message to it.
    press(&mut terminal, "1", "#3 write three");
    choose(&mut terminal, "three");
    press(&mut terminal, "\r", "running · fake");
    terminal.wait_for_text("● I wait for word");
    press(&mut terminal, "m", "to mate-");
    press(&mut terminal, "go on then\r", "sent to mate-");
    harness::write(&scene.home.path().join("sent"), "");
    terminal.wait_for_text("✉");
    scene.await_status(3, "completed");
    press(&mut terminal, "\x1b", "What happened");

    // One that never ends is stopped, after a question.
    choose(&mut terminal, "go round");
    press(&mut terminal, "x", "Stop mate-");
    press(&mut terminal, "y", "#4 stopped");
    clear_filter(&mut terminal);

    // A result is sent back, and comes again with more.
    scene.await_status(1, "completed");
    press(&mut terminal, "2", "Done");
    choose(&mut terminal, "write one");
    terminal.wait_for_text("done: ⚠ unchecked, not landed");
    press(
        &mut terminal,
        "r",
        "what the next attempt should do differently",
    );
    let more = Script::new().write("more", "2\n").done("did more").serve();
    terminal.type_keys(&format!("{}\r", more.to_prompt()));
    wait_until(LONG, "the second result", || {
        let facts = &scene.file(1)["metadata"]["ccb"];
        let rejected = facts["attempts"].as_array().map_or(0, Vec::len) == 1;
        rejected && scene.status(1) == "completed"
    });
    let changed = scene.run(&["diff", "1", "--name-only"]);
    assert!(changed.stdout.contains("more\n"), "{changed:?}");

    // It lands, after a question.
    wait_for_all(&terminal, &["attempt 1", "done: ⚠ unchecked, not landed"]);
    press(&mut terminal, "l", "Land #1 write one?");
    terminal.type_keys("y");
    wait_until(LONG, "the landing", || on_main(&scene, "more"));
    assert!(on_main(&scene, "one"));
    clear_filter(&mut terminal);

    // Leaving stops the agents and asks what lands: nothing now.
    press(&mut terminal, "q", "Leave the session?");
    press(&mut terminal, "y", "Land it on main?");
    let status = scene.ok(&["status"]);
    let running = &status["teams"][0]["running"];
    assert_eq!(running, true, "a session that asks is not over: {status}");
    terminal.type_keys("n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(1), "{screen:?}");
    assert!(
        screen.text().contains("3 of 4 tasks completed"),
        "{screen:?}"
    );
    assert!(screen.text().contains("not landed: #2, #3"), "{screen:?}");
    assert!(!screen.is_taken() && screen.has_cursor(), "{screen:?}");
    assert!(!on_main(&scene, "two"));

    // Coming back: the same command, the same team.
    let mut terminal = start(&scene.command(&SESSION));
    terminal.wait_for_text("◐ running");
    terminal.wait_for_text("round and round");
    press(&mut terminal, "q", "Leave the session?");
    press(&mut terminal, "y", "Land it on main?");
    terminal.type_keys("a");
    let (_, screen) = terminal.end();
    assert!(
        screen.text().contains("3 of 4 tasks completed"),
        "{screen:?}"
    );
    assert!(on_main(&scene, "two") && on_main(&scene, "three"));
}

#[test]
fn a_watcher_answers_for_a_session_of_another_process_and_leaves_it_running() {
    let scene = fake();
    let asks = Script::new()
        .then(asks(says("published"), vec![Do::Exit { code: 3 }]))
        .write("one", "1\n")
        .done("wrote one");
    scene.task("write one", &["-d", &asks.to_prompt()]);
    let gate = waiting(scene.home.path(), "gate");
    scene.task("wait", &["--run", &gate]);
    // A person is there who could answer, but does not.
    let session = [
        "--runtime",
        "fake",
        "--lead",
        "me",
        "--merge",
        "never",
        "--plain",
    ];
    let mut session = start(&scene.command(&session));
    let mut first = start(&scene.command(&["top"]));
    let mut second = start(&scene.command(&["top"]));
    for terminal in [&first, &second] {
        terminal.wait_for_text("mate-1 asks to use Bash");
    }
    for terminal in [&mut first, &mut second] {
        terminal.type_keys("!");
        wait_for_all(terminal, &["! 1 needs you", NPM]);
    }
    first.type_keys("a");
    for terminal in [&first, &second] {
        terminal.wait_for_text("Nothing needs you.");
    }
    first.wait_for_text("1/2 done");
    second.wait_for_text("1/2 done");
    session.wait_for_text("#1 done");
    first.type_keys("q");
    let (code, screen) = first.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.text().contains("Team board continues"), "{screen:?}");
    assert!(screen.text().contains("Come back: ccb top"), "{screen:?}");
    harness::let_go(scene.home.path(), "gate", "");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen:?}");
    second.wait_for_text("✔ ended");
    second.type_keys("q");
    assert_eq!(second.end().0, Some(0));
}

#[test]
fn the_end_of_a_session_closes_the_view_and_leaves_its_summary() {
    let scene = SessionScene::new(CCB);
    scene.task(
        "write one",
        &["--run", "echo 1 > one", "--verify", "test -s one"],
    );
    let session = ["--runtime", "shell", "--merge", "auto"];
    let mut terminal = start(&scene.command(&session));
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(
        screen.text().contains("1 of 1 task completed"),
        "{screen:?}"
    );
    assert!(!screen.is_taken() && screen.has_cursor(), "{screen:?}");
    assert!(on_main(&scene, "one"));
}

#[test]
fn a_session_goes_on_as_lines_when_only_its_view_is_closed() {
    let scene = SessionScene::new(CCB);
    let gate = waiting(scene.home.path(), "gate");
    scene.task("wait", &["--run", &format!("{gate}; echo 1 > one")]);
    let session = ["--runtime", "shell", "--merge", "ask"];
    let mut terminal = start(&scene.command(&session));
    terminal.wait_for_text("▶ mate-1 #1 wait");
    press(&mut terminal, "q", "Leave the session?");
    terminal.type_keys("p");
    terminal.wait_for("lines", |screen| {
        !screen.is_taken() && screen.text().contains("the session goes on")
    });
    harness::let_go(scene.home.path(), "gate", "");
    terminal.wait_for_text("It is ⚠ unchecked: it has no check. [y]es, [n]o (default), [d]iff");
    terminal.type_keys("y\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(on_main(&scene, "one"));
}

/// A view of a repository in which nothing runs.
fn idle(scene: &SessionScene, environment: &[(&str, &str)]) -> Terminal {
    let mut command = scene.unnamed(&["top"]);
    command.envs(environment.iter().copied());
    let terminal = start(&command);
    if environment.iter().all(|(name, _)| *name != "CCB_FAULT") {
        let screen = terminal.wait_for_text("Nothing runs here");
        assert!(screen.is_taken() && !terminal.is_cooked(), "{screen:?}");
    }
    terminal
}

fn signal(terminal: &Terminal, signal: Signal) {
    let pid = i32::try_from(terminal.pid()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn is_given_back(terminal: &Terminal) {
    let given_back = |screen: &Screen| !screen.is_taken() && screen.has_cursor();
    terminal.wait_for("the screen to be given back", given_back);
    wait_until(LONG, "the terminal to echo again", || terminal.is_cooked());
}

#[test]
fn a_terminal_is_given_back_after_term_and_hup() {
    let scene = SessionScene::new(CCB);
    for (sent, number) in [(Signal::TERM, 15), (Signal::HUP, 1)] {
        let mut terminal = idle(&scene, &[]);
        signal(&terminal, sent);
        is_given_back(&terminal);
        assert_eq!(terminal.status().signal(), Some(number));
    }
}

#[test]
fn a_terminal_is_given_back_after_a_kill_that_nobody_can_catch() {
    let scene = SessionScene::new(CCB);
    let mut terminal = idle(&scene, &[]);
    signal(&terminal, Signal::KILL);
    is_given_back(&terminal);
    assert_eq!(terminal.status().signal(), Some(9));
    // Also of the whole group.
    let mut terminal = idle(&scene, &[]);
    let pid = i32::try_from(terminal.pid()).unwrap();
    rustix::process::kill_process_group(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    is_given_back(&terminal);
    assert_eq!(terminal.status().signal(), Some(9));
}

#[test]
fn a_terminal_is_given_back_after_a_panic_and_after_an_error() {
    let scene = SessionScene::new(CCB);
    let point = ::top::FAULT_POINTS[0].name();
    for (kind, code, says) in [
        ("erofs", 70, "a bug in ccb; please report"),
        ("eio", 1, "error: the terminal: Input/output error"),
    ] {
        let fault = format!("{kind}:{point}:2");
        let mut terminal = idle(&scene, &[("CCB_FAULT", &fault)]);
        is_given_back(&terminal);
        let (ended, screen) = terminal.end();
        assert_eq!(ended, Some(code), "{screen:?}");
        assert!(screen.text().contains(says), "{screen:?}");
    }
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_going_on_takes_it_again() {
    let scene = SessionScene::new(CCB);
    let mut terminal = idle(&scene, &[]);
    terminal.type_keys("\x1a");
    is_given_back(&terminal);
    // A continue signal before it has stopped would leave it stopped.
    let stat = format!("/proc/{}/stat", terminal.pid());
    let wait_for_stop = || {
        wait_until(LONG, "it to be stopped", || {
            let stat = std::fs::read_to_string(&stat).unwrap();
            let state = stat.rsplit(") ").next();
            state.is_some_and(|rest| rest.starts_with('T'))
        });
    };
    wait_for_stop();
    signal(&terminal, Signal::CONT);
    terminal.wait_for("the view again", |screen| {
        screen.is_taken() && screen.text().contains("Nothing runs here")
    });
    assert!(!terminal.is_cooked());
    // As `kill -TSTP` would.
    signal(&terminal, Signal::TSTP);
    is_given_back(&terminal);
    wait_for_stop();
    signal(&terminal, Signal::CONT);
    terminal.wait_for("the view again", |screen| {
        screen.is_taken() && screen.text().contains("Nothing runs here")
    });
    terminal.type_keys("q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_window_of_any_size_says_something_useful() {
    let scene = SessionScene::new(CCB);
    scene.task("write one", &["--run", "echo 1 > one"]);
    let mut terminal = start(&scene.command(&["top"]));
    terminal.wait_for_text("2 Board (1)");
    terminal.resize(20, 5);
    let screen = terminal.wait_for_text("board 0/1");
    assert_eq!(screen.wrapped(), Vec::<String>::new(), "{screen:?}");
    press(&mut terminal, "2", "○#1 write one");
    terminal.resize(160, 50);
    let screen = terminal.wait_for_text("The chosen task");
    assert_eq!(screen.rows().len(), 50);
    terminal.resize(1, 1);
    terminal.resize(80, 24);
    terminal.wait_for_text("3 Graph");
    terminal.type_keys("q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn without_colours_nothing_is_coloured() {
    let scene = SessionScene::new(CCB);
    let terminal = idle(&scene, &[]);
    assert!(terminal.screen().has_colours());
    let mut terminal = idle(&scene, &[("NO_COLOR", "1")]);
    let screen = terminal.screen();
    assert!(!screen.has_colours(), "{screen:?}");
    terminal.type_keys("\x03");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn where_a_view_cannot_be_there_is_a_way_around() {
    let scene = SessionScene::new(CCB);
    let mut command = scene.unnamed(&["top"]);
    command.env("TERM", "dumb");
    let (code, screen) = start(&command).end();
    assert_eq!(code, Some(2), "{screen:?}");
    assert!(screen.text().contains("ccb status --watch"), "{screen:?}");
    // A session prints lines there.
    scene.task("write one", &["--run", "echo 1 > one"]);
    let mut command = scene.command(&["--runtime", "shell", "--merge", "never"]);
    command.env("TERM", "dumb");
    let (code, screen) = start(&command).end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(
        screen.text().contains("▶ mate-1 #1 write one"),
        "{screen:?}"
    );
    let piped = scene.run(&["top"]);
    assert_eq!(piped.code, Some(2), "{piped:?}");
}

/// The view is of the repository, so the command names no team.
#[test]
fn a_team_that_is_deleted_is_said_to_be_gone_and_shown_as_it_was() {
    let scene = SessionScene::new(CCB);
    scene.task("write one", &["--run", "echo 1 > one"]);
    let ended = scene.session(&["--merge", "never"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut terminal = start(&scene.unnamed(&["top"]));
    terminal.wait_for_text("1/1 done");
    scene.ok(&["team", "delete", "board"]);
    wait_for_all(&terminal, &["✘ gone", "team board is gone"]);
    press(&mut terminal, "2", "#1");
    terminal.wait_for_text("write one");
    terminal.type_keys("q");
    assert_eq!(terminal.end().0, Some(0));
}

/// Output of agents is text: it moves no cursor, sets no title and clears nothing.
#[test]
fn nothing_an_agent_prints_is_interpreted() {
    let scene = SessionScene::new(CCB);
    let gate = waiting(scene.home.path(), "gate");
    let hostile = r"printf 'before \033[2J\033[1;1H\033[31mred\033]0;owned\007 \302\233 after\n'; ";
    scene.task("hostile", &["--run", &format!("{hostile} {gate}")]);
    let session = ["--runtime", "shell", "--merge", "never"];
    let mut terminal = start(&scene.command(&session));
    // Its row shows its last output.
    terminal.wait_for_text("after");
    terminal.type_keys("\r");
    let screen = wait_for_all(&terminal, &["after", "running · shell"]);
    let text = screen.text();
    assert!(text.contains("[31mred"), "{screen:?}");
    assert!(text.contains("4 Transcript"), "{screen:?}");
    harness::let_go(scene.home.path(), "gate", "");
    terminal.wait_for_text("The session has ended. q closes the view.");
    terminal.type_keys("q");
    assert_eq!(terminal.end().0, Some(0));
}
