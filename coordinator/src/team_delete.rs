//! The end of a team: its tasks, its mail, its runs, and at last its roster.

use swarm::{Living, Roster, Team, TeamError};
use taskboard::{Board, BoardError};

/// What was deleted.
#[derive(Debug)]
pub struct Deleted {
    /// The team as it was.
    pub roster: Roster,
    /// Who was alive and is on its own now; only with force.
    pub living: Vec<Living>,
    /// How many tasks there were.
    pub tasks: usize,
}

/// Why a team was not deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeleteError {
    /// Its roster said no; nothing has changed.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// Its tasks said no; nothing has changed.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// A part of it is gone, or nobody can join any more; doing it again finishes it.
    #[error("team {team:?} is deleted only in part: {source}")]
    Unfinished {
        /// The team.
        team: String,
        /// What stopped it.
        source: Box<Self>,
    },
}

/// Deletes `team` and empties `board`, the list of the same name.
///
/// Without `force` it is refused while members are alive or tasks are in progress, and then
/// nothing has changed. If it is cut short, the same call later finishes it. Ids of tasks
/// are never given out again: the board's high-water mark stays.
pub fn delete_team(team: &Team, board: &Board, force: bool) -> Result<Deleted, DeleteError> {
    let unfinished = |source: DeleteError| DeleteError::Unfinished {
        team: team.name().to_string(),
        source: Box::new(source),
    };
    let (roster, living) = match team.begin_delete(force) {
        Ok(begun) => begun,
        // The mark is set, but cannot be relied on; take it off again.
        Err(TeamError::NotDurable { source }) => {
            return Err(match team.cancel_delete() {
                Ok(()) => TeamError::Store(source).into(),
                Err(_) => unfinished(TeamError::Store(source).into()),
            });
        }
        Err(error) => return Err(error.into()),
    };
    // Working trees come here, before the tasks that name them: one that cannot be removed
    // is reported, and the rest goes on.
    let tasks = match empty(board, force) {
        Ok(tasks) => tasks,
        // Tasks are gone.
        Err(error @ (BoardError::Unfinished { .. } | BoardError::NotDurable { .. })) => {
            return Err(unfinished(error.into()));
        }
        Err(error) => {
            return Err(match team.cancel_delete() {
                Ok(()) => error.into(),
                Err(_) => unfinished(error.into()),
            });
        }
    };
    match team.finish_delete() {
        Ok(()) => Ok(Deleted {
            roster,
            living,
            tasks,
        }),
        // That comes at the very end.
        Err(error @ TeamError::NotDurable { .. }) => Err(error.into()),
        Err(error) => Err(unfinished(error.into())),
    }
}

/// Not through the board where there is none: it would be made by that.
fn empty(board: &Board, force: bool) -> Result<usize, BoardError> {
    if board.dir().is_dir() {
        board.reset(force)
    } else {
        Ok(0)
    }
}
