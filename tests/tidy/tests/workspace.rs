//! The rules, applied to this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use tidy::{crates, cycles, english, paths, rooms, seams, sources, thin};

/// Crates whose modules are parts of one thing and know each other.
const KNOTS: [&str; 1] = ["coordinator/fanout"];

/// Bytes of ARCHITECTURE.md, which a newcomer reads whole.
const MOST_ARCHITECTURE: usize = 10_000;
/// Lines of code in one room, without blank lines and comments.
const MOST_LINES: usize = 20_000;

/// Every crate of the product.
const CRATES: [&str; 21] = [
    "store",
    "store/database",
    "taskboard",
    "mailbox",
    "worktrees",
    "swarm",
    "swarm/native",
    "swarm/team",
    "coordinator/runs",
    "coordinator/project",
    "coordinator/landing",
    "coordinator/director",
    "coordinator/fanout",
    "coordinator/observe",
    "coordinator",
    "cli/term",
    "cli/mcp",
    "cli/top",
    "cli/page",
    "cli/otel",
    "cli",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_path_in_the_architecture_exists() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert_none(&paths::missing(&text, &root()));
    assert!(text.len() <= MOST_ARCHITECTURE, "{} bytes", text.len());
}

/// What each room says of itself at the top of its `lib.rs`.
#[test]
fn every_room_says_what_it_knows_and_where_things_are() {
    let mut problems = Vec::new();
    for name in CRATES {
        let text = std::fs::read_to_string(root().join(name).join("src/lib.rs")).unwrap();
        let found = rooms::problems(&text, &root());
        problems.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }
    assert_none(&problems);
}

#[test]
fn no_room_is_too_large() {
    let mut problems = Vec::new();
    for name in CRATES {
        let lines = rooms::code_lines(&root().join(name).join("src")).unwrap();
        if lines > MOST_LINES {
            problems.push(format!("{name} has {lines} lines of code"));
        }
    }
    assert_none(&problems);
}

#[test]
fn crates_depend_downwards() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let output = cargo.current_dir(root()).output().unwrap();
    let metadata = serde_json::from_slice(&output.stdout).unwrap();
    assert_none(&crates::not_downwards(&metadata));
}

#[test]
fn top_modules_import_each_other_in_one_direction() {
    let mut problems = Vec::new();
    for name in CRATES.into_iter().filter(|name| !KNOTS.contains(name)) {
        let circles = cycles::find(&sources::read(&root().join(name)).unwrap());
        problems.extend(
            circles
                .into_iter()
                .map(|circle| format!("{name}: {circle}")),
        );
    }
    assert_none(&problems);
}

#[test]
fn the_command_line_decides_nothing() {
    let command_line = CRATES.iter().filter(|name| name.starts_with("cli"));
    for name in command_line {
        let sources = sources::read(&root().join(name)).unwrap();
        assert_none(&thin::denied(&sources, thin::DENIED));
    }
}

/// A user who follows the first suggestion of a hint loses nothing.
#[test]
fn no_hint_begins_with_something_that_deletes() {
    const DELETE: [&str; 8] = [
        "ccb task reset",
        "ccb task rm",
        "ccb team delete",
        "ccb clean",
        "ccb worktree remove",
        "ccb worktree gc --yes",
        "git branch -D",
        "rm -",
    ];
    let mut problems = Vec::new();
    for name in CRATES {
        let mut dirs = vec![root().join(name).join("src")];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for hint in text.split("hint(").skip(1) {
                    // The text of the hint, if it is written there.
                    let start = hint.chars().take(60).collect::<String>();
                    let said = start.split_once('"').map(|(_, said)| said.to_owned());
                    let said = said.unwrap_or_default();
                    let said = said.trim_start_matches('`');
                    if DELETE.iter().any(|verb| said.starts_with(verb)) {
                        problems.push(format!("{}: {said}", path.display()));
                    }
                }
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn backends_are_chosen_in_few_places() {
    let found = seams::find(&root()).unwrap();
    let problem = seams::problem(&found, seams::MOST);
    assert_none(problem.as_slice());
}

#[test]
fn denied_phrases_only_get_fewer() {
    let findings = english::find(&root()).unwrap();
    let problem = english::problem(&findings, english::MOST);
    assert_none(problem.as_slice());
}

/// For a look: the denied phrases of every file. Run it with `--ignored --nocapture`.
#[test]
#[ignore = "prints, checks nothing"]
fn print_denied_phrases() {
    for english::Finding { file, line, words } in english::find(&root()).unwrap() {
        println!("{file}:{line}: {words}");
    }
}

/// For a look: the circles of every crate. Run it with `--ignored --nocapture`.
#[test]
#[ignore = "prints, checks nothing"]
fn print_circles() {
    for name in CRATES {
        let circles = cycles::find(&sources::read(&root().join(name)).unwrap());
        println!("{name}: {} circles\n{}", circles.len(), circles.join("\n"));
    }
}
