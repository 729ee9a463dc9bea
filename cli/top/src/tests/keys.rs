//! Sequences of keys, and their effects.

use std::sync::Arc;

use crossterm::event::KeyCode;
use observe::live::{Act, LeadScene, Scene, TeamLife};

use super::scene::{changes, id, scene, team, transcript};
use super::{NOW, control, keys, press, session, shown, watcher};
use crate::model::{
    AgentKey, Dialog, Effect, LandOffer, LandQuestion, LogLine, Message, Model, Pane, Tone,
};
use crate::update::update;

fn view() -> Model {
    watcher((80, 24), scene())
}

fn acts(effects: Vec<Effect>) -> Vec<Act> {
    let act = |effect| match effect {
        Effect::Act { team, act } => {
            assert_eq!(team, "fixers");
            Some(act)
        }
        _ => None,
    };
    effects.into_iter().filter_map(act).collect()
}

#[test]
fn looking_into_an_agent_and_back_follows_its_transcript() {
    let mut model = view();
    let mut follows = press(&mut model, KeyCode::Down);
    follows.retain(|effect| matches!(effect, Effect::Follow(_)));
    let key = AgentKey {
        team: "fixers".into(),
        id: "id-mate-1".into(),
    };
    assert_eq!(follows, [Effect::Follow(Some(key.clone()))]);
    keys(&mut model, "\r");
    assert_eq!(model.pane, Pane::Transcript);
    let news = transcript();
    update(&mut model, Message::Transcript { agent: key, news });
    let text = shown(&model);
    assert!(
        text.contains("✘ Bash make test → parser.c:12: error: expected ; (+1 line)"),
        "{text}"
    );
    // The call that failed is five entries above the last one.
    keys(&mut model, "↑↑↑↑↑\r");
    let text = shown(&model);
    assert!(text.contains("make: *** [test] Error 1"), "{text}");
    keys(&mut model, "\r");
    assert!(!shown(&model).contains("Error 1"));
    keys(&mut model, "\x1b");
    assert_eq!(model.pane, Pane::Agents);
}

#[test]
fn a_request_is_answered_with_one_key_once_it_was_seen() {
    let mut model = view();
    // From another list, the question is shown first.
    assert_eq!(acts(keys(&mut model, "↓a")), []);
    assert_eq!(model.pane, Pane::Needs);
    let text = shown(&model);
    assert!(text.contains("\"command\": \"npm publish\""), "{text}");
    let approved = acts(keys(&mut model, "a"));
    let request = "0123456789ab".to_owned();
    assert_eq!(
        approved,
        [Act::Approve {
            request: request.clone(),
            comment: None
        }]
    );
    let denied = acts(keys(&mut model, "n"));
    let why = "The person who watches said no.".into();
    assert_eq!(
        denied,
        [Act::Deny {
            request: request.clone(),
            why
        }]
    );
    let denied = acts(keys(&mut model, "rnot today\r"));
    let why = "not today".into();
    assert_eq!(denied, [Act::Deny { request, why }]);
    // The next one is a plan.
    let approved = acts(keys(&mut model, "↓y"));
    assert_eq!(
        approved,
        [Act::Approve {
            request: "plan-1".into(),
            comment: None
        }]
    );
    // A parked task: retry it, or say what to do differently.
    assert_eq!(acts(keys(&mut model, "↓t")), [Act::Retry { task: id(5) }]);
    assert_eq!(acts(keys(&mut model, "a")), [Act::Retry { task: id(5) }]);
    let rejected = acts(keys(&mut model, "rsmaller\r"));
    let feedback = "smaller".into();
    assert_eq!(
        rejected,
        [Act::Reject {
            task: id(5),
            feedback
        }]
    );
}

#[test]
fn a_key_that_was_meant_for_another_request_answers_nothing() {
    let mut model = view();
    keys(&mut model, "!");
    let mut next = scene();
    next.attention.remove(0);
    // Another person has answered the first one; the second is in its place now.
    update(&mut model, Message::Scene(Arc::new(next.clone())));
    assert_eq!(acts(keys(&mut model, "a")), []);
    assert!(shown(&model).contains("The list has just changed"));
    model.now += 1000;
    let approved = acts(keys(&mut model, "a"));
    assert!(matches!(&approved[..], [Act::Approve { request, .. }] if request == "plan-1"));
    // An entry that the person answered disappears as expected.
    next.attention.remove(0);
    update(&mut model, Message::Scene(Arc::new(next)));
    assert_eq!(acts(keys(&mut model, "a")), [Act::Retry { task: id(5) }]);
}

