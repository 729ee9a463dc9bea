//! `ccb web`: its rights, its answers, and that a browser that comes back misses nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{McpClient, wait_until};
use serde_json::{Value, json};

use crate::{CCB, FAKE_AGENT};

/// Time limit, longer than any step takes unless it hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A page that is served until the test ends.
pub(crate) struct Page {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) url: String,
    /// The code that lets in one browser.
    pub(crate) code: String,
    cookie: OnceLock<String>,
}

/// The header in which a browser sends back the cookie that it got with these headers.
pub(crate) fn cookie_of(head: &str) -> String {
    let set = head.to_ascii_lowercase();
    let set = set.split("set-cookie: ").nth(1).expect("a cookie");
    let pair = set.split(';').next().expect("a cookie");
    format!("Cookie: {pair}")
}

impl Page {
    pub(crate) fn of(scene: &SessionScene, more: &[&str]) -> Self {
        let listen: &[&str] = &["--json", "web", "--listen", "127.0.0.1:0"];
        Self::start(scene.command(&[listen, more].concat()))
    }

    /// A page at the address that `more` names; with the earlier output on its standard error.
    pub(crate) fn heard(scene: &SessionScene, more: &[&str]) -> (Self, String) {
        let mut command = scene.command(&[&["--json", "web"], more].concat());
        let errors = scene.home.path().join("errors");
        let file = std::fs::File::create(&errors).expect("a file");
        command.stderr(file);
        let page = Self::start(command);
        (page, std::fs::read_to_string(&errors).expect("text"))
    }

