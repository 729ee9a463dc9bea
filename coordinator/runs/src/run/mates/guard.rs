//! The guard of several runs whose hosts share one process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use store::lock::FileLock;
use swarm::process::{children_of_this, end_descendants, pair, receive, send};
use swarm::run::{By, Exit, HandedRun, RunDir, exit_of_dead};
use swarm::starter::Starter;

use super::super::agents::Agents;
use super::super::entry::open;
use super::super::error::AgentError;
use super::super::finish;
use super::{
    FINISHED, GIVEN_UP, LOG, MATES, RESULT_WRITTEN, RETIRES, TAKEN, address, named, socket_path,
};
use crate::env::OWN_PROGRAM;
use crate::peer::Peer;

/// Maximum time for killed processes to die.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time until the process that has started a guard must call it.
const FIRST_CALLER: Duration = Duration::from_secs(30);
/// Interval at which the guard checks for abandoned processes.
const LOOK: Duration = Duration::from_secs(2);
/// How the C library is to keep memory: a process of hundreds of threads would have an arena for
/// every few of them, each with its own holes, and would keep the memory of a long answer that it
/// needed for a moment.
const THRIFTY: [(&str, &str); 2] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "16384"),
];
/// Maximum number of deaths of a run's process before it is not restarted here: the run may be what
/// kills it.
const MOST_RESTARTS: u32 = 4;

/// Runs the guard of a team's teammates, with ccb's directory of the team in `dir`, until no
/// process needs it.
pub fn mates_guard_main(dir: &Path) -> Result<(), AgentError> {
    let failed = |error: io::Error| AgentError::Invalid(format!("{}: {error}", dir.display()));
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    rustix::process::setsid().ok();
    log_to(dir);
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|error| failed(error.into()))?;
    let mut guard = MatesGuard {
        began: Instant::now(),
        dir: dir.to_owned(),
        listener: Some(listen(dir).map_err(failed)?),
        callers: Vec::new(),
        process: None,
        runs: BTreeMap::new(),
    };
    tell_starter();
    while guard.needed() {
        guard.round().map_err(failed)?;
    }
    if let Some(mut process) = guard.process.take() {
        // The end of its orders tells it that this guard is gone.
        drop(process.orders);
        process.child.wait().ok();
    }
    end_descendants(KILL_TIMEOUT);
    if guard.listener.take().is_some() {
        store::atomic::remove(&socket_path(dir))?;
    }
    Ok(())
}

/// Standard error is a log that both write to the end of.
fn log_to(dir: &Path) {
    let log = || {
        let log = store::atomic::open_private(&dir.join(LOG)).ok()?;
        rustix::fs::fcntl_setfl(&log, rustix::fs::OFlags::APPEND).ok()?;
        rustix::stdio::dup2_stderr(&log).ok()
    };
    if log().is_none() {
        tracing::debug!("the guard of the mates has no log");
    }
}

fn listen(dir: &Path) -> io::Result<OwnedFd> {
    // The earlier listener is gone: only one guard at a time is started.
    store::atomic::remove(&socket_path(dir)).map_err(io::Error::other)?;
    let (_open, address) = address(dir)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

/// False for an agent's process: the guard starts without a confinement what it is given, and agents
/// that start others do that below their own supervisors (`may_share`).
fn is_welcome(caller: &OwnedFd) -> bool {
    let peer = Peer::of_unix(caller);
    let welcome = matches!(peer, Peer::Outside(_));
    if !welcome {
        tracing::warn!("{} may not hand over runs", peer.in_words());
    }
    welcome
}

/// Reports that the guard runs, and closes the pipe.
fn tell_starter() {
    let mut stdout = io::stdout();
    stdout.write_all(b"\n").and_then(|()| stdout.flush()).ok();
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        rustix::stdio::dup2_stdout(&null).ok();
    }
}

/// A run that is guarded.
struct Guarded {
    run: RunDir,
    /// Its lock is held as long as the run is supervised.
    handed: HandedRun,
    /// Held until the run's end is written down.
    result: Option<FileLock>,
}

/// The process in which hosts and agents are.
struct Process {
    child: Child,
    /// The process gets runs from here, and reports their ends.
    orders: OwnedFd,
    /// Never read: it breaks when this guard dies, which the hosts see.
    _alive: io::PipeReader,
}

