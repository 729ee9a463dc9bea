//! Waiting for an answer on a thread that has no async runtime, or must not use the one it has.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Instant;

use tokio::runtime::{Builder, Handle};

use crate::error::DatabaseError;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The result of `future`; `None` if it is not there by `deadline`.
///
/// The futures of a connection only wait for messages from its own thread, so any thread may wait
/// for them, also one that belongs to another runtime.
pub(crate) fn wait_until<F: Future>(future: F, deadline: Instant) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        std::thread::park_timeout(left);
    }
}

/// The runtime of the thread that the sockets of this process belong to.
pub(crate) fn sockets() -> Result<&'static Handle, DatabaseError> {
    static HANDLE: OnceLock<Result<Handle, String>> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name("database".into())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))
            .map_err(|error| error.to_string())?;
        Ok(handle)
    });
    handle
        .as_ref()
        .map_err(|why| DatabaseError::NoThread { why: why.clone() })
}
