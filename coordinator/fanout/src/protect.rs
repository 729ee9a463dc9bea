//! Files that a task must not change: those of the plan, and those whose change would weaken its
//! proof.

use std::collections::HashSet;

use runs::file_rules::USUALLY_PROTECTED;

use super::error::FanoutError;
use super::items::Source;
use super::task::PlannedTask;

/// Programs that run a file of the repository.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "dash", "deno", "node", "perl", "php", "pwsh", "python", "python3", "ruby",
    "sh", "zsh",
];

/// Adds rules before each task's own rules: the defaults, the files its check runs, and the plan's
/// rules. A later rule can remove an earlier one.
pub(super) fn add(
    tasks: &mut [PlannedTask],
    plan: &[String],
    source: &dyn Source,
) -> Result<(), FanoutError> {
    let mut tracked = None;
    for task in tasks {
        let mut all: Vec<String> = USUALLY_PROTECTED.iter().map(ToString::to_string).collect();
        let run = task.verify.as_deref().map(files_run).unwrap_or_default();
        if !run.is_empty() && tracked.is_none() {
            let files = source.files(&["**".to_owned()], &[])?;
            tracked = Some(files.into_iter().collect::<HashSet<_>>());
        }
        let is_tracked = |file: &&str| {
            let tracked = tracked.as_ref();
            tracked.is_some_and(|tracked| tracked.contains(std::path::Path::new(file)))
        };
        // The files that the task declares are its work, whatever its check is.
        let own = |file: &&str| task.paths.iter().any(|path| path == file);
        let run = run
            .into_iter()
            .filter(|file| is_tracked(file) && !own(file));
        all.extend(run.map(escaped));
        all.extend(plan.iter().cloned());
        all.append(&mut task.protect);
        task.protect = all;
    }
    Ok(())
}

/// A pattern that means this file and no other.
fn escaped(file: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!');
    let mut text = String::with_capacity(file.len());
    for c in file.chars() {
        if special(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The files a command plainly runs: a program with a path, or the argument of an interpreter.
/// Files that it only reads are often the subject of the task.
fn files_run(command: &str) -> Vec<&str> {
    let ends = |c: char| matches!(c, ';' | '|' | '&' | '(' | ')' | '\n' | '{' | '}');
    let mut found = Vec::new();
    for simple in command.split(ends) {
        let mut words = simple
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
            .skip_while(|word| word.contains('='));
        let Some(program) = words.next() else {
            continue;
        };
        let name = program.rsplit('/').next().unwrap_or(program);
        let file = match INTERPRETERS.contains(&name) {
            true => words.find(|word| !word.starts_with('-')),
            false => program.contains('/').then_some(program),
        };
        found.extend(file.map(|file| file.strip_prefix("./").unwrap_or(file)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_check_runs_are_known_where_they_are_plain() {
        for (command, files) in [
            ("./lint src/a.py", "lint"),
            ("A=1 sh -e tests/run.sh src/a", "tests/run.sh"),
            (
                "cd x && python3 'tools/check.py' a || ./b",
                "tools/check.py b",
            ),
            ("ruff check src/a.py", ""),
            ("test -s out && grep -q x src/a", ""),
            ("sh", ""),
            ("", ""),
        ] {
            assert_eq!(files_run(command).join(" "), files, "{command:?}");
        }
        assert_eq!(escaped("a[1]*.py"), "a\\[1\\]\\*.py");
    }
}
