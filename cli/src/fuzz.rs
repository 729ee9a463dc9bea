//! The fuzz targets of all crates, and those of this one; see [`store::fuzz`].

use store::fuzz::{SMALL, Target, assert_is_one_plain_line, assert_steers_no_terminal, halves};
use term::style::{PLAIN, QUOTE, hanging, quoted};
use term::{line, table, wrap};
use unicode_width::UnicodeWidthStr;

use crate::commands::fanout::view::github::annotated;

/// The targets of this crate.
const TARGETS: &[Target] = &[("shown_text", shown_text)];

/// The targets of all crates.
pub fn all() -> Vec<Target> {
    [
        store::fuzz::TARGETS,
        taskboard::fuzz::TARGETS,
        mailbox::fuzz::TARGETS,
        worktrees::fuzz::TARGETS,
        swarm::fuzz::TARGETS,
        native::fuzz::TARGETS,
        team::fuzz::TARGETS,
        coordinator::fuzz::TARGETS,
        mcp::fuzz::TARGETS,
        top::fuzz::TARGETS,
        #[cfg(feature = "page")]
        page::fuzz::TARGETS,
        TARGETS,
    ]
    .concat()
}

/// The target with this name.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    let found = all().into_iter().find(|(known, _)| *known == name);
    found.map(|(_, target)| target)
}

/// Text of others on its way to a terminal.
fn shown_text(data: &[u8]) {
    let data = &data[..data.len().min(SMALL)];
    let (width, text) = halves(data);
    let room = width.len();
    let text = String::from_utf8_lossy(text);
    let hanging = hanging(&text);
    assert_steers_no_terminal(&hanging);
    let quoted = quoted(&text);
    assert_steers_no_terminal(&quoted);
    assert!(
        quoted.split('\n').all(|line| line.starts_with(QUOTE)),
        "{quoted:?}"
    );
    let wrapped = wrap::wrap(&quoted, room, "  ");
    assert_steers_no_terminal(&wrapped);
    assert!(
        wrapped
            .split('\n')
            .all(|line| line.starts_with(QUOTE.trim_end())),
        "{wrapped:?}"
    );
    let cell = || table::Cell::new(&text, PLAIN);
    let rows = [[cell(), cell()], [cell(), cell()]];
    let shown = table::render(["A", "B"], &rows, 1, Some(room));
    assert_eq!(shown.split('\n').count(), 3, "{shown:?}");
    let fit = table::fit(&store::text::clean_line(&text), room);
    assert!(
        fit.width() <= room.max(1),
        "{} over {room}: {fit:?}",
        fit.width()
    );
    top::fuzz::shown_text(&text, room);
    let annotated = annotated(&text);
    assert_eq!(annotated.split(['\n', '\r']).count(), 2, "{annotated:?}");
    drop(line::decision(&text));
    assert_is_one_plain_line(&store::text::clean_line(&text));
}
