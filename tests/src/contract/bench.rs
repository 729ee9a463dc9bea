//! Where a check runs an agent: a place, a tokio runtime, and everything killed at the end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use swarm::process::{Ending, Processes};
use swarm::runtime::{
    Agent, Event, Launch, LaunchError, Message, Order, Runtime, Start, Stream, TurnEnd, Usage,
};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Subject;
use crate::fake::Pids;

/// Nothing takes this long unless it hangs.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What a file is called that an agent must ask for. All other questions are answered with yes.
pub const ASKED: &str = "asked-for";

/// How much of an agent's output is kept.
const MOST_KEPT: usize = 4 * 1024 * 1024;

/// Where one check happens.
pub struct Bench<'a> {
    subject: &'a dyn Subject,
    dir: TempDir,
    processes: Processes,
    handle: Handle,
    over: Option<oneshot::Sender<()>>,
    driver: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl<'a> Bench<'a> {
    pub fn new(subject: &'a dyn Subject) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let handle = runtime.handle().clone();
        let processes = {
            let _within = handle.enter();
            Processes::own().expect("signals")
        };
        // What runs in the background goes on while the check waits for something else.
        let (over, until) = oneshot::channel::<()>();
        let driver = thread::spawn(move || {
            runtime.block_on(until).ok();
        });
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["cwd", "scratch", "pids"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        Self {
            subject,
            dir,
            processes,
            handle,
            over: Some(over),
            driver: Some(driver),
        }
    }

    pub fn subject(&self) -> &'a dyn Subject {
        self.subject
    }

    pub fn runtime(&self) -> &'a dyn Runtime {
        self.subject.runtime()
    }

    /// A file in the directory in which agents work.
    pub fn path(&self, name: &str) -> PathBuf {
        self.cwd().join(name)
    }

    /// Where agents work.
    pub fn cwd(&self) -> PathBuf {
        self.beside("cwd")
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("a path").join(name)
    }

    /// Where the ids of processes go that are left behind.
    pub fn pid_dir(&self) -> PathBuf {
        self.beside("pids")
    }

    /// Those processes.
    pub fn pids(&self) -> Pids {
        Pids::new(&self.pid_dir())
    }

    /// The programs that run.
    pub fn running(&self) -> Vec<Pid> {
        self.processes.running()
    }

    /// What an agent is started with.
    pub fn launch_of(&self, prompt: &str) -> Launch {
        let mut launch = Launch {
            prompt: prompt.to_owned(),
            cwd: self.cwd(),
            env: self.environment(),
            scratch: self.beside("scratch"),
            ..Launch::default()
        };
        self.subject.prepare(&mut launch);
        launch
    }

    /// The whole environment of an agent.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.subject.environment();
        all.push(("CCB_CONTRACT".into(), "a b=c\n'\"$".into()));
        all
    }

    pub fn launch(&self, prompt: &str) -> Session<'_> {
        self.start(self.launch_of(prompt)).expect("it starts")
    }

    pub fn resume(&self, session: &str, prompt: &str) -> Session<'_> {
        let mut launch = self.launch_of(prompt);
        let session = session.to_owned();
        launch.start = Start::Resume { session };
        self.start(launch).expect("it goes on")
    }

    pub fn start(&self, launch: Launch) -> Result<Session<'_>, LaunchError> {
        self.start_with(self.runtime(), launch)
    }

    pub fn start_with(
        &self,
        runtime: &dyn Runtime,
        launch: Launch,
    ) -> Result<Session<'_>, LaunchError> {
        let _within = self.handle.enter();
        let agent = runtime.launch(launch, &self.processes)?;
        Ok(Session {
            bench: self,
            agent,
            log: Vec::new(),
            kept: 0,
        })
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        for pid in self.processes.running() {
            rustix::process::kill_process_group(pid, Signal::KILL).ok();
        }
        self.pids().kill_rest();
        drop(self.over.take());
        if let Some(driver) = self.driver.take() {
            driver.join().ok();
        }
    }
}

/// A running agent and all that has happened in it.
#[derive(Debug)]
pub struct Session<'a> {
    bench: &'a Bench<'a>,
    agent: Agent,
    /// But for output over a limit.
    pub log: Vec<Event>,
    kept: usize,
}

