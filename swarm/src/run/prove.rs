//! The last part of a life that went well: whether what the agent did counts.
//!
//! The agent is gone, and so is everything it started. What it did is sealed as a commit, and
//! the check runs on exactly that, in a place the agent never worked in, under the same
//! supervision as the agent before it. What the check leaves there is of no interest. Where
//! nothing can be sealed the check runs in place, and the outcome says so.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::exit::{CheckPlace, Checked, Exit, ExitStatus};
use super::guard::stop_words;
use super::host::{DYING, HostError, HostOptions, at, rung};
use super::output::Output;
use super::ports::{Ports, Seal};
use super::run_dir::RunDir;
use super::veil::Veil;
use crate::process::{Processes, end_descendants, signal_group};
use crate::runtime::{Event, Launch, Runtime, ShellRuntime, TurnEnd, TurnStatus};

/// Where the output of the set-up is.
const SET_UP_LOG: &str = "check-setup";

/// How a check ended.
enum End {
    Passed,
    Failed(String),
    /// The run is to end, and how.
    Stopped(ExitStatus, String),
}

/// Seals and checks what the agent did; writes into `exit` what came of it.
pub(super) async fn prove(
    run: &RunDir,
    exit: &mut Exit,
    launch: &Launch,
    ports: &mut dyn Ports,
    options: &HostOptions,
    processes: &Processes,
) -> Result<(), HostError> {
    let checks = Checks {
        run,
        life: exit.life,
        launch,
        options,
        processes,
    };
    let seal = match ports.seal() {
        Ok(Some(seal)) => seal,
        Ok(None) => return Ok(()),
        Err(error) => {
            fail(exit, format!("what it did cannot be checked: {error}"));
            if error.passing {
                // That is no fault of the agent's.
                exit.status = ExitStatus::Lost;
            }
            return Ok(());
        }
    };
    exit.proof = Some(seal.proof.clone());
    let Some(command) = &seal.check else {
        return Ok(());
    };
    let begun = Instant::now();
    let (what, end) = checks.all(command, &seal).await?;
    end_descendants(DYING);
    let hint = ports.checked(matches!(end, End::Passed));
    let end = match (end, hint) {
        (End::Failed(how), Some(hint)) => End::Failed(format!("{how}\n{hint}")),
        (end, _) => end,
    };
    let (passed, how) = match &end {
        End::Passed => (true, None),
        End::Failed(how) | End::Stopped(_, how) => (false, Some(how.clone())),
    };
    let checked = Checked {
        command: command.clone(),
        passed,
        how,
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(0),
        log: run.check_path().to_string_lossy().into_owned(),
        place: match seal.bench {
            Some(_) => CheckPlace::Commit,
            None => CheckPlace::InPlace,
        },
    };
    exit.duration_ms += checked.duration_ms;
    if let Some(proof) = &mut exit.proof {
        proof.check = Some(checked);
    }
    match end {
        End::Passed => {}
        End::Failed(how) => fail(exit, format!("{what} failed: {how}")),
        End::Stopped(status, why) => {
            fail(exit, why);
            exit.status = status;
        }
    }
    Ok(())
}

fn fail(exit: &mut Exit, why: String) {
    exit.status = ExitStatus::Failed;
    exit.error = Some(why);
}

/// What every check of a run needs.
struct Checks<'a> {
    run: &'a RunDir,
    life: u32,
    launch: &'a Launch,
    options: &'a HostOptions,
    processes: &'a Processes,
}

