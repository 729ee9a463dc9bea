//! Real programs as subjects: the model they talk to scripts their agents.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use serde_json::{Value, json};
use swarm::runtime::{Launch, Runtime};

use super::{Act, Session, Subject};
use crate::model::{ModelServer, Step, prompt};
use crate::script::Script;

/// The tool by which a program runs commands.
#[derive(Debug, Clone, Copy)]
pub struct ShellTool {
    pub name: &'static str,
    /// Its input for a command.
    pub input: fn(&str) -> Value,
}

/// A runtime whose programs talk to a scripted model.
pub struct OnModel<W> {
    /// The surroundings they need while they run: a directory, a model.
    pub world: W,
    /// The model in it.
    pub server: fn(&W) -> &ModelServer,
    pub runtime: Box<dyn Runtime>,
    /// Makes the same runtime with a missing program.
    pub broken: fn() -> Box<dyn Runtime>,
    pub tool: ShellTool,
    /// The fake agent, which the tool runs to wait for files.
    pub fake_agent: &'static str,
    pub environment: Vec<(OsString, OsString)>,
    /// Variables the runtime may set by itself.
    pub adds: &'static [&'static str],
    pub prepare: fn(&mut Launch),
}

impl<W> fmt::Debug for OnModel<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnModel")
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

/// The steps of a model so far. Only a call leads to another step, so text in between is part of
/// the next one.
#[derive(Debug, Default)]
struct Steps {
    done: Vec<Step>,
    next: Step,
}

impl Steps {
    fn say(&mut self, text: &str) {
        let said = self.next.text.take().map(|said| said + "\n");
        self.next.text = Some(said.unwrap_or_default() + text);
    }

    fn push(&mut self) {
        self.done.push(std::mem::take(&mut self.next));
    }
}

impl<W> OnModel<W> {
    fn call(&self, steps: &mut Steps, command: &str) {
        let input = (self.tool.input)(command);
        steps.next = std::mem::take(&mut steps.next).and_tool(self.tool.name, input);
        steps.push();
    }

    /// Adds the steps for `act`; false if these programs cannot do it.
    fn act(&self, steps: &mut Steps, act: Act<'_>) -> bool {
        let touch = |path: &Path| format!("touch '{}'", path.display());
        match act {
            Act::Say(text) => steps.say(text),
            Act::Touch(path) | Act::TouchIfAllowed(path) => self.call(steps, &touch(path)),
            Act::ToolUntil(path) => {
                let wait = Script::new().wait_file(path);
                let wait = wait.to_command(self.fake_agent);
                self.call(steps, wait.trim_start_matches("exec "));
            }
            Act::BusyUntil(path) => steps.next.hang_until = Some(path.to_owned()),
            Act::Usage { input, output } => {
                steps.next = std::mem::take(&mut steps.next).usage(input, output);
            }
            Act::Fail(why) => {
                steps.next.http = Some(400);
                let error = json!({ "type": "invalid_request_error", "message": why });
                steps.next.body = Some(json!({ "type": "error", "error": error }));
                steps.push();
            }
            Act::Quota => {
                steps.next.http = Some(429);
                steps.push();
            }
            Act::Quit
            | Act::PrintError(_)
            | Act::Garbage(_)
            | Act::LongLine(_)
            | Act::CloseOutputUntil(_)
            | Act::LeaveBehind { .. } => return false,
        }
        true
    }
}

impl<W: Sync> Subject for OnModel<W> {
    fn runtime(&self) -> &dyn Runtime {
        &*self.runtime
    }

    fn without_program(&self) -> Box<dyn Runtime> {
        (self.broken)()
    }

    fn prompt(&self, acts: &[Act<'_>], result: &str) -> Option<String> {
        let mut steps = Steps::default();
        for &act in acts {
            if !self.act(&mut steps, act) {
                return None;
            }
        }
        steps.say(result);
        steps.push();
        Some(prompt("Follow the script.", &steps.done))
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        self.environment.clone()
    }

    fn adds(&self, variable: &str) -> bool {
        self.adds.contains(&variable)
    }

    fn prepare(&self, launch: &mut Launch) {
        (self.prepare)(launch);
    }

    fn was_told(&self, _session: &Session<'_>, text: &str) -> bool {
        let requests = (self.server)(&self.world).requests();
        requests
            .iter()
            .any(|request| request.conversation.was_told(text))
    }
}
