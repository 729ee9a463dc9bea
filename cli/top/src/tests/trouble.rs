//! Errors and hostile text: the view keeps running, keeps its columns, and shows the errors.

use std::sync::Arc;

use observe::live::{Act, Happened, Scene, TeamLife, TranscriptEntry};
use unicode_width::UnicodeWidthStr;

use super::scene::{agent, changes, scene, task, transcript};
use super::{keys, picture, shown, watcher};
use crate::model::transcript::TranscriptNews;
use crate::model::{AgentKey, Effect, Message, Model};
use crate::update::update;

/// Known attacks on terminals and columns.
const HOSTILE: &str = "\x1b[2J\x1b]0;owned\x07\u{9b}31m\u{202e}drowssap\u{2066} שלום עולם \
    漢字かな 👨\u{200d}👩\u{200d}👧 e\u{301}\u{301}\u{301}\u{301}\u{301} \u{200b}\u{feff}z\u{e0041}\r\nsecond\tline";

const SIZES: [(u16, u16); 6] = [(80, 24), (160, 50), (20, 5), (1, 1), (41, 10), (500, 3)];

fn key(id: &str) -> AgentKey {
    AgentKey {
        team: "fixers".into(),
        id: id.into(),
    }
}

/// Opens every pane in every size, and checks each cell.
fn look_everywhere(scene: &Scene, news: &TranscriptNews) {
    for size in SIZES {
        let mut model = watcher(size, scene.clone());
        for typed in [
            "", "2", "\r", "\x1b3", "4", "d", "6", "\r", "\x1b7", "!", "\r", "\x1b1f", "?", "?",
            "x", "\x1b", "mabc", "\x1b/q", "\x1b",
        ] {
            for effect in keys(&mut model, typed) {
                if let Effect::ReadChanges(of) = effect {
                    let mut found = changes();
                    found.diff = vec![HOSTILE.into(), "+".repeat(5000)];
                    found.files[0].path = HOSTILE.into();
                    let result = Ok(found);
                    update(&mut model, Message::Changes { of, result });
                }
            }
            if let Some(agent) = model.transcript.agent.clone() {
                let news = news.clone();
                update(&mut model, Message::Transcript { agent, news });
            }
            check_cells(&model);
        }
    }
}

fn check_cells(model: &Model) {
    let terminal = picture(model);
    for cell in terminal.backend().buffer().content() {
        let symbol = cell.symbol();
        assert!(!symbol.chars().any(char::is_control), "{symbol:?}");
        let hidden = [
            '\u{202e}',
            '\u{2066}',
            '\u{200b}',
            '\u{200d}',
            '\u{feff}',
            '\u{e0041}',
        ];
        assert!(!symbol.contains(hidden), "{symbol:?}");
        assert!(symbol.width() <= 2, "{symbol:?}");
        assert!(symbol.chars().count() <= 4, "{symbol:?}");
    }
}

#[test]
fn nothing_an_agent_writes_reaches_the_terminal_as_it_is() {
    let mut all = scene();
    let hostile = || HOSTILE.to_owned();
    let team = &mut all.teams[0];
    for agent in &mut team.agents {
        agent.name = hostile();
        agent.doing = hostile();
        agent.agent_type = hostile();
        agent.last = Some(hostile());
        agent.stalled = Some(hostile());
        agent.order = Some(hostile());
        agent.worktree = Some(hostile());
        agent.outcome = Some(hostile());
    }
    for task in Arc::make_mut(&mut team.tasks) {
        task.subject = hostile();
        task.description = hostile();
        task.why = Some(hostile());
        task.owner = Some(hostile());
        task.check = Some(hostile());
        task.command = Some(hostile());
        for attempt in &mut task.attempts {
            attempt.why = hostile();
            attempt.printed = vec![hostile()];
        }
    }
    for mail in &mut team.mail {
        (mail.from, mail.to) = (hostile(), hostile());
        (mail.summary, mail.text) = (hostile(), hostile());
    }
    team.troubles = vec![hostile()];
    for one in &mut all.attention {
        one.what = hostile();
        one.detail = hostile();
        one.command = hostile();
        one.agent = Some(hostile());
    }
    let mut news = transcript();
    for entry in &mut news.entries {
        entry.what = Happened::Said { text: hostile() };
    }
    look_everywhere(&all, &news);
}

#[test]
fn columns_stay_straight_whatever_stands_in_them() {
    let mut wide = scene();
    wide.teams[0].agents[1].doing = "漢字かな交じり文 e\u{301} 👨\u{200d}👩\u{200d}👧 שלום".into();
    let model = watcher((80, 24), wide);
    let text = shown(&model);
    let ends: Vec<usize> = text
        .lines()
        .filter(|line| line.contains("2m 05s"))
        .map(|line| line[..line.find("2m 05s").unwrap()].width())
        .collect();
    assert!(ends.len() >= 3, "{text}");
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}\n{text}");
}

#[test]
fn a_line_of_a_megabyte_is_shown_in_part_and_quickly_enough() {
    let mut all = scene();
    let long = "x".repeat(1 << 20);
    all.teams[0].agents[1].last = Some(long.clone());
    all.teams[0].mail[0].text = long.clone();
    all.attention[0].detail = long.clone();
    let entry = TranscriptEntry {
        number: 1,
        at_ms: 0,
        what: Happened::Printed {
            text: long,
            error: false,
        },
    };
    let news = TranscriptNews {
        first: 1,
        entries: vec![entry],
        ..TranscriptNews::default()
    };
    let mut model = watcher((80, 24), all);
    keys(&mut model, "↓\r");
    update(
        &mut model,
        Message::Transcript {
            agent: key("id-mate-1"),
            news,
        },
    );
    let text = shown(&model);
    assert!(text.contains("more lines, Enter unfolds"), "{text}");
    keys(&mut model, "\r");
    assert!(shown(&model).contains("xxxx"));
}

