//! The server: a thread per connection, and the requests so far.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cache::{Cache, Cached, Leaves};
use super::http::Connection;
use super::play;
use super::record::{Outcome, Recorded};
use super::wire::Wire;

/// The options of a server.
#[derive(Debug, Clone, Default)]
pub struct ModelOptions {
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The directory for a file of every request.
    pub log_dir: Option<PathBuf>,
    /// True to let requests without tools follow scripts, too. Such a request is usually about
    /// something beside the conversation, such as a title for it, and gets a bland answer.
    pub scripts_without_tools: bool,
}

/// The state that all connections share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub options: ModelOptions,
    requests: Mutex<Vec<Recorded>>,
    changed: Condvar,
    /// The number of tries at each point of a conversation.
    tries: Mutex<HashMap<u64, u32>>,
    /// The cache of the service.
    cache: Mutex<Cache>,
    connections: Mutex<Vec<TcpStream>>,
    stopping: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Records a request; returns its number.
    pub(super) fn record(&self, make: impl FnOnce(u64) -> Recorded) -> u64 {
        let mut requests = lock(&self.requests);
        let number = requests.len() as u64 + 1;
        let recorded = make(number);
        if let Some(dir) = &self.options.log_dir {
            recorded.save(dir);
        }
        requests.push(recorded);
        self.changed.notify_all();
        number
    }

    /// Records the outcome of request `number`.
    pub(super) fn settle(&self, number: u64, outcome: Outcome) {
        let mut requests = lock(&self.requests);
        if let Some(recorded) = requests.get_mut(number as usize - 1) {
            recorded.outcome = Some(outcome);
        }
        self.changed.notify_all();
    }

    /// Counts one more try of `key`; the first is 1.
    pub(super) fn try_number(&self, key: u64) -> u32 {
        let mut tries = lock(&self.tries);
        let count = tries.entry(key).or_default();
        *count += 1;
        *count
    }

    /// The cached part of a request, and the beginnings it leaves there.
    pub(super) fn cached(&self, wire: Wire, body: &Value) -> (Cached, Leaves) {
        lock(&self.cache).look(wire, body)
    }

    /// Called when the answer to a request begins.
    pub(super) fn keep(&self, leaves: Leaves) {
        lock(&self.cache).keep(leaves);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts one with the usual behaviour on a free port.
    pub fn start() -> Self {
        Self::with(ModelOptions::default()).expect("a server on loopback")
    }

    /// Starts one.
    pub fn with(options: ModelOptions) -> io::Result<Self> {
        if let Some(dir) = &options.log_dir {
            std::fs::create_dir_all(dir)?;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            options,
            ..Shared::default()
        });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Self {
            shared,
            address,
            accepting: Some(accepting),
        })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, in the order they came.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }

    /// The same, once each has an outcome.
    pub fn settled(&self) -> Vec<Recorded> {
        let limit = Duration::from_secs(60);
        self.wait_for(limit, "all requests to be settled", |requests| {
            requests.iter().all(|request| request.outcome.is_some())
        });
        self.requests()
    }

    /// Those that followed a script.
    pub fn scripted(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(Recorded::is_scripted);
        requests
    }

    /// Waits until the requests are as wanted; fails the test after `limit`.
    pub fn wait_for(
        &self,
        limit: Duration,
        what: &str,
        mut wanted: impl FnMut(&[Recorded]) -> bool,
    ) {
        let deadline = Instant::now() + limit;
        let mut requests = lock(&self.shared.requests);
        while !wanted(&requests) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "waited {limit:?} for {what}; there were {} requests",
                requests.len()
            );
            let waited = self.shared.changed.wait_timeout(requests, left);
            requests = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for ever, with the server running: for a server that is a program.
    pub fn run(mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.join().ok();
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        // The thread that accepts looks at the flag at each connection.
        TcpStream::connect(self.address).ok();
        if let Some(accepting) = self.accepting.take() {
            accepting.join().ok();
        }
        for stream in lock(&self.shared.connections).drain(..) {
            stream.shutdown(std::net::Shutdown::Both).ok();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_stopping() {
            return;
        }
        let Ok(stream) = stream else {
            continue;
        };
        if let Ok(copy) = stream.try_clone() {
            let mut connections = lock(&shared.connections);
            // Those that are gone need not be closed later.
            connections.retain(|stream| stream.peer_addr().is_ok());
            connections.push(copy);
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            if let Ok(connection) = Connection::new(stream) {
                serve(connection, &shared);
            }
        });
    }
}

fn serve(mut connection: Connection, shared: &Shared) {
    while let Ok(Some(request)) = connection.request() {
        if !play::answer(&mut connection, request, shared) || shared.is_stopping() {
            break;
        }
    }
    connection.cut();
}
