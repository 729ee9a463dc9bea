//! The instructions of docs/mcp.md for each client, with that client: a message sent while it works
//! is in its model's next request.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use harness::model::{Step, prompt};
use harness::runs::LONG;
use harness::{RealWorld, git, real_program, wait_until, write};
use serde_json::{Value, json};
use swarm::runtime::Launch;

use crate::CCB;

/// The message. It must arrive unchanged.
const WORDS: &str = "run `cargo fmt && cargo test`, then look at <main>";

/// An instruction of the document.
#[derive(Debug, Clone)]
enum Action {
    /// Type this.
    Type(String),
    /// Write this into a file: in the repository, or `~` for the user's own.
    Write { file: String, text: String },
}

/// A client of the document.
struct Client {
    /// Its heading.
    title: &'static str,
    /// The variable that names its program.
    variable: &'static str,
    /// Its name in the team.
    name: &'static str,
    /// Its environment, which keeps it on loopback.
    launch: fn(&RealWorld, &str) -> Launch,
    /// Its name for `TaskList`.
    tool: &'static str,
    /// The arguments that start it once with a prompt, with the user's consent where it would ask
    /// before it calls a tool.
    start: &'static [&'static str],
    /// True if it reads the prompt from its input.
    reads: bool,
    /// Accepts the questions of its first start.
    accepts: fn(&Machine),
}

/// The ways to set a client up: each block of its section, in order. One that begins with "or" is
/// another way; the blocks after all ways are part of each.
fn ways(title: &str) -> Vec<Vec<Action>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp.md");
    let document = std::fs::read_to_string(path).unwrap();
    let heading = format!("\n### {title}\n");
    let (_, section) = document.split_once(&heading).expect("a section");
    let section = section.split("\n## ").next().unwrap();
    let section = section.split("\n### ").next().unwrap();
    let parts: Vec<&str> = section.split("```").collect();
    let mut ways: Vec<Vec<Action>> = Vec::new();
    for pair in parts.chunks_exact(2) {
        let before = pair[0].trim().rsplit("\n\n").next().unwrap();
        let (language, text) = pair[1].split_once('\n').expect("a block of lines");
        let action = match language {
            "console" => Action::Type(text.trim().strip_prefix("$ ").expect("a line").into()),
            _ => Action::Write {
                file: before.split('`').nth(1).expect("a file's name").into(),
                text: text.into(),
            },
        };
        if ways.is_empty() || before.starts_with("or ") {
            ways.push(vec![action]);
        } else {
            ways.iter_mut().for_each(|way| way.push(action.clone()));
        }
    }
    ways
}

/// A user's machine with the client and `ccb` on it.
struct Machine {
    world: RealWorld,
    program: PathBuf,
    launch: Launch,
}

impl Machine {
    fn new(client: &Client) -> Self {
        let world = RealWorld::new();
        let bin = world.path("bin");
        std::fs::create_dir(&bin).unwrap();
        symlink(CCB, bin.join("ccb")).unwrap();
        git(&world.repo(), &["init", "-q"]);
        Self {
            launch: (client.launch)(&world, ""),
            program: real_program(client.variable).into(),
            world,
        }
    }

