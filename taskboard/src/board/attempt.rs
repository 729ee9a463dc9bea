//! Failed attempts at a task: stored with it, so that the next attempt knows of them, and counted,
//! so that the retries end.

use store::clock::rfc3339;

use crate::board::Board;
use crate::caller::Caller;
use crate::error::{BoardError, Refusal};
use crate::facts::{Attempt, Parked, TaskResult};
use crate::id::TaskId;
use crate::rules::needs::Edited;
use crate::rules::needs::Needs;
use crate::task::{Status, Task};

/// Maximum number of attempts stored with a task.
const REMEMBERED: usize = 20;

impl Board {
    /// Notes with a completed task what there is to show for it.
    pub fn proved(&self, id: TaskId, result: &TaskResult) -> Result<Task, BoardError> {
        self.edit_ours(id, |_, before, _| {
            let mut task = before.clone();
            if task.status == Status::Completed {
                task.set_result(Some(result));
            }
            Ok(task)
        })
    }

    /// Stores a failed attempt and releases the task; parks it if `enough`, which gets all attempts
    /// so far, returns a reason.
    ///
    /// A completed task stays completed, unless the caller insists: a completed task can turn out
    /// not to fit with the rest.
    pub fn attempt_failed(
        &self,
        id: TaskId,
        caller: &Caller,
        attempt: &Attempt,
        enough: &dyn Fn(&[Attempt]) -> Option<String>,
    ) -> Result<Task, BoardError> {
        let mut attempt = attempt.clone();
        attempt.at = rfc3339(self.now_ms());
        self.edit(id, &Needs::nothing(), |_, before, _| {
            let known = before.attempts().iter().any(|it| it.run == attempt.run);
            if known {
                return Ok(Edited::new("update", before.clone()));
            }
            caller.check_token(before)?;
            if before.status == Status::Completed && !caller.force {
                return Err(BoardError::refused(before, Refusal::AlreadyResolved));
            }
            caller.check_owner(before)?;
            Ok(Edited::new("attempt", after(before, &attempt, enough)))
        })
    }
}

impl Board {
    /// Takes the result of a task back and opens it again, with a person's comment as the only
    /// attempt so far: reopening a task restarts the count.
    pub fn reject(&self, id: TaskId, attempt: &Attempt) -> Result<Task, BoardError> {
        let mut attempt = attempt.clone();
        attempt.at = rfc3339(self.now_ms());
        self.edit(id, &Needs::nothing(), |_, before, _| {
            let mut task = before.clone();
            task.make_pending();
            task.set_result(None);
            task.set_attempts(std::slice::from_ref(&attempt));
            Ok(Edited::new("attempt", task))
        })
    }
}

fn after(before: &Task, attempt: &Attempt, enough: &dyn Fn(&[Attempt]) -> Option<String>) -> Task {
    let mut attempts = before.attempts();
    attempts.push(attempt.clone());
    let reason = enough(&attempts);
    while attempts.len() > REMEMBERED {
        // Attempts that count against the task are kept longest.
        let first = attempts.iter().position(|it| !it.counts).unwrap_or(0);
        attempts.remove(first);
    }
    let mut task = before.clone();
    task.make_pending();
    task.set_result(None);
    task.set_attempts(&attempts);
    if let Some(reason) = reason {
        task.park(&Parked {
            reason,
            since: Some(attempt.at.clone()),
            ..Parked::default()
        });
    }
    task
}

#[cfg(test)]
mod tests {
    use store::home::Home;
    use store::name::Name;

    use super::*;
    use crate::facts::LeaseTerm;
    use crate::rules::batch::NewTask;
    use crate::rules::claim::ClaimRequest;
    use crate::rules::edit::Update;

    fn board(dir: &tempfile::TempDir) -> Board {
        let home = Home::new(dir.path().to_owned()).unwrap();
        Board::new(
            &home,
            Name::new("list", "l").unwrap(),
            crate::BoardOptions::default(),
        )
    }

    fn create(board: &Board) -> TaskId {
        let task = NewTask {
            subject: "t".into(),
            ..NewTask::default()
        };
        board.create(&[task], None).unwrap()[0].id
    }

    fn failed(run: &str) -> Attempt {
        Attempt {
            run: run.into(),
            status: "failed".into(),
            why: "it broke".into(),
            counts: true,
            tree: None,
            at: String::new(),
            work: None,
        }
    }

    /// Twice is enough.
    fn twice(attempts: &[Attempt]) -> Option<String> {
        (attempts.len() >= 2).then(|| format!("failed {} times", attempts.len()))
    }

    fn claim(board: &Board, id: TaskId, run: &str) -> Caller {
        let request = ClaimRequest {
            lease: Some(LeaseTerm::Run(run.into())),
            ..ClaimRequest::new("mate")
        };
        let claimed = board.claim(id, &request).unwrap();
        Caller {
            token: claimed.token,
            ..Caller::new("mate")
        }
    }

    #[test]
    fn tries_are_counted_once_and_a_task_that_fails_too_often_is_parked_until_someone_acts() {
        let dir = tempfile::tempdir().unwrap();
        let board = board(&dir);
        let id = create(&board);
        let first = claim(&board, id, "r1");
        let task = board
            .attempt_failed(id, &first, &failed("r1"), &twice)
            .unwrap();
        assert_eq!((task.failures(), task.parked()), (1, None));
        assert_eq!(
            (task.status, task.owner.as_deref()),
            (Status::Pending, None)
        );
        // Stored again, by a process that finishes the run a second time.
        let task = board
            .attempt_failed(id, &first, &failed("r1"), &twice)
            .unwrap();
        assert_eq!(task.failures(), 1);
        // A process that was overtaken says nothing about the task as it is now.
        let second = claim(&board, id, "r2");
        let late = board.attempt_failed(id, &first, &failed("r0"), &twice);
        assert!(matches!(
            late,
            Err(BoardError::Refused {
                reason: Refusal::LeaseLost { .. },
                ..
            })
        ));
        let task = board
            .attempt_failed(id, &second, &failed("r2"), &twice)
            .unwrap();
        assert_eq!(task.parked(), Some("failed 2 times"));
        assert!(board.ready().unwrap().is_empty());
        // Reopening the task restarts the count.
        let update = Update {
            status: Some(Status::Pending),
            ..Update::default()
        };
        let task = board
            .update(id, &update, &Caller::new("user"), None)
            .unwrap()
            .task;
        assert_eq!((task.failures(), task.parked()), (0, None));
    }
}
