//! A proxy in front of a server that knows where statements begin and end, and cuts the link
//! there.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a link breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the server sees the statement.
    Before,
    /// After the server has carried it out, before its answer arrives.
    After,
}

/// Forwards all data, until a test stops it.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    server: u16,
    /// The statement at which to cut, and how.
    cut: Mutex<Option<(usize, Cut)>>,
    statements: AtomicUsize,
    /// True if the proxy closes links, new ones as soon as they are made.
    closed: AtomicBool,
    /// True if the proxy drops all data without closing links.
    silent: AtomicBool,
    links: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A proxy in front of the server at this port of 127.0.0.1.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            server,
            ..State::default()
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || state.serve(client).ok());
            }
        });
        Self { port, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the link at the `nth` statement from now on, counted from 1.
    pub(crate) fn cut_at(&self, nth: usize, how: Cut) {
        let at = self.state.statements.load(Ordering::SeqCst) + nth;
        *self.state.cut() = Some((at, how));
    }

    /// True if what was asked for is still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state.cut().is_some()
    }

    /// Closes all links, and keeps new ones from being made.
    pub(crate) fn close(&self) {
        self.state.closed.store(true, Ordering::SeqCst);
        for link in self.state.links().drain(..) {
            link.shutdown(Shutdown::Both).ok();
        }
    }

    /// Forwards nothing any more, while links stay open; or forwards again. Data from the meantime
    /// is lost.
    pub(crate) fn silence(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.state.closed.store(false, Ordering::SeqCst);
    }
}

impl State {
    fn cut(&self) -> std::sync::MutexGuard<'_, Option<(usize, Cut)>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        if self.closed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let mut server = TcpStream::connect(("127.0.0.1", self.server))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        self.links()
            .extend([client.try_clone()?, server.try_clone()?]);
        // The first message has no kind.
        let start = read_body(&mut client, &[])?;
        server.write_all(&start)?;
        let drop_answers = AtomicBool::new(false);
        let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok(message) = read_message(&mut from) {
                    let lost = drop_answers.load(Ordering::SeqCst);
                    // The server is done with the statement.
                    if lost && message[0] == b'Z' {
                        break;
                    }
                    let silent = self.silent.load(Ordering::SeqCst);
                    if !lost && !silent && to.write_all(&message).is_err() {
                        break;
                    }
                }
                from.shutdown(Shutdown::Both).ok();
                to.shutdown(Shutdown::Both).ok();
            });
            let mut whole = Vec::new();
            while let Ok(message) = read_message(&mut client) {
                whole.extend_from_slice(&message);
                // A simple query, or the end of one in several messages.
                if matches!(message[0], b'Q' | b'S') {
                    match self.count() {
                        Some(Cut::Before) => break,
                        Some(Cut::After) => drop_answers.store(true, Ordering::SeqCst),
                        None => {}
                    }
                    let silent = self.silent.load(Ordering::SeqCst);
                    if !silent && server.write_all(&whole).is_err() {
                        break;
                    }
                    whole.clear();
                }
            }
            if !drop_answers.load(Ordering::SeqCst) {
                server.shutdown(Shutdown::Both).ok();
                client.shutdown(Shutdown::Both).ok();
            }
        });
        Ok(())
    }

    /// Counts a statement; says whether the link breaks here.
    fn count(&self) -> Option<Cut> {
        let now = self.statements.fetch_add(1, Ordering::SeqCst) + 1;
        let mut cut = self.cut();
        let due = cut.filter(|(at, _)| *at == now);
        if due.is_some() {
            *cut = None;
        }
        due.map(|(_, how)| how)
    }
}

fn read_message(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut kind = [0];
    from.read_exact(&mut kind)?;
    read_body(from, &kind)
}

/// Reads a message after its kind: its length, which counts itself, and so many bytes.
fn read_body(from: &mut TcpStream, kind: &[u8]) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut rest = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    from.read_exact(&mut rest)?;
    Ok([kind, &length, &rest].concat())
}