    /// A program as the user would start it in the repository.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut dirs = vec![self.world.path("bin")];
        dirs.extend(self.program.parent().map(Path::to_owned));
        dirs.extend(std::env::split_paths(&path));
        command
            .env_clear()
            .envs(self.launch.env.iter().cloned())
            .env("PATH", std::env::join_paths(dirs).unwrap())
            .current_dir(self.world.repo())
            .stdin(Stdio::null());
        command
    }

    /// Types a line.
    fn types(&self, line: &str) {
        let run = self.command(Path::new("sh")).args(["-c", line]).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{line}: {run:?}");
    }

    fn does(&self, action: &Action) {
        match action {
            Action::Type(line) => self.types(line),
            Action::Write { file, text } => {
                let path = match file.strip_prefix("~/") {
                    Some(own) => self.world.path("home").join(own),
                    None => self.world.repo().join(file),
                };
                // The user may have some settings already.
                let before = std::fs::read_to_string(&path).unwrap_or_default();
                write(&path, &format!("{before}{text}"));
            }
        }
    }

    /// Lets the client work, and sends it the message meanwhile.
    fn works(&self, client: &Client) -> Output {
        let go = self.world.path("go");
        let steps = [
            Step::tool(client.tool, json!({})),
            Step::tool(client.tool, json!({})).wait_for(&go),
            Step::text("Read."),
        ];
        let words = prompt("Go.", &steps);
        let mut command = self.command(&self.program);
        command.args(client.start);
        if client.reads {
            let file = self.world.path("prompt");
            std::fs::write(&file, &words).unwrap();
            command.stdin(std::fs::File::open(&file).unwrap());
        } else {
            command.arg(&words);
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let works = || self.world.model.scripted().len() >= 2;
                wait_until(LONG, "it to work", || {
                    works() || over.load(Ordering::Relaxed)
                });
                let mut mail = self.command(Path::new("ccb"));
                mail.args(["--team", "fixers", "mail", "send", client.name, WORDS]);
                let sent = mail.args(["--as", "ann"]).output().unwrap();
                assert!(sent.status.success(), "{sent:?}");
                std::fs::write(&go, "").unwrap();
            });
            let output = command.output().unwrap();
            over.store(true, Ordering::Relaxed);
            output
        })
    }
}

/// Every way the document has for this client.
fn check(client: &Client, count: usize) {
    let ways = ways(client.title);
    assert_eq!(ways.len(), count, "{ways:?}");
    for way in ways {
        let machine = Machine::new(client);
        machine.types("ccb team create fixers");
        for action in &way {
            machine.does(action);
        }
        (client.accepts)(&machine);
        let output = machine.works(client);
        let about = format!("{way:?}: {output:?}");
        assert!(output.status.success(), "{about}");
        let requests = machine.world.model.scripted();
        assert_eq!(requests.len(), 3, "{about}");
        let written = json!(WORDS).to_string();
        let written = &written[1..written.len() - 1];
        for (n, shown) in [(1, false), (2, true)] {
            // A result may stand in a text that is itself quoted.
            let body = requests[n].body.to_string().replace("\\\\", "\\");
            let times = body.matches(written).count();
            assert_eq!(times, usize::from(shown), "request {n} of {about}: {body}");
        }
    }
}

/// The dialog that Claude Code shows where it is started for the first time. Without it the
/// repository's `allow` does not count.
fn trust_the_repository(machine: &Machine) {
    let file = machine.world.path("home/.claude/.claude.json");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| "{}".into());
    let mut config: Value = serde_json::from_str(&text).unwrap();
    let repo = machine.world.repo().canonicalize().unwrap();
    config["projects"][repo.to_str().unwrap()]["hasTrustDialogAccepted"] = true.into();
    write(&file, &config.to_string());
}

pub(crate) fn claude_as_the_document_says() {
    check(
        &Client {
            title: "Claude Code",
            variable: "CCB_TEST_CLAUDE",
            name: "team-lead",
            launch: RealWorld::claude,
            tool: "mcp__ccb__TaskList",
            start: &["-p"],
            reads: false,
            accepts: trust_the_repository,
        },
        2,
    );
}

pub(crate) fn codex_as_the_document_says() {
    check(
        &Client {
            title: "Codex",
            variable: "CCB_TEST_CODEX",
            name: "codex",
            launch: RealWorld::codex,
            tool: "mcp__ccb::TaskList",
            start: &["exec", "--dangerously-bypass-approvals-and-sandbox"],
            reads: false,
            accepts: |_| {},
        },
        2,
    );
}

pub(crate) fn gemini_as_the_document_says() {
    check(
        &Client {
            title: "Gemini CLI",
            variable: "CCB_TEST_GEMINI",
            name: "gemini",
            launch: RealWorld::gemini,
            tool: "mcp_ccb_TaskList",
            start: &["--approval-mode", "yolo", "-p"],
            reads: false,
            accepts: |_| {},
        },
        2,
    );
}

pub(crate) fn opencode_as_the_document_says() {
    check(
        &Client {
            title: "opencode",
            variable: "CCB_TEST_OPENCODE",
            name: "opencode",
            launch: RealWorld::opencode,
            tool: "ccb_TaskList",
            start: &["run"],
            reads: true,
            accepts: |_| {},
        },
        1,
    );
}
