//! `Worktrees`: all worktrees of the repository, for leads and coordinators.

use coordinator::actions::trees::{self, ListOptions, ListedTree, RemoveOptions};
use coordinator::actions::worktree::to_json;
use project::rights;
use project::workplace::{TreeWish, Workplace};
use serde_json::json;
use store::Failure;
use store::text::short_commit;
use taskboard::{Begin, Task, TaskId};
use worktrees::{ChangeState, Changes, Slug};

use super::answer::Answer;
use super::arguments::Arguments;

/// The required and the optional arguments of each action.
const ACTIONS: [(&str, &[&str], &[&str]); 7] = [
    ("list", &[], &[]),
    ("status", &["name"], &[]),
    ("create", &[], &["name", "taskId", "base"]),
    ("bind", &["name", "taskId"], &[]),
    ("keep", &["name"], &[]),
    ("remove", &["name"], &["discard_changes"]),
    ("undo", &["name"], &[]),
];
/// Maximum number of ignored files named.
const SHOWN: usize = 5;

pub(super) fn call(arguments: &Arguments, context: &Workplace) -> Result<Answer, Failure> {
    let action = arguments.text("action");
    check(&action, arguments)?;
    let discard = arguments.flag("discard_changes").unwrap_or(false);
    rights::check(
        &match discard {
            true => format!("worktree {action} --discard"),
            false => format!("worktree {action}"),
        },
        context,
    )?;
    let name = given(arguments, "name").as_deref().map(Slug::new);
    let name = name.transpose()?;
    let task = given(arguments, "taskId").map(|id| id.parse::<TaskId>());
    let task = task.transpose().map_err(taskboard::BoardError::from)?;
    match (action.as_str(), name, task) {
        ("create", name, task) => create(name, task, arguments, context),
        ("status", Some(name), _) => status(&name, context),
        ("bind", Some(name), Some(task)) => {
            let (entry, task) = trees::bind(&name, task, Begin::NotYet, context)?;
            let text = format!("Worktree {name} is bound to {}.", task_words(&task));
            Ok(Answer::new(text, trees::bound_json(&entry, &task)))
        }
        ("keep", Some(name), _) => {
            let entry = trees::keep(&name, context)?;
            let json = json!({ "worktree": to_json(&entry) });
            Ok(Answer::new(format!("Worktree {name} stays."), json))
        }
        ("remove", Some(name), _) => remove(&name, discard, context),
        ("undo", Some(name), _) => {
            let entry = trees::undo(&name, context)?;
            let json = json!({ "worktree": to_json(&entry) });
            let text = format!("Worktree {name} is back: {}", entry.path);
            Ok(Answer::new(text, json))
        }
        _ => list(context),
    }
}

/// A text that is not empty.
fn given(arguments: &Arguments, name: &str) -> Option<String> {
    arguments.optional(name).filter(|text| !text.is_empty())
}

/// Refuses an action if a required argument is missing, or one has no effect.
fn check(action: &str, arguments: &Arguments) -> Result<(), Failure> {
    let rows = ACTIONS.iter().find(|(name, ..)| *name == action);
    let (_, needs, takes) = rows.ok_or_else(|| Failure::internal("an action without a row"))?;
    for name in ["name", "taskId", "base", "discard_changes"] {
        let is_given = given(arguments, name).is_some() || arguments.flag(name) == Some(true);
        let problem = match (is_given, needs.contains(&name), takes.contains(&name)) {
            (false, true, _) => "needs",
            (true, false, false) => "does not take",
            _ => continue,
        };
        let all: Vec<&str> = needs.iter().chain(*takes).copied().collect();
        let message = format!("Worktrees: action {action:?} {problem} {name:?}");
        return Err(
            Failure::usage("invalid_arguments", message).with_hint(match all.is_empty() {
                true => format!("{action} takes nothing else"),
                false => format!("{action} takes {}", all.join(", ")),
            }),
        );
    }
    Ok(())
}

