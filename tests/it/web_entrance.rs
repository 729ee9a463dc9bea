//! The entrance to the page of `ccb web`: for a person, once with an address, or with a token that
//! is in no file; never for an agent, whatever it has found.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::team_session::SessionScene;
use harness::terminal::{Screen, Terminal};
use serde_json::{Value, json};

use crate::web::{Page, cookie_of};
use crate::{CCB, ON_TERMINAL, PEER_PROBE};

/// A team without tasks.
fn scene() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene.ok(&["team", "create", "board"]);
    scene
}

/// A request that puts a task on the board: only a person who came in may.
fn say(page: &Page, cookie: &str) -> (Vec<String>, String) {
    let act = json!({"team": "board", "act": {"do": "say", "text": "from the page"}});
    let lines = [
        "POST /api/act HTTP/1.1",
        &page.host(),
        cookie,
        &page.origin(),
        "Content-Type: application/json",
    ];
    (lines.map(str::to_owned).to_vec(), act.to_string())
}

/// A request in a file, for the process that sends it, and the path of the answer.
struct Sent {
    command: String,
    answer: PathBuf,
}

impl Sent {
    fn new(dir: &Path, page: &Page, name: &str, (lines, body): &(Vec<String>, String)) -> Self {
        let (request, answer) = (dir.join(format!("{name}.txt")), dir.join(name));
        let (head, length) = (lines.join("\r\n"), body.len());
        let text = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        std::fs::write(&request, text).unwrap();
        let command = format!(
            "{PEER_PROBE} http {} {} {}",
            page.address,
            request.display(),
            answer.display()
        );
        Self { command, answer }
    }

    /// Sends it from a process that is no agent's; returns the answer.
    fn by_nobody(&self) -> String {
        let ended = Command::new("sh").args(["-c", &self.command]).status();
        assert!(ended.unwrap().success());
        self.answered()
    }

    /// The answer, which is removed.
    fn answered(&self) -> String {
        let text = std::fs::read_to_string(&self.answer).expect("an answer");
        std::fs::remove_file(&self.answer).unwrap();
        text
    }
}

fn tasks(scene: &SessionScene) -> usize {
    let listed = scene.ok(&["task", "list", "--all"]);
    listed["tasks"].as_array().map_or(0, Vec::len)
}

/// An agent whose program is a shell runs `lines`, to its end.
fn agent(scene: &SessionScene, lines: &[&str]) {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    // The one before may not have ended yet, and keeps its name until then.
    let name = format!("mallory-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let script = lines.join("\n");
    let spawn = ["agent", "spawn", "--runtime", "shell", "--name", &name];
    let answer = scene.ok(&[&spawn[..], &["--wait", &script]].concat());
    // A teammate is waited for until it is idle; a shell ends then.
    let id = answer["agent"]["agentId"].as_str().unwrap();
    scene.home.await_settled(id);
    let exit = scene.home.run_exit(id).expect("it has ended");
    assert_eq!(exit["status"], "completed", "{exit}");
}

fn is(answer: &str, status: u16) -> bool {
    answer.starts_with(&format!("HTTP/1.1 {status} "))
}

/// Every file below `dir` that holds `text`.
fn holding(dir: &Path, text: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            holding(&entry.path(), text, found);
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            if String::from_utf8_lossy(&bytes).contains(text) {
                found.push(entry.path());
            }
        }
    }
}

/// With secrets that it must have found somewhere, an agent neither comes in nor decides; each of
/// its requests works for a person.
fn agents_are_refused(scene: &SessionScene, dir: &Path) {
    let page = Page::of(scene, &[]);
    let first = format!("GET /?code={} HTTP/1.1", page.code);
    let enter = (vec![first, page.host()], String::new());
    let enter = Sent::new(dir, &page, "enter", &enter);
    agent(scene, &[&enter.command]);
    let answer = enter.answered();
    assert!(is(&answer, 403) && answer.contains("mallory"), "{answer}");
    assert!(
        !answer.to_ascii_lowercase().contains("set-cookie"),
        "{answer}"
    );
    // The code is still good for the person.
    let answer = enter.by_nobody();
    assert!(is(&answer, 200), "{answer}");
    let cookie = cookie_of(&answer);

    let say = Sent::new(dir, &page, "say", &say(&page, &cookie));
    // With any environment, and with any parent.
    let cleared = format!("env -i {}", say.command);
    let alone = format!("setsid sh -c 'sh -c \"{}; true\" &'; true", say.command);
    for command in [&say.command, &cleared] {
        agent(scene, &[command]);
        let answer = say.answered();
        assert!(is(&answer, 403) && answer.contains("mallory"), "{answer}");
    }
    // One whose open files only root can see.
    let hidden = format!("PEER_PROBE_HIDES=1 {}", say.command);
    agent(scene, &[&hidden]);
    let answer = say.answered();
    assert!(is(&answer, 403), "{answer}");
    let waits = format!(
        "while ! test -s {}; do sleep 0.02; done",
        say.answer.display()
    );
    agent(scene, &[&alone, &waits]);
    let answer = say.answered();
    assert!(is(&answer, 403), "{answer}");
    assert_eq!(tasks(scene), 0);
    let answer = say.by_nobody();
    assert!(is(&answer, 200), "{answer}");
    assert_eq!(tasks(scene), 1);
}