#[test]
fn two_hundred_agents_can_be_walked_through() {
    let mut all = scene();
    all.teams[0].agents = (0..200)
        .map(|n| agent(&format!("mate-{n:03}"), None, "works"))
        .collect();
    for size in [(80, 24), (160, 50), (20, 5)] {
        let mut model = watcher(size, all.clone());
        for n in 0..200 {
            let (_, chosen) = crate::model::lists::chosen_agent(&model).unwrap();
            let name = chosen.name.clone();
            assert_eq!(name, format!("mate-{n:03}"));
            assert!(shown(&model).contains(&name), "{name}\n{}", shown(&model));
            keys(&mut model, "↓");
        }
        keys(&mut model, "g");
        assert_eq!(model.chosen(model.pane), 0);
    }
}

#[test]
fn a_team_that_vanishes_stays_on_the_screen_with_what_became_of_it() {
    let mut model = watcher((80, 24), scene());
    keys(&mut model, "↓");
    let mut gone = scene();
    gone.teams[0].life = TeamLife::Vanished;
    gone.teams[0].agents.clear();
    gone.attention.clear();
    update(&mut model, Message::Scene(Arc::new(gone)));
    let text = shown(&model);
    assert!(text.contains("✘ gone"), "{text}");
    assert!(
        text.contains("Team fixers is gone: it was deleted."),
        "{text}"
    );
    assert!(text.contains("team fixers is gone"), "{text}");
    // The whole scene: nothing is left to choose.
    update(&mut model, Message::Scene(Arc::new(Scene::default())));
    for typed in [
        "\r", "d", "m", "x", "l", "r", "t", "a", "n", "]", "2\r", "4", "5", "6", "7", "!",
    ] {
        let effects = keys(&mut model, typed);
        assert!(
            !effects.iter().any(|it| matches!(it, Effect::Act { .. })),
            "{typed}"
        );
        check_cells(&model);
        keys(&mut model, "\x1b\x1b");
    }
}

#[test]
fn a_team_whose_agents_have_all_folded_away_shows_its_board() {
    let mut over = scene();
    over.teams[0].life = TeamLife::Ended;
    for agent in &mut over.teams[0].agents {
        (agent.alive, agent.ended_ms) = (false, Some(0));
    }
    let text = shown(&watcher((80, 24), over));
    assert!(text.contains("No agent of team fixers works."), "{text}");
    assert!(text.contains("finished, f shows them"), "{text}");
    assert!(text.contains("─ Board ─"), "{text}");
}

#[test]
fn what_cannot_be_read_and_a_newer_director_are_said() {
    let mut bad = scene();
    bad.teams[0].director.as_mut().unwrap().newer = Some(9);
    bad.troubles = vec!["cannot read the board: Input/output error".into()];
    for (size, words) in [
        ((120, 24), "⚠ cannot read the board: Input/output error"),
        ((80, 24), "⚠ cannot read the board: Input/output error"),
        ((20, 5), "⚠ cannot read the b…"),
    ] {
        let text = shown(&watcher(size, bad.clone()));
        assert!(text.contains(words), "{text}");
        assert!(size.0 < 80 || text.contains("q leave"), "{text}");
    }
    let text = shown(&watcher((120, 24), bad));
    assert!(text.contains("directed by a newer ccb"), "{text}");
    let news = TranscriptNews {
        trouble: Some("cannot read transcript.jsonl: Permission denied".into()),
        ..TranscriptNews::default()
    };
    let mut model = watcher((80, 24), scene());
    keys(&mut model, "↓\r");
    update(
        &mut model,
        Message::Transcript {
            agent: key("id-mate-1"),
            news,
        },
    );
    assert!(
        shown(&model).contains("Permission denied"),
        "{}",
        shown(&model)
    );
}

#[test]
fn an_act_on_a_full_disk_fails_in_words_and_the_view_stays() {
    let mut model = watcher((80, 24), scene());
    let effects = keys(&mut model, "!a");
    assert!(matches!(
        &effects[..],
        [Effect::Act {
            act: Act::Approve { .. },
            ..
        }]
    ));
    let error = "cannot write the answer: No space left on device".to_owned();
    update(&mut model, Message::Done(Err(error)));
    assert!(shown(&model).contains("No space left on device"));
}

#[test]
fn a_board_of_many_tasks_and_a_long_chain_is_drawn() {
    let mut all = scene();
    let team = &mut all.teams[0];
    let state = observe::live::TaskState::Blocked;
    team.tasks = Arc::new((1..=500).map(|n| task(n, "one more", state)).collect());
    let ids: Vec<_> = team.tasks.iter().map(|task| task.id).collect();
    let graph = Arc::make_mut(&mut team.graph);
    graph.edges = ids.windows(2).map(|pair| (pair[0], pair[1])).collect();
    graph.levels = ids.iter().map(|id| vec![*id]).collect();
    let mut model = watcher((80, 24), all);
    keys(&mut model, "3");
    let rows = crate::model::lists::graph(&model).len();
    assert_eq!(rows, 500);
    for typed in ["G", "g", "2", "G"] {
        keys(&mut model, typed);
        check_cells(&model);
    }
    assert!(shown(&model).contains("#500"), "{}", shown(&model));
}
