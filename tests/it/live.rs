//! The knowledge and the actions of a live view: the same as the commands, from files alone.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use coordinator::perform;
use harness::runs::LONG;
use harness::team_session::SessionScene;
use harness::{let_go, wait_until, waiting};
use mailbox::{Permission, Plan, Question};
use observe::live::{self, Act, Live, Need, Scene, TaskState, TeamLife, TeamScene};
use project::workplace::{Asked, Workplace};
use serde_json::{Value, json};
use store::Failure;
use store::clock::{Clock, SystemClock};
use store::name::Name;
use swarm::run::RunState;
use taskboard::TaskId;

use crate::CCB;

fn id(number: u64) -> TaskId {
    TaskId::new(number).unwrap()
}

/// The context of a person in the repository who names the team.
pub(crate) fn workplace(scene: &SessionScene) -> Workplace {
    Workplace::open(&Asked {
        team: Some("board".into()),
        home: Some(scene.home.path().to_owned()),
        directory: Some(scene.repo.main().to_owned()),
        ..Asked::default()
    })
    .unwrap()
}

pub(crate) fn look(live: &mut Live) -> Scene {
    live.look(SystemClock.now_ms())
}

pub(crate) fn team(scene: &Scene) -> &TeamScene {
    scene.team("board").unwrap()
}

/// Refreshes until the team is as wanted.
pub(crate) fn look_until(
    live: &mut Live,
    what: &str,
    wanted: impl Fn(&TeamScene) -> bool,
) -> Scene {
    let mut last = Scene::default();
    wait_until(LONG, what, || {
        last = look(live);
        last.team("board").is_some_and(&wanted)
    });
    last
}

fn act(scene: &SessionScene, act: &Act) -> Result<String, Failure> {
    perform::act(act, "board", &workplace(scene), &AtomicBool::new(false))
}

fn state(team: &TeamScene, number: u64) -> Option<TaskState> {
    Some(team.task(id(number))?.state)
}

