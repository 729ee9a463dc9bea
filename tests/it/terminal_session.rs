//! A session as lines at a terminal of 80 by 24: its output, the person's input, its questions, and
//! its end.

use harness::script::Script;
use harness::team_session::SessionScene;
use harness::terminal::{Screen, Terminal};
use harness::{Answer, let_go, waiting};
use serde_json::json;

use crate::{CCB, FAKE_AGENT, ON_TERMINAL};

/// Green, as ccb prints it.
const GREEN: vt100::Color = vt100::Color::Idx(2);

fn start(scene: &SessionScene, session: &[&str]) -> Terminal {
    let session = [session, &["--plain"]].concat();
    Terminal::start(ON_TERMINAL, &scene.command(&session), 80, 24)
}

/// A session with tasks that each write a file of their name.
fn scene(files: &[&str]) -> SessionScene {
    let scene = SessionScene::new(CCB);
    for file in files {
        let run = format!("echo 1 > {file}");
        let verify = format!("test -s {file}");
        scene.task(
            &format!("write {file}"),
            &["--run", &run, "--verify", &verify],
        );
    }
    scene
}

/// The person's input: the last row that is not blank.
fn last_row(screen: &Screen) -> String {
    let rows = screen.rows();
    let row = rows.iter().rev().find(|row| !row.trim().is_empty());
    row.cloned().unwrap_or_default()
}

fn on_main(scene: &SessionScene, file: &str) -> bool {
    !scene.repo.git(&["ls-tree", "main", file]).is_empty()
}

