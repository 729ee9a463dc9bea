//! The contract of runtimes on real programs, where they are installed. Prints the supported
//! features of each, as rows for `docs/runtimes.md`.

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use harness::contract::{ASKED, Bench, CHECKS, Check, OnModel, ShellTool, Verdict};
use harness::{RealWorld, real_program, shell};
use serde_json::json;
use swarm::runtime::{AcpRuntime, ClaudeRuntime, CodexRuntime, Launch, Runtime};

use crate::FAKE_AGENT;

/// Acts that no real program supports.
const NEVER: [&str; 8] = [
    "no_result_is_no_turn",
    "it_closes_its_output_and_lives",
    "something_is_left_behind",
    "something_noisy_is_left_behind",
    "errors_are_passed_on",
    "garbage_is_passed_on",
    "a_long_line_does_not_grow",
    "much_output_waits_for_the_host",
];

/// A program, and its limits.
struct Program {
    name: &'static str,
    runtime: Box<dyn Runtime>,
    broken: fn() -> Box<dyn Runtime>,
    launch: fn(&RealWorld, &str) -> Launch,
    tool: ShellTool,
    adds: &'static [&'static str],
    /// The skipped checks besides [`NEVER`].
    cannot: &'static [&'static str],
    /// The differences from the contract, with their reasons.
    differs: &'static [(&'static str, &'static str)],
}

/// Runs every check, prints the outcome, and fails if it differs from the recorded one.
fn check(program: &str, wanted: Program) {
    let world = RealWorld::new();
    let environment: Vec<(OsString, OsString)> = (wanted.launch)(&world, "").env;
    let subject = OnModel {
        world,
        server: |world| &world.model,
        runtime: wanted.runtime,
        broken: wanted.broken,
        tool: wanted.tool,
        fake_agent: FAKE_AGENT,
        environment,
        adds: wanted.adds,
        // Questions are for the checks that are about them.
        prepare: |launch| {
            if !launch.prompt.contains(ASKED) {
                launch.permission_mode = Some("bypassPermissions".into());
            }
        },
    };
    let mut surprises = Vec::new();
    // Not captured: the table in the documentation is made of it.
    let mut out = std::io::stderr();
    let title = format!("{} {}", wanted.name, version(program));
    for (name, check) in CHECKS {
        let only = std::env::var("CCB_TEST_CHECK").unwrap_or_default();
        if !only.is_empty() && only != *name {
            continue;
        }
        let outcome = outcome(*check, &subject);
        let word = match outcome {
            Ok(Verdict::Passed) => "passed".to_owned(),
            Ok(Verdict::Skipped(why)) => format!("skipped: {why}"),
            Err(why) => format!("failed: {}", why.lines().next().unwrap_or_default()),
        };
        let name = *name;
        let skipped = NEVER.contains(&name) || wanted.cannot.contains(&name);
        let differs = wanted.differs.iter().any(|(check, _)| *check == name);
        let expected = match (skipped, differs) {
            (true, _) => "skipped",
            (_, true) => "failed",
            _ => "passed",
        };
        if !word.starts_with(expected) {
            surprises.push(format!("{name}: {word}"));
        }
        writeln!(out, "{title} | {name} | {word}").ok();
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
}

fn outcome(check: Check, subject: &OnModel<RealWorld>) -> Result<Verdict, String> {
    let checked = catch_unwind(AssertUnwindSafe(|| check(&Bench::new(subject))));
    checked.map_err(|why| match why.downcast::<String>() {
        Ok(text) => *text,
        Err(_) => "it failed".to_owned(),
    })
}

fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
        .unwrap_or("of an unknown version")
        .to_owned()
}

const SHELL: ShellTool = ShellTool {
    name: "Bash",
    input: shell,
};

pub(crate) fn claude() {
    let program = real_program("CCB_TEST_CLAUDE");
    let runtime = Box::new(ClaudeRuntime::new(vec![program.clone()]));
    check(
        &program,
        Program {
            name: "claude",
            runtime,
            broken: || Box::new(ClaudeRuntime::new(vec!["/nowhere/claude".into()])),
            launch: RealWorld::claude,
            tool: SHELL,
            adds: &[
                "CLAUDE_CODE_MAX_RETRIES",
                "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD",
                "ENABLE_TOOL_SEARCH",
            ],
            cannot: &[],
            differs: &[],
        },
    );
}

pub(crate) fn codex() {
    let program = real_program("CCB_TEST_CODEX");
    let runtime = Box::new(CodexRuntime::new(vec![program.clone()]));
    check(
        &program,
        Program {
            name: "codex",
            runtime,
            broken: || Box::new(CodexRuntime::new(vec!["/nowhere/codex".into()])),
            launch: RealWorld::codex,
            tool: ShellTool {
                name: "exec_command",
                input: |command| json!({ "cmd": command, "yield_time_ms": 60_000 }),
            },
            adds: &[],
            cannot: &[],
            differs: &[],
        },
    );
}

pub(crate) fn opencode() {
    let program = real_program("CCB_TEST_OPENCODE");
    let command = vec![program.clone(), "acp".into()];
    check(
        &program,
        Program {
            name: "opencode",
            runtime: Box::new(AcpRuntime::new(command)),
            broken: || Box::new(AcpRuntime::new(vec!["/nowhere/opencode".into()])),
            launch: RealWorld::opencode,
            tool: ShellTool {
                name: "bash",
                input: shell,
            },
            adds: &["OPENCODE_PERMISSION"],
            cannot: &[],
            differs: &[("usage_adds_up", "it tells what the last call used")],
        },
    );
}

pub(crate) fn gemini() {
    let program = real_program("CCB_TEST_GEMINI");
    let command = vec![program.clone(), "--acp".into()];
    check(
        &program,
        Program {
            name: "gemini",
            runtime: Box::new(AcpRuntime::new(command)),
            broken: || Box::new(AcpRuntime::new(vec!["/nowhere/gemini".into()])),
            launch: RealWorld::gemini,
            tool: ShellTool {
                name: "run_shell_command",
                input: shell,
            },
            adds: &[],
            cannot: &[
                "a_session_goes_on",
                "a_session_is_copied",
                "a_message_at_a_tool_boundary",
            ],
            differs: &[],
        },
    );
}
