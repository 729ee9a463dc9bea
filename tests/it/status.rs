//! `ccb status`: everything in a repository that runs, has leftovers, or needs a person.

use harness::team_session::SessionScene;
use harness::terminal::Terminal;
use harness::{Answer, let_go, waiting};
use serde_json::{Value, json};

use crate::{CCB, ON_TERMINAL};

fn status(scene: &SessionScene) -> Value {
    let output = scene.unnamed(&["--json", "status"]).output().unwrap();
    let answer = Answer::of(output);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.json()
}

fn needs(status: &Value) -> Vec<&str> {
    let all = status["attention"].as_array().unwrap().iter();
    all.map(|one| one["need"].as_str().unwrap()).collect()
}

#[test]
fn what_sessions_left_is_found_without_naming_a_team_and_every_command_works() {
    let scene = SessionScene::new(CCB);
    scene.task("good", &["--run", "echo 1 > one"]);
    scene.task("bad", &["--run", "true", "--verify", "echo sorry; exit 7"]);
    let ended = scene.session(&["--merge", "never", "--attempts", "1"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");

    let status = status(&scene);
    assert_eq!(needs(&status), ["check", "unlanded"], "{status}");
    let board = &status["teams"].as_array().unwrap()[0];
    assert_eq!(board["name"], "board", "{status}");
    assert_eq!(board["running"], false);
    assert_eq!(board["unlanded"], json!(["1"]), "{board}");
    for one in status["attention"].as_array().unwrap() {
        let command = one["command"].as_str().unwrap();
        let args: Vec<&str> = command.split_whitespace().skip(1).collect();
        let answer = Answer::of(scene.unnamed(&args).output().unwrap());
        assert_eq!(answer.code, Some(0), "{command}: {answer:?}");
    }
    assert_eq!(scene.repo.git(&["show", "main:one"]), "1\n");
    let answer = Answer::of(scene.unnamed(&["status"]).output().unwrap());
    let text = &answer.stdout;
    assert!(
        text.contains("‖ #2 bad is parked: the check `echo sorry; exit 7`"),
        "{text}"
    );
    assert!(text.contains("exit code 7"), "{text}");
    assert!(text.contains("ccb --team board task show 2"), "{text}");
    assert!(!text.contains("landed"), "{text}");
}

#[test]
fn who_works_on_what_is_shown_while_it_changes() {
    let scene = SessionScene::new(CCB);
    let gate = waiting(scene.home.path(), "gate");
    let run = format!("echo halfway there; {gate}");
    scene.task("take long", &["--run", &run]);
    let mut session = scene.start(&["--merge", "auto"]);
    let mut command = scene.unnamed(&["status", "--watch"]);
    // Without colours it is drawn in the same place as well.
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 80, 24);
    let screen = terminal.wait_for("the agent and its words", |screen| {
        let row = |row: &String| row.contains("mate-1 #1 take long") && row.contains("halfway");
        screen.rows().iter().any(row)
    });
    assert!(
        screen.rows()[0].contains("team board: running, 0 of 1 task done"),
        "{screen:?}"
    );
    assert_eq!(screen.wrapped(), Vec::<String>::new(), "{screen:?}");
    let_go(scene.home.path(), "gate", "");
    terminal.wait_for("the end", |screen| {
        screen.rows()[0].contains("✔ team board: 1 of 1 task done")
    });
    terminal.type_keys("\x03");
    assert_eq!(terminal.end().0, Some(130));
    assert_eq!(scene.await_end(&mut session), Some(0));
}

#[test]
fn a_repository_without_anything_says_how_to_begin() {
    let scene = SessionScene::new(CCB);
    let answer = Answer::of(scene.unnamed(&["status"]).output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("Nothing runs here"), "{answer:?}");
    // Reading leaves nothing behind.
    assert!(!scene.home.path().join("tasks").exists());
    // Another repository's teams are not shown.
    let other = SessionScene::new(CCB);
    scene.task("here", &["--run", "true"]);
    let mut there = scene.unnamed(&["--json", "status"]);
    there.current_dir(other.repo.main());
    let there = Answer::of(there.output().unwrap()).json();
    assert_eq!(there["attention"], json!([]), "{there}");
}
