//! The tools in the requests of the real programs, for every built-in type, on a scripted model: a
//! table. And a read-only agent cannot write. `CCB_TEST_CLAUDE`, `CCB_TEST_CODEX`,
//! `CCB_TEST_OPENCODE`, `CCB_TEST_GEMINI` and `CCB_TEST_QWEN` name the programs.

use harness::model::{Step, prompt};
use harness::{RealWorld, Talk, TestHome, TestRepo, real_program, write};
use serde_json::{Value, json};
use swarm::runtime::{AcpRuntime, ClaudeRuntime, CodexRuntime, Launch, McpServer, Order, Runtime};
use swarm::tools::Reach;

use crate::CCB;

/// A program under test: its name, kind, arguments, and the setting that keeps it on loopback.
struct Program {
    name: &'static str,
    kind: &'static str,
    more: &'static [&'static str],
    launch: fn(&RealWorld, &str) -> Launch,
    /// Its tool for shell commands, and the name of the argument.
    shell: (&'static str, &'static str),
    /// The prefix of ccb's tools.
    prefix: &'static str,
}

const CLAUDE: Program = Program {
    name: "claude",
    kind: "claude",
    more: &[],
    launch: RealWorld::claude,
    shell: ("Bash", "command"),
    prefix: "mcp__ccb__",
};
const CODEX: Program = Program {
    name: "codex",
    kind: "codex",
    more: &[],
    launch: RealWorld::codex,
    shell: ("exec_command", "cmd"),
    prefix: "mcp__ccb::",
};
const OPENCODE: Program = Program {
    name: "opencode",
    kind: "acp",
    more: &["acp"],
    launch: RealWorld::opencode,
    shell: ("bash", "command"),
    prefix: "ccb_",
};
const GEMINI: Program = Program {
    name: "gemini",
    kind: "acp",
    more: &["--acp"],
    launch: RealWorld::gemini,
    shell: ("run_shell_command", "command"),
    prefix: "mcp_ccb_",
};
const QWEN: Program = Program {
    name: "qwen",
    kind: "acp",
    more: &["--acp"],
    launch: RealWorld::qwen,
    shell: ("run_shell_command", "command"),
    prefix: "mcp__ccb__",
};

/// A repository and a home with the program as a runtime.
struct Scene {
    world: RealWorld,
    home: TestHome,
    repo: TestRepo,
    name: &'static str,
}

impl Scene {
    fn new(program: &Program) -> Self {
        let variable = format!("CCB_TEST_{}", program.name.to_uppercase());
        let mut command = vec![real_program(&variable)];
        command.extend(program.more.iter().map(ToString::to_string));
        let world = RealWorld::new();
        let env: serde_json::Map<String, Value> = (program.launch)(&world, "")
            .env
            .into_iter()
            .filter(|(name, _)| name != "PATH" && name != "TMPDIR")
            .map(|(name, value)| {
                let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
                (text(name), text(value).into())
            })
            .collect();
        let home = TestHome::new(CCB);
        let runtime = json!({ "kind": program.kind, "command": command, "env": env });
        let settings =
            json!({ "runtimes": { program.name: runtime }, "agents": { "stopGraceMs": 2000 } });
        home.settings(&settings.to_string());
        Self {
            world,
            home,
            repo: TestRepo::new(),
            name: program.name,
        }
    }

    /// Starts an agent of this type in a worktree of its own and waits for its end.
    fn ask(&self, kind: &str, steps: &[Step], more: &[&str]) -> harness::Answer {
        let main = self.repo.main().to_str().unwrap();
        let text = prompt("Go.", steps);
        let mut args = vec![
            "--json",
            "-C",
            main,
            "agent",
            "spawn",
            "--runtime",
            self.name,
        ];
        args.extend(["--type", kind, "--wait", "--isolation", "worktree"]);
        args.extend_from_slice(more);
        args.push(&text);
        let answer = self.home.run(&args);
        let agent = answer.json()["agent"].clone();
        match agent["agentId"].as_str() {
            Some(id) if agent["status"] == "async_launched" => self.home.run(&[
                "--json",
                "-C",
                main,
                "agent",
                "output",
                id,
                "--timeout",
                "120000",
            ]),
            _ => answer,
        }
    }
}

/// Further tools of Codex, if there are MCP servers.
const RESOURCES: &str = "list_mcp_resource_templates list_mcp_resources read_mcp_resource";
const TEAMMATE: &str = "Agent EnterWorktree ExitWorktree SendMessage TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate";
const VERIFIER: &str = "EnterWorktree ExitWorktree SendMessage TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate";

