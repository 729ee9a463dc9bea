//! Runs a plan: the options of the command line, the receiver of events, and the order of the
//! steps.
//!
//! ```text
//! tasks ─▶ board (kept where proven) ─▶ engine ─▶ landing ─▶ results
//! ```
//!
//! All lasting state is on the board and in git: if a run is killed at any point, the next run of
//! the same plan resumes it, and does only the tasks that are not proven yet.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::landing::put_away_superseded;
use director::{Crew, DirectorError, Interrupted};
use runs::bystander::Bystander;
use runs::{AgentError, Agents, Turn};
use store::clock::{Clock, SystemClock};
use store::lock::FileLock;
use swarm::redact::Secrets;
use worktrees::{SetUp, Trees};

use super::board::{self, Prepared};
use super::conflicts;
use super::elsewhere;
use super::error::FanoutError;
use super::event::{FanoutEvent, PlannedEvent};
use super::follow::{Follow, Halt};
use super::keep::{self, Archive};
use super::landing;
use super::outcome::{Outcome, Skip};
use super::plan::TaskIsolation;
use super::preview::tool;
use super::report::{Landing, Report, TaskReport};
use super::results::Results;
use super::shard::Shard;
use super::task::{PlannedTask, graph};
use super::whole_check::WholeCheck;

/// The landing of proven results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Land {
    /// They are patches in the results.
    #[default]
    None,
    /// Each group is a branch of its own.
    Branch,
    /// All of them go to one branch, checked together.
    Merge,
}

/// Number of failed tasks that keep their worktrees, unless the plan sets another.
pub const KEEP_FAILED: usize = 20;

/// The options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The name in reports.
    pub name: String,
    /// The commit everything starts from, by its full name.
    pub base: String,
    /// Maximum number of tasks that run at the same time.
    pub jobs: usize,
    /// Number of failures after which nothing new starts.
    pub max_failures: Option<usize>,
    /// Number of tasks that run first; the rest runs only if they all succeed.
    pub canary: Option<usize>,
    /// The landing of proven results.
    pub land: Land,
    /// The branch they are merged into; `None` means one of the plan's own.
    pub into: Option<String>,
    /// The check that landing results must pass, besides the checks of the tasks.
    pub check: Option<WholeCheck>,
    /// True if results may fail that check when their base fails it too.
    pub allow_red_base: bool,
    /// The directory for the results.
    pub out: PathBuf,
    /// The part of the plan that this is; `tasks` contains only its tasks.
    pub shard: Option<Shard>,
    /// Identifies the way the plan was cut into parts.
    pub cut: Option<String>,
    /// Time limit of the whole run.
    pub deadline: Option<Duration>,
    /// Limit of the whole run in US dollars.
    pub budget_usd: Option<f64>,
    /// True if proven tasks are done again.
    pub fresh: bool,
    /// Number of failed tasks that keep their worktrees.
    pub keep_failed: usize,
    /// The command that runs the same again.
    pub again: Option<String>,
    /// Notes for every reader, from the caller that prepared the run.
    pub notes: Vec<String>,
}

/// Makes the page of a report whose other files are in this directory.
pub type Page = Box<dyn Fn(&Report, &Path) -> String>;

/// The inputs of a run besides the plan.
pub struct Equipment {
    /// The agents of the team the plan has for itself.
    pub agents: Agents,
    /// Makes the agents for its tasks.
    pub crew: Box<dyn Crew>,
    /// The setup of worktrees, besides their files.
    pub set_up: SetUp,
    /// The top of the worktree.
    pub top: PathBuf,
    /// The texts that no report may contain.
    pub secrets: Arc<Secrets>,
    /// True if there is a program of this name.
    pub finds: Box<dyn Fn(&str) -> bool>,
    /// Returns signals that arrived.
    pub interrupted: Interrupted,
    /// Makes the page of the report.
    pub page: Page,
}

impl fmt::Debug for Equipment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Equipment").finish_non_exhaustive()
    }
}

/// Receives the events of a run.
pub trait Events {
    /// Receives one event.
    fn event(&mut self, event: &FanoutEvent);
}

/// Time that hosts may take to clean up after their tasks are done.
const LAST_HOSTS: Duration = Duration::from_secs(5);

