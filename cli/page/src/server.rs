//! Listens, accepts connections and answers, until Ctrl-C.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use project::workplace::Workplace;
use rustix::process::DumpableBehavior;
use serde_json::json;
use store::{Failure, atomic};
use term::style::{BOLD, CYAN, DIM, YELLOW};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection::Connection;
use super::console::Console;
use super::guard::Guard;
use super::host::{Host, Options};
use super::routes::Server;
use super::secret::{TokenProof, secret};
use super::state::State;
use super::tls::Tls;
use super::watcher::Watcher;

/// Maximum number of connections.
const CONNECTIONS: usize = 256;
/// Maximum time for a request to arrive.
const ARRIVES: Duration = Duration::from_secs(10);
/// Poll interval for a shutdown request.
const SLICE: Duration = Duration::from_millis(100);

/// Serves the page until `host` says that it should end.
pub fn run(options: &Options, workplace: &Workplace, host: &mut dyn Host) -> Result<(), Failure> {
    // The secrets are in our memory alone; other processes of this user must not read it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    // Earlier versions left an address here that never expired.
    atomic::remove(&workplace.home().ours().join("web.html"))?;
    let (token, tls) = (token(options)?, Tls::of(options)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("no event loop: {error}")))?;
    let served = runtime.block_on(serve(options, (token, tls), workplace, host));
    // A client that still waits for a diff does not keep the process alive.
    runtime.shutdown_background();
    served
}

/// The proof of the token; `None` without a token file.
fn token(options: &Options) -> Result<Option<TokenProof>, Failure> {
    match &options.token_file {
        Some(path) => Ok(Some(TokenProof::read(path)?)),
        None if options.listen.ip().is_loopback() => Ok(None),
        None => {
            let message = format!(
                "{} is more than this machine: it needs a token of its own",
                options.listen
            );
            Err(Failure::usage("needs_token", message).with_hint(
                "make one: `ccb web --token-file FILE --new-token`, then `--token-file FILE`; or stay on \
                 loopback and use `ssh -L`",
            ))
        }
    }
}

async fn serve(
    options: &Options,
    (token, tls): (Option<TokenProof>, Option<Tls>),
    workplace: &Workplace,
    host: &mut dyn Host,
) -> Result<(), Failure> {
    let listener = listen(options.listen).await?;
    let at = listener
        .local_addr()
        .map_err(|error| Failure::failed("io", error.to_string()))?;
    let guard = Guard::new(token, at, tls.as_ref().map(|tls| tls.names.clone()));
    let url = guard.url();
    let state = Arc::new(State::new(&secret()[..12]));
    let stop = Arc::new(AtomicBool::new(false));
    let watcher = Watcher::start(workplace, &state, &stop)?;
    let attended = std::io::stdout().is_terminal() && !host.is_json();
    let (mut console, notices) = Console::new(attended);
    let at_work = Server::new(guard, state, watcher, workplace, notices);
    let server = Arc::new(at_work);
    warn(options, at, host);
    announce(&url, at, &console, host)?;
    if attended && options.opens_browser {
        open(&url);
    }
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while !host.should_end() {
        console.show(host);
        if console.entered() {
            announce(&server.guard.url(), at, &console, host)?;
        }
        let accepted = tokio::time::timeout(SLICE, listener.accept()).await;
        let Ok(Ok((stream, _))) = accepted else {
            continue;
        };
        // A connection over the limit is closed; a browser tries again.
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            tokio::spawn(welcome(Arc::clone(&server), tls.clone(), stream, place));
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    server.watcher.wake();
    Ok(())
}

/// Answers the requests of a connection, which keeps its place until it ends.
async fn welcome(
    server: Arc<Server>,
    tls: Option<Tls>,
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
) {
    let Ok(connection) = Connection::of(&stream) else {
        return;
    };
    let Some(tls) = tls else {
        return answer(server, connection, stream).await;
    };
    match tokio::time::timeout(ARRIVES, tls.acceptor.accept(stream)).await {
        Ok(Ok(stream)) => answer(server, connection, stream).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
        Err(_) => tracing::debug!("TLS took too long"),
    }
}

/// Answers the requests of one connection.
async fn answer(
    server: Arc<Server>,
    connection: Connection,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) {
    let connection = Arc::new(connection);
    let answer = service_fn(move |request| {
        let (server, connection) = (Arc::clone(&server), Arc::clone(&connection));
        async move { Ok::<_, std::convert::Infallible>(server.answer(request, &connection).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ARRIVES)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
}

/// Binds the address, or on loopback the next free one if its usual port is taken.
async fn listen(at: SocketAddr) -> Result<TcpListener, Failure> {
    match TcpListener::bind(at).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && at.ip().is_loopback() => {
            let any = SocketAddr::new(at.ip(), 0);
            TcpListener::bind(any)
                .await
                .map_err(|error| cannot(at, &error))
        }
        Err(error) => Err(cannot(at, &error)),
    }
}

fn cannot(at: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::failed("cannot_listen", format!("cannot listen on {at}: {error}"))
        .with_hint("name another address: `--listen 127.0.0.1:0` takes any free port")
}

fn warn(options: &Options, at: SocketAddr, host: &mut dyn Host) {
    if !at.ip().is_loopback() && options.tls_cert.is_none() {
        host.note(&format!(
            "{YELLOW}⚠{YELLOW:#} {at} is plain HTTP: whoever can listen on the way reads the token and everything else, and \
             can do all that you can do with ccb. Safer: `--tls-cert` and `--tls-key`, or stay on loopback and use \
             `ssh -L 7317:127.0.0.1:7317`."
        ));
    }
}

/// Prints an address.
fn announce(
    url: &str,
    at: SocketAddr,
    console: &Console,
    host: &mut dyn Host,
) -> Result<(), Failure> {
    let another = match console.has_keys() {
        true => " Press Enter for another one.",
        false => "",
    };
    host.answer(
        &json!({ "web": {"url": url, "address": at.to_string()} }),
        &format!(
            "{BOLD}{CYAN}{url}{CYAN:#}{BOLD:#}\n{DIM}The address lets in one browser, within a minute.{another} Ctrl-C ends \
             the page, and nothing else.{DIM:#}"
        ),
    )
}

/// Opens the page in the user's browser, if there is one. Other users can see the arguments of
/// programs: the address lets in one browser, agents and other users are refused, and a notice
/// tells the person if another program was faster. A file would be no safer, because agents read
/// what their user reads.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    // Without a browser, the address is on the screen.
    Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok();
}
