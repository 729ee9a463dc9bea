//! A program in a pseudo-terminal: keys go in, and its screen comes out.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcsetwinsize};

/// Time limit that only a hang reaches.
const LIMIT: Duration = Duration::from_secs(60);

/// A terminal, and the program that runs in it. Dropping it hangs up and ends the program.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Shown>,
}

/// The state that the reading thread and the test share.
struct Shown {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser,
    /// True if no process has the terminal any more.
    closed: bool,
}

/// The screen of a terminal at one moment.
#[derive(Clone)]
pub struct Screen(vt100::Screen);

impl Terminal {
    /// Starts `command` in a terminal of this size. It gets the variables that the command sets,
    /// and no others but `TERM`. `on_terminal` is the program of that name.
    pub fn start(on_terminal: &str, command: &Command, columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).expect("a terminal");
        unlockpt(&ours).expect("a terminal");
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&ours, size).expect("a terminal's size");
        let theirs = || Stdio::from(ioctl_tiocgptpeer(&ours, flags).expect("a terminal"));

        let mut started = Command::new(on_terminal);
        let set = command.get_envs();
        started
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .env("TERM", "xterm-256color")
            .envs(set.filter_map(|(name, value)| Some((name, value?))))
            .stdin(theirs())
            .stdout(theirs())
            .stderr(theirs());
        if let Some(dir) = command.get_current_dir() {
            started.current_dir(dir);
        }
        let child = started.spawn().expect("the program starts");
        // It holds the program's end of the terminal, whose last closing the test waits for.
        drop(started);

        let size = |number| NonZeroU16::new(number).expect("a size");
        let keys = File::from(ours);
        let output = keys.try_clone().expect("a terminal");
        let shown = Arc::new(Shown {
            state: Mutex::new(State {
                parser: vt100::Parser::new(size(rows), size(columns), 0),
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let for_reader = Arc::clone(&shown);
        std::thread::spawn(move || for_reader.follow(output));
        Self { child, keys, shown }
    }

    /// Types this. `"\r"` is Enter, `"\x03"` is Ctrl-C, `"\x04"` is Ctrl-D.
    pub fn type_keys(&mut self, keys: &str) {
        let typed = self.keys.write_all(keys.as_bytes());
        typed.expect("a terminal takes keys");
    }

    /// The process in it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the process; returns its status.
    pub fn status(&mut self) -> ExitStatus {
        self.child.wait().expect("its end")
    }

    /// True if keys are echoed and lines are edited by the terminal itself, as shells want it.
    pub fn is_cooked(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.keys).expect("a terminal");
        let wanted = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        modes.local_modes.contains(wanted)
    }

    /// Gives the window another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let size = |number| NonZeroU16::new(number).expect("a size");
        let mut state = self.shown.lock();
        state.parser.set_size(size(rows), size(columns));
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.keys, size).expect("a terminal's size");
    }

    /// The screen as it is now.
    pub fn screen(&self) -> Screen {
        self.shown.lock().screen()
    }

    /// Waits until the screen is as `wanted`. Fails with the screen if the program ends before.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&Screen) -> bool) -> Screen {
        let (screen, is_so) = self.shown.wait(|state| wanted(&state.screen()));
        assert!(is_so, "waited for {what}:\n{screen:?}");
        screen
    }

    /// Waits until this text is on the screen.
    pub fn wait_for_text(&self, text: &str) -> Screen {
        self.wait_for(text, |screen| screen.text().contains(text))
    }

    /// Waits until the program has ended and no process of it has the terminal; returns its exit
    /// code and the last screen.
    pub fn end(&mut self) -> (Option<i32>, Screen) {
        let (screen, _) = self.shown.wait(|state| state.closed);
        assert!(self.shown.lock().closed, "it goes on:\n{screen:?}");
        let status = self.child.wait().expect("its end");
        (status.code(), screen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Shown {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws all output, until no process has the terminal.
    fn follow(&self, mut output: File) {
        let mut buffer = [0; 4096];
        // The last closing is an error, not an end.
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            self.lock().parser.process(&buffer[..count]);
            self.changed.notify_all();
        }
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits until `is_so`, until no more output can come, or up to the limit.
    fn wait(&self, is_so: impl Fn(&State) -> bool) -> (Screen, bool) {
        let end = Instant::now() + LIMIT;
        let mut state = self.lock();
        loop {
            let so = is_so(&state);
            let left = end.saturating_duration_since(Instant::now());
            if so || state.closed || left.is_zero() {
                return (state.screen(), so);
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    fn screen(&self) -> Screen {
        Screen(self.parser.screen().clone())
    }
}

impl Screen {
    /// Its text; rows end where their text does.
    pub fn text(&self) -> String {
        self.0.contents()
    }

    /// Its rows from top to bottom.
    pub fn rows(&self) -> Vec<String> {
        let (_, columns) = self.0.size();
        self.0.rows(0, columns.get()).collect()
    }

    /// The rows that continue in the next one because they were too wide.
    pub fn wrapped(&self) -> Vec<String> {
        let rows = self.rows().into_iter().zip(0..);
        let wrapped = rows.filter(|(_, number)| self.0.row_wrapped(*number));
        wrapped.map(|(row, _)| row).collect()
    }

    /// True if a program has taken the whole screen.
    pub fn is_taken(&self) -> bool {
        self.0.alternate_screen()
    }

    /// The number of its rows and columns.
    pub fn size(&self) -> (u16, u16) {
        let (rows, columns) = self.0.size();
        (rows.get(), columns.get())
    }

    /// One place on it.
    pub fn cell(&self, row: u16, column: u16) -> Option<&vt100::Cell> {
        self.0.cell(row, column)
    }

    /// True if `text` begins somewhere on a background of its own, as a chosen line does.
    pub fn is_marked(&self, text: &str) -> bool {
        let (rows, columns) = self.size();
        let first = text.chars().next().map(String::from).unwrap_or_default();
        (0..rows).zip(self.rows()).any(|(number, row)| {
            let marked = |column| {
                let cell = self.0.cell(number, column);
                cell.is_some_and(|cell| {
                    let ground = cell.inverse() || cell.bgcolor() != vt100::Color::Default;
                    ground && cell.contents() == first
                })
            };
            row.contains(text) && (0..columns).any(marked)
        })
    }

    /// True if the cursor can be seen.
    pub fn has_cursor(&self) -> bool {
        !self.0.hide_cursor()
    }

    /// The colour of the first `text` on it.
    pub fn colour_of(&self, text: &str) -> vt100::Color {
        let first = text.chars().next().map(String::from).unwrap_or_default();
        for (row, number) in self.rows().iter().zip(0..) {
            let Some(at) = row.find(text) else { continue };
            // A row's characters are not its cells if some are wide.
            let (_, columns) = self.0.size();
            let before = row[..at].matches(&first).count();
            let mut same = (0..columns.get())
                .filter_map(|column| self.0.cell(number, column))
                .filter(|cell| cell.contents() == first);
            return same.nth(before).expect("a cell").fgcolor();
        }
        panic!("no {text:?} in\n{self:?}");
    }

    /// True if anything on it has a colour.
    pub fn has_colours(&self) -> bool {
        let (rows, columns) = self.0.size();
        let mut cells = (0..rows.get())
            .flat_map(|row| (0..columns.get()).filter_map(move |column| self.0.cell(row, column)));
        cells.any(|cell| cell.fgcolor() != vt100::Color::Default)
    }
}

/// The screen in a frame.
impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (_, columns) = self.0.size();
        let edge = "-".repeat(usize::from(columns.get()));
        writeln!(f, "+{edge}+")?;
        for row in self.rows() {
            writeln!(f, "|{row}")?;
        }
        write!(f, "+{edge}+")
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lock().screen().fmt(f)
    }
}
