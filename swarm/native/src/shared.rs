//! The state that several agents in one process share: the scheduler on which requests to models
//! are made, the connections to services, and the thread that gives freed memory back.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::Ports;

/// The state that the agents of one process share.
#[derive(Clone)]
pub struct Together {
    /// The scheduler that makes requests to models.
    pub(super) net: Handle,
    pub(super) clients: Arc<Clients>,
    /// Told when one of them has fallen asleep.
    pub(super) asleep: Arc<Notify>,
    pub(super) ports: Ports,
    /// Maximum bytes that one of them may keep in memory.
    pub(super) max_bytes: Option<u64>,
    /// Called when a thread is given up: it may never end.
    pub(super) given_up: Arc<dyn Fn() + Send + Sync>,
}

impl Together {
    /// Shared state for new agents of this process. Requests to models are made as long as the
    /// process lives.
    pub fn new(ports: Ports, given_up: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        let (tell, made) = std::sync::mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("net".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                let handle = runtime.as_ref().map(|runtime| runtime.handle().clone());
                tell.send(handle.map_err(|error| io::Error::other(error.to_string())))
                    .ok();
                if let Ok(runtime) = runtime {
                    runtime.block_on(std::future::pending::<()>());
                }
            })?;
        let net = made.recv().map_err(io::Error::other)??;
        let asleep = Arc::new(Notify::new());
        net.spawn(give_memory_back(Arc::clone(&asleep)));
        Ok(Self {
            net,
            clients: Arc::default(),
            asleep,
            ports,
            max_bytes: None,
            given_up: Arc::new(given_up),
        })
    }

    /// The same for an agent that may keep no more than this in memory.
    #[must_use]
    pub fn with_limit(&self, max_bytes: u64) -> Self {
        Self {
            max_bytes: Some(max_bytes),
            ..self.clone()
        }
    }

    /// The scheduler that makes requests to models and waits for all sleeping agents.
    pub fn scheduler(&self) -> Handle {
        self.net.clone()
    }

    /// Tells the thread that an agent has freed memory that is worth giving back.
    pub fn is_asleep(&self) {
        self.asleep.notify_one();
    }
}

/// Gives back what agents have freed that fell asleep, for all at once that do so at about the same
/// time.
async fn give_memory_back(asleep: Arc<Notify>) {
    const AT_ONCE: Duration = Duration::from_secs(2);
    loop {
        asleep.notified().await;
        tokio::time::sleep(AT_ONCE).await;
        tokio::task::spawn_blocking(store::memory::give_back)
            .await
            .ok();
    }
}

impl fmt::Debug for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

/// Connections to services, by what they are made like.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<HashMap<(bool, Duration), reqwest::Client>>);

impl Clients {
    /// The client that is made like this, made with `make` if there is none.
    pub(super) fn get<E>(
        &self,
        like: (bool, Duration),
        make: impl FnOnce() -> Result<reqwest::Client, E>,
    ) -> Result<reqwest::Client, E> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&like) {
            return Ok(client.clone());
        }
        let client = make()?;
        clients.insert(like, client.clone());
        Ok(client)
    }
}
