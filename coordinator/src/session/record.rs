//! The record of a session: the options of this start, else those of the first start, else the
//! defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::actions::team as team_actions;
use crate::agent;
use project::workplace::Workplace;
use runs::Prove;
use runs::session_file::{SessionFile, TeamSession};
use store::Failure;
use store::clock::{Clock, SystemClock, rfc3339};
use store::settings::{MatesIn, RuntimeKind};
use swarm::definitions::PermissionMode;
use swarm::run::RuntimeSpec;
use team::TeamError;
use worktrees::MergeStrategy;

use super::Session;

/// The landing of finished work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// It lands as soon as it is done.
    Auto,
    /// It lands at the end, if a person approves.
    Ask,
    /// It is left on its branches.
    Never,
}

impl Merge {
    /// All of them, with what each means.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::Auto, "It lands as soon as it is done"),
        (Self::Ask, "It lands at the end, if you say so"),
        (Self::Never, "It stays on its branches"),
    ];

    /// The value of this name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter().map(|(merge, _)| merge);
        all.find(|merge| merge.as_str() == name)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ask => "ask",
            Self::Never => "never",
        }
    }
}

/// The options of a session's start or resumption; an unset option keeps its value.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The work of the team.
    pub prompt: Option<String>,
    /// True if a coordinator leads a new session.
    pub coordinator: bool,
    /// True if a session without a coordinator is refused.
    pub only_coordinator: bool,
    /// A file with the coordinator's prompt.
    pub coordinator_prompt: Option<PathBuf>,
    /// Number of teammates at the same time.
    pub mates: Option<Mates>,
    /// The runtime of the teammates.
    pub runtime: Option<String>,
    /// The kind of process for teammates on `native`.
    pub mates_in: Option<MatesIn>,
    /// The runtime of the lead; `me` is the person.
    pub lead: Option<String>,
    /// The model of the teammates.
    pub model: Option<String>,
    /// The permission mode of the teammates.
    pub permission_mode: Option<PermissionMode>,
    /// The landing of finished work.
    pub merge: Option<Merge>,
    /// True if a person can be asked about it.
    pub attended: bool,
    /// The branch it lands on.
    pub into: Option<String>,
    /// The form of the commits.
    pub strategy: Option<MergeStrategy>,
    /// A command that must succeed on everything that lands.
    pub verify: Option<String>,
    /// Maximum attempts of a task.
    pub attempts: Option<u16>,
    /// Time limit of a check.
    pub verify_timeout: Option<Duration>,
    /// Number of failures after which nothing new starts.
    pub max_failures: Option<u16>,
    /// True if teammates work in the main worktree.
    pub no_worktrees: bool,
    /// True if the session stays open when everything is done, as long as a person is there.
    pub stay: bool,
}

/// The number of teammates and their runtimes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mates {
    /// This many, all alike.
    Number(u16),
    /// This many of each, by the runtime's name.
    ByRuntime(BTreeMap<String, u16>),
}

/// Default number of teammates.
const MATES: usize = 4;
/// The name of a lead that is a person.
const PERSON: &str = "me";

/// Finds or makes the team, and writes its session's record.
///
/// `id` is the session's, if its team is named after it.
pub(super) fn prepare(
    request: &Request,
    id: Option<String>,
    workplace: &Workplace,
) -> Result<Session, Failure> {
    let team = workplace.team()?;
    let roster = workplace.team_named(team.clone());
    let is_new = match roster.enter() {
        Ok(_) => false,
        Err(TeamError::NotFound { .. }) => true,
        Err(error) => return Err(error.into()),
    };
    let file = SessionFile::new(workplace.home(), &team);
    let before = file.session()?;
    let mut record = before.clone().unwrap_or_default();
    let now = rfc3339(SystemClock.now_ms());
    if before.is_none() {
        record.session_id = id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        record.mode = match request.coordinator {
            true => "coordinator".into(),
            false => "team".into(),
        };
        record.mates = MATES;
        record.started_at = now;
    }
    check_mode(request, &record, &team)?;
    record.ended_at = None;
    let spec = runtimes(request, &mut record, workplace)?;
    let commands_only = !spec.kind.has_model();
    check_model(request, &spec)?;
    check_mates_in(request, &record, &spec)?;
    record.runtime = Some(spec.name);
    record.lead = lead(request, &record, commands_only, workplace)?;
    check_lead(request, &record, commands_only)?;
    check_number(&record, workplace)?;
    record.prompt = request.prompt.clone().or(record.prompt.take());
    let merge = merge(request, &record)?;
    record.merge = merge.as_str().to_owned();
    keep_terms(request, &mut record);
    let trees = !record.no_worktrees;
    if trees {
        check_isolation(&record, workplace)?;
        record.into = Some(branch(request, &record, workplace)?);
    }
    // A refused start leaves nothing behind.
    if is_new {
        team_actions::create(team.as_str(), request.prompt.clone(), workplace)?;
    }
    file.put_session(&record)?;
    let workplace = match record.mates_in {
        Some(mates_in) => workplace.clone().with_mates_in(mates_in),
        None => workplace.clone(),
    };
    Ok(Session {
        workplace,
        team: team.clone(),
        coordinator_prompt: request.coordinator_prompt.clone(),
        own_team: record.has_coordinator()
            && TeamSession::team_of(&record.session_id) == team.as_str(),
        merge,
        attempts: record.attempts.map_or(Prove::ATTEMPTS, usize::from),
        verify_timeout: record
            .verify_timeout
            .map_or(Prove::TIMEOUT, Duration::from_secs),
        trees,
        commands_only,
        record,
        stay: request.stay,
    })
}

