//! Landing and undoing as a person asks for it. The team's session and the settings fill in the rest.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landing::{LandReport, LandingPolicy, Landings, UndoReport, UndoRequest};
use project::workplace::Workplace;
use runs::Prove;
use runs::session_file::{SessionFile, TeamSession};
use store::Failure;
use taskboard::TaskId;
use worktrees::{Landing, MergeStrategy};

/// A person's wishes for a landing. The team's session fills in the rest, else the settings do.
#[derive(Debug, Clone, Default)]
pub struct LandRequest {
    /// The branch; by default the one that is checked out in the main worktree.
    pub into: Option<String>,
    /// The commits that the branch gets; usually the commits and a merge.
    pub strategy: Option<MergeStrategy>,
    /// A command that must succeed on the merged result, besides the task's own check.
    pub check: Option<String>,
    /// The longest time a check may take.
    pub check_timeout: Option<Duration>,
    /// True if ccb only previews the landing; it runs no check.
    pub dry_run: bool,
    /// True if a conflict becomes a task of its own.
    pub conflicts_become_tasks: bool,
    /// True if a task whose merged result fails its check is reopened, with the output.
    pub reopen: bool,
}

/// Lands the work of these tasks, which are on the workplace's list; see [`landing::land`].
pub fn land(
    tasks: &[TaskId],
    request: &LandRequest,
    workplace: &Workplace,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&LandReport),
) -> Result<Vec<LandReport>, Failure> {
    let policy = policy(request, workplace)?;
    landing::land(tasks, &policy, &workplace.agents()?, stop, tell)
}

/// Undoes a landing; see [`landing::undo`].
pub fn undo(
    landing: &Landing,
    request: &UndoRequest,
    workplace: &Workplace,
    stop: &AtomicBool,
) -> Result<UndoReport, Failure> {
    let (_, set_up) = workplace.usual_tree()?;
    landing::undo(landing, request, set_up, &workplace.agents()?, stop)
}

/// The wishes of this call, else those of the team's session, else the settings.
fn policy(request: &LandRequest, workplace: &Workplace) -> Result<LandingPolicy, Failure> {
    let session = SessionFile::new(workplace.home(), &workplace.team()?).session()?;
    let session = session.unwrap_or_default();
    let (_, set_up) = workplace.usual_tree()?;
    let into = match request.into.clone().or(session.into.clone()) {
        Some(branch) => branch,
        None => {
            let trees = workplace.trees()?;
            let here = trees.whereabouts(trees.main_tree())?;
            here.branch.ok_or_else(|| {
                Failure::usage("no_branch", "the main worktree is on no branch")
                    .with_hint("say with --into where the work goes")
            })?
        }
    };
    let usual = strategy_of(&session, workplace);
    let landings = Landings {
        into,
        strategy: request.strategy.unwrap_or(usual),
        check: request.check.clone().or(session.verify.clone()),
        set_up,
        conflicts_become_tasks: request.conflicts_become_tasks,
        only: None,
    };
    let session_timeout = session.verify_timeout.map(Duration::from_secs);
    let timeout = request.check_timeout.or(session_timeout);
    Ok(LandingPolicy {
        landings,
        check_timeout: timeout.unwrap_or(Prove::TIMEOUT),
        dry_run: request.dry_run,
        reopen: request.reopen,
    })
}

/// The strategy of a session, if this call names none: its own, else that of the settings, else the
/// commits and a merge.
pub(crate) fn strategy_of(session: &TeamSession, workplace: &Workplace) -> MergeStrategy {
    let said = session.strategy.as_deref().and_then(MergeStrategy::parse);
    said.unwrap_or(workplace.worktree_settings().merge_strategy)
}
