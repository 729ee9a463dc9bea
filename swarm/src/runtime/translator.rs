//! The common part of the runtimes for programs that speak JSON in lines.
//!
//! Each of them is a [`Translator`]: a state machine that gets the program's lines and the host's
//! orders, and answers with [`Step`]s. It does no input or output, so it is tested with recorded
//! lines. [`drive`] connects one to a real program.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::{Agent, AgentPort, EndWatch, Event, Line, LineReader, Order, Stream, agent, post};
use crate::process::Child;

/// The usual limit of a line. Tool results with pictures are long, and losing the line that ends
/// a turn would lose the turn.
const MAX_LINE: usize = 32 * 1024 * 1024;
/// The longest line of error output that is kept together.
const MAX_ERROR_LINE: usize = 64 * 1024;
/// Maximum lines that wait for a program that does not read. One that lets more pile up gets no
/// more: it asks without listening.
const UNREAD: usize = 1024;

/// Maximum open questions of a program. Further ones are denied.
pub(super) const OPEN_QUESTIONS: usize = 256;

/// An action that a translator asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Tell the host.
    Event(Event),
    /// Tell the program.
    Line(Value),
    /// Tell the program that nothing more will come.
    Close,
}

impl Step {
    /// A note about the program for the readers of its output.
    pub(super) fn note(words: &str) -> Self {
        Self::Event(Event::Output {
            stream: Stream::Stderr,
            bytes: words.as_bytes().to_vec(),
        })
    }
}

/// The actions that a translator asks for, in order.
pub(crate) type Steps = Vec<Step>;

/// A protocol as a state machine.
pub(crate) trait Translator: Send + 'static {
    /// The longest line that is read as a message; so much of one may be kept in memory.
    const MAX_LINE: usize = MAX_LINE;

    /// The steps at the program's start.
    fn begin(&mut self) -> Steps;

    /// The program said this. None: it is not part of the protocol.
    fn heard(&mut self, message: &Map<String, Value>) -> Option<Steps>;

    /// The host orders this.
    fn told(&mut self, order: Order) -> Steps;
}

/// Lets `translator` talk to a program that was started with a pipe for its input.
pub(crate) fn drive(child: Child, translator: impl Translator) -> Agent {
    let (agent, port) = agent();
    tokio::spawn(connect(child, translator, port));
    agent
}

async fn connect<T: Translator>(child: Child, translator: T, port: AgentPort) {
    let AgentPort { events, orders } = port;
    let mut end = EndWatch::new(child.ended);
    // Written by a task of its own: a program that does not read until it is read from must
    // not stop the reading.
    let (to_program, lines) = mpsc::channel(UNREAD);
    let mut ended = end.clone();
    let stdin = child.stdin;
    tokio::spawn(async move {
        // If the program has closed its input, its lines are not worth waiting for.
        tokio::select! {
            () = write(stdin, lines) => {}
            _ = ended.ending() => {}
        }
    });
    let talk = Talk {
        translator,
        events: events.clone(),
        to_program: Some(to_program),
    };
    let stderr = child
        .stderr
        .map(|pipe| LineReader::new(pipe, MAX_ERROR_LINE));
    let stdout = child.stdout.map(|pipe| LineReader::new(pipe, T::MAX_LINE));
    tokio::join!(
        pass_on(stderr, &events, end.clone()),
        talk.run(stdout, orders, end.clone()),
    );
    let ending = end.ending().await;
    events.send(Event::Ended(ending)).await.ok();
}

/// A conversation with a program.
struct Talk<T> {
    translator: T,
    events: mpsc::Sender<Event>,
    to_program: Option<mpsc::Sender<Value>>,
}

impl<T: Translator> Talk<T> {
    async fn run(
        mut self,
        stdout: Option<LineReader>,
        orders: mpsc::Receiver<Order>,
        mut end: EndWatch,
    ) {
        let Some(mut stdout) = stdout else {
            return;
        };
        let mut orders = Some(orders);
        let steps = self.translator.begin();
        if !self.carry_out(steps, 0).await {
            return;
        }
        loop {
            let mut length = 0;
            let steps = tokio::select! {
                biased;
                order = next_order(&mut orders) => match order {
                    Some(order) => self.translator.told(order),
                    None => {
                        // The host has dropped its end.
                        orders = None;
                        self.translator.told(Order::Finish)
                    }
                },
                line = end.read(stdout.next()) => match line {
                    Some(Ok(Some(line))) => {
                        let (Line::Whole(bytes) | Line::Piece(bytes)) = &line;
                        length = bytes.len();
                        self.understand(line)
                    }
                    _ => return,
                },
            };
            if !self.carry_out(steps, length).await {
                return;
            }
        }
    }

    fn understand(&mut self, line: Line) -> Steps {
        if let Line::Whole(bytes) = &line {
            let object: Option<Map<String, Value>> = serde_json::from_slice(bytes).ok();
            if let Some(steps) = object.and_then(|object| self.translator.heard(&object)) {
                return steps;
            }
        }
        vec![Step::Event(output(Stream::Stdout, line))]
    }

    /// Carries out the steps for a line of this length. False if the host has closed the channel.
    async fn carry_out(&mut self, steps: Steps, mut length: usize) -> bool {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Event(event) => {
                    // The line is in one of them, or shared out among them.
                    if !post(&self.events, event, std::mem::take(&mut length)).await {
                        return false;
                    }
                }
                Step::Line(line) => {
                    // After the end of its input, or when it does not read, no line reaches it.
                    let sent = self.to_program.as_ref().map(|queue| queue.try_send(line));
                    if let Some(Err(mpsc::error::TrySendError::Full(_))) = sent {
                        let bytes = b"[the program does not read what it is told]\n".to_vec();
                        let stream = Stream::Stderr;
                        steps.push_back(Step::Event(Event::Output { stream, bytes }));
                    }
                }
                Step::Close => self.to_program = None,
            }
        }
        true
    }
}

/// A line that means nothing, as it was printed.
fn output(stream: Stream, line: Line) -> Event {
    let bytes = match line {
        Line::Whole(mut bytes) => {
            bytes.push(b'\n');
            bytes
        }
        Line::Piece(bytes) => bytes,
    };
    Event::Output { stream, bytes }
}

/// Passes on what the program prints as errors.
async fn pass_on(lines: Option<LineReader>, events: &mpsc::Sender<Event>, mut end: EndWatch) {
    let Some(mut lines) = lines else {
        return;
    };
    while let Some(Ok(Some(line))) = end.read(lines.next()).await {
        if events.send(output(Stream::Stderr, line)).await.is_err() {
            return;
        }
    }
}

/// Never, once there are no more.
async fn next_order(orders: &mut Option<mpsc::Receiver<Order>>) -> Option<Order> {
    match orders {
        Some(orders) => orders.recv().await,
        None => std::future::pending().await,
    }
}

/// Writes lines to the program until there are no more.
async fn write(stdin: Option<pipe::Sender>, mut lines: mpsc::Receiver<Value>) {
    let Some(mut stdin) = stdin else {
        return;
    };
    while let Some(value) = lines.recv().await {
        let mut line = value.to_string();
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() {
            // It does not listen any more; its end will tell why.
            return;
        }
    }
}