/// Compares the tools in the program's first request with `rows`: for each type its own, and ccb's.
fn check(program: &Program, rows: &[(&str, &str, &str)]) {
    let mut seen = String::new();
    let mut wanted = String::new();
    for (kind, own, ours) in rows {
        let scene = Scene::new(program);
        let model = matches!(*kind, "Explore") && program.kind != "claude";
        let more: &[&str] = if model {
            &["--model", usual_model(program)]
        } else {
            &[]
        };
        let answer = scene.ask(kind, &[Step::text("Seen.")], more);
        assert_eq!(answer.code, Some(0), "{} {kind}: {answer:?}", program.name);
        let requests = scene.world.model.scripted();
        let mut tools = requests[0].tools.clone();
        tools.sort();
        seen.push_str(&format!("{kind}: {}\n", tools.join(" ")));
        let ours = ours
            .split_whitespace()
            .map(|tool| format!("{}{tool}", program.prefix));
        let mut expected: Vec<String> = own
            .split_whitespace()
            .map(str::to_owned)
            .chain(ours)
            .collect();
        expected.sort();
        wanted.push_str(&format!("{kind}: {}\n", expected.join(" ")));
    }
    assert_eq!(seen, wanted, "{}", program.name);
}

/// A model the program knows; Explore's own is one of Claude Code's.
fn usual_model(program: &Program) -> &'static str {
    match program.name {
        "codex" => "test-model",
        "opencode" => "fake/m",
        "gemini" => "gemini-2.5-pro",
        _ => "m",
    }
}

pub(crate) fn the_tools_of_claude() {
    let reads = "Bash Glob Grep Read Skill WebFetch WebSearch";
    let all = "Bash Edit Glob Grep NotebookEdit Read Skill WebFetch WebSearch Write";
    check(
        &CLAUDE,
        &[
            ("general-purpose", all, TEAMMATE),
            ("Explore", reads, ""),
            ("Plan", reads, ""),
            ("worker", all, ""),
            (
                "verification",
                "Bash Glob Grep Read WebFetch WebSearch",
                VERIFIER,
            ),
        ],
    );
}

pub(crate) fn the_tools_of_codex() {
    let all = "exec_command view_image web_search write_stdin";
    let with_ours = format!("{all} {RESOURCES}");
    check(
        &CODEX,
        &[
            ("general-purpose", &with_ours, TEAMMATE),
            ("Explore", all, ""),
            ("Plan", all, ""),
            ("worker", all, ""),
            ("verification", &with_ours, VERIFIER),
        ],
    );
}

pub(crate) fn the_tools_of_opencode() {
    let all = "bash edit glob grep read skill webfetch write";
    let reads = "glob grep read skill webfetch";
    check(
        &OPENCODE,
        &[
            ("general-purpose", all, TEAMMATE),
            ("Explore", reads, ""),
            ("worker", all, ""),
            ("verification", "bash glob grep read webfetch", VERIFIER),
        ],
    );
}

pub(crate) fn the_tools_of_gemini() {
    let reads =
        "activate_skill glob google_web_search grep_search list_directory read_file web_fetch";
    let all = format!(
        "{reads} list_background_processes read_background_output replace run_shell_command write_file"
    );
    let runs = "glob google_web_search grep_search list_background_processes list_directory read_background_output read_file run_shell_command web_fetch";
    check(
        &GEMINI,
        &[
            ("general-purpose", &all, TEAMMATE),
            ("Explore", reads, ""),
            ("worker", &all, ""),
            ("verification", runs, VERIFIER),
        ],
    );
}

pub(crate) fn the_tools_of_qwen() {
    let reads = "glob grep_search list_directory read_file skill web_fetch";
    let all = format!("{reads} edit run_shell_command write_file");
    let runs = "glob grep_search list_directory read_file run_shell_command web_fetch";
    check(
        &QWEN,
        &[
            ("general-purpose", &all, TEAMMATE),
            ("Explore", reads, ""),
            ("worker", &all, ""),
            ("verification", runs, VERIFIER),
        ],
    );
}

const COORDINATOR: &str =
    "Agent SendMessage TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate Worktrees";
const LEAD: &str = "Agent EnterWorktree ExitWorktree SendMessage TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TeamCreate TeamDelete Worktrees";

