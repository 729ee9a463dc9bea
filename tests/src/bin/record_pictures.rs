//! Records the pictures in docs/pictures/: `ccb top` on a staged team, every pane at two sizes, and
//! `ccb demo --slow` as README shows it. Each is an SVG of a real screen.
//!
//! `tests/pictures/run.sh` builds what this needs and starts it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use harness::picture::svg;
use harness::staged_team::StagedTeam;
use harness::terminal::{Screen, Terminal};

/// The panes: a name for the file, the key that shows it, its tab, and a text on its screen.
const PANES: [(&str, &str, &str, &str); 9] = [
    ("agents", "1", "1 Agents", "mate-2"),
    ("board", "2", "2 Board", "Cache parsed files"),
    ("graph", "3", "3 Graph", "Write the manual page"),
    ("transcript", "4", "4 Transcript", "cargo test -q"),
    ("changes", "5", "5 Changes", "parse_duration"),
    ("mail", "6", "6 Mail", "negative durations"),
    ("progress", "7", "7 Progress", "importer"),
    ("needs", "!", "! Needs you", "cargo fetch --locked"),
    ("help", "?", "", "this help"),
];
const SIZES: [(u16, u16); 2] = [(80, 24), (160, 50)];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(dir) = words.next() else {
        eprintln!("usage: record-pictures DIRECTORY");
        return ExitCode::from(2);
    };
    let dir = PathBuf::from(dir);
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("."));
    let (ccb, on_terminal) = (beside.join("ccb"), beside.join("on-terminal"));
    let path = |path: &Path| path.to_string_lossy().into_owned();
    panes(&dir, &path(&ccb), &path(&on_terminal));
    demo(&dir, &ccb, &path(&on_terminal));
    ExitCode::SUCCESS
}

fn save(dir: &Path, name: &str, screen: &Screen) {
    let path = dir.join(format!("{name}.svg"));
    // Written for the documentation, not by ccb.
    std::fs::write(&path, svg(screen)).expect("a picture");
    println!("{}", path.display());
}

fn panes(dir: &Path, ccb: &str, on_terminal: &str) {
    let team = StagedTeam::new(ccb);
    for (columns, rows) in SIZES {
        let mut command = team.scene.command(&["top"]);
        command.env("COLORTERM", "truecolor");
        let mut terminal = Terminal::start(on_terminal, &command, columns, rows);
        terminal.wait_for_text("mate-1");
        // The second agent of the list is the one with a worktree and a long transcript.
        terminal.type_keys("1");
        choose(&mut terminal, "mate-1");
        for (name, key, tab, expected) in PANES {
            terminal.type_keys(key);
            terminal.wait_for(name, |screen| {
                let there = tab.is_empty() || screen.is_marked(tab);
                there && screen.text().contains(expected)
            });
            save(
                dir,
                &format!("{name}-{columns}x{rows}"),
                &settled(&terminal),
            );
        }
        terminal.type_keys("q");
    }
}

/// The screen after nothing more was drawn on it for a moment: a picture is never half a frame.
fn settled(terminal: &Terminal) -> Screen {
    let mut before = svg(&terminal.screen());
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(200));
        let screen = terminal.screen();
        let now = svg(&screen);
        if now == before {
            return screen;
        }
        before = now;
    }
    terminal.screen()
}

/// Moves down until this agent is chosen, which the view marks.
fn choose(terminal: &mut Terminal, name: &str) {
    terminal.type_keys("j");
    terminal.wait_for("the agent to be chosen", |screen| screen.is_marked(name));
}

fn demo(dir: &Path, ccb: &Path, on_terminal: &str) {
    let home = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(ccb);
    command
        .args(["demo", "--slow"])
        .env("HOME", home.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("COLORTERM", "truecolor");
    let mut terminal = Terminal::start(on_terminal, &command, 100, 30);
    terminal.wait_for("agents at work, and some that are done", |screen| {
        let text = screen.text();
        text.contains("/8 done") && !text.contains("0/8 done") && text.contains('◐')
    });
    save(dir, "demo", &settled(&terminal));
    terminal.type_keys("q");
    terminal.end();
}