    /// A server that is started by this command.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("ccb starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).expect(&line);
        let url = said["web"]["url"].as_str().expect("an address");
        let (_, code) = url.split_once("?code=").expect("a code");
        Self {
            address: said["web"]["address"].as_str().unwrap().to_owned(),
            url: url.to_owned(),
            code: code.to_owned(),
            cookie: OnceLock::new(),
            child,
        }
    }

    /// Sends these lines and an empty one, then `body`; returns the connection.
    pub(crate) fn send(&self, lines: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let head = lines.join("\r\n");
        let length = body.len();
        let text = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).expect("it reads");
        stream
    }

    /// The whole answer: status, headers, body.
    pub(crate) fn ask(&self, lines: &[&str], body: &str) -> (u16, String, String) {
        let mut text = String::new();
        self.send(lines, body).read_to_string(&mut text).ok();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split_whitespace()
            .nth(1)
            .and_then(|code| code.parse().ok());
        (
            status.unwrap_or(0),
            head.to_ascii_lowercase(),
            body.to_owned(),
        )
    }

    pub(crate) fn host(&self) -> String {
        format!("Host: {}", self.address)
    }

    /// Comes in with the code; the whole answer.
    pub(crate) fn enter(&self) -> (u16, String, String) {
        let first = format!("GET /?code={} HTTP/1.1", self.code);
        self.ask(&[&first, &self.host()], "")
    }

    /// The header of a browser that came in.
    pub(crate) fn signed_in(&self) -> String {
        let enter = || cookie_of(&self.enter().1);
        self.cookie.get_or_init(enter).clone()
    }

    /// The header with which a browser names our page as the origin.
    pub(crate) fn origin(&self) -> String {
        format!("Origin: http://{}", self.address)
    }

    /// A request of a browser that came in.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let first = format!("GET {path} HTTP/1.1");
        let (status, _, body) = self.ask(&[&first, &self.host(), &self.signed_in()], "");
        (status, body)
    }

    pub(crate) fn act(&self, team: &str, act: &Value) -> (u16, Value) {
        let body = json!({"team": team, "act": act}).to_string();
        let lines = [
            "POST /api/act HTTP/1.1",
            &self.host(),
            &self.signed_in(),
            &self.origin(),
            "Content-Type: application/json",
        ];
        let (status, _, body) = self.ask(&lines, &body);
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    /// The first update of a browser that has seen this much, and its number.
    pub(crate) fn update(&self, seen: Option<&str>) -> (String, Value) {
        let seen = seen.map(|seen| format!("Last-Event-ID: {seen}"));
        let host = self.host();
        let cookie = self.signed_in();
        let mut lines = vec!["GET /events HTTP/1.1", &host, &cookie];
        lines.extend(seen.as_deref());
        let mut id = String::new();
        for line in BufReader::new(self.send(&lines, "")).lines() {
            let line = line.expect("an event");
            if let Some(found) = line.strip_prefix("id: ") {
                id = found.to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return (id, serde_json::from_str(data).expect(data));
            }
        }
        panic!("no event");
    }

    /// Updates until `is_it`, each from the end of the last one.
    pub(crate) fn until(&self, what: &str, mut is_it: impl FnMut(&Value) -> bool) -> Value {
        let (mut seen, mut all) = self.update(None);
        wait_until(LIMIT, what, || {
            if is_it(&all) {
                return true;
            }
            let (id, new) = self.update(Some(&seen));
            seen = id;
            for (name, value) in new["set"].as_object().unwrap() {
                all["set"][name] = value.clone();
            }
            for name in new["gone"].as_array().unwrap() {
                all["set"]
                    .as_object_mut()
                    .unwrap()
                    .remove(name.as_str().unwrap());
            }
            is_it(&all)
        });
        all
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn scene() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene.task(
        "write one",
        &["--run", "echo 1 > one", "--verify", "test -s one"],
    );
    scene
}

#[test]
fn a_code_becomes_a_cookie_and_nothing_is_answered_without_one() {
    let scene = scene();
    let page = Page::of(&scene, &[]);
    let host = page.host();
    for path in [
        "/",
        "/app.js",
        "/events",
        "/api/runs",
        "/report",
        "/nothing",
    ] {
        let first = format!("GET {path} HTTP/1.1");
        let (status, head, _) = page.ask(&[&first, &host], "");
        assert_eq!(status, 401, "{path}: {head}");
    }
    let (status, _, _) = page.ask(&["GET /?code=wrong HTTP/1.1", &host], "");
    assert_eq!(status, 401);
    let (status, head, body) = page.enter();
    assert_eq!(status, 200, "{head}");
    // The page that follows has no code in its address, and sends no referrer.
    assert!(!body.contains(&page.code), "{body}");
    assert!(head.contains("referrer-policy: no-referrer"), "{head}");
    assert!(
        head.contains("samesite=strict") && head.contains("httponly"),
        "{head}"
    );
    let cookie = cookie_of(&head);
    assert!(!cookie.contains(&page.code));
    let (status, head, body) = page.ask(&["GET / HTTP/1.1", &host, &cookie], "");
    assert_eq!(status, 200, "{head}");
    assert!(body.contains("<!doctype html>"), "{body}");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "frame-ancestors 'none'",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    // A cookie alone changes nothing: the request has to name our page as its origin.
    let act = json!({"team": "board", "act": {"do": "say", "text": "hello"}}).to_string();
    let post = [
        "POST /api/act HTTP/1.1",
        &host,
        &cookie,
        "Content-Type: application/json",
    ];
    assert_eq!(page.ask(&post, &act).0, 403);
    let ours = page.origin();
    let (status, _, body) = page.ask(&[&post[..], &[&ours]].concat(), &act);
    assert_eq!(status, 200, "{body}");
    // A form of another page can send text, and nothing else.
    let form = [
        "POST /api/act HTTP/1.1",
        &host,
        &cookie,
        &ours,
        "Content-Type: text/plain",
    ];
    assert_eq!(page.ask(&form, &act).0, 415);
}

#[test]
fn other_origins_and_rebound_names_are_refused_even_with_the_cookie() {
    let scene = scene();
    let page = Page::of(&scene, &[]);
    let (host, cookie) = (page.host(), page.signed_in());
    let port = page.address.rsplit(':').next().unwrap();
    for name in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
    ] {
        let rebound = format!("Host: {name}:{port}");
        let (status, _, body) = page.ask(&["GET / HTTP/1.1", &rebound, &cookie], "");
        assert_eq!(status, 403, "{name}: {body}");
    }
    assert_eq!(
        page.ask(&["GET / HTTP/1.1", "Host: 127.0.0.1:1", &cookie], "")
            .0,
        403
    );
    let local = format!("Host: localhost:{port}");
    assert_eq!(page.ask(&["GET / HTTP/1.1", &local, &cookie], "").0, 200);
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let from = format!("Origin: {origin}");
        for first in ["GET /events HTTP/1.1", "POST /api/act HTTP/1.1"] {
            let (status, head, _) = page.ask(&[first, &host, &cookie, &from], "{}");
            assert_eq!(status, 403, "{origin}: {head}");
            assert!(!head.contains("access-control-allow"), "{head}");
        }
    }
    // The same for preflight requests.
    let lines = [
        "OPTIONS /api/act HTTP/1.1",
        &host,
        "Origin: https://evil.example",
        "Access-Control-Request-Method: POST",
    ];
    assert_eq!(page.ask(&lines, "").0, 403);
}

