//! Follows a session that another process directs.

use std::time::Duration;

use director::Verdict;
use store::Failure;
use store::lock::wait_until_free;

use super::{Session, SessionEvent, SessionUi, unlanded};

/// Poll interval for the end of the session.
const SLICE: Duration = Duration::from_millis(200);

/// Shows the events of the board until the directing process is done (`Some`) or has exited with
/// work left (`None`).
pub(super) fn follow(
    session: &Session,
    who: &str,
    ui: &dyn SessionUi,
) -> Result<Option<Verdict>, Failure> {
    let note = |text: &str| ui.show(&SessionEvent::Note(text));
    ui.show(&SessionEvent::Following { who: Some(who) });
    let board = session.workplace.board();
    let mut watch = board.watch(None)?;
    let lock = session.workplace.agents()?.director_lock();
    loop {
        if let Some(number) = ui.signal() {
            return Ok(Some(Verdict::Interrupted(number)));
        }
        let free = wait_until_free(&lock, SLICE)?;
        for change in watch.poll()? {
            let subject = change
                .task
                .as_ref()
                .and_then(|task| task["subject"].as_str())
                .unwrap_or_default()
                .to_owned();
            note(&format!("{} #{} {subject}", change.op, change.id));
        }
        if free {
            let file = session.file();
            let over = file.session()?.is_some_and(|now| now.ended_at.is_some());
            let snapshot = board.snapshot()?;
            let open = snapshot
                .tasks()
                .any(|task| !task.is_internal() && task.status != taskboard::Status::Completed);
            if !over && (open || !unlanded(session)?.is_empty()) {
                ui.show(&SessionEvent::Following { who: None });
                return Ok(None);
            }
            return Ok(Some(match open {
                true => Verdict::Failed,
                false => Verdict::Done,
            }));
        }
        watch.wait(Duration::ZERO);
    }
}