/// Metadata key: the plan's task that a task on the board stands for.
pub(super) const MARK: &str = "fanout";

/// The id in the plan of a task on the board, and its content key.
pub fn planned_as(task: &taskboard::Task) -> Option<(&str, &str)> {
    let mark = task.metadata.as_ref()?.get(MARK)?;
    Some((mark.get("id")?.as_str()?, mark.get("key")?.as_str()?))
}

/// The number of failures of a task in earlier runs of its plan, and the reason of the last one.
pub fn failed_before(task: &taskboard::Task) -> (usize, Option<&str>) {
    let mark = task
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.get(MARK));
    let times = mark.and_then(|mark| mark.get("failures")?.as_u64());
    let why = mark.and_then(|mark| mark.get("lastFailure")?.as_str());
    (
        times.and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        why,
    )
}

/// Runs `tasks` to their end and returns the report.
pub fn run(
    tasks: &[PlannedTask],
    options: &RunOptions,
    mut equipment: Equipment,
    events: &mut dyn Events,
) -> Result<Report, FanoutError> {
    let began = (Instant::now(), SystemClock.now_ms());
    let agents = equipment.agents.clone();
    let page = std::mem::replace(&mut equipment.page, Box::new(|_, _| String::new()));
    let trees = agents.trees()?;
    let _alone = alone(&agents)?;
    name_team(&agents, options)?;
    // Before anything runs: an unusable directory must not be a surprise at the end.
    let secrets = Arc::clone(&equipment.secrets);
    let results = Results::create(&options.out, &options.base, secrets)?;
    let bystander = bystander(tasks, &equipment, &results);
    announce(tasks, options, &agents, events);
    let without = missing_tools(tasks, &equipment);
    let wanted = board::Wanted {
        tasks,
        without: &without,
        fresh: options.fresh,
        base: &options.base,
    };
    let prepared = prepare(&agents, &trees, wanted)?;
    let (interrupted, set_up, top) = (
        Arc::clone(&equipment.interrupted),
        equipment.set_up.clone(),
        equipment.top.clone(),
    );
    let mut follow = Follow {
        tasks,
        prepared: &prepared,
        options,
        began: began.0,
        ended: vec![false; tasks.len()],
        reports: first_reports(tasks, &without),
        events,
        agents: agents.clone(),
        halt: Halt::default(),
        unchecked: HashMap::new(),
        failed: 0,
        put_away: HashMap::new(),
    };
    let mut halt = follow.work(equipment, &without)?;
    let (put_away, mut reports) = (follow.put_away, follow.reports);
    elsewhere::bring_here(&agents, &trees, &prepared, &mut halt)?;
    let Some(writer) = writer(&agents, options, &halt)? else {
        tidy_up(&agents, &trees, &options.base);
        return Ok(helped(options, began.1, reports, &halt));
    };
    // Before anything lands, because a landing may change a checkout.
    let disturbed = disturbed(bystander, events);
    let mut done = keep::done(&agents, tasks, &prepared, &reports);
    let few = keep::note_put_away(&agents, &put_away, options.keep_failed);
    for (at, left) in put_away {
        done[at] = left;
    }
    let (resolved, unresolved) = conflicts::resolved(&trees, tasks, &done);
    let queue = landing::Queue {
        tasks,
        resolved,
        done: &done,
        reports: &mut reports,
        trees: &trees,
        agents: &agents,
        prepared: &prepared,
        options,
        set_up,
        interrupted,
        events,
    };
    let landed = land(queue, &mut halt);
    let archive = Archive {
        agents: &agents,
        top: &top,
        results: &results,
    };
    let mut notes = options.notes.clone();
    notes.extend(disturbed.into_iter().chain(halt.words.clone()).chain(few));
    notes.extend(unresolved.into_iter().chain(landed.notes.iter().cloned()));
    notes.extend(archive.keep_all(tasks, &done, &mut reports)?);
    let report = whole(options, began.1, reports, landed, notes, halt.signal);
    // The report first: the caller that stopped the run may not wait for the rest.
    let report = results.finish(&report, Some(&*page))?;
    events.event(&FanoutEvent::Ended);
    writer.let_run_out();
    tidy_up(&agents, &trees, &options.base);
    Ok(report)
}

