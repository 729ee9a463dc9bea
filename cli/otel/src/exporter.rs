//! A thread that reads a team's state, sends new spans and metrics, and keeps the unsent ones.
//!
//! It takes no part in the work: a collector that is slow, gone or refuses costs spans, never a
//! session. The number of kept spans is bounded, and so is the wait at the end.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use coordinator::session::Verdict;
use coordinator::telemetry::{About, Recorder, Span, SpanId};
use project::workplace::Workplace;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use store::clock::{Clock, SystemClock};
use taskboard::TaskId;

use super::protobuf;
use super::settings::{Settings, Target};

/// Maximum spans per request.
const BATCH: usize = 512;
/// Maximum spans kept for a collector that does not answer; later ones are dropped.
const WAITING: usize = 20_000;
/// Maximum wait at the end of a session until the collector has taken the last spans.
const FAREWELL: Duration = Duration::from_secs(2);
/// Maximum pause before the collector is asked again.
const PATIENCE: Duration = Duration::from_secs(60);

/// The session or plan that is observed.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) workplace: Workplace,
    pub(super) session: Option<String>,
    pub(super) kind: String,
    pub(super) branch: Option<String>,
}

/// The thread, while it runs.
#[derive(Debug)]
pub(super) struct Exporter {
    orders: Sender<Order>,
    over: Receiver<Option<String>>,
}

#[derive(Debug)]
enum Order {
    NotLanded { task: TaskId, conflict: bool },
    End(Option<Verdict>),
}

impl Exporter {
    /// Starts to read and send. `None` if there can be no thread.
    pub(super) fn start(settings: Settings, subject: Subject) -> Option<Self> {
        let (orders, heard) = channel();
        let (tell, over) = channel();
        let thread = std::thread::Builder::new().name("telemetry".into());
        let begun = thread.spawn(move || {
            let trouble = match Work::new(settings, subject) {
                Ok(mut work) => work.run(&heard),
                Err(why) => Some(why),
            };
            tell.send(trouble).ok();
        });
        begun.ok().map(|_| Self { orders, over })
    }

    /// Records that the work on a task could not land: no file says so.
    pub(super) fn not_landed(&self, task: TaskId, conflict: bool) {
        self.orders.send(Order::NotLanded { task, conflict }).ok();
    }

    /// Sends the remaining spans, for a moment. With a verdict the session is over; without,
    /// another process may resume it. Returns the failure in words, if there was one.
    pub(super) fn finish(self, verdict: Option<Verdict>) -> Option<String> {
        self.orders.send(Order::End(verdict)).ok();
        match self.over.recv_timeout(FAREWELL) {
            Ok(trouble) => trouble,
            Err(_) => Some("the collector takes too long; the last spans are lost".into()),
        }
    }
}

/// The state of the thread.
struct Work {
    settings: Settings,
    subject: Subject,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    /// `None` while another process records this team.
    recorder: Option<Recorder>,
    waiting: VecDeque<Span>,
    dropped: usize,
    /// Consecutive failures.
    failures: u32,
    again: Instant,
    metrics_due: Instant,
    trouble: Option<String>,
}