/// Refuses a coordinator or a prompt if no model could lead.
fn check_lead(request: &Request, record: &TeamSession, commands_only: bool) -> Result<(), Failure> {
    if record.lead.is_some() {
        return Ok(());
    }
    // A user asked for it.
    let named = request.runtime.is_some() || request.lead.is_some();
    if record.has_coordinator() {
        if !named {
            return Err(agent::no_agent_program());
        }
        let message = "a coordinator needs a model, and there is none";
        return Err(Failure::usage("no_lead", message)
            .with_hint("name its runtime with --lead, or that of all with --runtime"));
    }
    if request.prompt.is_none() || !commands_only {
        return Ok(());
    }
    if !named {
        return Err(agent::no_agent_program());
    }
    let runtime = record.runtime.as_deref().unwrap_or_default();
    let message = format!("a prompt needs a lead with a model, and {runtime} has none");
    Err(Failure::usage("no_lead", message).with_hint(
        "name one with --lead, or put commands on the board: \
         `ccb --team NAME task create SUBJECT --run CMD --verify CMD`",
    ))
}

/// An option of one start holds as long as the session is resumed.
fn keep_terms(request: &Request, record: &mut TeamSession) {
    fn keep<T>(kept: &mut Option<T>, said: Option<T>) {
        if said.is_some() {
            *kept = said;
        }
    }
    keep(&mut record.verify, request.verify.clone());
    let strategy = request
        .strategy
        .map(|strategy| strategy.as_str().to_owned());
    keep(&mut record.strategy, strategy);
    keep(&mut record.attempts, request.attempts);
    let verify_timeout = request.verify_timeout.map(|time| time.as_secs());
    keep(&mut record.verify_timeout, verify_timeout);
    keep(&mut record.max_failures, request.max_failures);
    keep(&mut record.mates_in, request.mates_in);
    keep(&mut record.model, request.model.clone());
    let mode = request.permission_mode.map(|mode| mode.as_str().to_owned());
    keep(&mut record.permission_mode, mode);
    record.attended = request.attended;
    record.no_worktrees |= request.no_worktrees;
}

/// Only ccb's own loop can share a process.
fn check_mates_in(
    request: &Request,
    record: &TeamSession,
    spec: &RuntimeSpec,
) -> Result<(), Failure> {
    let mut others = record.mates_by_runtime.keys();
    let native = spec.kind == RuntimeKind::Native || others.any(|name| name == "native");
    if request.mates_in != Some(MatesIn::Process) || native {
        return Ok(());
    }
    let message = format!(
        "only mates on native can share a process; these run on {}",
        spec.name
    );
    Err(Failure::usage("mates_in", message)
        .with_hint("say --runtime native, or leave out --mates-in"))
}

/// Refuses teammates without worktrees unless the user asked for that.
fn check_isolation(record: &TeamSession, workplace: &Workplace) -> Result<(), Failure> {
    let instead = match record.has_coordinator() {
        true => "start a session without --coordinator",
        false => "say --no-worktrees: all of them work in this one directory",
    };
    workplace.check_isolation(None, instead)
}

/// Commands have no model.
fn check_model(request: &Request, spec: &RuntimeSpec) -> Result<(), Failure> {
    match &request.model {
        Some(model) if !spec.kind.has_model() => {
            let name = &spec.name;
            let message = format!("the mates run on {name:?}, which has no model {model:?}");
            Err(Failure::usage("no_model", message)
                .with_hint("leave out --model, or name a runtime with a model: --runtime claude"))
        }
        _ => Ok(()),
    }
}

