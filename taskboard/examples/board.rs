//! Three tasks, one of which waits for another: created, claimed, completed.
//!
//! Run it with `cargo run -p ccb-taskboard --example board`.

use std::error::Error;

use store::home::Home;
use store::name::Name;
use taskboard::{Board, BoardOptions, Caller, ClaimRequest, NewTask, Next, Reference, TaskFacts};

/// Works through a board in a temporary directory; returns what happened, a line each.
pub(crate) fn work() -> Result<Vec<String>, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let home = Home::new(dir.path().to_owned())?;
    let board = Board::new(
        &home,
        Name::new("list", "release")?,
        BoardOptions::default(),
    );

    let task = |key: &str, subject: &str| NewTask {
        key: Some(key.into()),
        subject: subject.into(),
        ..NewTask::default()
    };
    let urgent = TaskFacts {
        priority: Some(1),
        ..TaskFacts::default()
    };
    let tasks = board.create(
        &[
            task("build", "Fix the build"),
            NewTask {
                blocked_by: vec![Reference::Key("build".into())],
                ..task("tag", "Tag the release")
            },
            NewTask {
                metadata: urgent.into_metadata(),
                ..task("notes", "Write the notes")
            },
        ],
        None,
    )?;
    let mut told = vec![format!("created {} tasks", tasks.len())];

    // Each caller gets the best task that is ready, and no other caller gets the same one.
    while let Next::Claimed(claimed) = board.claim_next(&ClaimRequest::new("ann"))? {
        let task = claimed.task;
        let completed = board.complete(task.id, &Caller::new("ann"), None)?;
        let ready = match completed.unblocked.first() {
            Some(id) => format!("; #{id} is ready now"),
            None => String::new(),
        };
        told.push(format!("ann did #{} {}{ready}", task.id, task.subject));
    }
    Ok(told)
}

#[expect(clippy::print_stdout, reason = "this is what the example is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    work()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