#[test]
fn finished_work_is_shown_landed_when_wanted_and_the_session_ends() {
    let scene = scene(&["one", "two"]);
    let mut terminal = start(&scene, &["--runtime", "shell", "--merge", "ask"]);
    let screen = terminal.wait_for_text("Land these 2 tasks on main?");
    assert!(
        screen.text().contains("#1 write one  1 file +1 -0"),
        "{screen:?}"
    );
    assert!(screen.text().contains("check passed"), "{screen:?}");
    terminal.type_keys("perhaps\r");
    terminal.wait_for_text("Type one of: [a]ll");
    terminal.type_keys("a\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.text().contains("#2 is on main"), "{screen:?}");
    assert!(
        screen.text().contains("2 of 2 tasks completed"),
        "{screen:?}"
    );
    assert!(screen.has_cursor());
    assert!(on_main(&scene, "one") && on_main(&scene, "two"));
}

#[test]
fn nothing_lands_without_a_yes_and_the_end_says_how_it_can() {
    let scene = scene(&["one"]);
    let mut terminal = start(&scene, &["--runtime", "shell", "--merge", "ask"]);
    terminal.wait_for_text("Land it on main? [y]es, [n]o (default), [d]iff");
    terminal.type_keys("\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(8), "{screen:?}");
    assert!(!screen.text().contains("is on main"), "{screen:?}");
    assert!(
        screen.text().contains("ccb --team board land 1"),
        "{screen:?}"
    );
    assert!(!on_main(&scene, "one"));
}

#[test]
fn finished_work_is_chosen_one_by_one_with_a_look_at_it() {
    let scene = scene(&["one", "two", "three"]);
    let on_one = ["--run", "echo more >> one", "--blocked-by", "1"];
    scene.task("more of one", &on_one);
    let mut terminal = start(&scene, &["--runtime", "shell", "--merge", "ask"]);
    terminal.wait_for_text("Land these 4 tasks on main?");
    terminal.type_keys("o\r");
    terminal.wait_for_text("Land #1 write one on main?");
    terminal.type_keys("d\r");
    terminal.wait_for_text("+++ b/one");
    terminal.type_keys("n\r");
    for keys in ["y\r", "n\r", "y\r"] {
        terminal.wait_for("the next question", |screen| {
            let row = last_row(screen);
            row.starts_with("Land #") && row.trim_end().ends_with('›')
        });
        terminal.type_keys(keys);
    }
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(8), "{screen:?}");
    let text = screen.text();
    assert!(
        text.contains("#4 does not land: it builds on #1, which is left out"),
        "{screen:?}"
    );
    assert!(on_main(&scene, "two"));
    assert!(!on_main(&scene, "one") && !on_main(&scene, "three"));
}

#[test]
fn quitting_stops_the_agents_and_asks_about_what_is_finished() {
    let scene = scene(&["one"]);
    let gate = waiting(scene.home.path(), "gate");
    scene.task("takes for ever", &["--run", &gate]);
    let mut terminal = start(&scene, &["--runtime", "shell", "--merge", "ask"]);
    terminal.wait_for_text("#1 done");
    terminal.type_keys("/quit\r");
    terminal.wait_for_text("Land it on main?");
    terminal.type_keys("y\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(1), "{screen:?}");
    assert!(
        screen.text().contains("1 of 2 tasks completed"),
        "{screen:?}"
    );
    assert!(on_main(&scene, "one"));
    assert_eq!(scene.status(2), "pending");
}

#[test]
fn with_nothing_to_ask_it_ends_by_itself_unless_it_is_to_stay() {
    let done = scene(&["one"]);
    let session = ["--runtime", "shell", "--merge", "auto"];
    let mut terminal = start(&done, &session);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.text().contains("led by you"), "{screen:?}");
    assert_eq!(screen.colour_of("✔ #1"), GREEN);
    assert!(on_main(&done, "one"));

    let open = scene(&["one"]);
    let mut terminal = start(&open, &[&session[..], &["--stay"]].concat());
    terminal.wait_for_text("#1 is on main");
    terminal.wait_for_text("every task is completed");
    terminal.type_keys("/help\r");
    let screen = terminal.wait_for_text("@NAME TEXT       message an agent");
    assert_eq!(screen.wrapped(), Vec::<String>::new(), "{screen:?}");
    terminal.type_keys("/tasks\r");
    terminal.wait_for("the board", |screen| {
        let done = |row: &String| row.starts_with('✔') && row.ends_with("write one  mate-1");
        screen.rows().iter().any(done)
    });
    // An answer without a question is no task, and neither is text that no agent here can work on.
    terminal.type_keys("y\r");
    terminal.wait_for_text("no question is open");
    terminal.type_keys("make it nice\r");
    terminal.wait_for_text("the mates only run commands");
    terminal.type_keys("/run echo 2 > two\r");
    terminal.wait_for_text("#2 is on main");
    terminal.type_keys("/quit\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.text().contains("2 of 2 tasks"), "{screen:?}");
}

#[test]
fn a_session_without_tasks_says_how_to_add_one_and_waits() {
    let scene = scene(&[]);
    let mut terminal = start(&scene, &["--runtime", "shell", "--merge", "auto"]);
    let screen = terminal.wait_for_text("no tasks yet. Add one: ccb --team board task create");
    assert!(!screen.text().contains("completed"), "{screen:?}");
    terminal.wait_for("what can be typed", |screen| {
        last_row(screen).contains("/run CMD adds a task, /help lists the commands")
    });
    scene.task("write one", &["--run", "echo 1 > one"]);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(on_main(&scene, "one"));
}

#[test]
fn what_is_being_typed_stays_whole_while_lines_are_printed() {
    let scene = scene(&[]);
    let gate = waiting(scene.home.path(), "gate");
    scene.task("waits", &["--run", &format!("{gate} > one")]);
    let mut terminal = start(&scene, &["--runtime", "shell", "--merge", "auto"]);
    terminal.wait_for_text("#1 waits");
    terminal.type_keys("half a sen");
    terminal.wait_for("what was typed", |screen| {
        last_row(screen) == "› half a sen"
    });
    scene.task("comes in between", &["--run", "true"]);
    terminal.wait_for("a line above it", |screen| {
        screen.text().contains("#2 done") && last_row(screen) == "› half a sen"
    });
    terminal.type_keys("\x15/tasks\r");
    terminal.wait_for_text("› /tasks");
    let_go(scene.home.path(), "gate", "1\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(!last_row(&screen).contains('›'), "{screen:?}");
}

#[test]
fn an_interrupt_says_what_happens_next() {
    let scene = scene(&[]);
    let gate = waiting(scene.home.path(), "gate");
    scene.task("waits", &["--run", &gate]);
    let mut terminal = start(&scene, &["--runtime", "shell"]);
    terminal.wait_for_text("#1 waits");
    terminal.type_keys("\x03");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen:?}");
    let text = screen.text().replace('\n', " ");
    assert!(
        text.contains("Ctrl-C again ends them at once"),
        "{screen:?}"
    );
    assert!(text.contains("ccb --team board"), "{screen:?}");
    assert_eq!(scene.status(1), "pending");
}

#[test]
fn a_message_to_a_mate_is_acknowledged() {
    let scene = SessionScene::new(CCB);
    scene
        .home
        .with_fake_runtime(FAKE_AGENT, r#""agents":{"stopGraceMs":300}"#);
    let gate = scene.home.path().join("go-on");
    let work = Script::new().wait_file(gate).done("did it");
    scene.task("one", &["-d", &work.to_prompt()]);
    let session = ["--runtime", "fake", "--lead", "me", "--merge", "auto"];
    let mut terminal = start(&scene, &session);
    terminal.wait_for_text("mate-1 #1 one");
    terminal.type_keys("@mate-1 hello\r");
    terminal.wait_for_text("delivered to mate-1");
    terminal.type_keys("@ghost hello\r");
    terminal.wait_for_text("ghost");
    terminal.type_keys("/quit\r");
    terminal.end();
}

/// The screen has everything a person needs to know: the failed check and its end, its output, the
/// path of the rest, and the next command.
#[test]
fn a_failed_check_can_be_read() {
    let scene = scene(&[]);
    let check = "seq 1 30; printf 'parser.c:12: error: expected ;\\n' >&2; exit 3";
    scene.task("fix it", &["--run", "true", "--verify", check]);
    let session = ["--runtime", "shell", "--attempts", "1", "--plain"];
    let command = scene.command(&session);
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 40);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(1), "{screen:?}");
    let text = screen.text();
    for part in [
        "exit code 3",
        "  │ … 23 earlier lines",
        "  │ parser.c:12: error: expected ;",
        "check.log",
        "retry: ccb --team board task retry 1",
    ] {
        assert!(text.contains(part), "{part}: {screen:?}");
    }
    let shown = scene.run(&["task", "show", "1"]);
    assert!(
        shown.stdout.contains("  │ parser.c:12: error: expected ;"),
        "{shown:?}"
    );
    assert!(
        shown.stdout.contains("ccb --team board task retry 1"),
        "{shown:?}"
    );
    let run = scene.file(1)["metadata"]["ccb"]["attempts"][0]["run"].clone();
    let logs = scene.run(&["agent", "logs", run.as_str().unwrap()]);
    assert!(logs.stdout.contains("failed: exit code 3"), "{logs:?}");
    assert!(logs.stdout.contains("  │ parser.c:12"), "{logs:?}");
    scene.ok(&["task", "retry", "1"]);
    assert_eq!(scene.file(1)["metadata"]["ccb"].get("parked"), None);
}

#[test]
fn a_prompt_alone_starts_a_session_in_the_repository() {
    let scene = SessionScene::new(CCB);
    scene.home.with_fake_runtime(
        FAKE_AGENT,
        r#""agents":{"stopGraceMs":300,"defaultRuntime":"fake"}"#,
    );
    let work = Script::new().write("one", "1\n").done("did it").to_prompt();
    let task = json!({"subject": "one", "description": work,
                      "metadata": {"ccb": {"verify": "test -s one"}}});
    let lead = Script::new()
        .call("TaskCreate", task)
        .done("handed out")
        .serve();
    let prompt = format!("make the tests pass {}", lead.to_prompt());
    let command = scene.unnamed(&["--plain", "--merge", "auto", &prompt]);
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 40);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen:?}");
    let text = screen.text();
    assert!(
        text.contains("4 mates on fake, led by fake, lands on main"),
        "{screen:?}"
    );
    assert!(
        text.contains("Mates edit files in their own worktrees and ask you"),
        "{screen:?}"
    );
    assert!(
        text.contains("Stop: Ctrl-C. Resume: ccb --team "),
        "{screen:?}"
    );
    assert!(on_main(&scene, "one"));
}

#[test]
fn a_prompt_without_any_agent_program_says_what_to_install() {
    let scene = SessionScene::new(CCB);
    let mut command = scene.unnamed(&["make the tests pass"]);
    // Git and the shell, and no agent.
    command.env("PATH", "/usr/bin:/bin");
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 80, 24);
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(2), "{screen:?}");
    let text = screen.text();
    for part in [
        "no agent program is installed",
        "npm install -g @anthropic-ai/claude-code",
        "npm install -g @openai/codex",
        "docs/runtimes.md",
    ] {
        assert!(text.contains(part), "{part}: {screen:?}");
    }
    // Words that are no prompt and no command start nothing.
    let answer = Answer::of(scene.unnamed(&["frobnicate", "all"]).output().unwrap());
    assert_eq!(answer.code, Some(2), "{answer:?}");
}
