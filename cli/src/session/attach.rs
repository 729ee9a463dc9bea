//! Following a session that somebody else directs.

use std::time::Duration;

use coordinator::SessionFile;
use store::lock::wait_until_free;
use store::{Category, Failure};

use super::view::View;
use super::{Session, unlanded};
use crate::exit::Exit;
use crate::signals::Signals;

/// How often is looked whether to go on.
const SLICE: Duration = Duration::from_millis(200);

/// Shows what happens on the board until whoever directs the session is done (`Some`) or gone
/// with work left (`None`).
pub(super) fn follow(
    session: &Session,
    who: &str,
    signals: &Signals,
    view: &View,
) -> Result<Option<Exit>, Failure> {
    view.note(&format!(
        "team {} is directed by another process ({who}); following it",
        session.team
    ));
    let board = session.context.board();
    let mut watch = board.watch(None)?;
    let lock = coordinator::engine::director_lock(&session.context.agents()?);
    loop {
        if let Some(number) = signals.take() {
            return Ok(Some(Exit::Signal(number)));
        }
        let free = wait_until_free(&lock, SLICE)?;
        for change in watch.poll()? {
            let subject = change
                .task
                .as_ref()
                .and_then(|task| task["subject"].as_str())
                .unwrap_or_default()
                .to_owned();
            view.note(&format!("{} #{} {subject}", change.op, change.id));
        }
        if free {
            let file = SessionFile {
                home: session.context.home(),
                team: &session.team,
            };
            let over = file.session()?.is_some_and(|now| now.ended_at.is_some());
            let snapshot = board.snapshot()?;
            let open = snapshot
                .tasks()
                .any(|task| !task.is_internal() && task.status != taskboard::Status::Completed);
            if !over && (open || !unlanded(session)?.is_empty()) {
                view.note("whoever directed it is gone; taking over");
                return Ok(None);
            }
            return Ok(Some(if open {
                Exit::Not(Category::Failed)
            } else {
                Exit::Done
            }));
        }
        watch.wait(Duration::ZERO);
    }
}
