//! `TaskList`: the board in few words, however many tasks are on it.

use coordinator::actions::task;
use project::workplace::Workplace;
use store::Failure;
use taskboard::{Snapshot, Status, Task, TaskId, Unchecked};

use super::answer::Answer;

/// Maximum characters of a list of tasks. Models read it often.
const MOST: usize = 5_800;
/// Maximum characters of a subject in a long list.
const SUBJECT: usize = 40;
/// Maximum number of blocking tasks named per task in a long list.
const BLOCKERS: usize = 3;

pub(super) fn list(context: &Workplace) -> Result<Answer, Failure> {
    let listing = task::list(context)?;
    let snapshot = &listing.snapshot;
    let tasks: Vec<&Task> = snapshot
        .tasks()
        .filter(|task| !task.is_internal())
        .collect();
    let mut notes = Vec::new();
    for id in snapshot.unreadable().keys() {
        notes.push(format!(
            "#{id} [unreadable] its file is damaged; tell the lead"
        ));
    }
    for cycle in &listing.cycles {
        notes.push(format!(
            "Tasks {} wait for each other: tell the lead",
            ids(cycle)
        ));
    }
    if tasks.is_empty() && notes.is_empty() {
        notes.push("No tasks. TaskCreate makes one.".into());
    }
    let lines = tasks.iter().map(|task| line(snapshot, task));
    let whole: Vec<String> = lines.chain(notes.iter().cloned()).collect();
    let whole = whole.join("\n");
    let text = match whole.chars().count() > MOST {
        true => in_short(snapshot, &tasks, context.agent(), notes),
        false => whole,
    };
    Ok(Answer::new(text, listing.to_json(&tasks)))
}

/// A task in one line.
pub(super) fn line(snapshot: &Snapshot, task: &Task) -> String {
    line_of(snapshot, task, usize::MAX, usize::MAX)
}

fn line_of(snapshot: &Snapshot, task: &Task, subject: usize, blockers: usize) -> String {
    let subject = match task.subject.char_indices().nth(subject) {
        Some((at, _)) => format!("{}…", &task.subject[..at]),
        None => task.subject.clone(),
    };
    let mut text = format!("#{} [{}] {subject}", task.id, task.status);
    if let Some(owner) = &task.owner {
        text.push_str(&format!(" (owner: {owner})"));
    }
    let open = snapshot.open_blockers(task.id);
    if task.status != Status::Completed && !open.is_empty() {
        let named = ids(&open[..open.len().min(blockers)]);
        text.push_str(&match open.len().saturating_sub(blockers) {
            0 => format!(" [waits for {named}]"),
            more => format!(" [waits for {named} and {more} more]"),
        });
    }
    if task.parked().is_some() {
        text.push_str(" [parked]");
    }
    if task.unchecked().is_some() {
        text.push_str(&format!(" [{}]", Unchecked::MARK));
    }
    if let Some(trouble) = task.trouble() {
        text.push_str(&format!(" [{}]", trouble.words));
    }
    text
}

/// A long board: the caller's tasks, those of others, the free ones and the waiting ones, in this
/// order and as far as there is room; the rest by number.
fn in_short(snapshot: &Snapshot, tasks: &[&Task], caller: &str, notes: Vec<String>) -> String {
    let rank = |task: &Task| match task.status {
        Status::InProgress if task.owner.as_deref() == Some(caller) => 0,
        _ if task.parked().is_some() => 4,
        Status::InProgress => 1,
        Status::Pending if snapshot.open_blockers(task.id).is_empty() => 2,
        Status::Pending => 3,
        Status::Completed => 5,
    };
    let mut open: Vec<&Task> = tasks
        .iter()
        .copied()
        .filter(|task| task.status != Status::Completed)
        .collect();
    open.sort_by_key(|task| (rank(task), task.id));
    let done: Vec<TaskId> = tasks
        .iter()
        .filter(|task| task.status == Status::Completed)
        .map(|task| task.id)
        .collect();
    let mut end = Vec::new();
    if !done.is_empty() {
        end.push(format!("{} completed: {}", done.len(), in_ranges(&done)));
    }
    let unchecked = tasks.iter().filter(|task| task.unchecked().is_some());
    let unchecked: Vec<TaskId> = unchecked.map(|task| task.id).collect();
    if !unchecked.is_empty() {
        let mark = Unchecked::MARK;
        end.push(format!(
            "{} of them {mark}: {}",
            unchecked.len(),
            in_ranges(&unchecked)
        ));
    }
    end.extend(notes);
    // Room for the line that names the tasks left out.
    let mut room = MOST.saturating_sub(
        300 + end
            .iter()
            .map(|line| line.chars().count() + 1)
            .sum::<usize>(),
    );
    let mut lines = Vec::new();
    let mut left_out = Vec::new();
    for task in open {
        let line = line_of(snapshot, task, SUBJECT, BLOCKERS);
        let length = line.chars().count() + 1;
        match left_out.is_empty() && length <= room {
            true => {
                room -= length;
                lines.push(line);
            }
            false => left_out.push(task.id),
        }
    }
    if !left_out.is_empty() {
        left_out.sort_unstable();
        lines.push(format!(
            "{} more: {} (TaskGet shows one)",
            left_out.len(),
            in_ranges(&left_out)
        ));
    }
    lines.extend(end);
    lines.join("\n")
}

/// Ids in a few words: `#1-#9, #12`. The ids must ascend; if there are too many gaps, the rest is
/// counted.
fn in_ranges(ids: &[TaskId]) -> String {
    const RANGES: usize = 20;
    let mut ranges: Vec<(TaskId, TaskId, usize)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last, count)) if last.get() + 1 == id.get() => {
                *last = *id;
                *count += 1;
            }
            _ => ranges.push((*id, *id, 1)),
        }
    }
    let unnamed: usize = ranges.iter().skip(RANGES).map(|(.., count)| count).sum();
    let mut words: Vec<String> = ranges
        .iter()
        .take(RANGES)
        .map(|(first, last, count)| match count {
            1 => format!("#{first}"),
            _ => format!("#{first}-#{last}"),
        })
        .collect();
    if unnamed > 0 {
        words.push(format!("and {unnamed} more"));
    }
    words.join(", ")
}

pub(super) fn ids(ids: &[TaskId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("#{id}")).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_named_by_ranges() {
        let ids = |numbers: &[u64]| -> Vec<TaskId> {
            numbers
                .iter()
                .map(|id| id.to_string().parse().unwrap())
                .collect()
        };
        assert_eq!(in_ranges(&ids(&[1, 2, 3, 7, 9, 10])), "#1-#3, #7, #9-#10");
        let odd: Vec<u64> = (0..40).map(|n| 2 * n + 1).collect();
        assert!(in_ranges(&ids(&odd)).ends_with("#39, and 20 more"));
    }
}