/// The tools of leads: a lead has its own besides ccb's, a coordinator ccb's alone.
fn check_leads(program: &Program, runtime: &dyn Fn(Vec<String>) -> Box<dyn Runtime>, all: &str) {
    let alone = match program.kind {
        "codex" => RESOURCES,
        _ => "",
    };
    for (role, own, ours) in [("lead", all, LEAD), ("coordinator", alone, COORDINATOR)] {
        let variable = format!("CCB_TEST_{}", program.name.to_uppercase());
        let name = real_program(&variable);
        let mut command = vec![name];
        command.extend(program.more.iter().map(ToString::to_string));
        let world = RealWorld::new();
        let mut launch = (program.launch)(&world, &prompt("Go.", &[Step::text("Seen.")]));
        if role == "coordinator" {
            launch.tools = Some(vec!["mcp__ccb".into()]);
            launch.reach = Reach::Reads;
            launch.permission_mode = Some(match program.kind {
                "codex" => "plan".into(),
                _ => "default".into(),
            });
        }
        let home = world.path("home").to_string_lossy().into_owned();
        launch.mcp_servers.push(McpServer {
            name: "ccb".into(),
            // The harness marks what it starts, and a mark without its run gives no tools.
            command: "env".into(),
            args: ["-u", "CCB_RUN_ID", CCB, "mcp", "--role", role]
                .map(str::to_owned)
                .to_vec(),
            env: [
                ("CCB_HOME", home.as_str()),
                ("CLAUDE_CODE_TEAM_NAME", "board"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        });
        let mut talk = Talk::start(&*runtime(command), launch).unwrap();
        assert_eq!(talk.turn().text, "Seen.", "{} {role}", program.name);
        talk.order(Order::Finish);
        talk.kill();
        talk.end();
        let mut tools = world.model.scripted()[0].tools.clone();
        tools.sort();
        let ours = ours
            .split_whitespace()
            .map(|tool| format!("{}{tool}", program.prefix));
        let mut expected: Vec<String> = own
            .split_whitespace()
            .map(str::to_owned)
            .chain(ours)
            .collect();
        expected.sort();
        assert_eq!(tools, expected, "{} {role}", program.name);
    }
}

fn acp(command: Vec<String>) -> Box<dyn Runtime> {
    Box::new(AcpRuntime::new(command))
}

pub(crate) fn a_lead_and_a_coordinator_on_claude() {
    let all = "Bash Edit Glob Grep NotebookEdit Read Skill WebFetch WebSearch Write";
    check_leads(
        &CLAUDE,
        &|command| Box::new(ClaudeRuntime::new(command)),
        all,
    );
}

pub(crate) fn a_lead_and_a_coordinator_on_codex() {
    let all = format!("exec_command view_image web_search write_stdin {RESOURCES}");
    check_leads(
        &CODEX,
        &|command| Box::new(CodexRuntime::new(command)),
        &all,
    );
}

pub(crate) fn a_lead_and_a_coordinator_on_opencode() {
    let all = "bash edit glob grep read skill webfetch write";
    check_leads(&OPENCODE, &acp, all);
}

pub(crate) fn a_lead_and_a_coordinator_on_gemini() {
    let all = "activate_skill glob google_web_search grep_search list_background_processes list_directory read_background_output read_file replace run_shell_command web_fetch write_file";
    check_leads(&GEMINI, &acp, all);
}

pub(crate) fn a_lead_and_a_coordinator_on_qwen() {
    let all = "edit glob grep_search list_directory read_file run_shell_command skill web_fetch write_file";
    check_leads(&QWEN, &acp, all);
}

/// The model of a read-only agent orders it to remove and to write: nothing changes, and no
/// question was asked.
fn cannot_write(program: &Program) {
    let (tool, argument) = program.shell;
    for kind in ["Explore", "reviewer"] {
        let scene = Scene::new(program);
        let docs = include_str!("../../docs/agents.md");
        let from = docs.find("```markdown\n").unwrap() + "```markdown\n".len();
        let text = &docs[from..from + docs[from..].find("```").unwrap()];
        write(&scene.home.path().join("agents/reviewer.md"), text);
        let run = |command: &str| {
            let mut input = json!({ argument: command });
            if program.kind == "claude" {
                input["description"] = "run it".into();
            }
            Step::tool(tool, input)
        };
        let steps = [
            run("rm -f *"),
            run("git diff --output=out"),
            run("echo x > new"),
            run("git commit --allow-empty -m x"),
            Step::text("Tried."),
        ];
        let more: &[&str] = match (program.kind, kind) {
            ("claude", _) | (_, "reviewer") => &[],
            _ => &["--model", usual_model(program)],
        };
        let answer = scene.ask(kind, &steps, more);
        assert_eq!(answer.code, Some(0), "{} {kind}: {answer:?}", program.name);
        assert!(!answer.stdout.contains("only reads"), "{answer:?}");
    }
}

pub(crate) fn claude_cannot_write_where_it_only_reads() {
    cannot_write(&CLAUDE);
}

pub(crate) fn codex_cannot_write_where_it_only_reads() {
    cannot_write(&CODEX);
}

pub(crate) fn opencode_cannot_write_where_it_only_reads() {
    cannot_write(&OPENCODE);
}

pub(crate) fn gemini_cannot_write_where_it_only_reads() {
    cannot_write(&GEMINI);
}

pub(crate) fn qwen_cannot_write_where_it_only_reads() {
    cannot_write(&QWEN);
}
