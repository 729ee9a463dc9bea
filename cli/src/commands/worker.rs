//! `ccb worker`: this machine works on a board that several machines share.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coordinator::worker::{self, DirectorEvent, SLOTS, Worker, WorkerRequest};
use serde_json::json;
use store::Failure;
use store::clock::{Clock, SystemClock, rfc3339};
use store::duration::DurationFormat;
use swarm::definitions::PermissionMode;

use crate::args::permission_mode;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, PLAIN, clean_line};
use crate::session::{EventPlace, event_json, event_text};
use crate::signals::Signals;

/// Indentation as wide as the time before each line.
const INDENT: &str = "         ";

const CHECK: DurationFormat = DurationFormat::SECONDS
    .at_least(Duration::from_secs(1))
    .at_most(Duration::from_secs(86_400));

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The repository: an address that is cloned, or a directory with a remote
    #[arg(long, value_name = "URL", default_value = ".")]
    repo: String,
    /// How many agents work at once on this machine
    #[arg(long, value_name = "N", default_value_t = SLOTS, value_parser = slots)]
    slots: usize,
    /// What runs tasks that have no command [default: as for a session]
    #[arg(long, value_name = "NAME")]
    runtime: Option<String>,
    /// The model of agents
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What agents may do without asking
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    permission_mode: Option<PermissionMode>,
    /// A label that tasks can ask for with --needs, such as gpu; can be repeated. Every worker has
    /// os=…, arch=…, runtime=… and repo=…
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// The worker's name on the board; agents are NAME-1, NAME-2, … [default: the host's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The branch of the remote that work starts from [default: the remote's default branch]
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// Land finished work on this branch of the remote [default: it stays at the remote under refs/ccb/]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// A command that must succeed on everything that lands
    #[arg(long, value_name = "CMD", requires = "into")]
    check: Option<String>,
    /// How often a task is tried [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    attempts: Option<u16>,
    /// How long a check may take, such as 90s or 10m [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| CHECK.read(text))]
    verify_timeout: Option<Duration>,
    /// End when nothing is left to do on the board, instead of waiting for more
    #[arg(long)]
    until_done: bool,
}

fn slots(text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| "a number from 1 to 1000".into())
}

pub(crate) fn run(args: &WorkerArgs, context: &mut Context) -> Result<Exit, Failure> {
    if !context.is_in_database() {
        // The usual error is found here, before the repository is cloned.
        Worker::prepare(&args.request(), context)?;
    }
    if !context.out.is_json() && !context.quiet {
        let note = format!("preparing {}", clean_line(&args.repo));
        context.out.note(&note);
    }
    let directory = worker::repository(&args.repo, args.branch.as_deref(), context)?;
    let workplace = context.workplace.moved_to(&directory)?;
    // Without a name it is the repository's list, which is the same on every machine.
    let list = match context.named_list() {
        Some(list) => list,
        None => workplace.team()?,
    };
    let workplace = workplace.in_team(&list);
    let worker = Worker::prepare(&args.request(), &workplace)?;
    let signals = Signals::catch()?;
    let mut view = View {
        context,
        place: EventPlace::of_worker(list.as_str(), worker.lands_on()),
    };
    view.begun(&worker, args.slots);
    let interrupted: Arc<dyn Fn() -> Option<u8> + Send + Sync> = Arc::new(move || signals.take());
    let verdict = worker.run(&interrupted, &mut |event| view.event(event))?;
    view.ended(&worker);
    Ok(verdict.into())
}

impl WorkerArgs {
    fn request(&self) -> WorkerRequest {
        WorkerRequest {
            name: self.name.clone(),
            slots: self.slots,
            runtime: self.runtime.clone(),
            model: self.model.clone(),
            permission_mode: self.permission_mode.map(|mode| mode.as_str().to_owned()),
            labels: self.labels.clone(),
            branch: self.branch.clone(),
            into: self.into.clone(),
            check: self.check.clone(),
            attempts: self.attempts,
            verify_timeout: self.verify_timeout,
            until_done: self.until_done,
        }
    }
}

/// A worker's output: lines for people, events with `--json`.
struct View<'a> {
    context: &'a mut Context,
    place: EventPlace,
}

impl View<'_> {
    fn begun(&mut self, worker: &Worker, slots: usize) {
        let labels: Vec<&str> = worker.labels.iter().map(String::as_str).collect();
        let (branch, remote) = (&worker.branch, &worker.remote);
        let json = json!({"event": "begin", "worker": worker.name.as_str(), "slots": slots,
            "branch": format!("{remote}/{branch}"), "into": worker.lands_on(), "labels": labels});
        let lands = match worker.lands_on() {
            Some(into) => format!("work lands on {into}"),
            None => format!("results stay at {remote} under refs/ccb/"),
        };
        let text = format!(
            "{BOLD}worker {}{BOLD:#}: {slots} at once, from {remote}/{branch}; {lands}\n{DIM}labels: {}{DIM:#}",
            worker.name,
            clean_line(&labels.join(", "))
        );
        self.say(json, &text);
    }

    fn event(&mut self, event: &DirectorEvent) {
        // A worker is idle often, which needs no line.
        if matches!(event, DirectorEvent::Idle { .. }) {
            return;
        }
        let text = event_text(event, PLAIN, &self.place);
        self.say(event_json(event), &text);
    }

    fn ended(&mut self, worker: &Worker) {
        let json = json!({"event": "end", "worker": worker.name.as_str()});
        self.say(json, &format!("worker {} has ended", worker.name));
    }

    fn say(&mut self, mut json: serde_json::Value, text: &str) {
        let now = rfc3339(SystemClock.now_ms());
        if self.context.out.is_json() {
            json["ts"] = now.into();
            // If the reader of stdout has gone, the work continues.
            self.context.out.json(&json).ok();
            return;
        }
        if text.is_empty() || self.context.quiet {
            return;
        }
        let time = now.get(11..19).unwrap_or_default();
        let line = format!("{DIM}{time}{DIM:#} {text}");
        self.context.out.note_with(&line, INDENT);
    }
}