/// The number of teammates and their runtimes; returns the most frequent runtime with a model.
fn runtimes(
    request: &Request,
    record: &mut TeamSession,
    workplace: &Workplace,
) -> Result<RuntimeSpec, Failure> {
    match &request.mates {
        Some(Mates::Number(mates)) => {
            record.mates = usize::from(*mates);
            record.mates_by_runtime.clear();
        }
        Some(Mates::ByRuntime(mates)) => {
            let mates = mates.iter();
            record.mates_by_runtime = mates
                .map(|(name, number)| (name.clone(), usize::from(*number)))
                .collect();
            record.mates = record.mates_by_runtime.values().sum();
        }
        None => {}
    }
    if request.runtime.is_some() && request.mates.is_none() {
        record.mates_by_runtime.clear();
    }
    let named = request.runtime.clone().or(record.runtime.take());
    let mut all = Vec::new();
    for (name, number) in &record.mates_by_runtime {
        let spec = agent::session_runtime(Some(name), workplace)?;
        all.push((spec.kind.has_model(), *number, spec));
    }
    let most = all
        .into_iter()
        .max_by_key(|(model, number, _)| (*model, *number));
    match most {
        Some((.., spec)) => Ok(spec),
        None => agent::session_runtime(named.as_deref(), workplace),
    }
}

/// Refuses more teammates than may run.
fn check_number(record: &TeamSession, workplace: &Workplace) -> Result<(), Failure> {
    let wanted = record.mates + usize::from(record.lead.is_some());
    match workplace.agent_settings().max_agents {
        Some(most) if wanted > most => {
            let message = format!("{wanted} agents are wanted, and no more than {most} may run");
            Err(Failure::usage("too_many", message)
                .with_hint("ask for fewer with --mates, or raise agents.maxAgents"))
        }
        _ => Ok(()),
    }
}

/// Refuses options that do not fit with a coordinator, or with a session that has none.
fn check_mode(
    request: &Request,
    record: &TeamSession,
    team: &store::name::Name,
) -> Result<(), Failure> {
    if record.has_coordinator() && request.no_worktrees {
        let message = "a coordinator's workers each need a worktree";
        return Err(Failure::usage("usage", message).with_hint("leave out --no-worktrees"));
    }
    if request.only_coordinator && !record.has_coordinator() {
        let message = format!("team {team} has a session without a coordinator");
        return Err(Failure::usage("other_mode", message).with_hint(
            "a session keeps its mode: choose another team, or leave out --coordinator",
        ));
    }
    Ok(())
}

/// The runtime of the lead, if an agent leads.
fn lead(
    request: &Request,
    record: &TeamSession,
    commands_only: bool,
    workplace: &Workplace,
) -> Result<Option<String>, Failure> {
    let wanted = match (&request.lead, &record.lead) {
        (Some(given), _) if given == PERSON => return Ok(None),
        (Some(given), _) => given.clone(),
        (None, Some(before)) => before.clone(),
        (None, None) if record.has_coordinator() => {
            if commands_only {
                return Ok(None);
            }
            record.runtime.clone().unwrap_or_default()
        }
        // Resuming a session that a person led.
        (None, None) if record.prompt.is_some() && request.prompt.is_none() => return Ok(None),
        (None, None) if commands_only || request.prompt.is_none() => return Ok(None),
        (None, None) => record.runtime.clone().unwrap_or_default(),
    };
    let spec = agent::session_runtime(Some(&wanted), workplace)?;
    if !spec.kind.has_model() {
        let message = "the lead cannot be a shell: it has to decide";
        return Err(Failure::usage("bad_lead", message)
            .with_hint("name a model's runtime with --lead, or `--lead me`"));
    }
    Ok(Some(spec.name))
}

fn merge(request: &Request, record: &TeamSession) -> Result<Merge, Failure> {
    if let Some(merge) = request.merge {
        return Ok(merge);
    }
    if !record.merge.is_empty() {
        return Merge::parse(&record.merge).ok_or_else(|| {
            let message = format!("session.json: merge: there is no {:?}", record.merge);
            Failure::usage("bad_session", message)
        });
    }
    Ok(match request.attended {
        true => Merge::Ask,
        false => Merge::Auto,
    })
}

/// The branch finished work goes to.
fn branch(
    request: &Request,
    record: &TeamSession,
    workplace: &Workplace,
) -> Result<String, Failure> {
    let given = request.into.clone().or_else(|| record.into.clone());
    let trees = workplace.trees()?;
    let branch = match given {
        Some(branch) => branch,
        None => {
            let here = trees.whereabouts(trees.main_tree())?;
            here.branch.ok_or_else(|| {
                Failure::usage("no_branch", "the main worktree is on no branch")
                    .with_hint("say with --into where finished work goes")
            })?
        }
    };
    trees
        .resolve(&format!("refs/heads/{branch}"))
        .map_err(|_| {
            Failure::usage("no_branch", format!("there is no branch {branch:?}"))
                .with_hint("make it with `git branch`, with at least one commit")
        })?;
    Ok(branch)
}
