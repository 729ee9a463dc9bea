use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use swarm::process::{Ending, Processes};
use swarm::runtime::{Event, Launch, LaunchError, Order, Runtime, TurnEnd};
use uuid::Uuid;

/// Time limit for one event, which only a hang reaches, however busy the machine.
const LIMIT: Duration = Duration::from_secs(90);

/// A conversation with a running agent, for tests that are not asynchronous.
#[derive(Debug)]
pub struct Talk {
    orders: tokio::sync::mpsc::Sender<Order>,
    events: mpsc::Receiver<Event>,
    /// The events so far.
    pub seen: Vec<Event>,
    ended: Option<Ending>,
    marker: String,
}

impl Talk {
    /// Starts an agent. Everything it starts is marked and killed when this is dropped.
    pub fn start(runtime: &dyn Runtime, mut launch: Launch) -> Result<Self, LaunchError> {
        let marker = format!("talk-{}", Uuid::new_v4());
        launch.env.push(("CCB_RUN_ID".into(), (&marker).into()));
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let mut agent = {
            let _context = tokio.enter();
            let processes = Processes::own().expect("signals");
            runtime.launch(launch, &processes)?
        };
        let (sender, events) = mpsc::channel();
        // On a thread of its own: the agent continues while the test waits for something else.
        std::thread::spawn(move || {
            tokio.block_on(async {
                while let Some(event) = agent.events.recv().await {
                    if sender.send(event).is_err() {
                        return;
                    }
                }
            });
        });
        Ok(Self {
            orders: agent.orders,
            events,
            seen: Vec::new(),
            ended: None,
            marker,
        })
    }

    /// Sends the agent an order.
    pub fn order(&mut self, order: Order) {
        let sent = self.orders.blocking_send(order);
        sent.expect("the agent takes orders");
    }

    /// The next event; `None` when it has ended.
    pub fn next_event(&mut self) -> Option<Event> {
        let event = match self.events.recv_timeout(LIMIT) {
            Ok(event) => event,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("nothing for {LIMIT:?}; so far: {:#?}", self.seen)
            }
        };
        assert_eq!(self.ended, None, "after the end: {event:?}");
        if let Event::Ended(ending) = event {
            self.ended = Some(ending);
        }
        self.seen.push(event.clone());
        Some(event)
    }

    /// Waits for an event for which `wanted` returns a value.
    pub fn until<T>(&mut self, what: &str, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
        while let Some(event) = self.next_event() {
            if let Some(found) = wanted(event) {
                return found;
            }
        }
        panic!("it ended before {what}: {:#?}", self.seen);
    }

    /// Waits for the end of the turn.
    pub fn turn(&mut self) -> TurnEnd {
        self.until("the end of the turn", |event| match event {
            Event::TurnEnded(end) => Some(end),
            _ => None,
        })
    }

    /// Waits for the program's end.
    pub fn end(&mut self) -> Ending {
        while self.next_event().is_some() {}
        self.ended.expect("the last event is the end")
    }

    /// Lets it finish, and waits for its end.
    pub fn finish(&mut self) -> Ending {
        self.order(Order::Finish);
        self.end()
    }

    /// The session it reported.
    pub fn session(&self) -> Option<String> {
        self.seen.iter().find_map(|event| match event {
            Event::Started { session, .. } => session.clone(),
            _ => None,
        })
    }

    /// Its output outside its protocol.
    pub fn output(&self) -> String {
        let bytes = self.seen.iter().filter_map(|event| match event {
            Event::Output { bytes, .. } => Some(bytes.clone()),
            _ => None,
        });
        String::from_utf8_lossy(&bytes.flatten().collect::<Vec<u8>>()).into_owned()
    }

    /// Its processes that still run.
    pub fn left_behind(&self) -> BTreeSet<i32> {
        marked(&self.marker)
    }

    /// Sends SIGKILL to its processes.
    pub fn kill(&self) {
        for pid in self.left_behind() {
            if let Some(pid) = Pid::from_raw(pid) {
                rustix::process::kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // A process that is being started just now shows up in the next round.
        while !self.left_behind().is_empty() {
            self.kill();
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

/// The processes that have `marker` in their environment.
fn marked(marker: &str) -> BTreeSet<i32> {
    let wanted = format!("CCB_RUN_ID={marker}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has_it = |pid: &i32| {
        let environ = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ"));
        let environ = environ.unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes())
    };
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(has_it)
        .collect()
}
