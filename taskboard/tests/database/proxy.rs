//! A link that can be cut at a chosen place.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Passes connections on to a server, and cuts all of them when the budget of pieces is used up.
/// Later connections are passed on without a limit.
pub(crate) struct Proxy {
    port: u16,
    left: Arc<AtomicI64>,
}

/// The direction of the last forwarded piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server does not get it.
    BeforeServer,
    /// The server got it and answered, and the answer is lost.
    AfterServer,
}

const NEVER: i64 = i64::MAX / 2;

impl Proxy {
    pub(crate) fn start(server: u16, cut: Cut) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicI64::new(NEVER));
        let budget = Arc::clone(&left);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let (up, down) = match cut {
                    Cut::BeforeServer => (Some(Arc::clone(&budget)), None),
                    Cut::AfterServer => (None, Some(Arc::clone(&budget))),
                };
                pass(&client, &server, up);
                pass(&server, &client, down);
            }
        });
        Self { port, left }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Lets `pieces` more pass in the direction that is cut, then cuts once.
    pub(crate) fn cut_after(&self, pieces: i64) {
        self.left.store(pieces, Ordering::SeqCst);
    }

    /// True if it was cut; lets everything pass from now on.
    pub(crate) fn was_cut(&self) -> bool {
        self.left.swap(NEVER, Ordering::SeqCst) > NEVER / 2
    }
}

fn pass(from: &TcpStream, to: &TcpStream, budget: Option<Arc<AtomicI64>>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if let Some(left) = &budget
                && left.fetch_sub(1, Ordering::SeqCst) == 0
            {
                // Once: what comes next has a link again.
                left.store(NEVER + NEVER / 2, Ordering::SeqCst);
                break;
            }
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        drop(from.shutdown(Shutdown::Both));
        drop(to.shutdown(Shutdown::Both));
    });
}
