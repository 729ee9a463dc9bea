//! The fuzz targets of all crates, and those of this one; see [`store::fuzz`].

use std::io::BufReader;

use coordinator::agent::Role;
use serde_json::{Map, Value};
use store::fuzz::{SMALL, Target, assert_is_one_plain_line, assert_steers_no_terminal, halves};
use unicode_width::UnicodeWidthStr;

use crate::commands::fanout::view::github::annotated;
use crate::mcp::fuzz::{Arguments, Catalogue, Line, Lines, is_id, meaning};
use crate::style::{PLAIN, QUOTE, hanging, quoted};
use crate::top::fuzz as top;
use crate::{line, table, wrap};

/// The targets of this crate.
const TARGETS: &[Target] = &[
    ("mcp_lines", mcp_lines),
    ("shown_text", shown_text),
    ("typed_keys", top::typed_keys),
    #[cfg(feature = "page")]
    ("page_request", crate::web::fuzz::page_request),
];

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
        TARGETS,
    ]
    .concat()
}

/// The target with this name.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    let found = all().into_iter().find(|(known, _)| *known == name);
    found.map(|(_, target)| target)
}

/// What a client of the MCP server sends, and the arguments of the tools it calls.
fn mcp_lines(data: &[u8]) {
    let Some((max, data)) = data.split_first() else {
        return;
    };
    let max = 16 * usize::from(*max);
    let mut lines = Lines::new(BufReader::with_capacity(7, data), max);
    let mut count = 0;
    while let Ok(Some(line)) = lines.next_line() {
        count += 1;
        match line {
            Line::Whole(line) => {
                assert!(line.len() <= max && !line.is_empty() && !line.contains(&b'\n'));
                if let Err(Some(refusal)) = meaning(&line) {
                    assert!(refusal.id.is_null() || is_id(&refusal.id));
                    assert!(refusal.why.len() <= line.len() + 1024);
                }
                arguments(&line);
            }
            Line::TooLong(id) => assert!(id.is_null() || is_id(&id)),
        }
    }
    assert!(count <= data.len());
}

/// The arguments of a call, for whichever tool it names.
fn arguments(line: &[u8]) {
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return;
    };
    let params = &message["params"];
    let given = params["arguments"].as_object().cloned();
    let Ok(tools) = Catalogue::new(Role::Lead) else {
        return;
    };
    let Some(tool) = params["name"].as_str().and_then(|name| tools.get(name)) else {
        return;
    };
    let given: Map<String, Value> = given.unwrap_or_default();
    match Arguments::check(tool, given.clone()) {
        Ok(arguments) => {
            for name in given.keys() {
                drop((
                    arguments.text(name),
                    arguments.texts(name),
                    arguments.flag(name),
                ));
                assert!(arguments.objects(name).count() <= line.len());
            }
        }
        Err(error) => assert!(error.to_string().len() <= 4 * line.len() + 4096),
    }
}

/// What others wrote, on its way to a terminal.
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
    top::shown_text(&text, room);
    let annotated = annotated(&text);
    assert_eq!(annotated.split(['\n', '\r']).count(), 2, "{annotated:?}");
    drop(line::decision(&text));
    assert_is_one_plain_line(&store::text::clean_line(&text));
}
