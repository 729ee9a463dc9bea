//! Landing: finished work gets onto a branch, and off it again.
//!
//! # What this room knows
//!
//! Which work waits to land and in which order ([`candidates`]), how one result after another is
//! merged aside, checked, and put onto the branch ([`land`], [`Lander`]), the changes of a result
//! ([`compare()`]), how a landing is undone ([`undo()`]) and a result rejected ([`reject()`]), and
//! when a worktree may be removed.
//!
//! # What it must not know (and where to go instead)
//!
//! * The defaults of a command: `coordinator::actions::land` makes the [`LandingPolicy`].
//! * The moment at which a session lands work: `director`.
//! * Landing all results of a plan together: `fanout`.
//! * The merge in git and the move of a branch: `worktrees`.
//!
//! # The way through
//!
//! ```text
//! board and worktrees ─▶ candidates ─▶ queue: no result before one it builds on
//! Lander::land ─▶ worktrees merges aside ─▶ check ─▶ the branch moves ─▶ the board has "landed"
//! a conflict, a failed check ─▶ a task of its own, or the same task reopened
//! ```
//!
//! # Crash points
//!
//! [`FAULT_POINTS`]: `land.moved` in `lander.rs`. `worktrees` has those of the merge. After a
//! kill the board and the worktree show the interrupted landing; [`settle`] finishes an undo.
//!
//! # Example
//!
//! ```no_run
//! # use std::sync::atomic::AtomicBool;
//! # use landing::LandingPolicy;
//! # use runs::Agents;
//! # fn at_the_end(agents: &Agents, policy: &LandingPolicy) -> Result<(), store::Failure> {
//! let waiting = landing::candidates(agents)?;
//! let ids: Vec<_> = waiting.iter().filter(|one| !one.undone).map(|one| one.task).collect();
//! let stop = AtomicBool::new(false);
//! landing::land(&ids, policy, agents, &stop, &mut |report| {
//!     println!("#{}: {:?}", report.work.task, report.outcome);
//! })?;
//! # Ok(()) }
//! ```
//!
//! # Where things are
//!
//! Paths start at the repository's root; a short name is beside the last path of its cell.
//!
//! | to | look at |
//! |---|---|
//! | see when worktrees of a task are put away | `coordinator/landing/src/put_away.rs` |
//! | change what `ccb diff`, `land`, `reject` and `undo` do | `coordinator/landing/src/` (`compare.rs`, `lib.rs`, `reject.rs`, `undo.rs`); undoing a landing in git: `worktrees/src/merge/take_back.rs`, what has landed: `landings.rs` |

mod compare;
mod conflict;
mod everything;
mod fault;
mod lander;
pub mod message;
mod put_away;
mod queue;
mod reject;
mod shared;
mod undo;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runs::{Agents, Prove};
use store::Failure;
use taskboard::TaskId;
use worktrees::MergeStrategy;

pub use compare::{Changed, Comparison, changed, compare, here};
pub use conflict::is_conflict;
pub use conflict::rivals;
pub use everything::builds_on;
pub use everything::{Everything, everything};
pub use fault::FAULT_POINTS;
pub use lander::Lander;
pub use lander::{Landed, Landings, Moved};
pub use put_away::StayingTree;
pub use put_away::{discard, put_away_sent, put_away_superseded, staying_trees, superseded};
pub use queue::{
    Queued, Results, WORKER_OF, commit_of, is_commit_checked, is_here, is_workers, next_to_land,
    queued, unlanded,
};
pub use reject::{Rejected, reject};
pub use shared::{has_landed, obtain};
pub use undo::{ListedLanding, UndoReport, UndoRequest, find, landings, settle, undo};
pub use work::standings;
pub use work::{LandState, Unlanded, candidates, candidates_everywhere};

/// ccb tries a hindered landing again this often, after this pause.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// The complete policy of a landing.
#[derive(Debug, Clone)]
pub struct LandingPolicy {
    /// The branch, and the check that the result has to pass.
    pub landings: Landings,
    /// The longest time a check may take.
    pub check_timeout: Duration,
    /// True if ccb only previews the landing; it runs no check.
    pub dry_run: bool,
    /// True if a task whose merged result fails its check is reopened, with the output.
    pub reopen: bool,
}

/// The result of landing one task's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandReport {
    /// The work.
    pub work: Unlanded,
    /// The branch.
    pub into: String,
    /// The form of the commits, used or planned.
    pub strategy: MergeStrategy,
    /// The result.
    pub outcome: Landed,
}

/// Lands the work of these tasks, which are on the list of `agents`, in an order in which
/// nothing comes before what it builds on. `tell` gets each as soon as it is over.
///
/// Nothing lands if one of them has nothing to land. A task that does not land keeps no other from it. A caller
/// that sets `stop` ends it after the one that lands just then.
pub fn land(
    tasks: &[TaskId],
    policy: &LandingPolicy,
    agents: &Agents,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&LandReport),
) -> Result<Vec<LandReport>, Failure> {
    let trees = agents.trees()?;
    let board = agents.board();
    let mut waiting: BTreeMap<TaskId, (Queued, Unlanded)> = BTreeMap::new();
    for id in tasks {
        let task = board.get(*id)?;
        let work = work::to_land(&task, Results::new(agents, &trees))?;
        waiting.insert(*id, (Queued::of(&task, &trees), work));
    }
    let landings = &policy.landings;
    let lander = Lander {
        agents,
        verify_timeout: policy.check_timeout,
        reopen: policy.reopen.then_some(Prove::ATTEMPTS),
    };
    let mut reports = Vec::new();
    let none = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        let queue = waiting.iter().map(|(id, (one, _))| (*id, one.clone()));
        let Some(id) = next_to_land(&queue.collect(), &none) else {
            break;
        };
        let Some((_, work)) = waiting.remove(&id) else {
            break;
        };
        let outcome = match policy.dry_run {
            true => lander.preview(id, landings)?,
            false => patiently(|| lander.land(id, landings, stop), stop),
        };
        let report = LandReport {
            work,
            into: landings.into.clone(),
            strategy: landings.strategy,
            outcome,
        };
        tell(&report);
        reports.push(report);
    }
    Ok(reports)
}

/// Retries if a process of ccb was killed on the way.
fn patiently(land: impl Fn() -> Landed, stop: &AtomicBool) -> Landed {
    let mut outcome = land();
    for n in 1..TRIES {
        if !matches!(outcome, Landed::Hindered(_)) || stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(PAUSE * n);
        outcome = land();
    }
    outcome
}
