//! Possible values of a command-line argument, for completion by shells.
//!
//! Everything here only reads, takes no lock, waits for nothing and never fails: unreadable values
//! are left out. Values are plain words, so that no shell has to quote them, and after `PATIENCE`
//! the remaining values have no description.

use std::path::Path;
use std::time::{Duration, Instant};

use fanout::PlanFile;
use observe::report::history;
use project::workplace::Workplace;
use serde_json::Value;
use store::name::Name;

use crate::agent::definitions;

/// Time limit for reading descriptions. The user waits for the completion.
const PATIENCE: Duration = Duration::from_millis(25);

/// A longer plan takes too long to read.
const LARGEST_PLAN: u64 = 256 * 1024;

/// Maximum number of values: every shell gets slow with thousands.
const MOST: usize = 500;

/// A value with a short description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The text to type.
    pub value: String,
    /// Its description; may be empty, and may be text of any author.
    pub about: String,
}

impl Candidate {
    fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            about: about.into(),
        }
    }
}

/// The tasks of the list with their subjects: first those that are not completed.
pub fn tasks(workplace: &Workplace) -> Vec<Candidate> {
    let board = workplace.board();
    let mut ids: Vec<u64> = names_in(board.dir())
        .iter()
        .filter_map(|name| name.strip_suffix(".json")?.parse().ok())
        .collect();
    // The newest are the most likely ones, and get their subjects first.
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.truncate(MOST);
    let end = Instant::now() + PATIENCE;
    let (mut open, mut completed) = (Vec::new(), Vec::new());
    for id in ids {
        let task = in_time(end, || {
            let bytes = std::fs::read(board.dir().join(format!("{id}.json"))).ok()?;
            serde_json::from_slice::<Value>(&bytes).ok()
        });
        let word = |key: &str| task.as_ref()?.get(key)?.as_str().map(str::to_owned);
        if task.as_ref().is_some_and(is_internal) {
            continue;
        }
        let candidate = Candidate::new(id.to_string(), word("subject").unwrap_or_default());
        match word("status").as_deref() {
            Some("completed") => completed.push(candidate),
            _ => open.push(candidate),
        }
    }
    open.reverse();
    completed.reverse();
    open.append(&mut completed);
    plain(open)
}

fn is_internal(task: &Value) -> bool {
    let internal = task.get("metadata").and_then(|all| all.get("_internal"));
    internal.and_then(Value::as_bool).unwrap_or_default()
}

/// The worktrees of the repository; with `removed` those that can be restored instead.
pub fn worktrees(workplace: &Workplace, removed: bool) -> Vec<Candidate> {
    let listed = workplace.trees().ok().and_then(|trees| trees.list().ok());
    let mut found = Vec::new();
    for entry in listed.into_iter().flatten() {
        if entry.is_live() == removed {
            continue;
        }
        let task = entry.task_id.as_ref().map(|id| format!("task {id}"));
        let about = [task, entry.branch.clone()];
        let about: Vec<String> = about.into_iter().flatten().collect();
        found.push(Candidate::new(entry.name, about.join(", ")));
    }
    plain(found)
}

/// Runs of this repository that have ended, and teams.
pub fn runs(workplace: &Workplace) -> Vec<Candidate> {
    let kept = history::list(workplace).unwrap_or_default();
    let run = |one: history::Summary| Candidate::new(one.id, one.words);
    let mut found = plain(kept.into_iter().map(run).collect());
    found.extend(teams(workplace));
    found
}

/// The teams of this home that can be used here.
pub fn teams(workplace: &Workplace) -> Vec<Candidate> {
    let here = workplace.repository_name();
    let teams = workplace.all_teams().unwrap_or_default();
    let teams = teams.into_iter().filter_map(|team| {
        let roster = team.roster.ok();
        let elsewhere = |repository: &str| here.is_some_and(|here| here != repository);
        let repository = roster.as_ref().and_then(|it| it.repository.as_deref());
        if repository.is_some_and(elsewhere) {
            return None;
        }
        let about = roster.and_then(|roster| roster.description);
        Some(Candidate::new(team.name, about.unwrap_or_default()))
    });
    plain(teams.collect())
}

/// The agents of the team that have run here: names first, then ids.
pub fn agents(workplace: &Workplace) -> Vec<Candidate> {
    let Ok(agents) = workplace.agents() else {
        return Vec::new();
    };
    let mut ids = names_in(agents.runs_dir());
    ids.retain(|id| !id.starts_with('.'));
    ids.truncate(MOST);
    let end = Instant::now() + PATIENCE;
    let (mut names, mut found) = (Vec::<Candidate>::new(), Vec::new());
    for id in ids {
        let Some(meta) = in_time(end, || agents.run(&id).meta().ok()) else {
            found.push((String::new(), Candidate::new(id, "")));
            continue;
        };
        if let Some(name) = &meta.name
            && names.iter().all(|known| known.value != *name)
        {
            names.push(Candidate::new(name, &meta.description));
        }
        found.push((meta.created_at, Candidate::new(id, meta.description)));
    }
    // The latest first.
    found.sort_by(|a, b| b.0.cmp(&a.0));
    names.extend(found.into_iter().map(|(_, candidate)| candidate));
    plain(names)
}