#[test]
fn a_browser_that_comes_back_is_sent_what_it_missed() {
    let scene = scene();
    let page = Page::of(&scene, &[]);
    let (seen, all) = page.update(None);
    assert_eq!(all["reset"], true, "{all}");
    assert_eq!(all["set"]["task/board/1"]["state"], "ready", "{all}");
    // It sleeps while a session runs to its end.
    assert_eq!(scene.session(&["--merge", "never"]).code, Some(0));
    let done = page.until("the task is done", |all| {
        all["set"]["task/board/1"]["state"] == "done"
    });
    assert_eq!(done["set"]["task/board/1"]["landing"], "waiting", "{done}");
    let (_, missed) = page.update(Some(&seen));
    assert_eq!(missed["reset"], false, "{missed}");
    assert_eq!(missed["set"]["task/board/1"]["state"], "done", "{missed}");
    // Numbers of another server mean nothing here.
    assert_eq!(page.update(Some("other.7")).1["reset"], true);
    // The diff and the report of it.
    let (status, body) = page.get("/api/changes?team=board&what=1");
    assert_eq!(status, 200, "{body}");
    let changes: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(changes["files"][0]["path"], "one", "{changes}");
    assert!(body.contains("+1"), "{body}");
    let (status, body) = page.get("/report?what=board");
    assert!(status == 200 && body.contains("write one"), "{body}");
    let (_, runs) = page.get("/api/runs");
    assert!(runs.contains("board-"), "{runs}");
    for path in [
        "/api/changes?team=board&what=99",
        "/api/changes?team=..%2f..&what=1",
        "/api/task?team=board&id=99",
        "/api/transcript?team=board&agent=..%2f..%2fmeta",
        "/report?what=../../etc/passwd",
        "/%2e%2e/Cargo.toml",
    ] {
        let (status, body) = page.get(path);
        assert!((400..500).contains(&status), "{path}: {status} {body}");
    }
    // The work is landed, undone, and sent back with feedback.
    let (status, said) = page.act("board", &json!({"do": "land", "tasks": ["1"]}));
    assert_eq!(status, 200, "{said}");
    page.until("landed", |all| {
        all["set"]["task/board/1"]["landing"] == "landed"
    });
    assert!(scene.repo.main().join("one").exists());
    let (status, said) = page.act("board", &json!({"do": "undo", "task": "1"}));
    assert_eq!(status, 200, "{said}");
    page.until("undone", |all| {
        all["set"]["task/board/1"]["landing"] == "undone"
    });
    assert!(!scene.repo.main().join("one").exists());
    let (status, said) = page.act(
        "board",
        &json!({"do": "reject", "task": "1", "feedback": ""}),
    );
    assert_eq!(status, 400, "{said}");
    let reject = json!({"do": "reject", "task": "1", "feedback": "in capitals"});
    assert_eq!(page.act("board", &reject).0, 200);
    page.until("sent back", |all| {
        all["set"]["task/board/1"]["state"] == "ready"
    });
    assert!(scene.file(1).to_string().contains("in capitals"));
}

#[test]
fn a_request_is_answered_once() {
    let scene = SessionScene::new(CCB);
    scene.ok(&["team", "create", "board"]);
    scene.ok(&["team", "join", "board", "--as", "alice"]);
    let mut alice =
        McpClient::connect(scene.command(&["mcp", "--role", "teammate", "--as", "alice"]));
    alice.ok("EnterPlanMode", json!({}));
    alice.ok("ExitPlanMode", json!({"plan": "First this"}));
    let page = Page::of(&scene, &[]);
    let plan = |all: &Value| {
        let needs = all["set"]["attention"].as_array().cloned();
        needs?.into_iter().find(|need| need["need"] == "plan")
    };
    let all = page.until("it asks", |all| plan(all).is_some());
    let need = plan(&all).unwrap();
    assert!(
        need["detail"].as_str().unwrap().contains("First this"),
        "{need}"
    );
    let act = need["answers"][0]["act"].clone();
    assert_eq!(act["do"], "approve", "{need}");
    assert_eq!(page.act("board", &act).0, 200);
    // The second request gets the actual state instead.
    let (status, said) = page.act("board", &act);
    assert_eq!(status, 409, "{said}");
    let gone = |all: &Value| plan(all).is_none();
    page.until("it no longer waits", gone);
}

#[test]
fn a_transcript_is_followed() {
    let scene = SessionScene::new(CCB);
    let go = scene.home.path().join("go");
    let script = Script::new()
        .say("I have a look")
        .wait_file(&go)
        .say("I have seen it")
        .done("ok");
    let runtime =
        format!(r#"{{"runtimes":{{"fake":{{"kind":"lines","command":["{FAKE_AGENT}"]}}}}}}"#);
    scene.home.settings(&runtime);
    scene.ok(&["team", "create", "board"]);
    let prompt = script.to_prompt();
    let spawn = [
        "agent",
        "spawn",
        "--bg",
        "--runtime",
        "fake",
        "--name",
        "alice",
        &prompt,
    ];
    let agent = scene.ok(&spawn)["agent"]["agentId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let page = Page::of(&scene, &[]);
    let name = format!("agent/board/{agent}");
    page.until("it is shown", |all| all["set"][&name].is_object());
    let path = format!("GET /api/transcript?team=board&agent={agent} HTTP/1.1");
    let stream = page.send(&[&path, &page.host(), &page.signed_in()], "");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.find_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
    let first: Value = serde_json::from_str(&first.expect("an event")).unwrap();
    assert_eq!(first["reset"], true, "{first}");
    harness::write(&go, "");
    assert!(lines.any(|line| line.contains("I have seen it")));
}
