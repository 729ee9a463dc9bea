//! The steps of a script.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::acp::WhileBusy;
use super::children::{self, Pids};
use super::input::{Input, Message};
use super::output::Output;
use super::{Flow, LONGEST, Player};
use crate::repo::git_command;
use crate::script::{Do, Ignored, Script, To};

/// Poll interval for a file.
const LOOK: Duration = Duration::from_millis(10);
const MEGABYTE: usize = 1_000_000;

impl Player {
    /// Plays all steps. An interrupted turn ends without its remaining steps; after the last one
    /// the agent waits for messages.
    pub(super) fn play_all(&mut self, steps: Vec<Do>) -> io::Result<i32> {
        let mut steps = steps.into_iter();
        while let Some(step) = steps.next() {
            match self.play_one(step)? {
                Flow::Next => {}
                Flow::Exit(code) => return Ok(code),
                Flow::Interrupted => {
                    self.end_turn("interrupted", "", None)?;
                    let turn_end = steps.find(|step| matches!(step, Do::Result { .. } | Do::Serve));
                    if !matches!(turn_end, Some(Do::Result { .. }))
                        && let Flow::Exit(code) = self.serve()?
                    {
                        return Ok(code);
                    }
                }
            }
        }
        Ok(0)
    }

    /// Uses one of ccb's own tools, as a model would.
    fn call(&mut self, tool: &str, input: Value, must: bool) -> io::Result<()> {
        if self.tools.is_none() {
            let Some(server) = self.servers.iter().find(|server| server.name == "ccb") else {
                return Err(io::Error::other("it was given no tools of ours"));
            };
            let mut command = Command::new(&server.command);
            command.args(&server.args).envs(&server.env);
            self.tools = Some(crate::mcp::McpClient::connect(command));
        }
        let Some(tools) = &mut self.tools else {
            return Ok(());
        };
        let id = format!("call-{tool}");
        self.out.tool(&id, tool, &input)?;
        let result = tools.call(tool, input);
        let failed = result["isError"] == json!(true);
        self.out
            .tool_result(&id, &result["content"].to_string(), failed)?;
        if failed && must {
            return Err(io::Error::other(format!("{tool}: {}", result["content"])));
        }
        Ok(())
    }