impl Checks<'_> {
    /// Runs the set-up of the place, if there is one, and then the check. Says which of them
    /// the end is that of.
    async fn all(&self, command: &str, seal: &Seal) -> Result<(String, End), HostError> {
        let mut launch = self.launch.clone();
        if let Some(bench) = &seal.bench {
            launch.cwd.clone_from(&bench.dir);
            launch.env.retain(|(name, _)| !leads_elsewhere(name));
            for (name, value) in &bench.env {
                launch.env.retain(|(known, _)| known != name);
                launch.env.push((name.clone(), value.clone()));
            }
            if let Some(set_up) = &bench.set_up {
                launch.prompt.clone_from(set_up);
                let end = self.make(&launch, SET_UP_LOG, bench.set_up_timeout);
                let end = end.await?;
                if !matches!(end, End::Passed) {
                    let what = format!("the set-up `{set_up}` of the worktree for the check");
                    return Ok((what, end));
                }
                end_descendants(DYING);
            }
        }
        command.clone_into(&mut launch.prompt);
        let end = self.make(&launch, "check", seal.timeout).await?;
        Ok((format!("the check `{command}`"), end))
    }

    /// Runs one command to its end.
    async fn make(&self, launch: &Launch, log: &str, timeout: Duration) -> Result<End, HostError> {
        let Self {
            run,
            life,
            options,
            processes,
            ..
        } = *self;
        // Somebody may have wished so while the place was made ready.
        if let Some(stop) = run.stop_request(life)? {
            let why = stop_words(&stop.by, stop.reason);
            return Ok(End::Stopped(ExitStatus::Killed, why));
        }
        let mut agent = match ShellRuntime::default().launch(launch.clone(), processes) {
            Ok(agent) => agent,
            Err(error) => return Ok(End::Failed(error.to_string())),
        };
        let control = run.bell()?;
        let control = pipe::Receiver::from_owned_fd(control.as_fd().try_clone_to_owned()?)?;
        let guard = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
        let mut terminate = signal(SignalKind::terminate())?;
        let deadline = Instant::now() + timeout;
        let mut veil = Veil::new(&options.secrets);
        let mut log = Output::afresh(run, log, options.output_limit)?;
        let mut turn: Option<TurnEnd> = None;
        let mut stopped: Option<End> = None;
        loop {
            let stop = tokio::select! {
                event = agent.events.recv() => match event.map(|event| veil.over(event)) {
                    None | Some(Event::Ended(_)) => break,
                    Some(Event::Output { bytes, .. }) => {
                        log.write(&bytes).ok();
                        continue;
                    }
                    Some(Event::TurnEnded(end)) => {
                        turn = Some(end);
                        continue;
                    }
                    Some(_) => continue,
                },
                heard = rung(Some(&control)) => {
                    heard?;
                    match run.stop_request(life)? {
                        Some(stop) => (ExitStatus::Killed, stop_words(&stop.by, stop.reason)),
                        None => continue,
                    }
                }
                ready = guard.ready(Interest::ERROR), if stopped.is_none() => {
                    ready?;
                    (ExitStatus::Lost, "its guard died, so it was ended".to_owned())
                }
                _ = terminate.recv() => (ExitStatus::Killed, "its host got SIGTERM".to_owned()),
                () = at(Some(deadline)), if stopped.is_none() => {
                    let how = format!("it took longer than {} s", timeout.as_secs());
                    (ExitStatus::Failed, how)
                }
            };
            let (status, why) = stop;
            stopped.get_or_insert(match status {
                ExitStatus::Failed => End::Failed(why),
                status => End::Stopped(status, why),
            });
            for pid in processes.running() {
                signal_group(pid, Signal::KILL);
            }
        }
        for (_, bytes) in veil.rest() {
            log.write(&bytes).ok();
        }
        Ok(match (stopped, turn) {
            (Some(end), _) => end,
            (None, Some(turn)) if turn.status == TurnStatus::Completed => End::Passed,
            (None, Some(turn)) => End::Failed(words(&turn)),
            (None, None) => End::Failed("it ended without a result".into()),
        })
    }
}

/// Whether a variable makes git look at another repository than the one around it.
fn leads_elsewhere(name: &OsStr) -> bool {
    const OTHERS: [&str; 7] = [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
    ];
    OTHERS.iter().any(|other| name == *other)
}

/// How a check failed: what the shell says, and what it printed last.
fn words(turn: &TurnEnd) -> String {
    let how = turn.error.clone().unwrap_or_else(|| "it failed".into());
    match turn.text.trim_end() {
        "" => how,
        printed => format!("{how}\n{printed}"),
    }
}
