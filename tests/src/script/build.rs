//! Builds scripts step by step, so that a test reads like its script.

use std::path::Path;

use serde_json::Value;

use super::{Do, Grandchild, Ignored, Script, To};

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// One more step.
    pub fn then(mut self, step: Do) -> Self {
        self.steps.push(step);
        self
    }

    /// Process ids go to `dir`, which must exist.
    pub fn pids(mut self, dir: &Path) -> Self {
        self.pids = Some(dir.to_owned());
        self
    }

    pub fn session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    pub fn deaf(mut self) -> Self {
        self.deaf = true;
        self
    }

    pub fn stubborn(mut self) -> Self {
        self.stubborn = true;
        self
    }

    pub fn print(self, text: &str) -> Self {
        let text = text.to_owned();
        self.then(Do::Print {
            text,
            to: To::Stdout,
        })
    }

    pub fn print_error(self, text: &str) -> Self {
        let text = text.to_owned();
        self.then(Do::Print {
            text,
            to: To::Stderr,
        })
    }

    pub fn say(self, text: &str) -> Self {
        let text = text.to_owned();
        self.then(Do::Say { text })
    }

    pub fn write(self, path: impl AsRef<Path>, text: &str) -> Self {
        let (path, text) = (path.as_ref().to_owned(), text.to_owned());
        self.then(Do::Write { path, text })
    }

    pub fn append(self, path: impl AsRef<Path>, text: &str) -> Self {
        let (path, text) = (path.as_ref().to_owned(), text.to_owned());
        self.then(Do::Append { path, text })
    }

    pub fn commit(self, message: &str) -> Self {
        let message = message.to_owned();
        self.then(Do::Commit { message })
    }

    pub fn touch(self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        self.then(Do::Touch { path })
    }

    pub fn wait_file(self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        self.then(Do::WaitFile { path })
    }

    /// Uses a tool that answers at once.
    pub fn tool(self, name: &str, output: &str) -> Self {
        self.tool_around(name, output, |script| script)
    }

    /// Uses a tool that takes as long as `steps`.
    pub fn tool_around(self, name: &str, output: &str, steps: impl FnOnce(Self) -> Self) -> Self {
        let id = format!("{name}-{}", self.steps.len());
        let begin = Do::ToolBegin {
            id: id.clone(),
            name: name.to_owned(),
            input: Value::Null,
        };
        let end = Do::ToolEnd {
            id,
            output: output.to_owned(),
            error: false,
        };
        steps(self.then(begin)).then(end)
    }

    /// Uses a tool of ccb's, which must work.
    pub fn call(self, tool: &str, input: Value) -> Self {
        self.then(Do::Call {
            tool: tool.to_owned(),
            input,
            must: true,
        })
    }

    /// Uses a tool of ccb's, with any result.
    pub fn try_call(self, tool: &str, input: Value) -> Self {
        self.then(Do::Call {
            tool: tool.to_owned(),
            input,
            must: false,
        })
    }

    /// Waits for a message and says it.
    pub fn wait_message(self) -> Self {
        self.then(Do::WaitMessage { echo: true })
    }

    pub fn usage(self, input: u64, output: u64, cost: f64) -> Self {
        self.then(Do::Usage {
            input,
            output,
            cost,
        })
    }

    /// Asks for permission to use `tool`.
    pub fn ask(
        self,
        tool: &str,
        allowed: impl FnOnce(Self) -> Self,
        denied: impl FnOnce(Self) -> Self,
    ) -> Self {
        let id = format!("ask-{}", self.steps.len());
        self.then(Do::Ask {
            id,
            tool: tool.to_owned(),
            input: Value::Null,
            allowed: allowed(Self::new()).steps,
            denied: denied(Self::new()).steps,
        })
    }

    /// Ignores SIGTERM, SIGINT and SIGHUP.
    pub fn ignore_signals(self) -> Self {
        let signals = vec![Ignored::Term, Ignored::Int, Ignored::Hup];
        self.then(Do::Ignore { signals })
    }

    pub fn spawn(self, child: Grandchild) -> Self {
        self.then(Do::Spawn(child))
    }

    /// Starts a process in a session of its own.
    pub fn spawn_in_new_session(self) -> Self {
        self.spawn(Grandchild {
            new_session: true,
            role: "new session".into(),
            ..Grandchild::default()
        })
    }

    /// Starts a daemon: another session, another parent, no streams.
    pub fn daemon(self) -> Self {
        self.spawn(Grandchild {
            new_session: true,
            detached: true,
            orphaned: true,
            role: "daemon".into(),
            ..Grandchild::default()
        })
    }

    /// The same without a marker in its environment.
    pub fn hidden_daemon(self) -> Self {
        self.spawn(Grandchild {
            new_session: true,
            detached: true,
            orphaned: true,
            scrubbed: true,
            role: "hidden daemon".into(),
            ..Grandchild::default()
        })
    }

    /// Starts processes that start processes.
    pub fn fork_bomb(self, width: u32, depth: u32) -> Self {
        self.spawn(Grandchild {
            width,
            depth,
            role: "bomb".into(),
            ..Grandchild::default()
        })
    }

    pub fn run(self, command: &[&str]) -> Self {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        self.then(Do::Run { command })
    }

    pub fn describe(self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        self.then(Do::Describe { path })
    }

    /// The turn is over and went well.
    pub fn done(self, text: &str) -> Self {
        self.result("completed", text)
    }

    /// The turn is over, and went wrong.
    pub fn failed(self, error: &str) -> Self {
        self.then(Do::Result {
            status: "failed".into(),
            text: String::new(),
            error: Some(error.to_owned()),
        })
    }

    pub fn result(self, status: &str, text: &str) -> Self {
        self.then(Do::Result {
            status: status.to_owned(),
            text: text.to_owned(),
            error: None,
        })
    }

    pub fn serve(self) -> Self {
        self.then(Do::Serve)
    }

    pub fn hang(self) -> Self {
        self.then(Do::Hang)
    }

    pub fn exit(self, code: i32) -> Self {
        self.then(Do::Exit { code })
    }

    pub fn die(self, signal: i32) -> Self {
        self.then(Do::Die { signal })
    }
}