#[test]
fn no_agent_comes_in_or_decides() {
    let scene = scene();
    let dir = tempfile::tempdir().unwrap();
    agents_are_refused(&scene, dir.path());
}

#[test]
fn no_confined_agent_comes_in_or_decides() {
    if let Err(why) = swarm::sandbox::support() {
        eprintln!("not tested here: {why}");
        return;
    }
    let scene = scene();
    let dir = tempfile::tempdir().unwrap();
    let settings = json!({"agents": {"sandbox": "tree", "sandboxWrite": [dir.path()]}});
    scene.home.settings(&settings.to_string());
    agents_are_refused(&scene, dir.path());
}

#[test]
fn no_file_holds_what_lets_somebody_in() {
    let scene = scene();
    let left = scene.home.path().join("ccb");
    std::fs::create_dir_all(&left).unwrap();
    let left = left.join("web.html");
    std::fs::write(&left, "<a href=\"http://127.0.0.1:7317/?token=7c1e\">").unwrap();
    let file = scene.home.path().join("token");
    let file = file.to_str().unwrap();
    let token = scene.ok(&["web", "--token-file", file, "--new-token"]);
    let token = token["token"].as_str().unwrap();
    let page = Page::of(&scene, &["--token-file", file]);
    assert!(!left.exists(), "the address of an earlier version");
    let (_, cookie) = page
        .signed_in()
        .split_once('=')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    for secret in [page.code.as_str(), &cookie, token] {
        let mut found = Vec::new();
        holding(scene.home.path(), secret, &mut found);
        holding(scene.repo.main(), secret, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
    // The search finds what is there.
    std::fs::write(scene.home.path().join("note"), format!("so: {cookie}")).unwrap();
    let mut found = Vec::new();
    holding(scene.home.path(), &cookie, &mut found);
    assert_eq!(found.len(), 1);
}

#[test]
fn an_address_that_two_processes_used_lets_in_neither() {
    let scene = scene();
    let (page, said) = Page::heard(&scene, &["--listen", "127.0.0.1:0"]);
    assert!(!said.contains("same address"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let first = format!("GET /?code={} HTTP/1.1", page.code);
    let enter = (vec![first, page.host()], String::new());
    let enter = Sent::new(dir.path(), &page, "enter", &enter);
    let cookie = cookie_of(&enter.by_nobody());
    let signed_in = |cookie: &str| page.ask(&["GET / HTTP/1.1", &page.host(), cookie], "").0;
    assert_eq!(signed_in(&cookie), 200);
    // The same browser may go back to it.
    let first = format!("GET /?code={} HTTP/1.1", page.code);
    let again = page.ask(&[&first, &page.host(), &cookie], "");
    assert_eq!(again.0, 200, "{again:?}");
    assert_eq!(signed_in(&cookie), 200);
    let (status, head, body) = page.enter();
    assert_eq!(status, 401, "{head}");
    assert!(!head.contains("set-cookie"), "{head}");
    assert!(
        body.contains("used by another process: peer-probe"),
        "{body}"
    );
    assert_eq!(signed_in(&cookie), 401);
    let errors = scene.home.path().join("errors");
    harness::wait_until(crate::web::LIMIT, "a person to be told", || {
        let said = std::fs::read_to_string(&errors).unwrap();
        said.contains("Two programs came with the same address: first peer-probe")
    });
}

fn url(screen: &Screen) -> Option<String> {
    let rows = screen.rows();
    let last = rows.iter().rev().find(|row| row.contains("?code="))?;
    Some(last.trim().to_owned())
}

#[test]
fn enter_makes_a_new_address_and_a_person_is_told_who_came() {
    let scene = scene();
    let command = scene.command(&["web", "--listen", "127.0.0.1:0", "--no-open"]);
    let mut terminal = Terminal::start(ON_TERMINAL, &command, 120, 24);
    let screen = terminal.wait_for_text("Press Enter for another one");
    let old = url(&screen).expect("an address");
    terminal.type_keys("\r");
    let other = |screen: &Screen| url(screen).is_some_and(|it| it != old);
    let screen = terminal.wait_for("another address", other);
    let new = url(&screen).unwrap();
    let address = new.trim_start_matches("http://").split('/').next().unwrap();
    for url in [&new, &old] {
        let (_, code) = url.split_once("?code=").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (request, answer) = (dir.path().join("request"), dir.path().join("answer"));
        let text =
            format!("GET /?code={code} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        std::fs::write(&request, text).unwrap();
        let mut probe = Command::new(PEER_PROBE);
        let sent = probe
            .args(["http", address])
            .args([&request, &answer])
            .status();
        assert!(sent.unwrap().success());
        let text = std::fs::read_to_string(&answer).unwrap();
        assert!(is(&text, 200), "each lets in one: {text}");
    }
    terminal.wait_for_text("Signed in: peer-probe (process ");
    terminal.type_keys("\x03");
    assert_eq!(terminal.end().0, Some(130));
}

#[test]
fn requests_that_two_readers_understand_in_two_ways_are_refused() {
    let scene = scene();
    let page = Page::of(&scene, &[]);
    let (host, cookie) = (page.host(), page.signed_in());
    let get = "GET /api/runs HTTP/1.1";
    let status = |lines: &[&str]| page.ask(lines, "").0;
    assert_eq!(status(&[get, &host, &cookie]), 200);
    assert_eq!(status(&[get, &cookie]), 400);
    assert_eq!(status(&[get, &host, &host, &cookie]), 400);
    assert_eq!(status(&[get, &host, "Host: evil.example", &cookie]), 400);
    assert_eq!(status(&[get, "Host: evil.example", &host, &cookie]), 400);
    let absolute = "GET http://evil.example/api/runs HTTP/1.1";
    assert_eq!(status(&[absolute, &host, &cookie]), 400);
    // The harness adds a length to each of them.
    assert_eq!(
        status(&[get, &host, &cookie, "Transfer-Encoding: chunked"]),
        400
    );
    assert_eq!(status(&[get, &host, &cookie, "Content-Length: 7"]), 400);
}

#[test]
fn other_addresses_need_a_token_that_no_file_holds() {
    let scene = scene();
    let wide = |more: &[&str]| {
        let args = [&["--json", "web", "--listen", "0.0.0.0:0"], more].concat();
        scene.run(&args)
    };
    let answer = wide(&[]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stdout.contains("--new-token"), "{answer:?}");
    let file = scene.home.path().join("token");
    let name = file.to_str().unwrap().to_owned();
    let write = |text: &str, mode: u32| {
        harness::write(&file, text);
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, mode).unwrap();
    };
    let refused = |word: &str| {
        let answer = wide(&["--token-file", &name]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stdout.contains(word), "{word}: {answer:?}");
    };
    refused("--new-token");
    write(&"a".repeat(64), 0o600);
    refused("--new-token");
    write(&format!("sha256:{}\n", "a".repeat(64)), 0o644);
    refused("chmod 600");
    let token = scene.ok(&["web", "--token-file", &name, "--new-token"]);
    let token = token["token"].as_str().unwrap().to_owned();
    let page = Page::of(&scene, &["--token-file", &name]);
    let host = page.host();
    // A program sends it.
    let status = |token: &str| {
        let bearer = format!("Authorization: Bearer {token}");
        page.ask(&["GET /api/runs HTTP/1.1", &host, &bearer], "").0
    };
    assert_eq!(status(&token), 200);
    let proof = std::fs::read_to_string(&file).unwrap();
    for other in [proof.trim(), &proof.trim()[7..], "", &token[1..]] {
        assert_eq!(status(other), 401, "{other}");
    }
    // A browser of another machine is asked for it, and sends it in a form of the page.
    let (code, head, body) = page.ask(&["GET / HTTP/1.1", &host], "");
    assert!(code == 401 && body.contains("<form"), "{head} {body}");
    assert!(head.contains("form-action 'self'"), "{head}");
    let post = "POST /sign-in HTTP/1.1";
    let form = format!("token={token}");
    assert_eq!(page.ask(&[post, &host], &form).0, 403);
    let ours = page.origin();
    let (code, head, _) = page.ask(&[post, &host, &ours], "token=wrong");
    assert!(code == 401 && !head.contains("set-cookie"), "{head}");
    let (code, head, _) = page.ask(&[post, &host, &ours], &form);
    assert_eq!(code, 200, "{head}");
    let cookie = cookie_of(&head);
    assert_eq!(page.ask(&["GET / HTTP/1.1", &host, &cookie], "").0, 200);
    let _: Value = serde_json::from_str(&page.get("/api/runs").1).unwrap();
}
