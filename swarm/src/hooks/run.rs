//! Running hooks.

use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::IN_HOOK;
use super::answer::{Answer, HookEnd, Outcome};
use super::config::Hook;
use super::event::{HookEvent, HookInput};
use crate::process::{Child, Ending, Processes, signal_group};

/// Maximum bytes of its output that are kept; the rest is read and dropped.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Maximum wait for a hook's output after its end; processes it started may hold it open.
const AFTER_END: Duration = Duration::from_millis(250);
/// The longest first line that can say `{"async":true}`.
const MAX_FIRST_LINE: usize = 4096;

/// The answer of a hook that no caller waits for.
#[derive(Debug)]
pub struct Late {
    /// The hook.
    pub hook: Hook,
    /// Its answer.
    pub answer: Answer,
    /// True if the agent it is about should be woken with [`Answer::block`].
    pub wakes: bool,
}

/// Runs hooks, inside a tokio runtime.
#[derive(Debug, Clone)]
pub struct Runner {
    processes: Processes,
    environment: Vec<(OsString, OsString)>,
    late: mpsc::UnboundedSender<Late>,
    going: Arc<AtomicUsize>,
}

/// Counts a hook as long as it is followed.
struct Going(Arc<AtomicUsize>);

impl Going {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Runner {
    /// Hooks get `environment`; answers that no caller waits for go to `late`.
    pub fn new(
        processes: Processes,
        environment: Vec<(OsString, OsString)>,
        late: mpsc::UnboundedSender<Late>,
    ) -> Self {
        Self {
            processes,
            environment,
            late,
            going: Arc::default(),
        }
    }

    /// Keeps the number of hooks that are under way in `count`.
    #[must_use]
    pub fn counting(mut self, count: &Arc<AtomicUsize>) -> Self {
        self.going = Arc::clone(count);
        self
    }

    /// Runs `hooks` at the same time and waits for their answers. Hooks that are meant to run in
    /// the background, or say so in their first line, run on by themselves.
    pub async fn run(&self, event: HookEvent, hooks: &[&Hook], input: &HookInput) -> Outcome {
        let line = input.to_line(event);
        let started: Vec<(&Hook, oneshot::Receiver<Answer>)> = hooks
            .iter()
            .map(|hook| (*hook, self.start(event, hook, input, line.clone())))
            .collect();
        let mut outcome = Outcome::default();
        for (hook, answer) in started {
            // A hook that went into the background has dropped its sender and gives no answer here.
            if let Ok(answer) = answer.await {
                outcome.add(&hook.command, answer);
            }
        }
        outcome
    }

    fn start(
        &self,
        event: HookEvent,
        hook: &Hook,
        input: &HookInput,
        line: Vec<u8>,
    ) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let mut command = Command::new(&hook.shell);
        command
            .arg("-c")
            .arg(&hook.command)
            .current_dir(&input.cwd)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("CLAUDE_PROJECT_DIR", &input.project)
            .env(IN_HOOK, "1");
        match self.processes.spawn(command, true) {
            Ok(child) => {
                let watch = Watch {
                    hook: hook.clone(),
                    event,
                    late: self.late.clone(),
                    _going: Going::new(&self.going),
                };
                tokio::spawn(watch.follow(child, line, sender));
            }
            Err(error) => {
                let end = HookEnd::NotStarted(error.to_string());
                sender.send(Answer::read(event, &end, b"", b"")).ok();
            }
        }
        receiver
    }
}

/// Follows one hook to its end.
struct Watch {
    hook: Hook,
    event: HookEvent,
    late: mpsc::UnboundedSender<Late>,
    _going: Going,
}

impl Watch {
    async fn follow(self, mut child: Child, line: Vec<u8>, sender: oneshot::Sender<Answer>) {
        // A waiting caller gets the answer; a sender that was taken means that no caller waits.
        let mut waiting = (!self.hook.background).then_some(sender);
        let pid = child.pid;
        let stdin = child.stdin.take();
        // It may end without reading, and need not read before it prints.
        let feed = tokio::spawn(async move {
            if let Some(mut stdin) = stdin {
                stdin.write_all(&line).await.ok();
            }
        });
        let (first_line, mut first) = oneshot::channel();
        let stdout = Reading::start(child.stdout.take(), Some(first_line));
        let stderr = Reading::start(child.stderr.take(), None);
        let deadline = tokio::time::sleep(self.hook.timeout);
        tokio::pin!(deadline);
        let mut listening = true;
        let end = loop {
            tokio::select! {
                ended = &mut child.ended => {
                    break HookEnd::Ended(ended.unwrap_or(Ending::Unknown));
                }
                () = &mut deadline => {
                    signal_group(pid, Signal::KILL);
                    timeout(AFTER_END, &mut child.ended).await.ok();
                    break HookEnd::TimedOut(self.hook.timeout);
                }
                line = &mut first, if listening => {
                    listening = false;
                    if line.is_ok_and(|line| says_async(&line)) {
                        waiting = None;
                    }
                }
            }
        };
        feed.abort();
        let stdout = stdout.collect().await;
        let stderr = stderr.collect().await;
        // A short one may have said so and ended at once.
        let first = stdout
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        if says_async(first) {
            waiting = None;
        }
        let rest = if says_async(first) {
            stdout.get(first.len()..).unwrap_or_default()
        } else {
            &stdout
        };
        let answer = Answer::read(self.event, &end, rest, &stderr);
        match waiting {
            Some(sender) => {
                sender.send(answer).ok();
            }
            None => {
                let wakes = self.hook.rewake && end == HookEnd::Ended(Ending::Exited(2));
                let hook = self.hook.clone();
                self.late
                    .send(Late {
                        hook,
                        answer,
                        wakes,
                    })
                    .ok();
            }
        }
    }
}

fn says_async(line: &[u8]) -> bool {
    let said = serde_json::from_slice::<Value>(line.trim_ascii());
    said.is_ok_and(|said| said.get("async") == Some(&Value::Bool(true)))
}

/// A stream that is being read. The bytes that arrived are there even if its end never comes,
/// because a process that the hook started keeps it open.
struct Reading {
    kept: Arc<Mutex<Vec<u8>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Reading {
    /// Reads `pipe`, and tells its first line as soon as it is there.
    fn start(pipe: Option<pipe::Receiver>, first: Option<oneshot::Sender<Vec<u8>>>) -> Self {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let task = tokio::spawn(read(pipe, first, Arc::clone(&kept)));
        Self { kept, task }
    }

    /// The bytes that arrived before the hook ended.
    async fn collect(mut self) -> Vec<u8> {
        if timeout(AFTER_END, &mut self.task).await.is_err() {
            self.task.abort();
        }
        std::mem::take(&mut *lock(&self.kept))
    }
}

fn lock(kept: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read(
    pipe: Option<pipe::Receiver>,
    mut first: Option<oneshot::Sender<Vec<u8>>>,
    kept: Arc<Mutex<Vec<u8>>>,
) {
    let Some(mut pipe) = pipe else {
        return;
    };
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        let mut kept = lock(&kept);
        let room = MAX_OUTPUT.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..count.min(room)]);
        let end = memchr::memchr(b'\n', &kept);
        if (end.is_some() || kept.len() > MAX_FIRST_LINE)
            && let Some(first) = first.take()
        {
            first.send(kept[..end.unwrap_or(0)].to_vec()).ok();
        }
    }
}
