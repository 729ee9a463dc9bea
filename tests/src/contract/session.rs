//! A running agent, as a check sees it.

use std::path::Path;
use std::time::{Duration, Instant};

use swarm::process::Ending;
use swarm::runtime::{Agent, Event, Message, Order, Stream, TurnEnd, Usage};
use uuid::Uuid;

use super::bench::{Bench, LIMIT};

/// The name of a file that an agent must ask for. All other questions are answered with yes.
pub const ASKED: &str = "asked-for";

/// Poll interval for a file.
const LOOK: Duration = Duration::from_millis(10);

/// Maximum of an agent's output that is kept, in bytes.
const MOST_KEPT: usize = 4 * 1024 * 1024;

/// The result of waiting for an event.
#[derive(Debug, PartialEq)]
enum Received {
    Event(Event),
    /// A question, which was answered.
    Answered,
    Nothing,
    Closed,
}

/// A running agent and its events so far.
#[derive(Debug)]
pub struct Session<'a> {
    bench: &'a Bench<'a>,
    agent: Agent,
    /// All events, without output over a limit.
    pub log: Vec<Event>,
    kept: usize,
}

impl<'a> Session<'a> {
    pub(super) fn new(bench: &'a Bench<'a>, agent: Agent) -> Self {
        Self {
            bench,
            agent,
            log: Vec::new(),
            kept: 0,
        }
    }

    /// The next event; `None` at the end.
    pub fn event(&mut self) -> Option<Event> {
        self.next_before(Instant::now() + LIMIT)
    }

    fn next_before(&mut self, deadline: Instant) -> Option<Event> {
        loop {
            match self.receive(deadline) {
                Received::Event(event) => return Some(event),
                Received::Answered => {}
                Received::Closed => return None,
                Received::Nothing => {
                    panic!("waited {LIMIT:?} for an event after {}", self.summary())
                }
            }
        }
    }

    /// The next event before `deadline`. Answers questions that no check is about.
    fn receive(&mut self, deadline: Instant) -> Received {
        let left = deadline.saturating_duration_since(Instant::now());
        let next = self.agent.events.recv();
        let waited = async { tokio::time::timeout(left, next).await };
        let event = match self.bench.handle().block_on(waited) {
            Ok(Some(event)) => event,
            Ok(None) => return Received::Closed,
            Err(_) => return Received::Nothing,
        };
        let length = match &event {
            Event::Output { bytes, .. } => bytes.len(),
            _ => 0,
        };
        if self.kept + length <= MOST_KEPT {
            self.kept += length;
            self.log.push(event.clone());
        }
        match event {
            Event::Permission { id, input, .. } if !input.to_string().contains(ASKED) => {
                let (allow, reason) = (true, None);
                self.order(Order::Answer { id, allow, reason });
                Received::Answered
            }
            event => Received::Event(event),
        }
    }

    /// Waits until a file exists, while events arrive.
    pub fn wait_file(&mut self, file: &Path) {
        let deadline = Instant::now() + LIMIT;
        while !file.exists() {
            assert!(
                Instant::now() < deadline,
                "waited {LIMIT:?} for {} after {}",
                file.display(),
                self.summary()
            );
            if self.receive(Instant::now() + LOOK) == Received::Closed {
                panic!(
                    "it ended before {} was there: {}",
                    file.display(),
                    self.summary()
                );
            }
        }
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

    /// Waits for the end of the program, and checks the rules for every life: the first event but
    /// for output is `Started`, the last one `Ended`, once, and nothing follows.
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

    /// Sends it an order.
    pub fn order(&self, order: Order) {
        let send = self.agent.orders.send(order);
        let sent = async { tokio::time::timeout(LIMIT, send).await };
        let sent = self.bench.handle().block_on(sent);
        // One that comes too late is dropped.
        assert!(sent.is_ok(), "an order was not taken: {}", self.summary());
    }

    /// Sends a message; returns its id.
    pub fn send(&self, text: &str) -> Uuid {
        self.send_as(text, false)
    }

    /// Sends a message that interrupts.
    pub fn send_now(&self, text: &str) -> Uuid {
        self.send_as(text, true)
    }

    fn send_as(&self, text: &str, now: bool) -> Uuid {
        let id = Uuid::new_v4();
        let text = text.to_owned();
        self.order(Order::Send(Message { id, text, now }));
        id
    }

    /// Stops taking its events.
    pub fn stop_listening(&mut self) {
        self.agent.events.close();
        while self.agent.events.try_recv().is_ok() {}
    }

    /// The number of times a message was accepted.
    pub fn times_accepted(&self, id: Uuid) -> usize {
        let accepted = Event::Accepted { message: id };
        self.log.iter().filter(|event| **event == accepted).count()
    }

    /// The number of turns that have ended.
    pub fn turns(&self) -> usize {
        let ends = self
            .log
            .iter()
            .filter(|event| matches!(event, Event::TurnEnded(_)));
        ends.count()
    }

    /// True if the model said this.
    pub fn said(&self, text: &str) -> bool {
        self.log
            .iter()
            .any(|event| matches!(event, Event::Text(said) if said.contains(text)))
    }

    /// Everything it printed to a stream outside its protocol.
    pub fn printed(&self, on: Stream) -> Vec<u8> {
        let printed = self.log.iter().filter_map(|event| match event {
            Event::Output { stream, bytes } if *stream == on => Some(bytes.as_slice()),
            _ => None,
        });
        printed.collect::<Vec<_>>().concat()
    }

    /// The total usage.
    pub fn usage(&self) -> Usage {
        let mut all = Usage::default();
        for event in &self.log {
            if let Event::Usage(usage) = event {
                all.add(usage);
            }
        }
        all
    }

    /// The id by which it can be resumed.
    pub fn session(&self) -> Option<String> {
        self.log.iter().find_map(|event| match event {
            Event::Started { session, .. } => session.clone(),
            _ => None,
        })
    }

    /// The events so far, for messages about failures.
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
