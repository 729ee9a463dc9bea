//! Listens, lets in and answers, until Ctrl-C.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use store::atomic::{self, Durability};
use store::{Failure, home};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::args::WebArgs;
use super::guard::{self, Guard, secret};
use super::routes::Server;
use super::state::State;
use super::tls::Tls;
use super::watcher::Watcher;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, CYAN, DIM, YELLOW};
use crate::signals::Signals;

/// How many connections there can be.
const CONNECTIONS: usize = 256;
/// How long a request may take to arrive.
const ARRIVES: Duration = Duration::from_secs(10);
/// How often is looked whether to end.
const SLICE: Duration = Duration::from_millis(100);

/// Serves the page until Ctrl-C.
pub(crate) fn run(args: &WebArgs, context: &mut Context) -> Result<Exit, Failure> {
    let (token, tls) = (token(args)?, Tls::of(args)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("no event loop: {error}")))?;
    let signals = Signals::catch()?;
    let exit = runtime.block_on(serve(args, (token, tls), context, &signals));
    // Whoever still waits for a diff does not keep the process.
    runtime.shutdown_background();
    exit
}

/// The token: of the file that was named, or a new one.
fn token(args: &WebArgs) -> Result<String, Failure> {
    let Some(path) = &args.token_file else {
        if args.listen.ip().is_loopback() {
            return Ok(secret());
        }
        let message = format!(
            "{} is more than this machine: it needs a token of its own",
            args.listen
        );
        return Err(Failure::usage("needs_token", message).with_hint(
            "write one: `(umask 077; openssl rand -hex 32 > token)`, then `--token-file token`; or stay on \
             loopback and use `ssh -L`",
        ));
    };
    let shown = path.display();
    let bad = |why: String| Failure::usage("bad_token", format!("{shown}: {why}"));
    let found = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?;
    if found.permissions().mode() & 0o077 != 0 {
        let error = bad("others can read it".into());
        return Err(error.with_hint(format!("chmod 600 {shown}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let token = text.trim().to_owned();
    let plain = token
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if token.len() < guard::LEAST || !plain {
        let why = format!(
            "a token has at least {} letters, digits, `-` or `_`",
            guard::LEAST
        );
        return Err(bad(why).with_hint(format!("openssl rand -hex 32 > {shown}")));
    }
    Ok(token)
}

async fn serve(
    args: &WebArgs,
    (token, tls): (String, Option<Tls>),
    context: &mut Context,
    signals: &Signals,
) -> Result<Exit, Failure> {
    let listener = listen(args.listen).await?;
    let at = listener
        .local_addr()
        .map_err(|error| Failure::failed("io", error.to_string()))?;
    let guard = Guard::new(token, at, tls.as_ref().map(|tls| tls.names.clone()));
    let url = guard.url();
    let state = Arc::new(State::new(&secret()[..12]));
    let stop = Arc::new(AtomicBool::new(false));
    let watcher = Watcher::start(&context.workplace, &state, &stop)?;
    let server = Arc::new(Server::new(guard, state, watcher, &context.workplace));
    announce(args, at, &url, context)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let exit = loop {
        if let Some(exit) = signals.came() {
            break exit;
        }
        let accepted = tokio::time::timeout(SLICE, listener.accept()).await;
        let Ok(Ok((stream, _))) = accepted else {
            continue;
        };
        // One too many is closed; a browser tries again.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let (server, tls) = (Arc::clone(&server), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => answer(server, stream).await,
                Some(tls) => {
                    let agreed = tokio::time::timeout(ARRIVES, tls.acceptor.accept(stream)).await;
                    match agreed {
                        Ok(Ok(stream)) => answer(server, stream).await,
                        Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
                        Err(_) => tracing::debug!("TLS took too long"),
                    }
                }
            }
            drop(place);
        });
    };
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    server.watcher.wake();
    Ok(exit)
}

/// Answers the requests of one connection.
async fn answer(server: Arc<Server>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let answer = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
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

/// Takes the address, or on loopback the next free one if its usual port is taken.
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

fn announce(
    args: &WebArgs,
    at: SocketAddr,
    url: &str,
    context: &mut Context,
) -> Result<(), Failure> {
    if !at.ip().is_loopback() && args.tls_cert.is_none() {
        context.out.note(&format!(
            "{YELLOW}⚠{YELLOW:#} {at} is plain HTTP: whoever can listen on the way reads the token and everything else, and \
             can do all that you can do with ccb. Safer: `--tls-cert` and `--tls-key`, or stay on loopback and use \
             `ssh -L 7317:127.0.0.1:7317`."
        ));
    }
    context.out.answer(
        || json!({ "web": {"url": url, "address": at.to_string()} }),
        || format!("{BOLD}{CYAN}{url}{CYAN:#}{BOLD:#}\n{DIM}The address has the token: keep it to yourself. Ctrl-C ends the page, and nothing else.{DIM:#}"),
    )?;
    let attended = std::io::stdout().is_terminal() && !context.out.is_json();
    if attended && !args.no_open {
        open(url, context.home().ours().as_path());
    }
    Ok(())
}

/// Opens the page in the user's browser, if there is one. The address goes by way of a file, because
/// others on this machine can see the arguments of programs.
fn open(url: &str, dir: &Path) {
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>ccb</title><meta http-equiv=\"refresh\" content=\"0;url={url}\">"
    );
    let path = dir.join("web.html");
    let written = home::create_private_dir(dir)
        .and_then(|()| atomic::replace(dir, &path, page.as_bytes(), Durability::Relaxed));
    if written.is_err() {
        return;
    }
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    // Without a browser the address is on the screen.
    Command::new(program)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok();
}