impl Session<'_> {
    /// The next event; none when there are no more.
    pub fn event(&mut self) -> Option<Event> {
        self.next_before(Instant::now() + LIMIT)
    }

    fn next_before(&mut self, deadline: Instant) -> Option<Event> {
        loop {
            let event = self.receive(deadline);
            match &event {
                // A question that the check is not about.
                Some(Event::Permission { id, input, .. }) if !input.to_string().contains(ASKED) => {
                    let id = id.clone();
                    let (allow, reason) = (true, None);
                    self.order(Order::Answer { id, allow, reason });
                }
                _ => return event,
            }
        }
    }

    fn receive(&mut self, deadline: Instant) -> Option<Event> {
        let left = deadline.saturating_duration_since(Instant::now());
        let next = self.agent.events.recv();
        let waited = async { tokio::time::timeout(left, next).await };
        let waited = self.bench.handle.block_on(waited);
        let Ok(event) = waited else {
            panic!("waited {LIMIT:?} for an event after {}", self.summary());
        };
        match &event {
            Some(Event::Output { bytes, .. }) if self.kept + bytes.len() > MOST_KEPT => {}
            Some(event) => {
                if let Event::Output { bytes, .. } = event {
                    self.kept += bytes.len();
                }
                self.log.push(event.clone());
            }
            None => {}
        }
        event
    }

    /// Waits for an event that is wanted.
    pub fn until(&mut self, what: &str, mut wanted: impl FnMut(&Event) -> bool) -> Event {
        let deadline = Instant::now() + LIMIT;
        while let Some(event) = self.next_before(deadline) {
            if wanted(&event) {
                return event;
            }
        }
        panic!("it ended before {what}: {}", self.summary());
    }

    /// Waits for the end of a turn.
    pub fn turn(&mut self) -> TurnEnd {
        match self.until("the end of a turn", |event| {
            matches!(event, Event::TurnEnded(_))
        }) {
            Event::TurnEnded(turn) => turn,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a tool begins.
    pub fn tool(&mut self) {
        self.until("a tool", |event| matches!(event, Event::ToolUse { .. }));
    }

    /// Waits until a message is taken in.
    pub fn accepted(&mut self, id: Uuid) {
        self.until("the message is taken in", |event| {
            *event == Event::Accepted { message: id }
        });
    }

    /// Waits for the end of the program, and checks what must be so of every life: the first
    /// event but for output is `Started`, the last one `Ended`, once, and nothing follows.
    pub fn end(&mut self) -> Ending {
        let deadline = Instant::now() + LIMIT;
        while self.next_before(deadline).is_some() {}
        let mut ends = self
            .log
            .iter()
            .filter(|event| matches!(event, Event::Ended(_)));
        let (Some(Event::Ended(ending)), None) = (ends.next(), ends.next()) else {
            panic!("not exactly one end: {}", self.summary());
        };
        assert!(
            matches!(self.log.last(), Some(Event::Ended(_))),
            "{}",
            self.summary()
        );
        let first = self
            .log
            .iter()
            .find(|event| !matches!(event, Event::Output { .. }));
        let in_order = matches!(first, Some(Event::Started { .. } | Event::Ended(_)));
        assert!(in_order, "{}", self.summary());
        *ending
    }

    /// Tells it something.
    pub fn order(&self, order: Order) {
        let send = self.agent.orders.send(order);
        let sent = async { tokio::time::timeout(LIMIT, send).await };
        let sent = self.bench.handle.block_on(sent);
        // One that comes too late is dropped.
        assert!(sent.is_ok(), "an order was not taken: {}", self.summary());
    }

    /// Sends a message; returns its id.
    pub fn send(&self, text: &str) -> Uuid {
        self.send_as(text, false)
    }

    /// Sends one that does not wait.
    pub fn send_now(&self, text: &str) -> Uuid {
        self.send_as(text, true)
    }

    fn send_as(&self, text: &str, now: bool) -> Uuid {
        let id = Uuid::new_v4();
        let text = text.to_owned();
        self.order(Order::Send(Message { id, text, now }));
        id
    }

    /// Nobody reads its events any more.
    pub fn stop_listening(&mut self) {
        self.agent.events.close();
        while self.agent.events.try_recv().is_ok() {}
    }

    /// How often a message was taken in.
    pub fn times_accepted(&self, id: Uuid) -> usize {
        let accepted = Event::Accepted { message: id };
        self.log.iter().filter(|event| **event == accepted).count()
    }

    /// How many turns have ended.
    pub fn turns(&self) -> usize {
        let ends = self
            .log
            .iter()
            .filter(|event| matches!(event, Event::TurnEnded(_)));
        ends.count()
    }

    /// Whether the model said this.
    pub fn said(&self, text: &str) -> bool {
        self.log
            .iter()
            .any(|event| matches!(event, Event::Text(said) if said.contains(text)))
    }

    /// Everything it printed to a stream that is not part of its protocol.
    pub fn printed(&self, on: Stream) -> Vec<u8> {
        let printed = self.log.iter().filter_map(|event| match event {
            Event::Output { stream, bytes } if *stream == on => Some(bytes.as_slice()),
            _ => None,
        });
        printed.collect::<Vec<_>>().concat()
    }

    /// All that was used.
    pub fn usage(&self) -> Usage {
        let mut all = Usage::default();
        for event in &self.log {
            if let Event::Usage(usage) = event {
                all.add(usage);
            }
        }
        all
    }

    /// By what it can be resumed.
    pub fn session(&self) -> Option<String> {
        self.log.iter().find_map(|event| match event {
            Event::Started { session, .. } => session.clone(),
            _ => None,
        })
    }

    /// What happened, for messages about failures.
    pub fn summary(&self) -> String {
        let short = |event: &Event| match event {
            Event::Output { stream, bytes } => {
                let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
                format!("{stream:?} {} bytes: {start:?}", bytes.len())
            }
            other => format!("{other:?}"),
        };
        let lines: Vec<String> = self.log.iter().rev().take(40).rev().map(short).collect();
        format!("{} events:\n  {}", self.log.len(), lines.join("\n  "))
    }
}

/// Makes an empty file.
pub fn touch(path: &Path) {
    std::fs::write(path, "").expect("a file");
}