fn list(context: &Workplace) -> Result<Answer, Failure> {
    let listed = trees::list(ListOptions::default(), context)?;
    let lines: Vec<String> = listed.iter().map(line).collect();
    let text = match lines.is_empty() {
        true => "There are no worktrees; action \"create\" makes one.".to_owned(),
        false => lines.join("\n"),
    };
    let answer = Answer::new(text, trees::list_json(&listed));
    Ok(answer.printed_by("ccb worktree list"))
}

fn line(tree: &ListedTree) -> String {
    let entry = &tree.entry;
    let mut words = vec![
        entry
            .under_way()
            .unwrap_or(entry.status.as_str())
            .to_owned(),
    ];
    words.extend(tree.changes.as_ref().map(changes_words));
    words.extend(entry.task_id.as_ref().map(|id| format!("task #{id}")));
    words.extend(entry.agent.as_ref().map(|agent| format!("agent {agent}")));
    words.extend(entry.branch.as_ref().map(|name| format!("branch {name}")));
    format!("{} ({}): {}", entry.name, words.join(", "), entry.path)
}

fn changes_words(changes: &Changes) -> String {
    match changes.state {
        ChangeState::Clean => "no changes".to_owned(),
        state => format!("{}: {}", state.as_str(), changes.describe()),
    }
}

fn status(name: &Slug, context: &Workplace) -> Result<Answer, Failure> {
    let report = trees::status(name, false, context)?;
    let tree = ListedTree {
        entry: report.entry.clone(),
        changes: Some(report.changes.clone()),
        size: None,
    };
    let mut text = line(&tree);
    if let Some(base) = &report.entry.base {
        text.push_str(&format!("\nIt starts from {}.", short_commit(base)));
    }
    if report.in_use {
        text.push_str("\nSomebody works in it.");
    }
    Ok(Answer::new(text, report.to_json()))
}

fn create(
    name: Option<Slug>,
    task: Option<TaskId>,
    arguments: &Arguments,
    context: &Workplace,
) -> Result<Answer, Failure> {
    let wish = TreeWish {
        base: given(arguments, "base"),
        ..TreeWish::default()
    };
    // The lead or coordinator makes the worktree for another agent.
    let task = task.map(|task| (task, Begin::NotYet));
    let made = trees::create(name, task, &wish, context)?;
    let entry = &made.created.entry;
    let verb = match made.created.created {
        true => "Made",
        false => "Found",
    };
    let mut text = format!("{verb} worktree {}: {}", entry.name, entry.path);
    if let (Some(branch), Some(base)) = (&entry.branch, &entry.base) {
        text.push_str(&format!("\nBranch {branch}, from {}.", short_commit(base)));
    }
    if let Some(task) = &made.task {
        text.push_str(&format!("\nIt is bound to {}.", task_words(task)));
    }
    Ok(Answer::new(text, made.to_json()))
}

fn task_words(task: &Task) -> String {
    let owner = task.owner.as_deref();
    let owner = owner.map_or_else(String::new, |owner| format!(", owner {owner}"));
    format!(
        "task #{} ({}{owner}): {}",
        task.id, task.status, task.subject
    )
}

fn remove(name: &Slug, discard: bool, context: &Workplace) -> Result<Answer, Failure> {
    let options = RemoveOptions {
        discard,
        ..RemoveOptions::default()
    };
    let gone = trees::remove(name, &options, context)?;
    let mut text = match (gone.removed.undoable, gone.removed.entry.hook_based) {
        (true, _) => format!("Removed worktree {name}; action \"undo\" brings it back."),
        (false, true) => {
            format!("Removed worktree {name} with its hook; nothing of it can be brought back.")
        }
        (false, false) => format!("Removed worktree {name}."),
    };
    if let Some(kept) = &gone.removed.branch_kept {
        text.push_str(&format!("\n{kept}"));
    }
    if !gone.ignored.is_empty() {
        let shown = &gone.ignored[..gone.ignored.len().min(SHOWN)];
        let more = match gone.ignored.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown = shown.join(", ");
        text.push_str(&format!("\nWith it went what git ignores: {shown}{more}."));
    }
    Ok(Answer::new(text, gone.to_json()))
}
