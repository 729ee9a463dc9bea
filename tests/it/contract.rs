use std::ffi::OsString;

use harness::contract::{Act, Subject};
use harness::script::{Do, Grandchild, Script, To};
use serde_json::json;
use swarm::runtime::{AcpRuntime, LinesRuntime, Runtime, ShellRuntime};

use crate::{FAKE_ACP, FAKE_AGENT};

/// The steps of a fake agent for `act`; `None` if they take a protocol and there is none.
fn act(script: Script, act: Act<'_>, plain: bool) -> Option<Script> {
    if plain
        && matches!(
            act,
            Act::Usage { .. } | Act::TouchIfAllowed(_) | Act::Quota | Act::Quit
        )
    {
        return None;
    }
    let to = To::Stdout;
    Some(match act {
        Act::Say(text) => script.say(text),
        Act::Touch(path) => script.touch(path),
        Act::ToolUntil(path) => {
            script.tool_around("wait", "there", |script| script.wait_file(path))
        }
        Act::BusyUntil(path) => script.wait_file(path),
        Act::Usage { input, output } => script.usage(input, output, 0.5),
        Act::TouchIfAllowed(path) => script.then(Do::Ask {
            id: "question".into(),
            tool: "touch".into(),
            input: json!({ "file": path }),
            allowed: Script::new().touch(path).steps,
            denied: Script::new().say("a pity").steps,
        }),
        Act::Fail(why) => script.failed(why),
        Act::Quota => script.result("quota", ""),
        Act::Quit => script.exit(0),
        Act::PrintError(text) => script.print_error(&format!("{text}\n")),
        Act::Garbage(count) => script.then(Do::Garbage { count, to }).print("\n"),
        Act::LongLine(megabytes) => script.then(Do::LongLine { megabytes, to }),
        Act::CloseOutputUntil(path) => script
            .then(Do::Close { what: To::Stdout })
            .then(Do::Close { what: To::Stderr })
            .wait_file(path),
        Act::LeaveBehind { pids, noisy } => script.spawn(Grandchild {
            noisy,
            pids: Some(pids.to_owned()),
            role: "left behind".into(),
            ..Grandchild::default()
        }),
    })
}

