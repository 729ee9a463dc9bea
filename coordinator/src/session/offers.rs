//! Finished work that has not landed, and the question about it.

use std::collections::BTreeSet;

use landing::builds_on;
use store::Failure;
use taskboard::{Snapshot, Task, TaskId};
use worktrees::{Trees, patch};

use super::{Offer, Session, SessionEvent, SessionUi, unlanded};

/// Asks which of the finished work is to land; `None` if there is none or the answer is none.
pub(super) fn ask(
    session: &Session,
    ui: &dyn SessionUi,
) -> Result<Option<BTreeSet<TaskId>>, Failure> {
    let waiting = unlanded(session)?;
    if waiting.is_empty() {
        return Ok(None);
    }
    let snapshot = session.workplace.board().snapshot()?;
    let trees = session.workplace.trees()?;
    let tasks = waiting.iter().filter_map(|id| snapshot.get(*id));
    let offers: Vec<Offer> = tasks
        .map(|task| offer(task, &waiting, &snapshot, &trees))
        .collect();
    let into = session.record.into.as_deref().unwrap_or_default();
    let chosen: BTreeSet<TaskId> = ui.choose_to_land(into, &offers)?.into_iter().collect();
    let (chosen, left_out) = without_gaps(chosen, &offers);
    for (task, on) in left_out {
        let note = format!("#{task} does not land: it builds on #{on}, which is left out");
        ui.show(&SessionEvent::Note(&note));
    }
    Ok((!chosen.is_empty()).then_some(chosen))
}

fn offer(task: &Task, waiting: &[TaskId], snapshot: &Snapshot, trees: &Trees) -> Offer {
    let result = task.result().unwrap_or_default();
    let range = result.base.zip(result.commit);
    let repository = trees.main_tree().to_owned();
    let files = range
        .as_ref()
        .and_then(|(base, commit)| patch::stat(&repository, base, commit).ok());
    Offer {
        task: task.id,
        subject: task.subject.clone(),
        files: files.unwrap_or_default(),
        unchecked: task.unchecked().map(|why| why.to_string()),
        builds_on: builds_on(task.id, waiting, snapshot),
        range,
        repository,
    }
}

/// Removes work that builds on left-out work, and names the latter.
fn without_gaps(
    mut chosen: BTreeSet<TaskId>,
    offers: &[Offer],
) -> (BTreeSet<TaskId>, Vec<(TaskId, TaskId)>) {
    let mut left_out = Vec::new();
    for offer in offers {
        // It names everything below it, so one look is enough.
        let gap = offer.builds_on.iter().find(|on| !chosen.contains(on));
        if let Some(gap) = gap
            && chosen.contains(&offer.task)
        {
            left_out.push((offer.task, *gap));
        }
    }
    for (task, _) in &left_out {
        chosen.remove(task);
    }
    (chosen, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_builds_on_something_that_is_left_out_is_left_out_too() {
        let id = |number| TaskId::new(number).unwrap();
        let offer = |number, builds_on: &[u64]| Offer {
            task: id(number),
            subject: String::new(),
            files: Vec::new(),
            unchecked: None,
            builds_on: builds_on.iter().copied().map(id).collect(),
            range: None,
            repository: Default::default(),
        };
        let offers = [
            offer(1, &[]),
            offer(2, &[1]),
            offer(3, &[1, 2]),
            offer(4, &[]),
        ];
        let choose = |all: &[u64]| {
            let chosen = all.iter().copied().map(id).collect();
            let (chosen, left_out) = without_gaps(chosen, &offers);
            let chosen: Vec<u64> = chosen.into_iter().map(TaskId::get).collect();
            (chosen, left_out.len())
        };
        assert_eq!(choose(&[1, 2, 3, 4]), (vec![1, 2, 3, 4], 0));
        assert_eq!(choose(&[2, 3, 4]), (vec![4], 2));
        assert_eq!(choose(&[1, 3, 4]), (vec![1, 4], 1));
        assert_eq!(choose(&[]), (vec![], 0));
    }
}