#[test]
fn stopping_and_landing_ask_first_and_esc_changes_nothing() {
    let mut model = view();
    assert_eq!(acts(keys(&mut model, "↓x")), []);
    assert!(matches!(model.dialog, Some(Dialog::Confirm { .. })));
    assert!(shown(&model).contains("Stop mate-1?"), "{}", shown(&model));
    assert_eq!(acts(keys(&mut model, "\x1b")), []);
    assert_eq!(acts(keys(&mut model, "xn")), []);
    let agent = "id-mate-1".into();
    assert_eq!(
        acts(keys(&mut model, "xy")),
        [Act::Stop { agent, why: None }]
    );
    // On the board, the work of #2 waits.
    keys(&mut model, "2/lexer\r");
    assert_eq!(acts(keys(&mut model, "l\x1b")), []);
    assert_eq!(
        acts(keys(&mut model, "ly")),
        [Act::Land { tasks: vec![id(2)] }]
    );
    let rejected = acts(keys(&mut model, "ruse tables\r"));
    let feedback = "use tables".into();
    assert_eq!(
        rejected,
        [Act::Reject {
            task: id(2),
            feedback
        }]
    );
    // The view sends nothing without a text, or after Esc.
    assert_eq!(acts(keys(&mut model, "r\r")), []);
    assert_eq!(acts(keys(&mut model, "rhalf\x1b")), []);
    // Landed work does not land again.
    keys(&mut model, "\x1b/grammar\r");
    assert_eq!(acts(keys(&mut model, "l")), []);
    assert!(
        shown(&model).contains("#1 has landed already"),
        "{}",
        shown(&model)
    );
}

#[test]
fn a_finished_agent_is_dismissed_and_folds_away_with_time() {
    let mut model = view();
    let rows = |model: &Model| crate::model::lists::agents(model).0.len();
    // The agent that failed long ago is folded, the one of ten seconds ago is shown.
    assert_eq!(rows(&model), 5);
    assert!(
        shown(&model).contains("3 finished, f shows them"),
        "{}",
        shown(&model)
    );
    keys(&mut model, "↓↓↓↓");
    let (_, chosen) = crate::model::lists::chosen_agent(&model).unwrap();
    assert_eq!((chosen.name.as_str(), chosen.alive), ("mate-3", false));
    // It remains while the person reads it.
    keys(&mut model, "\r");
    model.now = NOW + 60_000;
    update(&mut model, Message::Tick);
    assert_eq!(rows(&model), 5);
    keys(&mut model, "\x1b");
    update(&mut model, Message::Tick);
    assert_eq!(rows(&model), 4);
    keys(&mut model, "f");
    assert_eq!(rows(&model), 6);
    keys(&mut model, "f");
    model.now = NOW;
    keys(&mut model, "↓↓↓↓");
    assert_eq!(acts(keys(&mut model, "x")), []);
    assert_eq!(rows(&model), 4);
    assert!(model.dialog.is_none());
}

#[test]
fn what_is_typed_goes_to_the_lead_an_agent_or_the_board() {
    let mut model = view();
    let said = acts(keys(&mut model, "imake it quick\r"));
    assert_eq!(
        said,
        [Act::Say {
            text: "make it quick".into()
        }]
    );
    let sent = acts(keys(&mut model, ":@mate-2 hello q x\r"));
    assert_eq!(
        sent,
        [Act::Message {
            to: "mate-2".into(),
            text: "hello q x".into()
        }]
    );
    let added = acts(keys(&mut model, "i/run make fmt\r"));
    let command = Some("make fmt".to_owned());
    assert_eq!(
        added,
        [Act::AddTask {
            subject: "make fmt".into(),
            command
        }]
    );
    // Earlier lines come back.
    let again = acts(keys(&mut model, "i↑↑\r"));
    assert_eq!(
        again,
        [Act::Message {
            to: "mate-2".into(),
            text: "hello q x".into()
        }]
    );
    let sent = acts(keys(&mut model, "↓mkeep it\r"));
    assert_eq!(
        sent,
        [Act::Message {
            to: "mate-1".into(),
            text: "keep it".into()
        }]
    );
    // Pasted text is text, even if it looks like keys.
    let pasted = Message::Paste("q\nx\ny".into());
    assert_eq!(acts(update(&mut model, pasted)), []);
    let said = acts(keys(&mut model, "\r"));
    assert_eq!(
        said,
        [Act::Say {
            text: "q x y".into()
        }]
    );
    assert_eq!(acts(keys(&mut model, "i/tasks\r")), []);
    assert_eq!(model.pane, Pane::Board);
    assert_eq!(acts(keys(&mut model, "i/nonsense\r")), []);
    assert!(model.help);
}

#[test]
fn whoever_reads_no_mail_is_not_written_to() {
    let mut scene = scene();
    scene.teams[0].agents[1].reads_mail = false;
    let mut model = watcher((80, 24), scene);
    assert_eq!(acts(keys(&mut model, "↓m")), []);
    assert!(model.typing.is_none());
    assert!(shown(&model).contains("mate-1 runs a command, which reads no messages"));
}