/// Puts the tasks on the board. Other machines that run the same plan find the tasks of the first
/// one.
fn prepare(
    agents: &Agents,
    trees: &Trees,
    wanted: board::Wanted<'_>,
) -> Result<Prepared, FanoutError> {
    let prepared = {
        let _turn = agents.wait_for_turn("fanout preparing", || true)?;
        board::prepare(agents, trees, wanted)?
    };
    keep::forget_failed(agents, trees, wanted.tasks)?;
    Ok(prepared)
}

/// The report of a run that helped another one, which writes its own.
fn helped(options: &RunOptions, began: i64, reports: Vec<TaskReport>, halt: &Halt) -> Report {
    let mut notes = options.notes.clone();
    notes.push("another machine writes the report and lands the results".into());
    let landed = Landed::default();
    whole(options, began, reports, landed, notes, halt.signal)
}

/// True if this run writes the report: if several machines run one plan, the first that is done. A
/// stopped run writes down its progress.
fn writer(agents: &Agents, options: &RunOptions, halt: &Halt) -> Result<Option<Turn>, FanoutError> {
    let stopped = halt
        .signal
        .map(|_| format!(" stopped {}", std::process::id()));
    let name = format!(
        "fanout report {}{}",
        options.base,
        stopped.unwrap_or_default()
    );
    Ok(agents.turn(&name)?)
}

/// Reports the tasks that are about to run, and the notes.
fn announce(tasks: &[PlannedTask], options: &RunOptions, agents: &Agents, events: &mut dyn Events) {
    events.event(&FanoutEvent::Planned {
        tasks: tasks.iter().map(PlannedEvent::of).collect(),
        jobs: options.jobs,
        team: agents.team_name().to_string(),
    });
    for text in &options.notes {
        events.event(&FanoutEvent::Note { text: text.clone() });
    }
}

/// The reports before anything has run.
fn first_reports(
    tasks: &[PlannedTask],
    without: &HashMap<usize, Option<String>>,
) -> Vec<TaskReport> {
    let mut reports: Vec<TaskReport> = tasks.iter().map(TaskReport::new).collect();
    for (at, tool) in without {
        if let Some(tool) = tool {
            reports[*at].outcome = Outcome::VerifyMissing { tool: tool.clone() };
        }
    }
    reports
}

/// Stores lasting results where the next run finds them, and deletes files that are not needed any
/// more.
fn tidy_up(agents: &Agents, trees: &Trees, base: &str) {
    keep::save(agents, trees, base);
    for stays in put_away_superseded(agents, None) {
        tracing::info!("{stays}");
    }
    if let Err(error) = trees.drop_check_trees(true) {
        tracing::warn!(%error, "a worktree for checks is left; `ccb worktree gc --yes` deletes it");
    }
    // Hosts that an earlier run left may be about to give a worktree back.
    for id in swarm::run::active(agents.runs_dir()).unwrap_or_default() {
        agents.run(&id).wait_dead(LAST_HOSTS).ok();
    }
    // Operations that a killed host began come first.
    let dropped = trees.sweep().and_then(|()| trees.drop_used());
    if let Err(error) = dropped {
        tracing::warn!(%error, "a worktree is left in the pool; `ccb worktree gc --yes` deletes it");
    }
}

/// Observes the checkout the plan is run from, which no task works in.
fn bystander(tasks: &[PlannedTask], equipment: &Equipment, results: &Results) -> Option<Bystander> {
    let in_place = |task: &PlannedTask| task.isolation == TaskIsolation::None;
    if tasks.iter().any(in_place) {
        return None;
    }
    let home = equipment.agents.home().path();
    Bystander::look(&equipment.top, &[home, results.dir()])
}

/// Reports changes in that checkout.
fn disturbed(bystander: Option<Bystander>, events: &mut dyn Events) -> Option<String> {
    let text = bystander?.disturbed("Tasks")?;
    events.event(&FanoutEvent::Note { text: text.clone() });
    Some(text)
}

/// Lands the proven results, if landing is wanted and no stop was requested.
fn land(mut queue: landing::Queue<'_>, halt: &mut Halt) -> Landed {
    if queue.options.land == Land::None {
        return Landed::default();
    }
    if !halt.goes_on() {
        return Landed {
            notes: vec![
                "nothing has landed: the run was stopped; run the same command again to resume"
                    .into(),
            ],
            ..Landed::default()
        };
    }
    let (landed, stopped) = queue.land();
    halt.signal = halt.signal.or(stopped);
    landed
}