struct MatesGuard {
    began: Instant,
    dir: PathBuf,
    /// `None` if the guard takes no more runs.
    listener: Option<OwnedFd>,
    callers: Vec<OwnedFd>,
    process: Option<Process>,
    runs: BTreeMap<PathBuf, Guarded>,
}

impl MatesGuard {
    fn needed(&self) -> bool {
        let may_get_more = !self.callers.is_empty() || !self.has_begun();
        !self.runs.is_empty() || (self.listener.is_some() && may_get_more)
    }

    /// True if the process that started this guard has connected, or had the time to.
    fn has_begun(&self) -> bool {
        self.process.is_some() || self.began.elapsed() > FIRST_CALLER
    }

    /// Waits for something to happen and does what is to be done about it.
    fn round(&mut self) -> io::Result<()> {
        let mut fds = Vec::new();
        if let Some(process) = &self.process {
            fds.push(PollFd::new(&process.orders, PollFlags::IN));
        }
        if let Some(listener) = &self.listener {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        fds.extend(
            self.callers
                .iter()
                .map(|one| PollFd::new(one, PollFlags::IN)),
        );
        let look = Timespec::try_from(LOOK).ok();
        match rustix::event::poll(&mut fds, look.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let process = self.process.is_some() && ready.next() == Some(true);
        let listener = self.listener.is_some() && ready.next() == Some(true);
        let callers: Vec<bool> = ready.collect();
        drop(fds);
        if process {
            self.hear()?;
        }
        if listener && let Some(listener) = &self.listener {
            let came = rustix::net::accept_with(listener, SocketFlags::CLOEXEC);
            self.callers.extend(came.into_iter().filter(is_welcome));
        }
        let mut at = 0;
        for ready in callers {
            match ready && !self.serve(at) {
                true => drop(self.callers.remove(at)),
                false => at += 1,
            }
        }
        self.end_abandoned();
        Ok(())
    }

    /// Takes in a run of the caller at `at`; false if the caller is gone, or sends an unknown
    /// message.
    fn serve(&mut self, at: usize) -> bool {
        let asked = match HandedRun::receive(&self.callers[at]) {
            Ok(Some(asked)) => asked,
            Ok(None) => return false,
            Err(error) => {
                tracing::warn!(%error, "a caller is not understood");
                return false;
            }
        };
        let taken = self.take_in(asked);
        let answer: &[u8] = match taken {
            Ok(()) => TAKEN,
            Err(error) => {
                tracing::warn!(%error, "a run is not taken in");
                b"no"
            }
        };
        send(&self.callers[at], answer, &[]).is_ok()
    }

    fn take_in(&mut self, handed: HandedRun) -> io::Result<()> {
        if self.listener.is_none() {
            return Err(io::Error::other("nobody more is taken in"));
        }
        let path = handed.dir.clone();
        // <home>/teams/<team>/runs/<id> beside <home>/teams/<team>/.ccb
        let real = |dir: &Path| dir.canonicalize().ok();
        let runs = self.dir.parent().and_then(|team| real(&team.join("runs")));
        if runs.is_none() || path.parent().and_then(real) != runs {
            let path = path.display();
            return Err(io::Error::other(format!("{path}: no run of this team")));
        }
        let (run, _) = open(&path).map_err(io::Error::other)?;
        let result = run.hold_result().map_err(io::Error::other)?;
        let guarded = Guarded {
            run,
            handed,
            result: Some(result),
        };
        self.hand_on(&guarded)?;
        self.runs.insert(path, guarded);
        Ok(())
    }

    /// Gives a run to the process, which is started if there is none.
    fn hand_on(&mut self, guarded: &Guarded) -> io::Result<()> {
        if self.process.is_none() {
            self.process = Some(start(&self.dir)?);
        }
        let Some(process) = &self.process else {
            return Ok(());
        };
        guarded.handed.send(&process.orders)
    }

    /// Reads a message of the process about its runs, or learns that the process is gone.
    fn hear(&mut self) -> io::Result<()> {
        let Some(process) = &self.process else {
            return Ok(());
        };
        let Some(said) = receive(&process.orders)? else {
            self.process_died();
            return Ok(());
        };
        let (what, path) = said.bytes.split_first().unwrap_or((&0, &[]));
        let path = named(path);
        match *what {
            RESULT_WRITTEN => {
                if let Some(guarded) = self.runs.get_mut(&path) {
                    guarded.result = None;
                }
            }
            FINISHED => drop(self.runs.remove(&path)),
            GIVEN_UP => {
                if let Some(guarded) = self.runs.remove(&path) {
                    finish_dead(guarded, "its host gave up");
                }
            }
            RETIRES => self.retire(),
            _ => tracing::warn!("the process says what nobody understands"),
        }
        Ok(())
    }

    /// Starts further runs elsewhere; the present ones continue to their end, and then the process
    /// ends, with the thread that does not.
    fn retire(&mut self) {
        if self.listener.take().is_some()
            && let Err(error) = store::atomic::remove(&socket_path(&self.dir))
        {
            tracing::warn!(%error, "the socket stays");
        }
        self.callers.clear();
    }

    /// Ends what the process left, and lets its agents go on in another one.
    fn process_died(&mut self) {
        let how = match self.process.take() {
            Some(mut process) => match process.child.wait() {
                Ok(status) => format!("the process it shares with others died ({status})"),
                Err(error) => format!("the process it shares with others is gone: {error}"),
            },
            None => return,
        };
        let left = end_descendants(KILL_TIMEOUT);
        if !left.is_empty() {
            tracing::error!(?left, "processes of the mates do not die");
        }
        let mut over = Vec::new();
        for (path, guarded) in std::mem::take(&mut self.runs) {
            if goes_on(&guarded.run) {
                match self.hand_on(&guarded) {
                    Ok(()) => {
                        self.runs.insert(path, guarded);
                        continue;
                    }
                    Err(error) => tracing::error!(%error, "a run does not go on"),
                }
            }
            over.push(guarded);
        }
        for guarded in over {
            finish_dead(guarded, &how);
        }
    }

    /// An inherited process belonged to an agent whose keeper was killed: no other process would
    /// end it.
    fn end_abandoned(&self) {
        let process = self.process.as_ref();
        let own = process.and_then(|process| i32::try_from(process.child.id()).ok());
        let own = own.and_then(Pid::from_raw);
        let abandoned = children_of_this().into_iter();
        for pid in abandoned.filter(|pid| Some(*pid) != own) {
            rustix::process::kill_process(pid, Signal::KILL).ok();
            rustix::process::waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}

fn start(dir: &Path) -> io::Result<Process> {
    let (orders, theirs) = pair()?;
    let (alive, held) = io::pipe()?;
    let child = Command::new(OWN_PROGRAM)
        .arg(MATES)
        .arg(dir)
        .envs(THRIFTY)
        .stdin(Stdio::from(theirs))
        .stdout(held)
        .spawn()?;
    Ok(Process {
        child,
        orders,
        _alive: alive,
    })
}

/// True if the agent continues in another process; its record says so.
fn goes_on(run: &RunDir) -> bool {
    let decide = || {
        let mut meta = run.meta()?;
        let ended = run.exit(meta.life)?.is_some() || run.stop_request(meta.life)?.is_some();
        if ended || meta.restarts >= MOST_RESTARTS {
            return Ok(false);
        }
        meta.restarts += 1;
        meta.pid = None;
        if meta.session.is_none() {
            // Its host had no time to read the message.
            let kept = run.conversation();
            meta.session = kept.map(|path| path.to_string_lossy().into_owned());
        }
        run.write_meta(&meta)?;
        Ok::<_, AgentError>(true)
    };
    decide().unwrap_or_else(|error| {
        tracing::error!(%error, "a run cannot go on");
        false
    })
}

/// Does all remaining work for a run whose host is gone.
fn finish_dead(guarded: Guarded, why: &str) {
    let Guarded {
        run,
        handed,
        mut result,
    } = guarded;
    let mut finished = || {
        let (run, home) = open(run.path())?;
        let meta = run.meta()?;
        let exit: Exit = match run.exit(meta.life)? {
            Some(exit) => exit,
            None => exit_of_dead(&run, &meta, By::Guard, why.to_owned()),
        };
        let given = handed.environment().unwrap_or_default();
        let starter = Starter::with_environment(given, Vec::new(), &meta.launch.redact_env);
        let agents = Agents::of_run(home, &meta, starter)?;
        finish::finish(&agents, &run, &exit, None, &mut || drop(result.take()))
    };
    let finished: Result<(), AgentError> = finished();
    if let Err(error) = finished {
        // The next command does it.
        tracing::error!(%error, "a run is not finished");
    }
    drop(handed);
}