impl Work {
    fn new(settings: Settings, subject: Subject) -> Result<Self, String> {
        // Only the first call counts, and all calls pass the same provider.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no event loop: {error}"))?;
        let targets = [&settings.traces, &settings.metrics];
        let secure = targets
            .into_iter()
            .flatten()
            .any(|to| to.url.starts_with("https:"));
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("ccb/", env!("CARGO_PKG_VERSION")))
            .timeout(settings.timeout)
            // A key in a header is for this address alone.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false);
        if !secure {
            builder = builder.tls_certs_only([]);
        }
        let client = builder
            .build()
            .map_err(|error| format!("HTTP cannot be used: {}", error.without_url()))?;
        let now = Instant::now();
        Ok(Self {
            metrics_due: now + settings.metric_interval,
            settings,
            subject,
            runtime,
            client,
            recorder: None,
            waiting: VecDeque::new(),
            dropped: 0,
            failures: 0,
            again: now,
            trouble: None,
        })
    }

    /// Reads and sends until the end of the session; returns the failure in words, if there was
    /// one.
    fn run(&mut self, heard: &Receiver<Order>) -> Option<String> {
        self.open();
        loop {
            match heard.recv_timeout(self.settings.span_delay) {
                Ok(Order::NotLanded { task, conflict }) => {
                    let now = SystemClock.now_ms();
                    let span = self
                        .recorder
                        .as_mut()
                        .map(|it| it.not_landed(task, conflict, now));
                    self.keep(span);
                }
                Ok(Order::End(verdict)) => return self.end(verdict),
                Err(RecvTimeoutError::Timeout) => self.tick(),
                Err(RecvTimeoutError::Disconnected) => return self.end(None),
            }
        }
    }

    fn open(&mut self) {
        let subject = &self.subject;
        let about = About {
            session: subject.session.as_deref(),
            kind: &subject.kind,
            branch: subject.branch.as_deref(),
        };
        match Recorder::open(&subject.workplace, &about, SystemClock.now_ms()) {
            Ok(recorder) => self.recorder = recorder,
            Err(error) => self.trouble = Some(error.in_a_line()),
        }
    }

    fn tick(&mut self) {
        if self.recorder.is_none() {
            self.open();
        }
        self.look();
        if Instant::now() < self.again {
            return;
        }
        self.send_spans(None);
        if Instant::now() >= self.metrics_due {
            self.metrics_due = Instant::now() + self.settings.metric_interval;
            self.send_metrics();
        }
    }

    fn look(&mut self) {
        let now = SystemClock.now_ms();
        let spans = self.recorder.as_mut().map(|recorder| recorder.look(now));
        self.keep(spans.unwrap_or_default());
    }

    fn keep(&mut self, spans: impl IntoIterator<Item = Span>) {
        if self.settings.traces.is_none() {
            return;
        }
        for span in spans {
            match self.waiting.len() < WAITING {
                true => self.waiting.push_back(span),
                false => self.dropped += 1,
            }
        }
    }

    fn end(&mut self, verdict: Option<Verdict>) -> Option<String> {
        // Ends 200 ms before the waiting process gives up.
        let deadline = Instant::now() + FAREWELL - Duration::from_millis(200);
        match (verdict, self.recorder.as_mut()) {
            (Some(verdict), Some(recorder)) => {
                let spans = recorder.end(verdict, SystemClock.now_ms());
                self.keep(spans);
            }
            _ => self.look(),
        }
        self.send_spans(Some(deadline));
        if Instant::now() < deadline && self.failures == 0 {
            self.send_metrics();
        }
        let lost = self.waiting.len() + self.dropped;
        if let (Some(recorder), true) = (self.recorder.take(), verdict.is_some())
            && let Err(error) = recorder.close()
        {
            tracing::warn!(%error, "the next session may continue this trace");
        }
        match (lost, self.trouble.take()) {
            (0, None) => None,
            (0, Some(why)) => Some(why),
            (lost, why) => {
                let spans = store::counted(lost, "span");
                let why = why.unwrap_or_else(|| "the collector takes too long".into());
                Some(format!("{spans} could not be sent: {why}"))
            }
        }
    }

    /// Sends the waiting spans, one request after the other, until one fails.
    fn send_spans(&mut self, deadline: Option<Instant>) {
        let Some(target) = self.settings.traces.clone() else {
            return;
        };
        while !self.waiting.is_empty() && deadline.is_none_or(|end| Instant::now() < end) {
            let count = self.waiting.len().min(BATCH);
            let batch: Vec<Span> = self.waiting.drain(..count).collect();
            let body = protobuf::spans(&batch, &self.settings.resource);
            match self.post(&target, body) {
                Sent::Taken => {
                    let ids: Vec<SpanId> = batch.iter().map(|span| span.id).collect();
                    if let Some(recorder) = &mut self.recorder
                        && let Err(error) = recorder.delivered(&ids)
                    {
                        tracing::warn!(%error, "spans may be sent again");
                    }
                }
                // The collector would refuse them again later.
                Sent::Refused => self.dropped += batch.len(),
                Sent::NotNow => {
                    for span in batch.into_iter().rev() {
                        self.waiting.push_front(span);
                    }
                    return;
                }
            }
        }
    }

    fn send_metrics(&mut self) {
        let (Some(target), Some(recorder)) = (self.settings.metrics.clone(), &self.recorder) else {
            return;
        };
        let now = SystemClock.now_ms();
        let body = protobuf::metrics(&recorder.metrics(), &self.settings.resource, now);
        self.post(&target, body);
    }

    fn post(&mut self, target: &Target, body: Vec<u8>) -> Sent {
        let request = self
            .client
            .post(&target.url)
            .headers(headers(target))
            .body(body);
        let answer = self.runtime.block_on(async {
            let answer = request.send().await?;
            let status = answer.status();
            // Read to the end, so that the connection can be reused.
            answer.bytes().await.map(|_| status)
        });
        let (sent, trouble) = match answer {
            Ok(status) if status.is_success() => (Sent::Taken, None),
            Ok(status) if matches!(status.as_u16(), 408 | 429 | 502..=504) => (
                Sent::NotNow,
                Some(format!("the collector answered {status}")),
            ),
            Ok(status) => (
                Sent::Refused,
                Some(format!("the collector answered {status}")),
            ),
            Err(error) => (Sent::NotNow, Some(reason(&error))),
        };
        if let Some(why) = trouble {
            self.failures += 1;
            let pause = self
                .settings
                .span_delay
                .saturating_mul(1 << self.failures.min(6));
            self.again = Instant::now() + pause.min(PATIENCE);
            if self.failures == 1 {
                tracing::warn!(%why, "telemetry cannot be sent");
            }
            self.trouble = Some(why);
        } else {
            self.failures = 0;
            self.trouble = None;
        }
        sent
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Taken,
    Refused,
    NotNow,
}

/// The reason for a failed request, without an address that may hold a password.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "the collector did not answer in time".into();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    format!("the collector cannot be reached: {cause}")
}

fn headers(target: &Target) -> HeaderMap {
    let mut all = HeaderMap::new();
    for (name, value) in &target.headers {
        if let (Ok(name), Ok(mut value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            value.set_sensitive(true);
            all.insert(name, value);
        }
    }
    all.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-protobuf"),
    );
    all
}
