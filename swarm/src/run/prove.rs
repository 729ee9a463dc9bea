//! The last part of a life that went well: whether what the agent did counts.
//!
//! The agent is gone, and so is everything it started. What it did is sealed, the check runs
//! on exactly that, under the same supervision as the agent before it, and afterwards it must
//! still be what is there. A check that itself changes files is made once more with what it
//! changed; if it changes them again, nobody can say what was checked.

use std::io;
use std::os::fd::AsFd;

use rustix::process::Signal;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::exit::{Checked, Exit, ExitStatus};
use super::guard::stop_words;
use super::host::{DYING, HostError, HostOptions, at, rung};
use super::output::Output;
use super::ports::{Ports, Seal};
use super::run_dir::RunDir;
use super::veil::Veil;
use crate::process::{Processes, end_descendants, signal_group};
use crate::runtime::{Event, Launch, Runtime, ShellRuntime, TurnEnd, TurnStatus};

/// How often a check may be made because the last one changed what it checked.
const ROUNDS: usize = 2;

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
    let mut moved = None;
    for _ in 0..ROUNDS {
        let seal = match ports.seal() {
            Ok(Some(seal)) => seal,
            Ok(None) => return Ok(()),
            Err(error) => {
                fail(exit, format!("what it did cannot be checked: {error}"));
                return Ok(());
            }
        };
        exit.proof = Some(seal.proof.clone());
        let Some(command) = &seal.check else {
            return Ok(());
        };
        let begun = Instant::now();
        let end = checks.make(command, &seal).await?;
        end_descendants(DYING);
        let (passed, how) = match &end {
            End::Passed => (true, None),
            End::Failed(how) | End::Stopped(_, how) => (false, Some(how.clone())),
        };
        let checked = Checked {
            command: command.clone(),
            passed,
            how: how.clone(),
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(0),
            log: run.check_path().to_string_lossy().into_owned(),
        };
        exit.duration_ms += checked.duration_ms;
        if let Some(proof) = &mut exit.proof {
            proof.check = Some(checked);
        }
        match end {
            End::Failed(how) => {
                fail(exit, format!("the check `{command}` failed: {how}"));
                return Ok(());
            }
            End::Stopped(status, why) => {
                fail(exit, why);
                exit.status = status;
                return Ok(());
            }
            End::Passed => {}
        }
        match ports.unsealed(&seal.proof) {
            Ok(None) => return Ok(()),
            Ok(Some(why)) => moved = Some(why),
            Err(error) => moved = Some(error.to_string()),
        }
    }
    let why = moved.unwrap_or_default();
    fail(exit, format!("nobody can say what was checked: {why}"));
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
    /// Runs a check to its end.
    async fn make(&self, command: &str, seal: &Seal) -> Result<End, HostError> {
        let Self {
            run,
            life,
            options,
            processes,
            ..
        } = *self;
        let launch = Launch {
            prompt: command.to_owned(),
            ..self.launch.clone()
        };
        let mut agent = match ShellRuntime::default().launch(launch, processes) {
            Ok(agent) => agent,
            Err(error) => return Ok(End::Failed(error.to_string())),
        };
        let control = run.bell()?;
        let control = pipe::Receiver::from_owned_fd(control.as_fd().try_clone_to_owned()?)?;
        let guard = pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)?;
        let mut terminate = signal(SignalKind::terminate())?;
        let deadline = Instant::now() + seal.timeout;
        let mut veil = Veil::new(&options.secrets);
        let mut log = Output::afresh(run, "check", options.output_limit)?;
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
                    let how = format!("it took longer than {} s", seal.timeout.as_secs());
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

/// How a check failed: what the shell says, and what it printed last.
fn words(turn: &TurnEnd) -> String {
    let how = turn.error.clone().unwrap_or_else(|| "it failed".into());
    match turn.text.trim_end() {
        "" => how,
        printed => format!("{how}\n{printed}"),
    }
}
