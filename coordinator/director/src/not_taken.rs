//! A run that succeeded while its task is not completed: another writer was faster than the
//! director.

use runs::task_refused;
use swarm::run::Meta;
use taskboard::{Attempt, Task};

/// The reason why a task is open although its run succeeded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotTaken<'m> {
    /// The task was completed, and then reopened: rejected, or to be done anew.
    OpenedAgain,
    /// The board did not let the run complete the task, and the task is free.
    Refused(&'m str),
    /// The board did not let the run complete it, and the task has another owner or is parked.
    Elsewhere,
}

pub(super) fn not_taken<'m>(task: &Task, meta: &'m Meta) -> NotTaken<'m> {
    let by_it = |attempt: &Attempt| {
        let work = attempt.work.as_ref();
        work.and_then(|work| work.run.as_ref()) == Some(&meta.agent_id)
    };
    let its_own = task.lease().and_then(|lease| lease.run).as_ref() == Some(&meta.agent_id);
    match task_refused(meta) {
        _ if its_own => NotTaken::Refused("nobody could finish the run"),
        None => NotTaken::OpenedAgain,
        Some(_) if task.attempts().iter().any(by_it) => NotTaken::OpenedAgain,
        Some(why) if task.owner.is_none() && task.parked().is_none() => NotTaken::Refused(why),
        Some(_) => NotTaken::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use store::home::Home;
    use store::name::Name;
    use taskboard::{Board, BoardOptions, NewTask, Status};

    use super::*;

    #[test]
    fn a_task_opened_again_is_told_from_one_that_the_board_did_not_let_be_completed() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let name = Name::new("list", "l").unwrap();
        let board = Board::new(&home, name, BoardOptions::default());
        let new = NewTask {
            subject: "t".into(),
            ..NewTask::default()
        };
        let open = board.create(&[new], None).unwrap().remove(0);
        let with = |ours: serde_json::Value| {
            let mut task = open.clone();
            task.metadata = json!({ "ccb": ours }).as_object().cloned();
            task
        };
        let by_bob = |mut task: Task| {
            task.owner = Some("bob".into());
            task.status = Status::InProgress;
            task
        };
        let taken = by_bob(open.clone());
        let lease = json!({"lease": {"agent": "bob", "run": "a1", "token": 1}});
        let unfinished = by_bob(with(lease));
        let sent_back = json!({"attempts": [{
            "run": "rejected-1", "status": "rejected", "why": "more", "counts": true,
            "at": "2026-01-01T00:00:00.000Z", "work": {"run": "a1"},
        }]});
        let parked = json!({"parked": {"reason": "its check was changed"}});
        let done = Meta {
            agent_id: "a1".into(),
            ..Meta::default()
        };
        let mut refused = done.clone();
        refused
            .other
            .insert("taskRefused".into(), "it is blocked".into());
        for (task, meta, expected) in [
            (&open, &done, NotTaken::OpenedAgain),
            (&taken, &done, NotTaken::OpenedAgain),
            (&open, &refused, NotTaken::Refused("it is blocked")),
            (&taken, &refused, NotTaken::Elsewhere),
            (&with(parked), &refused, NotTaken::Elsewhere),
            // Finished twice: a person had rejected it before the second time.
            (&with(sent_back), &refused, NotTaken::OpenedAgain),
            (
                &unfinished,
                &done,
                NotTaken::Refused("nobody could finish the run"),
            ),
        ] {
            assert_eq!(not_taken(task, meta), expected, "{task:?} {meta:?}");
        }
    }
}
