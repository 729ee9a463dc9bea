//! `ccb status`, `ccb top` and `ccb web` on a board that several machines share.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use harness::runs::LONG;
use harness::terminal::Terminal;
use harness::{McpClient, TestHome};
use serde_json::{Value, json};

use crate::{CCB, ON_TERMINAL};

/// A link to the database that can be closed.
struct Gate {
    port: u16,
    passing: Arc<Mutex<Passing>>,
}

#[derive(Default)]
struct Passing {
    closed: bool,
    streams: Vec<TcpStream>,
}

impl Gate {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let passing: Arc<Mutex<Passing>> = Arc::default();
        let seen = Arc::clone(&passing);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut passing = seen.lock().unwrap();
                if passing.closed {
                    continue;
                }
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                pass(&client, &server);
                pass(&server, &client);
                passing.streams.extend([client, server]);
            }
        });
        Self { port, passing }
    }

    fn close(&self) {
        let mut passing = self.passing.lock().unwrap();
        passing.closed = true;
        for stream in passing.streams.drain(..) {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    fn open(&self) {
        self.passing.lock().unwrap().closed = false;
    }
}

fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    });
}

/// The port in an address.
fn port_of(url: &str) -> u16 {
    let after = url.split('@').nth(1).unwrap().split(':').nth(1).unwrap();
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// A command of `home` whose link to the database is the gate.
fn through(home: &TestHome, gate: &Gate, args: &[&str]) -> Command {
    let url = home.board_url().unwrap();
    let (ours, theirs) = (format!(":{}", port_of(url)), format!(":{}", gate.port));
    let mut command = home.command(args);
    command.env("CCB_BOARD", url.replace(&ours, &theirs));
    command.env("NO_COLOR", "1");
    command
}

/// A board that bob works on from one machine while the test watches from another.
fn shared() -> (TestHome, TestHome, McpClient) {
    let here = TestHome::new(CCB);
    let there = here.neighbour();
    here.ok(&["team", "create", "board"]);
    here.create("write the parser");
    here.create("write the printer");
    let bob = ["mcp", "--role", "teammate", "--as", "bob"];
    let mut bob = McpClient::connect(there.command(&bob));
    bob.ok(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    (here, there, bob)
}

fn host() -> String {
    store::host_name().unwrap()
}

#[test]
fn status_says_who_works_where() {
    let (here, there, bob) = shared();
    let status = here.ok(&["status"]);
    assert_eq!(status["tasks"]["inProgress"], 1, "{status}");
    assert_eq!(status["tasks"]["ready"], 1, "{status}");
    let agents = status["agents"].as_array().unwrap();
    let agent = &agents[0];
    let seen = |key: &str| agent[key].as_str().unwrap().to_owned();
    assert_eq!((seen("name"), seen("machine")), ("bob".into(), host()));
    assert_eq!(
        (seen("task"), seen("state")),
        ("1".into(), "running".into())
    );
    assert!(seen("since").starts_with("20"), "{agent}");
    let text = here.run(&["status"]).stdout;
    let words = format!("bob #1 write the parser (on {})", host());
    assert!(text.contains(&words), "{text}");
    // On its own machine it is no agent of ccb's, nor of another program.
    assert_eq!(there.ok(&["status"])["agents"], json!([]));
    drop(bob);
}

#[test]
fn runs_and_reports_are_those_of_this_machine() {
    let (here, _there, _bob) = shared();
    assert_eq!(here.ok(&["runs"])["runs"], json!([]));
}

#[test]
fn the_view_shows_the_board_and_a_database_that_is_gone_until_it_is_back() {
    let (here, there, mut bob) = shared();
    let gate = Gate::to(port_of(here.board_url().unwrap()));
    let command = through(&here, &gate, &["top"]);
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 30);
    let words = format!("write the parser (on {})", host());
    terminal.wait_for("bob at work", |screen| {
        screen.text().contains("bob") && screen.text().contains(&words)
    });
    there.ok(&["mail", "send", "team-lead", "half way", "--as", "bob"]);
    terminal.type_keys("6");
    terminal.wait_for_text("half way");
    terminal.type_keys("2");
    terminal.wait_for_text("write the printer");
    gate.close();
    terminal.wait_for_text("cannot be reached");
    // The old view is kept, and keys are handled.
    terminal.type_keys("1");
    terminal.wait_for_text(&words);
    bob.ok("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    gate.open();
    let screen = terminal.wait_for("the database to be back", |screen| {
        let text = screen.text();
        !text.contains("cannot be reached") && text.contains("1/2 done")
    });
    let rows = screen.rows();
    let bob = rows.iter().find(|row| row.contains("bob")).unwrap();
    assert!(bob.contains(&format!("on {}", host())), "{screen:?}");
    terminal.type_keys("q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_status_that_is_watched_survives_the_database() {
    let (here, _there, _bob) = shared();
    let gate = Gate::to(port_of(here.board_url().unwrap()));
    let command = through(&here, &gate, &["status", "--watch"]);
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 24);
    terminal.wait_for_text("write the parser");
    gate.close();
    terminal.wait_for_text("cannot be reached");
    gate.open();
    terminal.wait_for("the board again", |screen| {
        let text = screen.text();
        text.contains("write the parser") && !text.contains("cannot be reached")
    });
    terminal.type_keys("\x03");
    assert_eq!(terminal.end().0, Some(130));
}

#[test]
fn a_deleted_team_is_told_in_the_view() {
    let here = TestHome::new(CCB);
    let there = here.neighbour();
    here.ok(&["team", "create", "board"]);
    here.create("only one");
    let mut command = here.command(&["top"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 100, 30);
    terminal.wait_for_text("0/1 done");
    there.ok(&["team", "delete", "board"]);
    terminal.wait_for_text("team board is gone");
    terminal.type_keys("q");
    assert_eq!(terminal.end().0, Some(0));
}

/// A page that is served until the test ends, and its events as they come.
struct Page {
    child: Child,
    events: TcpStream,
    came: String,
}

impl Page {
    fn open(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).expect(&line);
        let address = said["web"]["address"].as_str().unwrap();
        let url = said["web"]["url"].as_str().unwrap();
        let (_, code) = url.split_once("?code=").unwrap();
        let host = format!("Host: {address}");
        let mut entrance = TcpStream::connect(address).unwrap();
        let ask = format!("GET /?code={code} HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n");
        entrance.write_all(ask.as_bytes()).unwrap();
        let mut answer = String::new();
        entrance.read_to_string(&mut answer).unwrap();
        let (_, cookie) = answer.split_once("set-cookie: ").expect(&answer);
        let (cookie, _) = cookie.split_once(';').unwrap();
        let mut events = TcpStream::connect(address).unwrap();
        events.set_read_timeout(Some(LONG)).unwrap();
        let ask = format!("GET /events HTTP/1.1\r\n{host}\r\nCookie: {cookie}\r\n\r\n");
        events.write_all(ask.as_bytes()).unwrap();
        Self {
            child,
            events,
            came: String::new(),
        }
    }

    /// Reads on until this has come since the last call.
    fn wait_for(&mut self, text: &str) {
        let mut buffer = vec![0; 1 << 16];
        while !self.came.contains(text) {
            let count = self.events.read(&mut buffer).expect(text);
            assert!(count > 0, "it ended before {text}: {}", self.came);
            self.came
                .push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        self.came.clear();
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn the_page_is_fed_from_the_database() {
    let (here, _there, mut bob) = shared();
    let gate = Gate::to(port_of(here.board_url().unwrap()));
    let args = ["--json", "web", "--listen", "127.0.0.1:0"];
    let mut page = Page::open(through(&here, &gate, &args));
    page.wait_for(&format!("\"write the parser (on {})\"", host()));
    gate.close();
    page.wait_for("the database cannot be reached");
    bob.ok("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    gate.open();
    page.wait_for("\"completed\":1");
}
