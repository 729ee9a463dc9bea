//! Options of a board.

use std::sync::Arc;
use std::time::Duration;

use store::atomic::Durability;
use store::clock::{Clock, SystemClock};
use store::secret_filter::SecretFilter;
use store::settings::{LockMode, Settings};

/// Options of a board.
#[derive(Debug, Clone)]
pub struct BoardOptions {
    /// Says if lock directories of other tools are respected.
    pub lock_mode: LockMode,
    /// Says if a change survives a power cut before it is acknowledged.
    pub durability: Durability,
    /// Maximum time to wait for the list's lock.
    pub lock_timeout: Duration,
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
    /// The filter that takes secrets out of the texts of a task before they are written.
    pub secret_filter: SecretFilter,
    /// The database the tasks are in; in files if there is none.
    #[cfg(feature = "postgres")]
    pub database: Option<database::Database>,
}

impl From<&Settings> for BoardOptions {
    fn from(settings: &Settings) -> Self {
        Self {
            lock_mode: settings.lock_mode,
            durability: Durability::of(settings.durable),
            lock_timeout: settings.lock_timeout,
            clock: Arc::new(SystemClock),
            secret_filter: SecretFilter::default(),
            #[cfg(feature = "postgres")]
            database: None,
        }
    }
}

impl Default for BoardOptions {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}