#[test]
fn changes_are_read_when_wanted_and_again_while_somebody_works() {
    let mut model = view();
    let wanted = keys(&mut model, "↓d");
    let [Effect::ReadChanges(of)] = wanted.as_slice() else {
        panic!("{wanted:?}");
    };
    assert_eq!(
        (of.what.as_str(), of.name.as_str()),
        ("id-mate-1", "mate-1")
    );
    assert!(shown(&model).contains("reading …"));
    let of = of.clone();
    let result = Ok(changes());
    update(
        &mut model,
        Message::Changes {
            of: of.clone(),
            result,
        },
    );
    assert!(shown(&model).contains("+    new();"), "{}", shown(&model));
    model.now += 1000;
    assert_eq!(update(&mut model, Message::Tick), []);
    model.now += 5000;
    assert_eq!(update(&mut model, Message::Tick), [Effect::ReadChanges(of)]);
    // Late changes of another agent are not shown.
    keys(&mut model, "\x1b2");
    let wanted = keys(&mut model, "d");
    assert!(
        matches!(&wanted[..], [Effect::ReadChanges(of)] if of.what == "3"),
        "{wanted:?}"
    );
    assert!(shown(&model).contains("reading …"), "{}", shown(&model));
}

#[test]
fn the_choice_stays_with_what_was_chosen_when_the_list_changes() {
    let mut model = view();
    keys(&mut model, "↓↓");
    let mut next = scene();
    next.teams[0].agents.remove(1);
    update(&mut model, Message::Scene(Arc::new(next.clone())));
    let (_, chosen) = crate::model::lists::chosen_agent(&model).unwrap();
    assert_eq!(chosen.name, "mate-2");
    // If it has gone, its neighbour is chosen.
    next.teams[0].agents.retain(|agent| agent.name != "mate-2");
    update(&mut model, Message::Scene(Arc::new(next)));
    assert!(crate::model::lists::chosen_agent(&model).is_some());
}

#[test]
fn a_filter_narrows_the_list_as_it_is_typed() {
    let mut model = view();
    keys(&mut model, "/writer");
    assert_eq!(crate::model::lists::agents(&model).0.len(), 1);
    keys(&mut model, "\r\x1b");
    assert_eq!(crate::model::lists::agents(&model).0.len(), 5);
}

#[test]
fn panes_have_numbers_and_an_order() {
    let mut model = view();
    for (number, pane) in (1..).zip(Pane::NUMBERED) {
        keys(&mut model, &number.to_string());
        assert_eq!(model.pane, pane);
    }
    keys(&mut model, "\t");
    assert_eq!(model.pane, Pane::Agents);
    press(&mut model, KeyCode::BackTab);
    assert_eq!(model.pane, Pane::Progress);
    keys(&mut model, "!");
    assert_eq!(model.pane, Pane::Needs);
}

#[test]
fn a_watcher_leaves_at_once_and_a_session_asks() {
    let mut model = view();
    assert_eq!(keys(&mut model, "q"), [Effect::Close]);
    assert_eq!(control(&mut model, 'c'), [Effect::Close]);
    assert_eq!(control(&mut model, 'z'), [Effect::Suspend]);

    let mut model = session(scene());
    assert_eq!(keys(&mut model, "q"), []);
    assert!(
        shown(&model).contains("ccb --team fixers"),
        "{}",
        shown(&model)
    );
    assert_eq!(keys(&mut model, "n"), []);
    assert!(model.dialog.is_none());
    assert_eq!(keys(&mut model, "qp"), [Effect::GoPlain, Effect::Close]);
    assert_eq!(keys(&mut model, "qy"), [Effect::EndSession]);
    assert_eq!(keys(&mut model, "i/quit\r"), [Effect::EndSession]);
    assert_eq!(control(&mut model, 'c'), [Effect::Interrupt]);
    // Another process directs it: leaving stops nothing.
    update(&mut model, Message::Directs(false));
    assert_eq!(keys(&mut model, "q"), [Effect::Interrupt]);
}

fn question() -> LandQuestion {
    let offer = |number, checked: bool| LandOffer {
        task: id(number),
        subject: format!("task {number}"),
        size: "1 file +1 -0".into(),
        unchecked: (!checked).then(|| "it has no check".into()),
    };
    LandQuestion {
        team: "fixers".into(),
        into: "main".into(),
        offers: vec![offer(2, true), offer(3, false)],
    }
}