/// The recipients of mail: the members of the team, and everyone at once.
pub fn members(workplace: &Workplace) -> Vec<Candidate> {
    let team = workplace.team().ok();
    let roster = team.and_then(|team| workplace.team_named(team).roster().ok());
    let members = roster.into_iter().flat_map(|roster| roster.members);
    let mut found: Vec<Candidate> = members
        .map(|member| {
            let about = member.agent_type.clone().unwrap_or_default();
            Candidate::new(member.name.clone(), about)
        })
        .collect();
    if found
        .iter()
        .all(|known| known.value != store::agent_id::LEAD)
    {
        found.insert(
            0,
            Candidate::new(store::agent_id::LEAD, "the lead of the team"),
        );
    }
    plain(found)
}

/// The runtimes: the built-in ones, and those of the settings.
pub fn runtimes(workplace: &Workplace) -> Vec<Candidate> {
    let own = workplace.runtimes().keys();
    let own = own.map(|name| Candidate::new(name, "from the settings"));
    let usual = swarm::runtime::built_in();
    let usual = usual.filter(|name| !workplace.runtimes().contains_key(*name));
    let usual = usual.map(|name| match name {
        "shell" => Candidate::new(name, "the prompt is a command"),
        _ => Candidate::new(name, ""),
    });
    plain(usual.chain(own).collect())
}

/// The agent types.
pub fn types(workplace: &Workplace) -> Vec<Candidate> {
    let Ok(all) = definitions::load(None, workplace) else {
        return Vec::new();
    };
    let known = all.iter().map(|found| &found.definition);
    let known = known.filter(|definition| !all.is_denied(definition.name.as_str()));
    let known =
        known.map(|definition| Candidate::new(definition.name.as_str(), &definition.description));
    plain(known.collect())
}

/// The requests that wait for an answer: plans, permissions, shutdowns.
pub fn requests(workplace: &Workplace) -> Vec<Candidate> {
    let mailbox = workplace.mailbox().ok();
    let waiting = mailbox.and_then(|mailbox| mailbox.waiting_requests().ok());
    let waiting = waiting.into_iter().flatten();
    let described = waiting.map(|request| {
        let about = mailbox::in_short(&request.question);
        Candidate::new(request.id, format!("{}: {about}", request.from))
    });
    plain(described.collect())
}

/// The tasks that a plan names one by one. Those of a `foreach` are known only when it is run.
pub fn plan_tasks(plan: &Path) -> Vec<Candidate> {
    let small = std::fs::metadata(plan).is_ok_and(|meta| meta.len() <= LARGEST_PLAN);
    let text = small.then(|| std::fs::read_to_string(plan).ok()).flatten();
    let name = plan.to_string_lossy();
    let read = text.and_then(|text| PlanFile::read(&name, &text).ok());
    let tasks = read.into_iter().flat_map(|file| file.plan.tasks);
    let found =
        tasks.filter_map(|task| Some(Candidate::new(task.id?, task.subject.unwrap_or_default())));
    plain(found.collect())
}

/// The task lists of this home.
pub fn lists(workplace: &Workplace) -> Vec<Candidate> {
    let lists = names_in(&workplace.home().lists()).into_iter();
    let lists = lists.filter(|name| Name::new("list", name).is_ok());
    plain(lists.map(|name| Candidate::new(name, "")).collect())
}

/// The value, unless the time is over.
fn in_time<T>(end: Instant, read: impl FnOnce() -> Option<T>) -> Option<T> {
    (Instant::now() < end).then(read).flatten()
}

fn names_in(dir: &Path) -> Vec<String> {
    store::tree::names_in(dir).unwrap_or_default()
}

/// The values that any shell takes without quotes. Files of other tools can have any name.
fn plain(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@');
    candidates.retain(|candidate| {
        let value = &candidate.value;
        !value.is_empty() && !value.starts_with('-') && value.chars().all(fine)
    });
    candidates.truncate(MOST);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_offered() {
        let all = ["a", "fix/auth", "x y", "a\nb", "$(id)", "-rf", "", "'", "*"];
        let all = all.map(|value| Candidate::new(value, "anything\n\u{1b}[31m"));
        let left = plain(all.to_vec());
        let values: Vec<&str> = left.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(values, ["a", "fix/auth"]);
    }
}
