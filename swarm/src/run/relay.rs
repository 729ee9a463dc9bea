//! ccb's own tools for an agent that is confined as a whole.
//!
//! The program starts the server of these tools, which would be confined with it and so could keep
//! neither board nor mail; and if it could, so could every command of the agent. So the program
//! starts `ccb __relay SOCKET` instead, which passes everything on to the host, and the host starts
//! the server outside. The socket carries the bytes for the server's standard input: the agent has
//! its tools, and nothing else of the board.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use store::settings::RuntimeKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::process::{Processes, signal_group};
use crate::runtime::{Launch, McpServer};
use crate::tools::OWN_SERVER;

/// The argument that makes ccb pass on what a server says and hears.
pub const RELAY: &str = "__relay";

/// Maximum servers of one agent at once. Programs start one, and one more for each of their own
/// helpers.
const MOST: usize = 16;
/// The name of the socket, in the agent's directory for temporary files.
const SOCKET: &str = "ccb.sock";

/// Maximum time for servers to end when the agent is gone.
const GRACE: Duration = Duration::from_secs(2);

/// Takes connections until it is dropped.
pub(super) struct Relay {
    task: JoinHandle<()>,
    socket: PathBuf,
    /// Each server has one of these.
    places: Arc<Semaphore>,
    running: Arc<Mutex<HashSet<Pid>>>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::debug!(%error, "the socket of the tools is gone already");
        }
    }
}

impl Relay {
    /// Ends the servers after the agent's end: they get no more input. None of them counts as a
    /// process that the agent left behind.
    pub(super) async fn end(self) {
        self.task.abort();
        let everyone = u32::try_from(MOST).unwrap_or(u32::MAX);
        let all_ended = || self.places.acquire_many(everyone);
        if timeout(GRACE, all_ended()).await.is_ok() {
            return;
        }
        self.kill_running();
        timeout(GRACE, all_ended()).await.ok();
    }

    fn kill_running(&self) {
        let late = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for pid in late.iter() {
            signal_group(*pid, Signal::KILL);
        }
    }

    /// Lets a program that is confined as a whole start a relay in place of ccb's own server.
    pub(super) fn start(
        launch: &mut Launch,
        kind: RuntimeKind,
        processes: &Processes,
    ) -> io::Result<Option<Self>> {
        // Our own loop is not confined, only its commands.
        let confined = launch.sandbox.is_some() && kind != RuntimeKind::Native;
        let env = launch.env.clone();
        let mut servers = launch.mcp_servers.iter_mut();
        let own = servers.find(|server| server.name == OWN_SERVER);
        let Some(own) = own.filter(|_| confined) else {
            return Ok(None);
        };
        let socket = launch.scratch.join(SOCKET);
        store::tree::delete(&socket).map_err(io::Error::other)?;
        let listener = UnixListener::bind(&socket)?;
        let places = Arc::new(Semaphore::new(MOST));
        let running = Arc::default();
        let server = Server {
            running: Arc::clone(&running),
            own: own.clone(),
            cwd: launch.cwd.clone(),
            env,
            processes: processes.clone(),
        };
        own.args = vec![RELAY.to_owned(), socket.to_string_lossy().into_owned()];
        let task = tokio::spawn(serve(listener, server, Arc::clone(&places)));
        Ok(Some(Self {
            task,
            socket,
            places,
            running,
        }))
    }
}

/// The server as the program would have started it.
#[derive(Clone)]
struct Server {
    own: McpServer,
    cwd: PathBuf,
    env: Vec<(OsString, OsString)>,
    processes: Processes,
    running: Arc<Mutex<HashSet<Pid>>>,
}

async fn serve(listener: UnixListener, server: Server, places: Arc<Semaphore>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        // More than that are closed at once.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            if let Err(error) = server.answer(stream).await {
                tracing::warn!(%error, "the agent's tools have ended");
            }
            drop(place);
        });
    }
}

impl Server {
    /// Runs a server for as long as the other end is there.
    async fn answer(&self, stream: UnixStream) -> io::Result<()> {
        let mut command = Command::new(&self.own.command);
        command
            .args(&self.own.args)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs(&self.own.env);
        let mut child = self.processes.spawn(command, true)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) = pipes else {
            return Err(io::Error::other("the server has no pipes"));
        };
        self.servers().insert(child.pid);
        let (mut from_agent, mut to_agent) = stream.into_split();
        let asked = async {
            let asked = copy(&mut from_agent, &mut stdin).await;
            // The server ends when its input ends.
            drop(stdin);
            asked
        };
        let answered = async {
            let answered = copy(&mut stdout, &mut to_agent).await;
            to_agent.shutdown().await.ok();
            answered
        };
        let log = async {
            let mut bytes = [0; 4096];
            while matches!(stderr.read(&mut bytes).await, Ok(1..)) {}
        };
        let ((), answered, ()) = tokio::join!(
            async {
                if let Err(error) = asked.await {
                    tracing::debug!(%error, "the agent's end of its tools is gone");
                }
            },
            answered,
            log
        );
        // A server that has closed its output may still run.
        signal_group(child.pid, Signal::KILL);
        child.ended.await.ok();
        self.servers().remove(&child.pid);
        answered.map(drop)
    }

    fn servers(&self) -> MutexGuard<'_, HashSet<Pid>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes standard input to the socket, and what comes from there to standard output.
pub fn relay_main(socket: &Path) -> io::Result<()> {
    let stream = BlockingStream::connect(socket)?;
    let mut to_host = stream.try_clone()?;
    std::thread::spawn(move || {
        pass(&mut io::stdin().lock(), &mut to_host).ok();
        to_host.shutdown(Shutdown::Write).ok();
    });
    pass(&mut &stream, &mut io::stdout().lock())
}

/// Everything at once: a line must not wait for the next one.
fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut bytes = [0; 16 * 1024];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&bytes[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