#[test]
fn what_lands_at_the_end_is_chosen_with_a_look_at_it() {
    let ask = || {
        let mut model = session(scene());
        update(&mut model, Message::AskLanding(question()));
        model
    };
    let land = |tasks: &[u64]| Effect::AnswerLanding(tasks.iter().copied().map(id).collect());
    assert_eq!(keys(&mut ask(), "a"), [land(&[2])]);
    assert_eq!(keys(&mut ask(), "n"), [land(&[])]);
    assert_eq!(keys(&mut ask(), "↓ \r"), [land(&[3])]);
    assert_eq!(keys(&mut ask(), "  \r"), [land(&[])]);
    let mut model = ask();
    let looked = keys(&mut model, "↓d");
    assert!(
        matches!(&looked[..], [Effect::ReadChanges(of)] if of.what == "3"),
        "{looked:?}"
    );
    assert_eq!(model.pane, Pane::Changes);
    assert!(!shown(&model).contains("Land it on main?"));
    keys(&mut model, "\x1b");
    assert!(
        shown(&model).contains("Land it on main?"),
        "{}",
        shown(&model)
    );
    // Keys that mean something elsewhere mean nothing here.
    assert_eq!(keys(&mut model, "xlrt5"), []);
    assert_eq!(keys(&mut model, " \r"), [land(&[3])]);
    let mut model = ask();
    update(&mut model, Message::LandingOver);
    assert!(model.dialog.is_none());
}

#[test]
fn the_end_of_a_session_closes_the_view_unless_somebody_looks() {
    let mut model = session(scene());
    assert_eq!(update(&mut model, Message::SessionOver), [Effect::Close]);
    let mut model = session(scene());
    keys(&mut model, "↓\r");
    assert_eq!(update(&mut model, Message::SessionOver), []);
    assert!(shown(&model).contains("The session has ended. q closes the view."));
    assert_eq!(keys(&mut model, "q"), [Effect::Close]);
}

#[test]
fn results_of_acts_are_shown_and_kept() {
    let mut model = view();
    keys(&mut model, "!a");
    assert!(shown(&model).contains("approving …"), "{}", shown(&model));
    update(
        &mut model,
        Message::Done(Err("mate-1 was answered by bob".into())),
    );
    assert!(shown(&model).contains("mate-1 was answered by bob"));
    keys(&mut model, "1");
    let text = shown(&model);
    assert!(text.contains("What happened"), "{text}");
    assert!(text.contains("mate-1 was answered by bob"), "{text}");
}

#[test]
fn a_watcher_reads_from_two_scenes_what_happened_between_them() {
    let mut model = view();
    let mut next = scene();
    let team = &mut next.teams[0];
    let tasks = std::sync::Arc::make_mut(&mut team.tasks);
    tasks[3].state = observe::live::TaskState::Completed;
    tasks[1].landing = observe::live::LandState::Landed;
    team.life = TeamLife::Interrupted;
    update(&mut model, Message::Scene(Arc::new(next)));
    let lines: Vec<&str> = model.happened.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        lines,
        [
            "team fixers has no director any more. Resume: ccb --team fixers",
            "⇥ #2 has landed",
            "✔ #4 Fix the writer is done",
        ]
    );
    // The director reports a session's events.
    let mut model = session(scene());
    update(&mut model, Message::Scene(Arc::new(Scene::default())));
    assert!(model.happened.is_empty());
    let line = LogLine {
        at_ms: NOW,
        text: "✔ #1 done".into(),
        tone: Tone::Good,
    };
    update(&mut model, Message::Logged(line));
    assert_eq!(model.happened.len(), 1);
}

#[test]
fn several_teams_are_shown_one_after_the_other() {
    let mut two = scene();
    let mut other = team();
    other.name = "writers".into();
    other.lead = LeadScene::Person;
    other.agents.clear();
    two.teams.push(other);
    let mut model = watcher((80, 24), two);
    assert!(shown(&model).starts_with("fixers"));
    keys(&mut model, "]");
    assert!(shown(&model).starts_with("writers"));
    keys(&mut model, "]");
    assert!(shown(&model).starts_with("fixers"));
}

#[test]
fn nothing_ticks_while_nothing_runs() {
    let mut still = scene();
    for agent in &mut still.teams[0].agents {
        agent.alive = false;
        agent.ended_ms = Some(NOW - 100_000);
    }
    let mut model = watcher((80, 24), scene());
    assert!(model.next_tick().is_some_and(|ms| (1..=1000).contains(&ms)));
    still.teams[0].life = TeamLife::Ended;
    update(&mut model, Message::Scene(Arc::new(still.clone())));
    assert_eq!(model.next_tick(), None);
    // A finished agent still has to fold away.
    still.teams[0].agents[0].ended_ms = Some(NOW - 20_000);
    update(&mut model, Message::Scene(Arc::new(still)));
    assert!(model.next_tick().is_some_and(|ms| ms > 9000));
}
