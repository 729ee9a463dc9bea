//! Undoing a landing: the branch first, then the task and its worktree.
//!
//! The landing's record says what is to happen before the branch moves, and the branch itself says
//! whether it did. So after a crash the next caller finishes the undo ([`settle`]), or finds
//! everything as it was.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use runs::session_file::{SessionFile, TeamSession};
use runs::{Agents, Prove};
use store::name::Name;
use store::{Category, Failure};
use taskboard::{Board, Status, Task, TaskId, TaskResult};
use worktrees::{
    AfterCheck, Check, Entry, Landing, SetUp, Slug, TakeBackRequest, TakenBack, TreeError, Trees,
};

use super::lander::together;

/// A landing, and its task's subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedLanding {
    /// The landing.
    pub landing: Landing,
    /// The subject of the task, if the task is still on its board.
    pub subject: Option<String>,
    /// True if the branch does not contain it any more, although ccb did not undo it here.
    pub gone: bool,
}

/// The options of an undo.
#[derive(Debug, Clone, Default)]
pub struct UndoRequest {
    /// A command that must succeed on a commit that reverts the changes, besides the session's
    /// check for every landing and the checks of later landings.
    pub check: Option<String>,
    /// Time limit of the check.
    pub check_timeout: Option<Duration>,
    /// True if ccb only previews the undo.
    pub dry_run: bool,
}

/// An undo, done or previewed.
#[derive(Debug)]
pub struct UndoReport {
    /// The change of the branch.
    pub taken: TakenBack,
    /// The task, and the list it is on.
    pub task: Option<(String, TaskId)>,
    /// The subject of the task.
    pub subject: Option<String>,
    /// The worktree with the work, if it was restored.
    pub worktree: Option<Entry>,
    /// The check of the revert, run or planned.
    pub check: Option<String>,
}

/// All recorded landings of this repository, newest first.
pub fn landings(agents: &Agents) -> Result<Vec<ListedLanding>, Failure> {
    settle(agents)?;
    let trees = agents.trees()?;
    let listed = |landing: Landing| {
        let tip = trees.branch_tip(&landing.into).ok().flatten();
        let there = tip.and_then(|tip| trees.contains(&tip, &landing.commit).ok());
        ListedLanding {
            subject: task_of(&landing, agents).map(|(_, task)| task.subject),
            gone: landing.stands() && there != Some(true),
            landing,
        }
    };
    Ok(trees.landings()?.into_iter().rev().map(listed).collect())
}

/// The landing that `given` names: `L7`, the number of a task on the list of `agents`, the name of
/// a worktree, or the beginning of a commit; if `None`, the last landing that was not undone.
pub fn find(given: Option<&str>, agents: &Agents) -> Result<ListedLanding, Failure> {
    let mut standing = landings(agents)?;
    let list = agents.board().name().to_string();
    let Some(given) = given else {
        let last = standing
            .iter()
            .position(|one| one.landing.stands() && !one.gone);
        return last.map(|at| standing.swap_remove(at)).ok_or_else(|| {
            Failure::new(
                Category::NotFound,
                "no_landing",
                "nothing has landed that could be undone",
            )
        });
    };
    let number = given.strip_prefix(['L', 'l']).and_then(|n| n.parse().ok());
    let task = given.strip_prefix('#').unwrap_or(given).parse::<TaskId>();
    let task = task.map(|id| format!("{list}#{id}")).ok();
    let is_meant = |one: &ListedLanding| {
        let landing = &one.landing;
        number.is_some_and(|id: u64| landing.id == id)
            || (task.is_some() && landing.task == task)
            || landing.worktree == given
            || (given.len() >= 7 && landing.commit.starts_with(given))
    };
    let meant: Vec<usize> = (0..standing.len())
        .filter(|at| is_meant(&standing[*at]))
        .collect();
    let stands = |at: &&usize| standing[**at].landing.stands();
    let at = meant.iter().find(stands).or(meant.first()).copied();
    at.map(|at| standing.swap_remove(at)).ok_or_else(|| {
        let message = match &task {
            Some(task) => format!("task {task} has not landed"),
            None => format!("there is no landing {given:?}"),
        };
        Failure::new(Category::NotFound, "no_landing", message)
            .with_hint("`ccb undo --show` shows the landings there are")
    })
}

