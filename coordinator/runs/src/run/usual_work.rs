//! The rights of an agent without asking, even if its program would ask: the actions that its task
//! needs.

use serde_json::Value;
use swarm::definitions::PermissionMode;
use swarm::run::Meta;

/// The git commands that read the worktree they run in, or commit to it.
const GIT: [&str; 9] = [
    "add",
    "commit",
    "diff",
    "log",
    "mv",
    "rev-parse",
    "rm",
    "show",
    "status",
];
/// Options of those by which they would run or write something else.
const OTHER: [&str; 6] = [
    "--output",
    "--ext-diff",
    "--textconv",
    "--exec-path",
    "--git-dir",
    "--work-tree",
];

/// Maximum number of characters of a command in a question.
const MOST_SHOWN: usize = 300;

/// True if this use of a tool is part of every task: the check of its own task, and git in its own
/// worktree.
pub(super) fn is_usual(input: &Value, meta: &Meta) -> bool {
    let Some(command) = command_of(input) else {
        return false;
    };
    if meta.permission_mode.as_deref() == Some(PermissionMode::Plan.as_str()) {
        return false;
    }
    let command = command.trim();
    let check = meta.launch.prove.as_ref();
    let check = check.and_then(|prove| prove.verify.as_deref());
    check.is_some_and(|check| check.trim() == command)
        || (meta.worktree.is_some() && is_local_git(command))
        || came_with_plan(command, &meta.launch.allowed_commands)
}

/// True if the command begins with the words of a command that was approved together with a plan.
fn came_with_plan(command: &str, allowed: &[String]) -> bool {
    let begins = |allowed: &String| {
        let mut words = command.split_whitespace();
        let mut wanted = allowed.split_whitespace().peekable();
        wanted.peek().is_some() && wanted.all(|word| words.next() == Some(word))
    };
    is_plain(command) && allowed.iter().any(begins)
}

/// The effect of a use of a tool, in one line: the command it runs, or the file it touches.
pub(super) fn what_it_would_do(input: &Value) -> Option<String> {
    let file = ["file_path", "path", "notebook_path", "url"]
        .iter()
        .find_map(|key| input[*key].as_str().map(str::to_owned));
    let what = command_of(input).or(file)?;
    let line: Vec<&str> = what.split_whitespace().collect();
    Some(line.join(" ").chars().take(MOST_SHOWN).collect())
}

/// The command a shell is to run, as the programs put it: a line, or words of which the last is
/// a line for a shell.
fn command_of(input: &Value) -> Option<String> {
    match &input["command"] {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
            match words.as_slice() {
                [shell, option, line] if shell.ends_with("sh") && option.starts_with('-') => {
                    Some((*line).to_owned())
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// True if it is one command with its arguments. ccb does not analyse a shell's expansions and
/// operators: then it asks.
fn is_plain(command: &str) -> bool {
    !command.contains([
        ';', '&', '|', '<', '>', '$', '`', '\\', '\n', '\r', '(', ')', '{', '}',
    ])
}

/// True if it is one call of git that stays in the worktree.
fn is_local_git(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let git = words.next() == Some("git") && words.next().is_some_and(|verb| GIT.contains(&verb));
    let other = |word: &str| OTHER.iter().any(|option| word.starts_with(option));
    is_plain(command) && git && !words.any(|word| other(word.trim_matches(['"', '\''])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn git_in_the_tree_is_usual_and_nothing_else() {
        for command in [
            "git status",
            "git add -A",
            "git commit -m \"Fix it\"",
            "git diff HEAD~1",
        ] {
            assert!(is_local_git(command), "{command}");
        }
        for command in [
            "git push",
            "git -C /elsewhere commit",
            "git commit -m \"$(rm -rf x)\"",
            "git add . && rm x",
            "git diff --output=/etc/x",
            "git diff '--output=/etc/x'",
            "git -c core.pager=x log",
            "gitk",
            "rm -rf .",
            "git log | sh",
        ] {
            assert!(!is_local_git(command), "{command}");
        }
    }

    #[test]
    fn what_came_with_a_plan_is_usual_as_one_plain_command() {
        let allowed = ["cargo test".to_owned(), " ".to_owned()];
        for command in ["cargo test", "cargo  test --lib"] {
            assert!(came_with_plan(command, &allowed), "{command}");
        }
        for command in [
            "cargo",
            "cargo testify",
            "cargo test && rm x",
            "cargo test $(rm x)",
            "echo cargo test",
            "rm x",
        ] {
            assert!(!came_with_plan(command, &allowed), "{command}");
        }
    }

    #[test]
    fn a_command_is_a_line_or_words_for_a_shell() {
        let line = |input| command_of(&input);
        assert_eq!(
            line(json!({"command": "git status"})).as_deref(),
            Some("git status")
        );
        let words = json!({"command": ["bash", "-lc", "git status"]});
        assert_eq!(line(words).as_deref(), Some("git status"));
        assert_eq!(line(json!({"command": ["rm", "-rf", "x"]})), None);
        assert_eq!(line(json!({"path": "x"})), None);
        let shown = |input| what_it_would_do(&input).unwrap_or_default();
        assert_eq!(shown(json!({"command": "git\n  push"})), "git push");
        assert_eq!(shown(json!({"file_path": "/a"})), "/a");
        assert_eq!(shown(json!({"n": 1})), "");
    }
}
