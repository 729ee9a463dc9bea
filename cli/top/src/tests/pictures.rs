//! Every pane at 80×24, 160×50 and 20×5. To accept changes, run `INSTA_UPDATE=always cargo test -p
//! ccb-top --lib` and look at the difference.

use insta::assert_snapshot;
use ratatui::style::{Color, Modifier};

use super::scene::{changes, scene, transcript};
use super::{keys, picture, session, shown, watcher};
use crate::model::{AgentKey, Effect, LandOffer, LandQuestion, Message, Model};
use crate::update::update;

const SIZES: [(u16, u16); 3] = [(80, 24), (160, 50), (20, 5)];

/// The view after these keys, with everything read that they request.
fn after(size: (u16, u16), typed: &str) -> Model {
    let mut model = watcher(size, scene());
    for c in typed.chars() {
        for effect in keys(&mut model, &c.to_string()) {
            if let Effect::ReadChanges(of) = effect {
                let result = Ok(changes());
                update(&mut model, Message::Changes { of, result });
            }
        }
    }
    let agent = AgentKey {
        team: "fixers".into(),
        id: "id-mate-1".into(),
    };
    let news = transcript();
    update(&mut model, Message::Transcript { agent, news });
    model
}

fn pictures(name: &str, typed: &str) {
    for (columns, rows) in SIZES {
        let model = after((columns, rows), typed);
        assert_snapshot!(format!("{name}_{columns}x{rows}"), shown(&model));
    }
}

#[test]
fn agents() {
    pictures("agents", "↓");
}

#[test]
fn board() {
    pictures("board", "2");
}

#[test]
fn task() {
    pictures("task", "2↓↓\r");
}

#[test]
fn graph() {
    pictures("graph", "3↓");
}

#[test]
fn transcript_pane() {
    pictures("transcript", "↓\r");
}

#[test]
fn changes_pane() {
    pictures("changes", "↓d");
}

#[test]
fn mail() {
    pictures("mail", "6↓");
}

#[test]
fn progress() {
    pictures("progress", "7");
}

#[test]
fn needs() {
    pictures("needs", "!");
}

#[test]
fn help() {
    pictures("help", "?");
}

#[test]
fn stop() {
    pictures("stop", "↓x");
}

#[test]
fn typing() {
    pictures("typing", "↓mhello");
}

#[test]
fn landing() {
    for size in SIZES {
        let mut model = session(scene());
        (model.columns, model.rows) = size;
        let offer = |number| LandOffer {
            task: super::scene::id(number),
            subject: "Write the lexer".into(),
            size: "2 files +10 -3".into(),
            unchecked: (number != 2).then(|| "it has no check".into()),
        };
        let question = LandQuestion {
            team: "fixers".into(),
            into: "main".into(),
            offers: vec![offer(2), offer(3)],
        };
        update(&mut model, Message::AskLanding(question));
        keys(&mut model, " ");
        assert_snapshot!(format!("landing_{}x{}", size.0, size.1), shown(&model));
    }
}

#[test]
fn nothing_runs() {
    for size in SIZES {
        let model = watcher(size, Default::default());
        assert_snapshot!(format!("nothing_{}x{}", size.0, size.1), shown(&model));
    }
}

#[test]
fn without_colours_only_bold_dim_and_reverse_are_left() {
    let mut model = after((80, 24), "");
    let coloured = |model: &Model| {
        let terminal = picture(model);
        let cells = terminal.backend().buffer().content().iter();
        cells.filter(|cell| cell.fg != Color::Reset).count()
    };
    assert!(coloured(&model) > 0);
    model.colours = false;
    assert_eq!(coloured(&model), 0);
}

/// A reversed colour would be another background for each cell.
#[test]
fn the_chosen_row_has_one_background() {
    for typed in ["↓", "2", "3", "↓\r", "6", "7", "!"] {
        let model = after((80, 24), typed);
        let terminal = picture(&model);
        let buffer = terminal.backend().buffer();
        let rows = 2..model.rows;
        let cells = rows.flat_map(|y| (0..model.columns).map(move |x| (x, y)));
        for at in cells {
            let cell = &buffer[at];
            if cell.modifier.contains(Modifier::REVERSED) {
                assert_eq!(cell.fg, Color::Reset, "{typed}: {at:?}");
                assert!(!cell.modifier.contains(Modifier::DIM), "{typed}: {at:?}");
            }
        }
    }
}

/// Light and dark terminals have their own background, and the first sixteen colours are theirs.
#[test]
fn only_the_terminals_own_colours_are_used() {
    for typed in ["", "2", "3", "↓\r", "↓d", "6", "7", "!", "?", "↓x"] {
        let terminal = picture(&after((160, 50), typed));
        for cell in terminal.backend().buffer().content() {
            assert_eq!(cell.bg, Color::Reset, "{typed}");
            assert!(
                !matches!(cell.fg, Color::Rgb(..) | Color::Indexed(_)),
                "{typed}"
            );
            assert!(!matches!(cell.fg, Color::White | Color::Black), "{typed}");
        }
    }
}