/// Undoes a landing. Its task stays completed and is marked as undone: it lands again only on an
/// explicit request. Its worktree is restored. A check runs in a worktree with this `set_up`.
pub fn undo(
    landing: &Landing,
    request: &UndoRequest,
    set_up: SetUp,
    agents: &Agents,
    stop: &AtomicBool,
) -> Result<UndoReport, Failure> {
    let trees = agents.trees()?;
    if !landing.stands() {
        let message = format!("landing L{} is undone already", landing.id);
        return Err(Failure::refused("undone", message)
            .with_hint("`ccb undo --show` shows the landings there are"));
    }
    let of = task_of(landing, agents);
    let subject = of.as_ref().map(|(_, task)| task.subject.clone());
    let session = session_of(landing, agents)?;
    let check = check_of(landing, request, &session, agents, &trees)?;
    let timeout = session.verify_timeout.map(Duration::from_secs);
    let taken = trees.take_back(
        landing.id,
        &TakeBackRequest {
            message: message_of(landing, subject.as_deref()),
            check: check.clone().map(|command| Check {
                command,
                timeout: request.check_timeout.or(timeout).unwrap_or(Prove::TIMEOUT),
                set_up,
                after: AfterCheck::Leave,
                stop,
            }),
            dry_run: request.dry_run,
        },
    )?;
    let worktree = match request.dry_run {
        true => None,
        false => finish(landing, agents, &trees)?,
    };
    Ok(UndoReport {
        task: of.map(|(board, task)| (board.name().to_string(), task.id)),
        subject,
        worktree,
        check,
        taken,
    })
}

/// Finishes an undo whose process was killed.
pub fn settle(agents: &Agents) -> Result<(), Failure> {
    let Ok(trees) = agents.trees() else {
        return Ok(());
    };
    for landing in trees.half_undone()? {
        finish(&landing, agents, &trees)?;
    }
    Ok(())
}

/// Finishes everything besides the branch: the task, the worktree, and the record of the undo.
fn finish(landing: &Landing, agents: &Agents, trees: &Trees) -> Result<Option<Entry>, Failure> {
    if let Some((board, task)) = task_of(landing, agents)
        && let Some(result) = task.result().filter(|result| is_of(result, landing))
        && task.status == Status::Completed
        && result.undone != Some(true)
    {
        let result = TaskResult {
            undone: Some(true),
            ..result
        };
        board.proved(task.id, &result)?;
    }
    let slug = Slug::new(&landing.worktree)?;
    let back = match trees.get(&slug) {
        Ok(entry) => Some(entry),
        Err(TreeError::NotFound { .. }) => match trees.undo(&slug) {
            Ok(entry) => Some(entry),
            Err(error) => {
                tracing::info!(%error, worktree = landing.worktree, "it does not come back");
                None
            }
        },
        Err(error) => return Err(error.into()),
    };
    if back.is_none() {
        // No other ref may keep these commits.
        trees.pin(&format!("undone/L{}", landing.id), &landing.head)?;
        trees.make_durable()?;
    }
    trees.confirm_undone(landing.id)?;
    Ok(back)
}

fn is_of(result: &TaskResult, landing: &Landing) -> bool {
    result.worktree.as_deref() == Some(landing.worktree.as_str())
}

/// The board and the task a landing was for, if they are there.
fn task_of(landing: &Landing, agents: &Agents) -> Option<(Board, Task)> {
    let (list, id) = landing.task.as_deref()?.rsplit_once('#')?;
    let board = agents.board_of(list)?;
    let task = board.get(id.parse().ok()?).ok()?;
    Some((board, task))
}

/// The session of the team that did the work.
fn session_of(landing: &Landing, agents: &Agents) -> Result<TeamSession, Failure> {
    let list = landing
        .task
        .as_deref()
        .and_then(|task| task.rsplit_once('#'));
    let Some(team) = list.and_then(|(list, _)| Name::new("team", list).ok()) else {
        return Ok(TeamSession::default());
    };
    let session = SessionFile::new(agents.home(), &team).session()?;
    Ok(session.unwrap_or_default())
}

/// The check of a revert: the given one, the session's check for every landing, and the checks of
/// all later landings. The task's own check is not in it, because it tests the reverted work.
fn check_of(
    landing: &Landing,
    request: &UndoRequest,
    session: &TeamSession,
    agents: &Agents,
    trees: &Trees,
) -> Result<Option<String>, Failure> {
    let mut checks = Vec::new();
    checks.extend(request.check.clone());
    checks.extend(session.verify.clone());
    for later in trees.landings()? {
        if later.id > landing.id && later.into == landing.into && later.stands() {
            let of = task_of(&later, agents);
            checks.extend(of.and_then(|(_, task)| task.verify_command().map(str::to_owned)));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    checks.retain(|check| seen.insert(check.clone()));
    let parts: Vec<Option<&str>> = checks.iter().map(|check| Some(check.as_str())).collect();
    Ok(together(&parts))
}

fn message_of(landing: &Landing, subject: Option<&str>) -> String {
    let short = landing.commit.get(..12).unwrap_or(&landing.commit);
    let what = subject.unwrap_or(&landing.worktree);
    let what = what.lines().next().unwrap_or_default();
    let mut text = format!("Revert \"{what}\"\n\nThis undoes the landing {short}.\n");
    if let Some(task) = &landing.task {
        text.push_str(&format!("\nTask: {task}\n"));
    }
    text
}