    fn play_list(&mut self, steps: &[Do]) -> io::Result<Flow> {
        for step in steps {
            match self.play_one(step.clone())? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn play_one(&mut self, step: Do) -> io::Result<Flow> {
        match self.look()? {
            Flow::Next => {}
            other => return Ok(other),
        }
        match step {
            Do::Print { text, to } => self.out.raw(to, text.as_bytes())?,
            Do::PrintBytes { count, to } => self.bytes(to, count, |_| b'x')?,
            Do::Garbage { count, to } => {
                // Every byte value, in an order that is not UTF-8.
                self.bytes(to, count, |at| (at.wrapping_mul(167) ^ (at >> 8)) as u8)?;
            }
            Do::LongLine { megabytes, to } => {
                self.bytes(to, megabytes * MEGABYTE as u64, |_| b'x')?;
                self.out.raw(to, b"\n")?;
            }
            Do::Say { text } => self.out.say(&text)?,
            Do::Write { path, text } => crate::repo::write(&path, &text),
            Do::Append { path, text } => append(&path, &text)?,
            Do::FillDisk { path, megabytes } => {
                if let Err(error) = fill(&path, megabytes) {
                    eprintln!("cannot write {}: {error}", path.display());
                }
            }
            Do::Commit { message } => self.commit(&message)?,
            Do::Touch { path } => crate::repo::write(&path, ""),
            Do::WaitFile { path } => return self.wait(LOOK, |_| path.exists()),
            Do::Pause { ms } => {
                let end = Instant::now() + Duration::from_millis(ms);
                return self.wait(LOOK, |_| Instant::now() >= end);
            }
            Do::ToolBegin { id, name, input } => self.out.tool(&id, &name, &input)?,
            Do::ToolEnd { id, output, error } => {
                self.out.tool_result(&id, &output, error)?;
                return self.boundary();
            }
            Do::Call { tool, input, must } => {
                self.call(&tool, input, must)?;
                return self.boundary();
            }
            Do::WaitMessage { echo } => return self.wait_message(echo),
            Do::WaitMode { mode } => {
                return self.wait(LONGEST, |player| player.mode.as_ref() == Some(&mode));
            }
            Do::AcceptMessages => return self.accept_all(),
            Do::Usage {
                input,
                output,
                cost,
            } => self.out.usage(input, output, cost)?,
            Do::Stalled { why } => self.out.stalled(&why)?,
            Do::Ask {
                id,
                tool,
                input,
                allowed,
                denied,
            } => {
                self.out.ask(&id, &tool, &input)?;
                let flow = self.wait(LONGEST, |player| player.answers.contains_key(&id))?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
                let allow = self.answers.remove(&id) == Some(true);
                return self.play_list(if allow { &allowed } else { &denied });
            }
            Do::Ignore { signals } => {
                children::ignore(&signals.into_iter().map(number).collect::<Vec<_>>())?
            }
            Do::Spawn(mut child) => {
                child.pids = child.pids.or_else(|| self.script.pids.clone());
                children::spawn(&child)?;
            }
            Do::Run { command } => return self.run(&command),
            Do::Describe { path } => self.describe(&path)?,
            Do::Close { what } => close(what)?,
            Do::Repeat { times, steps } => return self.repeat(times, &steps),
            Do::Result {
                status,
                text,
                error,
            } => {
                self.end_turn(&status, &text, error.as_deref())?;
                if matches!(self.out, Output::Plain) && status != "completed" {
                    eprintln!("{}", error.unwrap_or(status));
                    return Ok(Flow::Exit(1));
                }
            }
            Do::Serve => return self.serve(),
            Do::Hang => return self.wait(LONGEST, |_| false),
            Do::Exit { code } => return Ok(Flow::Exit(code)),
            Do::Die { signal } => return die(signal),
        }
        Ok(Flow::Next)
    }

    fn repeat(&mut self, times: Option<u32>, steps: &[Do]) -> io::Result<Flow> {
        let mut done = 0;
        while times.is_none_or(|times| done < times) {
            match self.play_list(steps)? {
                Flow::Next => done += 1,
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn end_turn(&mut self, status: &str, text: &str, error: Option<&str>) -> io::Result<()> {
        if status != "interrupted" && self.while_busy() == Some(WhileBusy::Merge) {
            // Late input is still part of the turn.
            self.accept_all()?;
        }
        self.in_turn = false;
        self.out.result(status, text, error)
    }

    fn while_busy(&self) -> Option<WhileBusy> {
        self.out.acp().map(|acp| acp.persona().while_busy)
    }

    /// True if the end of its input is its own end, also in the middle of a turn.
    fn is_cut_off(&self) -> bool {
        let acp = self.out.acp();
        self.input.ended && acp.is_some_and(|acp| !acp.persona().lingers)
    }

    /// Handles an input.
    fn take(&mut self, input: Input) -> Flow {
        match input {
            Input::Message(message) => {
                let cancels = self.while_busy() == Some(WhileBusy::Cancel);
                let breaks_off = (message.now || cancels) && self.in_turn;
                self.pending.push_back(message);
                if breaks_off {
                    Flow::Interrupted
                } else {
                    Flow::Next
                }
            }
            Input::Interrupt if self.in_turn => Flow::Interrupted,
            Input::Interrupt => Flow::Next,
            Input::Permission { id, allow } => {
                self.answers.insert(id, allow);
                Flow::Next
            }
            Input::Mode { mode } => {
                let error = self.script.stubborn.then_some("it does not want to");
                // A line that cannot be written cannot be reported either.
                self.out.mode(&mode, error).ok();
                self.mode = Some(mode);
                Flow::Next
            }
            Input::Stop if self.script.stubborn => Flow::Next,
            Input::Stop => Flow::Exit(0),
        }
    }

    /// Handles the input that is there already.
    fn look(&mut self) -> io::Result<Flow> {
        while let Some(input) = self.input.next(Duration::ZERO)? {
            match self.take(input) {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(match self.is_cut_off() {
            true => Flow::Exit(0),
            false => Flow::Next,
        })
    }

    /// Waits until `over`, which is checked at each input and every `pace`.
    fn wait(&mut self, pace: Duration, mut over: impl FnMut(&Self) -> bool) -> io::Result<Flow> {
        let end = Instant::now() + LONGEST;
        while !over(self) {
            if Instant::now() >= end {
                return Err(io::Error::other("waited too long"));
            }
            if self.is_cut_off() {
                return Ok(Flow::Exit(0));
            }
            if self.input.ended {
                thread::sleep(pace);
            }
            if let Some(input) = self.input.next(pace)? {
                match self.take(input) {
                    Flow::Next => {}
                    other => return Ok(other),
                }
            }
        }
        // Input from before the end counts.
        self.look()
    }

    fn accept(&mut self, message: &Message, echo: bool) -> io::Result<()> {
        self.in_turn = true;
        self.out.accepted(&message.id)?;
        if echo {
            self.out.say(&format!("heard: {}", message.text))?;
        }
        Ok(())
    }

    fn accept_all(&mut self) -> io::Result<Flow> {
        let flow = self.look()?;
        while let Some(message) = self.pending.pop_front() {
            self.accept(&message, true)?;
        }
        Ok(flow)
    }

    /// The boundary after a tool's result.
    fn boundary(&mut self) -> io::Result<Flow> {
        let queues = matches!(
            self.while_busy(),
            Some(WhileBusy::Queue | WhileBusy::Cancel)
        );
        if self.script.deaf || queues {
            return Ok(Flow::Next);
        }
        self.accept_all()
    }

    fn wait_message(&mut self, echo: bool) -> io::Result<Flow> {
        let flow = self.wait(LONGEST, |player| {
            player.input.ended || !player.pending.is_empty()
        })?;
        if flow != Flow::Next {
            return Ok(flow);
        }
        if let Some(message) = self.pending.pop_front() {
            self.accept(&message, echo)?;
        }
        Ok(Flow::Next)
    }

    fn serve(&mut self) -> io::Result<Flow> {
        loop {
            let flow = self.wait(LONGEST, |player| {
                player.input.ended || !player.pending.is_empty()
            })?;
            if let Flow::Exit(_) = flow {
                return Ok(flow);
            }
            let Some(message) = self.pending.pop_front() else {
                if self.input.ended && self.out.acp().is_some_and(|acp| acp.persona().lingers) {
                    return self.wait(LOOK, |_| false);
                }
                if self.input.ended {
                    return Ok(Flow::Exit(0));
                }
                continue;
            };
            self.accept(&message, true)?;
            let flow = match Script::find(&message.text) {
                Some(script) => {
                    let mut script = script.map_err(io::Error::other)?;
                    // It does that already.
                    script.steps.retain(|step| *step != Do::Serve);
                    self.play_list(&script.steps)?
                }
                None => {
                    self.end_turn("completed", &format!("heard: {}", message.text), None)?;
                    Flow::Next
                }
            };
            match flow {
                Flow::Next => {}
                Flow::Interrupted => self.end_turn("interrupted", "", None)?,
                Flow::Exit(_) => return Ok(flow),
            }
        }
    }

    /// Prints `count` bytes.
    fn bytes(&self, to: To, count: u64, byte: impl Fn(u64) -> u8) -> io::Result<()> {
        let pattern: Vec<u8> = (0..65536).map(byte).collect();
        let mut left = usize::try_from(count).unwrap_or(usize::MAX);
        while left > 0 {
            let now = left.min(pattern.len());
            self.out.raw(to, &pattern[..now])?;
            left -= now;
        }
        Ok(())
    }

    fn commit(&self, message: &str) -> io::Result<()> {
        let dir = std::env::current_dir()?;
        for args in [&["add", "-A"][..], &["commit", "-q", "-m", message]] {
            let output = git_command(&dir, args).output()?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(io::Error::other(said));
            }
        }
        Ok(())
    }

    fn run(&mut self, command: &[String]) -> io::Result<Flow> {
        let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let plain = matches!(self.out, Output::Plain);
        let stream = || {
            if plain {
                Stdio::inherit()
            } else {
                Stdio::piped()
            }
        };
        let id = format!("run-{program}");
        let words = serde_json::to_value(command)?;
        self.out.tool(&id, "run", &json!({ "command": words }))?;
        let mut running = Command::new(program);
        running
            .args(args)
            .stdin(Stdio::null())
            .stdout(stream())
            .stderr(stream());
        let running = running.spawn()?;
        if let Some(dir) = &self.script.pids {
            Pids::new(dir).record(running.id(), "run")?;
        }
        let output = running.wait_with_output()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        self.out.tool_result(&id, &said, !output.status.success())?;
        self.boundary()
    }

    fn describe(&self, path: &Path) -> io::Result<()> {
        let text = |text: &std::ffi::OsStr| Value::from(text.to_string_lossy().into_owned());
        let environment: serde_json::Map<String, Value> = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), text(&value)))
            .collect();
        let arguments: Vec<Value> = std::env::args_os().map(|word| text(&word)).collect();
        let description = json!({
            "pid": std::process::id(),
            "arguments": arguments,
            "environment": environment,
            "cwd": text(std::env::current_dir()?.as_os_str()),
            "prompt": self.prompt,
            "session": self.session,
        });
        // Complete under its name, or not there at all: a process waits for it.
        let aside = path.with_extension("part");
        std::fs::write(&aside, description.to_string())?;
        std::fs::rename(aside, path)
    }
}

fn number(signal: Ignored) -> i32 {
    match signal {
        Ignored::Term => SIGTERM,
        Ignored::Int => SIGINT,
        Ignored::Hup => SIGHUP,
    }
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.append(true).create(true).open(path)?;
    file.write_all(format!("{text}\n").as_bytes())
}

fn fill(path: &Path, megabytes: u64) -> io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    let block = vec![b'x'; MEGABYTE];
    for _ in 0..megabytes {
        file.write_all(&block)?;
    }
    Ok(())
}

/// Closes a stream: it becomes one that leads nowhere.
fn close(what: To) -> io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    match what {
        To::Stdout => rustix::stdio::dup2_stdout(&nowhere)?,
        To::Stderr => rustix::stdio::dup2_stderr(&nowhere)?,
    }
    Ok(())
}

fn die(signal: i32) -> io::Result<Flow> {
    let signal =
        rustix::process::Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
    rustix::process::kill_process(rustix::process::getpid(), signal)?;
    // This may take a moment.
    thread::sleep(LONGEST);
    Ok(Flow::Exit(99))
}