fn whole(
    options: &RunOptions,
    began: i64,
    reports: Vec<TaskReport>,
    landed: Landed,
    notes: Vec<String>,
    signal: Option<u8>,
) -> Report {
    let times = (began, SystemClock.now_ms());
    let mut report = Report::new(&options.name, &options.base, times, reports);
    report.shard = options.shard.map(|shard| shard.to_string());
    report.cut = options.cut.clone();
    report.notes = notes;
    report.again = options.again.clone();
    report.landed = landed.branch;
    report.broken = landed.broken;
    report.signal = signal;
    report.judge();
    report
}

/// Makes the team known, so that its board is listed and can be deleted like any other team's.
fn name_team(agents: &Agents, options: &RunOptions) -> Result<(), FanoutError> {
    let new = team::NewTeam {
        description: Some(format!("fan-out {}", options.name)),
        cwd: agents.directory().to_str().map(str::to_owned),
        lead_session_id: None,
    };
    match agents.roster().create(&new) {
        Ok(_) | Err(team::TeamError::Exists { .. }) => Ok(()),
        Err(error) => Err(AgentError::from(error).into()),
    }
}

/// One run of a plan at a time: the board and the results are its own.
fn alone(agents: &Agents) -> Result<FileLock, FanoutError> {
    let path = lock_of(&agents.home().team(agents.team_name()));
    if let Some(dir) = path.parent() {
        store::home::create_private_dir(dir)?;
    }
    match FileLock::try_exclusive(&path)? {
        Some(lock) => Ok(lock),
        None => Err(FanoutError::Director(DirectorError::Taken {
            team: agents.team_name().to_string(),
            who: FileLock::describe_holder(&path),
        })),
    }
}

/// The lock that a run of a plan holds until it ends, in the directory of its team.
pub fn lock_of(team: &Path) -> PathBuf {
    team.join(".ccb").join("fanout.lock")
}

/// The result of the landing.
#[derive(Debug, Default)]
pub(super) struct Landed {
    /// The branch, if it is one.
    pub(super) branch: Option<Landing>,
    /// Notes for every reader.
    pub(super) notes: Vec<String>,
    /// The problem of the whole, although every part of it is proven.
    pub(super) broken: Option<String>,
}

/// Tasks that do not start because the program of their check is missing; and, without a program,
/// those that depend on them.
fn missing_tools(tasks: &[PlannedTask], equipment: &Equipment) -> HashMap<usize, Option<String>> {
    let mut missing = HashMap::new();
    let graph = graph(tasks);
    for at in graph.order() {
        let named = tasks[at].verify.as_deref().and_then(tool);
        // A program with a path may be made by the task itself.
        let gone = named.filter(|tool| !tool.contains('/') && !(equipment.finds)(tool));
        if let Some(tool) = gone {
            missing.insert(at, Some(tool.to_owned()));
        } else if graph.before[at].iter().any(|on| missing.contains_key(on)) {
            missing.insert(at, None);
        }
    }
    missing
}

/// The reasons why tasks never started.
pub(super) fn skipped(
    tasks: &[PlannedTask],
    reports: &mut [TaskReport],
    ended: &[bool],
    why: &Skip,
) {
    let graph = graph(tasks);
    for at in graph.order() {
        if ended[at] {
            continue;
        }
        let failed = graph.before[at].iter().find(|on| {
            let outcome = &reports[**on].outcome;
            let itself = matches!(outcome, Outcome::Skipped { why } if !matches!(why, Skip::Dependency { .. }));
            !outcome.is_success() && !itself
        });
        let why = match failed {
            Some(on) => Skip::Dependency {
                task: tasks[*on].id.clone(),
            },
            None => why.clone(),
        };
        reports[at].outcome = Outcome::Skipped { why };
    }
}

impl Halt {
    /// True if proven results may still land.
    fn goes_on(&self) -> bool {
        self.signal.is_none() && self.why != Some(Skip::Deadline)
    }
}

/// The ref that keeps the result of the task with this key while its plan runs.
pub fn pin_name(key: &str) -> String {
    format!("fanout/{key}")
}
