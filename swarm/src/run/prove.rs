//! The last part of a life that went well: does the agent's work count?
//!
//! The agent is gone, and so is everything it started. Its work is sealed as a commit, and the
//! check runs on exactly that, in a place the agent never worked in, under the same supervision as
//! the agent before it. Files that the check leaves there are ignored. Where nothing can be sealed
//! the check runs in place, and the outcome says so.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::exit::{CheckEnd, CheckPlace, Checked, Exit, ExitStatus};
use super::guard::stop_words;
use super::host::{HostError, HostOptions, KILL_TIMEOUT, at, rung};
use super::output::Output;
use super::run_dir::RunDir;
use super::services::{HostServices, Seal};
use crate::process::{Ending, Processes};
use crate::runtime::{Event, EventRedactor, Launch, Runtime, ShellRuntime};

/// The name of the log of the setup.
const SET_UP_LOG: &str = "check-setup";

/// Bytes at the end of a check's output that are reported.
const PRINTED: u64 = 4 * 1024;

/// The outcome of a check.
enum Outcome {
    Passed,
    /// The end of the check, and its words.
    Failed(CheckEnd, String),
    /// The run is to end, and how.
    Stopped(ExitStatus, String),
}

/// Seals and checks what the agent did; writes into `exit` what came of it.
pub(super) async fn prove(
    run: &RunDir,
    exit: &mut Exit,
    launch: &Launch,
    services: &mut dyn HostServices,
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
    let seal = match services.seal() {
        Ok(Some(seal)) => seal,
        Ok(None) => return Ok(()),
        Err(error) => {
            fail(exit, format!("what it did cannot be checked: {error}"));
            if error.passing {
                // The agent did not cause that.
                exit.status = ExitStatus::Lost;
            }
            return Ok(());
        }
    };
    exit.proof = Some(seal.proof.clone());
    if let Some(why) = seal.refused {
        fail(exit, why);
        return Ok(());
    }
    let Some(command) = &seal.check else {
        return Ok(());
    };
    let begun = Instant::now();
    let (what, mut outcome, first) = checks.all(command, &seal).await?;
    processes.end_all(KILL_TIMEOUT);
    let passed = matches!(outcome, Outcome::Passed);
    let hint = services.checked(passed);
    if let (Outcome::Failed(_, how), Some(hint)) = (&mut outcome, hint) {
        *how = format!("{how}\n{hint}");
    }
    let (end, how) = match &outcome {
        Outcome::Passed => (CheckEnd::Passed, None),
        Outcome::Failed(end, how) => (*end, Some(how.clone())),
        Outcome::Stopped(_, how) => (CheckEnd::Stopped, Some(how.clone())),
    };
    let checked = Checked {
        command: command.clone(),
        passed,
        end: Some(end),
        how,
        flaky: first.filter(|_| passed),
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(0),
        log: run.check_path().to_string_lossy().into_owned(),
        place: match seal.check_dir {
            Some(_) => CheckPlace::Commit,
            None => CheckPlace::InPlace,
        },
    };
    exit.duration_ms += checked.duration_ms;
    if let Some(proof) = &mut exit.proof {
        proof.check = Some(checked);
    }
    match outcome {
        Outcome::Passed => {}
        Outcome::Failed(_, how) => fail(exit, format!("{what} failed: {how}")),
        Outcome::Stopped(status, why) => {
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

/// The input of every check of a run.
struct Checks<'a> {
    run: &'a RunDir,
    life: u32,
    launch: &'a Launch,
    options: &'a HostOptions,
    processes: &'a Processes,
}

impl Checks<'_> {
    /// Runs the set-up of the place, if there is one, and then the check, again if it fails and
    /// that is wanted. Says which of them the end is that of, and how the check failed at first.
    async fn all(
        &self,
        command: &str,
        seal: &Seal,
    ) -> Result<(String, Outcome, Option<String>), HostError> {
        let mut launch = self.launch.clone();
        if let Some(check_dir) = &seal.check_dir {
            launch.cwd.clone_from(&check_dir.dir);
            launch.env.retain(|(name, _)| !leads_elsewhere(name));
            for (name, value) in &check_dir.env {
                launch.env.retain(|(known, _)| known != name);
                launch.env.push((name.clone(), value.clone()));
            }
            if let Some(set_up) = &check_dir.set_up {
                launch.prompt.clone_from(set_up);
                let outcome = self.make(&launch, SET_UP_LOG, check_dir.set_up_timeout);
                let outcome = outcome.await?;
                if !matches!(outcome, Outcome::Passed) {
                    let what = format!("the set-up `{set_up}` of the worktree for the check");
                    return Ok((what, outcome, None));
                }
                self.processes.end_all(KILL_TIMEOUT);
            }
        }
        // Through one pipe, so that the log has everything in the order in which it was printed.
        launch.prompt = format!("exec 2>&1; {command}");
        let mut first = None;
        let mut left = seal.retries;
        let outcome = loop {
            let outcome = self.make(&launch, "check", seal.timeout).await?;
            match &outcome {
                Outcome::Failed(end, how) if left > 0 && may_pass_later(*end) => {
                    first.get_or_insert_with(|| how.clone());
                    left -= 1;
                    self.processes.end_all(KILL_TIMEOUT);
                }
                _ => break outcome,
            }
        };
        Ok((format!("the check `{command}`"), outcome, first))
    }

    /// Runs one command to its end.
    async fn make(
        &self,
        launch: &Launch,
        log: &str,
        timeout: Duration,
    ) -> Result<Outcome, HostError> {
        let Self {
            run,
            life,
            options,
            processes,
            ..
        } = *self;
        // A stop may have been requested while the place was made ready.
        if let Some(stop) = run.stop_request(life)? {
            let why = stop_words(&stop.by, stop.reason);
            return Ok(Outcome::Stopped(ExitStatus::Killed, why));
        }
        let mut agent = match ShellRuntime::default().launch(launch.clone(), processes) {
            Ok(agent) => agent,
            Err(error) => return Ok(Outcome::Failed(CheckEnd::NotRun, error.to_string())),
        };
        let control = run.bell()?;
        let control = pipe::Receiver::from_owned_fd(control.as_fd().try_clone_to_owned()?)?;
        let guard = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
        let mut terminate = signal(SignalKind::terminate())?;
        let deadline = Instant::now() + timeout;
        let mut redactor = EventRedactor::new(&options.secrets);
        let mut log = Output::afresh(run, log, options.output_limit)?;
        let mut has_result = false;
        let mut ending = Ending::Unknown;
        let mut stopped: Option<Outcome> = None;
        loop {
            let stop = tokio::select! {
                event = agent.events.recv() => match event.map(|event| redactor.redact(event)) {
                    None => break,
                    Some(Event::Ended(how)) => {
                        ending = how;
                        break;
                    }
                    Some(Event::Output { bytes, .. }) => {
                        log.write(&bytes).ok();
                        continue;
                    }
                    Some(Event::TurnEnded(_)) => {
                        has_result = true;
                        continue;
                    }
                    Some(_) => continue,
                },
                heard = rung(Some(&control)) => {
                    heard?;
                    match run.stop_request(life)? {
                        Some(stop) => {
                            Outcome::Stopped(ExitStatus::Killed, stop_words(&stop.by, stop.reason))
                        }
                        None => continue,
                    }
                }
                ready = guard.ready(Interest::ERROR), if stopped.is_none() => {
                    ready?;
                    Outcome::Stopped(ExitStatus::Lost, "its guard died, so it was ended".into())
                }
                _ = terminate.recv() => {
                    Outcome::Stopped(ExitStatus::Killed, "its host got SIGTERM".into())
                }
                () = at(Some(deadline)), if stopped.is_none() => {
                    let how = format!("it took longer than {} s", timeout.as_secs());
                    Outcome::Failed(CheckEnd::TimedOut, how)
                }
            };
            stopped.get_or_insert(stop);
            processes.signal_all(Signal::KILL);
        }
        for (_, bytes) in redactor.rest() {
            log.write(&bytes).ok();
        }
        Ok(stopped.unwrap_or_else(|| outcome(has_result, ending, &log)))
    }
}

/// True if a check that ended so may pass when it is run again. A program that is not there will
/// not be there then.
fn may_pass_later(end: CheckEnd) -> bool {
    match end {
        CheckEnd::Failed(code) => !matches!(code, 126 | 127),
        CheckEnd::Killed(_) => true,
        _ => false,
    }
}

/// The outcome of a check that ended by itself. `log` has its output.
fn outcome(has_result: bool, ending: Ending, log: &Output) -> Outcome {
    match ending.into() {
        CheckEnd::Passed if has_result => Outcome::Passed,
        end if has_result => Outcome::Failed(end, words(ending, log)),
        _ => Outcome::Failed(CheckEnd::Unknown, "it ended without a result".into()),
    }
}

/// True if a variable makes git look at another repository than the one around it.
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

/// The words for a failed check: its exit code, and the end of its output.
fn words(ending: Ending, log: &Output) -> String {
    let how = ending.in_words();
    let how = how.trim_start_matches("ended with ");
    match log.last(PRINTED).trim_end() {
        "" => how.to_owned(),
        printed => format!("{how}\n{printed}"),
    }
}
