use std::ffi::OsString;

use harness::contract::{Act, Subject};
use harness::script::{Do, Grandchild, Script, To};
use serde_json::json;
use swarm::runtime::{LinesRuntime, Runtime, ShellRuntime};

use crate::FAKE_AGENT;

/// What a fake agent does for `act`; none if it takes a protocol to do it and there is none.
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
        // The shell itself does, for what it runs.
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