/// The items that need a person, by `ccb status` and a scene.
fn needs_of_status(scene: &SessionScene) -> Vec<(String, String)> {
    let status = scene.ok(&["status"]);
    let all = status["attention"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.map(|one| (text(&one["what"]), text(&one["command"])))
        .collect()
}

fn needs_of(scene: &Scene) -> Vec<(String, String)> {
    let all = scene.attention.iter();
    all.map(|one| (one.what.clone(), one.command.clone()))
        .collect()
}

#[test]
fn a_scene_says_what_status_and_the_board_say_while_a_session_runs_and_after() {
    let scene = SessionScene::new(CCB);
    let gate = waiting(scene.home.path(), "gate");
    let run = format!("echo halfway there; {gate}; echo 1 > one");
    scene.task("take long", &["--run", &run, "--verify", "test -f one"]);
    scene.task("after it", &["--run", "true", "--blocked-by", "1"]);
    scene.task("bad", &["--run", "true", "--verify", "echo sorry; exit 7"]);
    let mut live = Live::open(&workplace(&scene)).unwrap();
    let before = look(&mut live);
    assert_eq!(team(&before).life, TeamLife::Open);
    assert_eq!(state(team(&before), 2), Some(TaskState::Blocked));

    let mut session = scene.start(&["--merge", "never", "--attempts", "2"]);
    let during = look_until(
        &mut live,
        "the agent to speak and the other to fail",
        |team| {
            let works = team.agents.iter().any(|agent| {
                agent.task == Some(id(1)) && agent.last.as_deref() == Some("halfway there")
            });
            works && state(team, 3) == Some(TaskState::Parked)
        },
    );
    let now = team(&during);
    assert_eq!(now.life, TeamLife::Running);
    let pid = session.id().to_string();
    let director = now.director.as_ref().unwrap();
    assert!(director.who.contains(&pid), "{director:?} {pid}");
    assert_eq!(state(now, 1), Some(TaskState::InProgress));
    let task = now.task(id(2)).unwrap();
    assert_eq!(task.blocked_by, [id(1)]);
    assert_eq!(now.graph.edges, [(id(1), id(2))]);
    let working = now.agents.iter().find(|agent| agent.task == Some(id(1)));
    let working = working.unwrap();
    assert!(
        working.alive && working.state == RunState::Running,
        "{working:?}"
    );
    assert_eq!(working.doing, "take long");
    let bad = now.task(id(3)).unwrap();
    assert_eq!(bad.attempts.len(), 2, "{bad:?}");
    assert_eq!(bad.attempts[1].difference, live::Difference::Nothing);
    assert_eq!(bad.check_state, live::CheckState::Red(2));
    assert_eq!(bad.stuck, Some(2));
    assert_eq!(needs_of(&during), needs_of_status(&scene));
    assert_eq!(during.attention[0].need, Need::Check);
    assert!(during.attention[0].detail.contains("sorry"));
    assert_eq!(during.troubles, Vec::<String>::new());

    let_go(scene.home.path(), "gate", "");
    scene.await_end(&mut session);
    let after = look_until(&mut live, "the end", |team| team.life == TeamLife::Ended);
    let now = team(&after);
    let ended = now.agents.iter().find(|agent| agent.task == Some(id(1)));
    let ended = ended.unwrap();
    assert!(
        !ended.alive && ended.state == RunState::Completed,
        "{ended:?}"
    );
    assert!(ended.ended_ms.unwrap() >= ended.since_ms);
    let task = now.task(id(1)).unwrap();
    assert_eq!(task.state, TaskState::Completed);
    assert_eq!(task.landing, live::LandState::Waiting);
    assert_eq!(task.check_state, live::CheckState::Green(0));
    assert_eq!((now.progress.done, now.progress.total), (2, 3));
    assert_eq!(now.progress.series.last().map(|(_, done)| *done), Some(2));
    assert_eq!(needs_of(&after), needs_of_status(&scene));
    let unlanded = after
        .attention
        .iter()
        .find(|one| one.need == Need::Unlanded);
    let answers = &unlanded.unwrap().answers;
    assert_eq!(answers, &[Act::Land { tasks: Vec::new() }]);
    let said = act(&scene, &answers[0]).unwrap();
    assert_eq!(said, "#1 landed on main");
    let landed = look_until(&mut live, "the landing", |team| {
        team.task(id(1)).unwrap().landing == live::LandState::Landed
    });
    assert_eq!(needs_of(&landed), needs_of_status(&scene));
    assert_eq!(
        act(&scene, &answers[0]).unwrap(),
        "nothing is done that has not landed"
    );
}

#[test]
fn a_watcher_in_another_process_steers_a_running_session() {
    let scene = SessionScene::new(CCB);
    let gate = waiting(scene.home.path(), "gate");
    scene.task("take long", &["--run", &gate]);
    let mut session = scene.start(&["--merge", "never", "--attempts", "1"]);
    let mut live = Live::open(&workplace(&scene)).unwrap();
    let found = look_until(&mut live, "an agent at work", |team| {
        team.agents
            .iter()
            .any(|agent| agent.alive && agent.task == Some(id(1)))
    });
    let agent = team(&found).agents[0].name.clone();

    // Plain text is no task if teammates only run commands; commands are.
    let text = "tidy up".to_owned();
    let refused = act(&scene, &Act::Say { text }).unwrap_err();
    assert_eq!(refused.kind(), "needs_model", "{refused:?}");
    let subject = "more".to_owned();
    let command = Some("echo 2 > two".to_owned());
    let said = act(&scene, &Act::AddTask { subject, command }).unwrap();
    assert_eq!(said, "added task #2: more");
    let (to, text) = (agent.clone(), "hello".to_owned());
    let refused = act(&scene, &Act::Message { to, text }).unwrap_err();
    assert_eq!(refused.kind(), "reads_nothing", "{refused:?}");
    look_until(&mut live, "the new task to be done", |team| {
        state(team, 2) == Some(TaskState::Completed)
    });
    // It is sent back at once, and the session works on it again.
    let feedback = "once more".to_owned();
    let said = act(
        &scene,
        &Act::Reject {
            task: id(2),
            feedback,
        },
    )
    .unwrap();
    assert!(
        said.contains("the running session gives it to an agent"),
        "{said}"
    );
    look_until(&mut live, "the rejected task to be done again", |team| {
        let task = team.task(id(2)).unwrap();
        assert_ne!(task.state, TaskState::Parked, "{task:?}");
        task.state == TaskState::Completed && task.attempts.len() == 1
    });

    let stop = Act::Stop { agent, why: None };
    let said = act(&scene, &stop).unwrap();
    assert!(said.ends_with("is killed"), "{said}");
    // Its task is tried again, fails because the gate is there already, and is parked.
    scene.await_end(&mut session);
    let end = look_until(&mut live, "the end", |team| team.life == TeamLife::Ended);
    let killed = team(&end)
        .agents
        .iter()
        .any(|agent| agent.state == RunState::Killed);
    assert!(killed, "the one that was stopped is still shown");
    let refused = act(&scene, &stop).unwrap_err();
    assert_eq!(refused.kind(), "not_running", "{refused:?}");
}

#[test]
fn a_request_is_shown_whole_and_answered_once() {
    let scene = SessionScene::new(CCB);
    scene.home.team(&["team-lead", "mate-1"]);
    let place = workplace(&scene);
    let mailbox = place.mailbox().unwrap();
    let name = |name: &str| Name::new("agent", name).unwrap();
    let ask = |question| {
        let day = Duration::from_secs(86_400);
        let asked = mailbox.ask(&name("mate-1"), &name("team-lead"), question, day);
        asked.unwrap().id
    };
    let permission = ask(Question::Permission(Permission {
        tool_name: "Bash".into(),
        tool_use_id: None,
        description: "remove\x1b[2J everything".into(),
        input: json!({ "command": "rm -rf \u{202e}build" }),
    }));
    ask(Question::Plan(Plan {
        plan: "1. look\n2. change".into(),
        ..serde_json::from_value(json!({ "plan": "" })).unwrap()
    }));
    let mut live = Live::open(&place).unwrap();
    let found = look(&mut live);
    let needs: Vec<Need> = found.attention.iter().map(|one| one.need).collect();
    assert_eq!(needs, [Need::Permission, Need::Plan], "{found:?}");
    let first = &found.attention[0];
    assert_eq!(first.request.as_ref(), Some(&permission));
    assert!(first.what.contains("remove\u{fffd}[2J"), "{first:?}");
    assert!(first.detail.contains("rm -rf \u{fffd}build"), "{first:?}");
    assert_eq!(found.attention[1].detail, "1. look\n2. change");
    assert_eq!(needs_of(&found), needs_of_status(&scene));

    // The command beside the other one does what it says, although both requests came within one
    // minute.
    let command = found.attention[1].command.clone();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    let answer = harness::Answer::of(scene.unnamed(&args).output().unwrap());
    assert_eq!(answer.code, Some(0), "{command}: {answer:?}");
    assert_eq!(
        act(&scene, &found.attention[1].answers[0])
            .unwrap_err()
            .kind(),
        "already_answered"
    );

    // A refusal without a reason is no answer; the first answer counts.
    let [approve, deny] = &first.answers[..] else {
        panic!("{first:?}");
    };
    assert!(deny.asks_for().is_some());
    assert_eq!(act(&scene, deny).unwrap_err().kind(), "no_text");
    let said = act(&scene, &deny.clone().with_text("too much")).unwrap();
    assert!(said.starts_with("rejected: use Bash"), "{said}");
    let late = act(&scene, approve).unwrap_err();
    assert_eq!(late.kind(), "already_answered");
    assert!(late.message().contains("rejected"), "{late:?}");
    let after = look_until(&mut live, "nothing to need anybody", |team| {
        team.attention.is_empty() && team.mail.len() >= 4
    });
    let mut kinds: Vec<&str> = team(&after)
        .mail
        .iter()
        .map(|mail| mail.kind.as_str())
        .collect();
    // Two agents ask at once, and either may be first.
    kinds[..2].sort_unstable();
    assert_eq!(
        kinds,
        [
            "permission_request",
            "plan_approval_request",
            "plan_approval_response",
            "permission_response"
        ]
    );
}

#[test]
fn nothing_an_agent_writes_reaches_a_view_as_it_is() {
    let scene = SessionScene::new(CCB);
    let hostile = "\u{1b}]0;gotcha\u{7}\u{1b}[2J\u{202e}evil\r";
    let run = r"printf 'a\033[2Jb\342\200\256c\n'; exit 3";
    scene.task("subject", &["--run", run]);
    // ccb would refuse such a subject; other tools do not.
    let mut file = scene.file(1);
    file["subject"] = format!("sub{hostile}ject").into();
    put(&scene.home.task_file(1), &file.to_string());
    scene.session(&["--attempts", "1"]);
    scene.ok(&["mail", "send", "team-lead", &format!("hi{hostile}")]);
    let mut live = Live::open(&workplace(&scene)).unwrap();
    let found = look_until(&mut live, "everything to be there", |team| {
        !team.mail.is_empty() && !team.attention.is_empty() && !team.agents.is_empty()
    });
    let text = format!("{found:?}");
    // Debug would escape them; there must be none to escape but line ends.
    for escaped in ["\\u{1b}", "\\u{7}", "\\u{202e}", "\\r"] {
        assert!(!text.contains(escaped), "{escaped} is in {text}");
    }
    let agent = &team(&found).agents[0];
    assert_eq!(agent.last.as_deref(), Some("a\u{fffd}[2Jb\u{fffd}c"));
    let mut reader = live.transcript("board", &agent.id).unwrap();
    assert!(reader.poll());
    let text = format!("{:?}", reader.entries());
    assert!(text.contains("gotcha") || text.contains("[2Jb"), "{text}");
    assert!(
        !text.contains("\\u{1b}") && !text.contains("\\u{202e}"),
        "{text}"
    );
}

fn put(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[test]
fn damaged_and_newer_files_are_said_and_the_rest_is_shown() {
    let scene = SessionScene::new(CCB);
    scene.task("good", &["--run", "true"]);
    scene.task("other", &["--run", "true"]);
    scene.session(&["--merge", "never"]);
    let mut live = Live::open(&workplace(&scene)).unwrap();
    let before = look(&mut live);
    assert_eq!(before.troubles, Vec::<String>::new());
    let agent = team(&before).agents[0].id.clone();
    put(
        &scene.home.run_dir(&agent).join("meta.json"),
        "{\"v\":1,\"agentId",
    );
    put(&scene.home.task_file(2), "{\"id\":\"2\",\"subj");
    let file = scene.home.team_dir().join("session.json");
    let session = std::fs::read_to_string(&file).unwrap();
    let mut session: Value = serde_json::from_str(&session).unwrap();
    session["v"] = 99.into();
    session["session"]["shape"] = json!({ "new": true });
    put(&file, &session.to_string());
    let found = look_until(&mut live, "all of it to be noticed", |team| {
        state(team, 2) == Some(TaskState::Unreadable)
    });
    let now = team(&found);
    assert_eq!(state(now, 1), Some(TaskState::Completed));
    assert_eq!(now.agents.len(), 2, "as it was last seen: {:?}", now.agents);
    let said = now.troubles.join("\n");
    assert!(said.contains("meta.json"), "{said}");
    assert!(said.contains("newer ccb (format 99)"), "{said}");
    assert!(
        found
            .attention
            .iter()
            .any(|one| one.need == Need::Unreadable)
    );
}

#[test]
fn a_wait_ends_when_something_happens_and_when_somebody_rings() {
    use observe::live::Woken;
    let scene = SessionScene::new(CCB);
    scene.task("one", &["--run", "true"]);
    let mut live = Live::open(&workplace(&scene)).unwrap();
    let mut waiter = live.waiter();
    // Nothing happens, so polling stops and the system watches.
    for _ in 0..20 {
        look(&mut live);
        waiter.wait(Duration::from_millis(1));
    }
    let bell = waiter.bell();
    let rung = std::thread::spawn(move || {
        loop {
            match waiter.wait(LONG) {
                Woken::Look => {}
                other => return (other, waiter),
            }
        }
    });
    bell.ring();
    let (woken, mut waiter) = rung.join().unwrap();
    assert_eq!(woken, Woken::Rung);
    scene.task("two", &["--run", "true"]);
    wait_until(LONG, "the new task to be seen", || {
        waiter.wait(LONG);
        team(&look(&mut live)).tasks.len() == 2
    });
}