fn script(acts: &[Act<'_>], plain: bool) -> Option<Script> {
    let empty = Some(Script::new());
    acts.iter()
        .fold(empty, |script, &next| act(script?, next, plain))
}

/// Commands.
struct Shell(ShellRuntime);

impl Subject for Shell {
    fn runtime(&self) -> &dyn Runtime {
        &self.0
    }

    fn without_program(&self) -> Box<dyn Runtime> {
        let command = ["/nonexistent/sh", "-c"].map(str::to_owned);
        Box::new(ShellRuntime::new(command.to_vec()))
    }

    fn prompt(&self, acts: &[Act<'_>], result: &str) -> Option<String> {
        Some(script(acts, true)?.done(result).to_command(FAKE_AGENT))
    }

    fn padded(&self, prompt: &str, bytes: usize) -> String {
        format!("# {}\n{prompt}", "x".repeat(bytes))
    }

    fn adds(&self, variable: &str) -> bool {
        // The shell itself sets them, for its commands.
        ["PWD", "OLDPWD", "SHLVL", "_"].contains(&variable)
    }

    fn obeys_stop(&self) -> bool {
        false
    }
}

/// The fake agent, which speaks in lines.
struct Lines(LinesRuntime);

impl Lines {
    fn new() -> Self {
        Self(LinesRuntime::new(vec![FAKE_AGENT.to_owned()]))
    }
}

impl Subject for Lines {
    fn runtime(&self) -> &dyn Runtime {
        &self.0
    }

    fn without_program(&self) -> Box<dyn Runtime> {
        Box::new(LinesRuntime::new(vec!["ccb-no-such-agent".to_owned()]))
    }

    fn prompt(&self, acts: &[Act<'_>], result: &str) -> Option<String> {
        let fails = acts
            .iter()
            .any(|act| matches!(act, Act::Fail(_) | Act::Quota));
        let script = script(acts, false)?;
        let script = if fails { script } else { script.done(result) };
        Some(script.serve().to_prompt())
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        // Not even a search path: the program's own is known.
        Vec::new()
    }
}

/// The fake agent as one of those that speak the Agent Client Protocol.
struct Acp {
    runtime: AcpRuntime,
    name: &'static str,
}

impl Acp {
    fn new(name: &'static str) -> Self {
        let command = vec![FAKE_ACP.to_owned(), name.to_owned()];
        let runtime = AcpRuntime::new(command);
        Self { runtime, name }
    }
}

impl Subject for Acp {
    fn runtime(&self) -> &dyn Runtime {
        &self.runtime
    }

    fn without_program(&self) -> Box<dyn Runtime> {
        let command = ["ccb-no-such-agent", self.name].map(str::to_owned);
        Box::new(AcpRuntime::new(command.to_vec()))
    }

    fn prompt(&self, acts: &[Act<'_>], result: &str) -> Option<String> {
        // It ends when its input does, and that does when it has no reader any more.
        if acts
            .iter()
            .any(|act| matches!(act, Act::CloseOutputUntil(_)))
        {
            return None;
        }
        let fails = acts
            .iter()
            .any(|act| matches!(act, Act::Fail(_) | Act::Quota));
        let script = script(acts, false)?;
        let script = if fails { script } else { script.done(result) };
        Some(script.serve().to_prompt())
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        Vec::new()
    }

    fn growth_kib(&self) -> u64 {
        // Answers are long lines in this protocol.
        96 * 1024
    }

    fn adds(&self, variable: &str) -> bool {
        variable == "OPENCODE_PERMISSION" && self.name == "opencode"
    }
}

mod shell {
    use super::*;

    harness::contract_tests!(Shell(ShellRuntime::default()), cannot: [
        "a_quota_is_a_quota",
        "a_session_is_copied",
        "a_message_at_a_tool_boundary",
        "a_message_between_turns",
        "an_interrupt_ends_a_tool",
        "an_interrupt_leaves_it_alive",
        "an_urgent_message_breaks_in",
        "every_turn_ends",
        "finish_lets_questions_be_answered",
        "many_messages_each_once",
        "no_result_is_no_turn",
        "stop_ends_it",
        "tools_are_seen",
        "usage_adds_up",
        "what_is_allowed_is_done",
        "what_is_denied_is_not_done",
    ]);
}

mod lines {
    use super::*;

    harness::contract_tests!(Lines::new(), cannot: ["a_session_is_copied"]);
}

/// An unknown agent.
mod acp {
    use super::*;

    harness::contract_tests!(Acp::new("plain"), cannot: [
        "a_message_at_a_tool_boundary",
        "a_session_is_copied",
        "it_closes_its_output_and_lives",
    ]);
}

/// A prompt becomes part of the turn that is under way.
mod acp_merges {
    use super::*;

    harness::contract_tests!(Acp::new("opencode"), cannot: ["it_closes_its_output_and_lives"]);
}

/// A prompt would interrupt the turn that is under way.
mod acp_cancels {
    use super::*;

    harness::contract_tests!(Acp::new("qwen"), cannot: [
        "a_message_at_a_tool_boundary",
        "a_session_is_copied",
        "it_closes_its_output_and_lives",
    ]);
}

/// A prompt takes the place of the one before at the next tool.
mod acp_injects {
    use super::*;

    harness::contract_tests!(Acp::new("claude-agent-acp"), cannot: ["it_closes_its_output_and_lives"]);
}

/// A prompt waits for its turn.
mod acp_queues {
    use super::*;

    harness::contract_tests!(Acp::new("codex-acp"), cannot: [
        "a_message_at_a_tool_boundary",
        "it_closes_its_output_and_lives",
    ]);
}
