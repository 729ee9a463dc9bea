//! Everything ccb left in a repository and for it, and its removal.
//!
//! Worktrees, trash, refs and branches are in the repository; teams, boards and runs are in the
//! home. An item with work that has not landed, or with open tasks, is kept unless the caller
//! insists. An item in use is always kept.

use std::collections::BTreeSet;

use observe::overview::{self, TeamView};
use project::workplace::Workplace;
use store::Failure;
use store::name::Name;
use worktrees::{Keeps, Leftover, LeftoverKind, TreeError, Trees};

use crate::actions::team as team_actions;

/// A remaining item, in the repository or for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// `worktree`, `trash`, `team`, …
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// A description.
    pub about: String,
    /// Its size on the disk.
    pub bytes: u64,
    /// The reason to keep it; `None` if it can be removed.
    pub keeps: Option<Keeps>,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    InRepository(Box<Leftover>),
    Team(Name),
}

/// The result of a removal.
#[derive(Debug)]
pub enum Cleaned {
    /// It was removed.
    Gone,
    /// It is kept, for this reason.
    Stays(String),
}

impl Left {
    /// True if it can be removed; with `all` also if it holds work.
    pub fn goes(&self, all: bool) -> bool {
        match &self.keeps {
            None => true,
            Some(Keeps::Work(_)) => all,
            Some(Keeps::InUse(_)) => false,
        }
    }
}

/// All remaining items, in the order in which they can be removed.
pub fn survey(workplace: &Workplace) -> Result<Vec<Left>, Failure> {
    let agents = workplace.agents()?;
    landing::settle(&agents)?;
    let trees = workplace.trees()?;
    let mut all = Vec::new();
    let (mut worktrees, rest): (Vec<Leftover>, Vec<Leftover>) = trees
        .leftovers()?
        .into_iter()
        .partition(|one| one.kind == LeftoverKind::Worktree);
    let superseded: BTreeSet<String> = landing::superseded(&agents)?
        .into_iter()
        .map(|one| one.entry.name)
        .collect();
    let teams = overview::look(workplace)?.teams;
    // Before its first step an agent holds no lock in its new worktree.
    let at_work: BTreeSet<String> = teams
        .iter()
        .flat_map(|team| &team.agents)
        .map(|agent| format!("agent-{}", agent.agent_id))
        .collect();
    for one in &mut worktrees {
        if at_work.contains(&one.name) {
            one.keeps = Some(Keeps::InUse("its agent is at work".into()));
        } else if superseded.contains(&one.name) && matches!(one.keeps, Some(Keeps::Work(_))) {
            one.keeps = None;
            one.about = "another attempt did its task, and has landed".into();
        }
    }
    all.extend(worktrees.into_iter().map(of_repository));
    for team in teams {
        all.extend(of_team(&team, workplace)?);
    }
    all.extend(rest.into_iter().map(of_repository));
    Ok(all)
}

fn of_repository(one: Leftover) -> Left {
    Left {
        kind: one.kind.as_str(),
        name: one.name.clone(),
        about: one.about.clone(),
        bytes: one.bytes,
        keeps: one.keeps.clone(),
        what: What::InRepository(Box::new(one)),
    }
}

/// A team with its board, mail and runs, if any part of it exists.
fn of_team(team: &TeamView, workplace: &Workplace) -> Result<Option<Left>, Failure> {
    let name = Name::new("team", &team.name)?;
    let home = workplace.home();
    let (dir, board) = (home.team(&name), home.list(&name));
    let roster = workplace.team_named(name.clone()).roster().is_ok();
    if !roster && !dir.is_dir() && team.tasks.total() == 0 {
        return Ok(None);
    }
    let open = team.tasks.total() - team.tasks.completed;
    let keeps = if team.running || !team.agents.is_empty() {
        Some(Keeps::InUse("its agents or its session are at work".into()))
    } else if open > 0 {
        Some(Keeps::Work(count(
            open,
            "task is not done",
            "tasks are not done",
        )))
    } else if !team.unlanded.is_empty() {
        let left = team.unlanded.len();
        let more = "tasks' work has not landed";
        Some(Keeps::Work(count(left, "task's work has not landed", more)))
    } else {
        None
    };
    let size = |dir: &std::path::Path| store::tree::size(dir).unwrap_or_default();
    Ok(Some(Left {
        kind: "team",
        name: team.name.clone(),
        about: format!(
            "{}, with mail and logs",
            count(team.tasks.total(), "task", "tasks")
        ),
        bytes: size(&dir) + size(&board),
        keeps,
        what: What::Team(name),
    }))
}

fn count(number: usize, one: &str, more: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {more}"),
    }
}

/// Removes one item; with `all` also if it holds work.
pub fn remove(one: &Left, all: bool, workplace: &Workplace) -> Result<Cleaned, Failure> {
    match &one.keeps {
        Some(Keeps::InUse(why)) => return Ok(Cleaned::Stays(why.clone())),
        Some(Keeps::Work(why)) if !all => return Ok(Cleaned::Stays(why.clone())),
        _ => {}
    }
    match &one.what {
        What::Team(name) => remove_team(name, all, workplace),
        What::InRepository(left) => {
            let trees = workplace.trees()?;
            // Superseded work looks like plain work if the worktree is inspected alone.
            let superseded = left.kind == LeftoverKind::Worktree && one.about.contains("attempt");
            match trees.drop_leftover(left, all || superseded) {
                Ok(true) => Ok(Cleaned::Gone),
                Ok(false) => Ok(Cleaned::Stays(why_left(left, &trees))),
                Err(error @ (TreeError::Held { .. } | TreeError::Locked { .. })) => {
                    Ok(Cleaned::Stays(error.to_string()))
                }
                Err(error) => Err(error.into()),
            }
        }
    }
}

fn why_left(left: &Leftover, trees: &Trees) -> String {
    match left.kind {
        LeftoverKind::Exclude => "worktrees are left that it hides".into(),
        LeftoverKind::Records => format!(
            "worktrees or trash are left in {}",
            trees.main_tree().display()
        ),
        _ => "somebody uses it, or changed it just now".into(),
    }
}

/// Deletes a team, or the remains of one without a roster: a plan's, or the repository's own list.
fn remove_team(name: &Name, all: bool, workplace: &Workplace) -> Result<Cleaned, Failure> {
    let team = workplace.team_named(name.clone());
    if team.roster().is_ok() {
        team_actions::delete(name.as_str(), all, workplace)?;
    } else {
        let board = workplace.team_board(&team);
        if board.exists() {
            board.reset(all)?;
        }
    }
    let agents = workplace.in_team(name).agents()?;
    let (listed, _) = agents.list()?;
    if agents.are_directed()? || listed.iter().any(|one| one.alive) {
        return Ok(Cleaned::Stays("its agents are at work".into()));
    }
    store::tree::delete(team.dir())?;
    Ok(Cleaned::Gone)
}
