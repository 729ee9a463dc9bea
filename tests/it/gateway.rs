//! The destination of prompts: the user's gateway, and past it only if the settings say so.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use harness::model::{ModelServer, Recorded, Step, prompt};
use harness::{Answer, NATIVE_KEY, NativeTeam};
use serde_json::{Value, json};

use crate::CCB;

/// A proxy that lets nothing through, and records its requests: every request to a vendor's address
/// comes here first.
struct Trap {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Trap {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).ok();
                noted.lock().unwrap().push(line.trim().to_owned());
                (&stream)
                    .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
                    .ok();
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A command with a key, whose every connection leads into the trap.
fn command(team: &NativeTeam, trap: &Trap, key: &str, args: &[&str]) -> Command {
    let mut command = team.keyless(args);
    let proxy = format!("http://127.0.0.1:{}", trap.port);
    command.env(key, NATIVE_KEY).env("HTTPS_PROXY", proxy);
    command
}

fn run(mut command: Command) -> Answer {
    Answer::of(command.output().unwrap())
}

fn provider<'a>(doctor: &'a Value, name: &str) -> &'a Value {
    let mut all = doctor["providers"].as_array().unwrap().iter();
    let found = all.find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {doctor}"))
}

#[test]
fn prompts_go_through_the_gateway_of_the_vendors_variable() {
    for (kind, variable, path, key, host) in [
        (
            "anthropic",
            "ANTHROPIC_BASE_URL",
            "",
            "ANTHROPIC_API_KEY",
            "api.anthropic.com:443",
        ),
        (
            "openai-chat",
            "OPENAI_BASE_URL",
            "/v1",
            "OPENAI_API_KEY",
            "api.openai.com:443",
        ),
        (
            "openai-responses",
            "OPENAI_BASE_URL",
            "/v1",
            "OPENAI_API_KEY",
            "api.openai.com:443",
        ),
    ] {
        let vendor = kind.split('-').next().unwrap();
        for name in [vendor, "mine"] {
            let (team, trap, gateway) = (NativeTeam::new(CCB), Trap::start(), ModelServer::start());
            let url = format!("{}{path}", gateway.url());
            let settings = json!({"agents": {"defaultProvider": name}, "providers": {
                name: {"kind": kind, "model": "m", "keyEnv": key},
            }});
            team.home.settings(&settings.to_string());
            let with = |args: &[&str]| {
                let mut command = command(&team, &trap, key, args);
                command.env(variable, &url);
                run(command)
            };
            let doctor = with(&["--json", "doctor"]).json();
            assert_eq!(provider(&doctor, name)["address"], url, "{doctor}");
            assert_eq!(
                provider(&doctor, name)["from"],
                format!("${variable}"),
                "{doctor}"
            );
            let order = prompt("Do it.", &[Step::text("done")]);
            let spawn = [
                "--json",
                "agent",
                "spawn",
                "--runtime",
                "native",
                "--wait",
                &order,
            ];
            let answer = with(&spawn);
            assert_eq!(answer.code, Some(0), "{kind} {name}: {answer:?}");
            let asked = gateway.requests();
            assert!(!asked.is_empty());
            let has_key = |one: &Recorded| {
                let headers = ["x-api-key", "authorization"];
                let mut values = headers.iter().filter_map(|name| one.header(name));
                values.any(|value| value.contains(NATIVE_KEY))
            };
            assert!(asked.iter().all(has_key), "{kind} {name}");
            assert_eq!(trap.asked(), [""; 0], "{kind} {name}");

            // The trap works: without the variable ccb asks the vendor.
            let answer = run(command(&team, &trap, key, &["--json", "doctor", "--probe"]));
            assert_eq!(answer.code, Some(1), "{kind} {name}: {answer:?}");
            let connect = format!("CONNECT {host} HTTP/1.1");
            assert!(trap.asked().contains(&connect), "{:?}", trap.asked());
            assert_eq!(gateway.requests().len(), asked.len());
            let doctor = run(command(&team, &trap, key, &["--json", "doctor"])).json();
            assert_eq!(provider(&doctor, name)["from"], "the vendor's own address");
        }
    }
}

#[test]
fn the_settings_win_over_the_variable() {
    for (kind, variable, path, key) in [
        ("anthropic", "ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"),
        ("openai-chat", "OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
    ] {
        let (team, trap) = (NativeTeam::new(CCB), Trap::start());
        let (gateway, own) = (ModelServer::start(), ModelServer::start());
        let vendor = kind.split('-').next().unwrap();
        let url = format!("{}{path}", own.url());
        let settings = json!({"agents": {"defaultProvider": vendor}, "providers": {
            vendor: {"kind": kind, "model": "m", "keyEnv": key, "baseUrl": url},
        }});
        team.home.settings(&settings.to_string());
        let with = |args: &[&str]| {
            let mut command = command(&team, &trap, key, args);
            command.env(variable, format!("{}{path}", gateway.url()));
            run(command)
        };
        let answer = with(&["--json", "doctor", "--probe"]);
        assert_eq!(
            (own.requests().len(), gateway.requests().len()),
            (1, 0),
            "{answer:?}"
        );
        assert_eq!(trap.asked(), [""; 0]);
        let said = with(&["doctor"]).stdout;
        assert!(
            said.contains(&url) && said.contains("baseUrl in the settings"),
            "{said}"
        );
    }
}
