use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use store::Failure;
use store::atomic::{Durability, Staged};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN};

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The file to write
    #[arg(default_value = "fanout.yaml")]
    path: PathBuf,
    /// Replace what is there
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &InitArgs, context: &mut Context) -> Result<Exit, Failure> {
    let path = context.directory.join(&args.path);
    let dir = path.parent().unwrap_or(&context.directory);
    if !dir.is_dir() {
        let message = format!("{}: there is no such directory", dir.display());
        return Err(Failure::usage("bad_directory", message));
    }
    let (tool, verify) = detect(&context.directory);
    let text = example(verify);
    let staged = Staged::write(dir, text.as_bytes(), Durability::Relaxed)?;
    if args.force {
        staged.replace(&path)?;
    } else if !staged.create(&path)? {
        return Err(Failure::refused(
            "exists",
            format!("{} is there already", args.path.display()),
        )
        .with_hint("name another file, or replace it with --force"));
    }
    let shown = args.path.display().to_string();
    context.out.done(
        || json!({"plan": {"path": shown, "tool": tool, "verify": verify}}),
        || {
            format!(
                "{GREEN}✔{GREEN:#} wrote {BOLD}{shown}{BOLD:#}\n  {DIM}ccb fanout {shown} --dry-run \
                 shows what it does, ccb fanout {shown} does it{DIM:#}"
            )
        },
    )
}

/// The kind of the project, and the check that proves it whole.
fn detect(dir: &Path) -> (&'static str, &'static str) {
    let has = |name: &str| dir.join(name).exists();
    let says = |name: &str, word: &str| {
        let text = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
        text.contains(word)
    };
    if has("Cargo.toml") {
        ("cargo", "cargo test --quiet")
    } else if says("package.json", "\"test\"") {
        ("npm", "npm test --silent")
    } else if has("pytest.ini") || has("conftest.py") || says("pyproject.toml", "pytest") {
        ("pytest", "python3 -m pytest -q")
    } else if ["Makefile", "makefile", "GNUmakefile"]
        .iter()
        .any(|name| says(name, "\ntest:"))
    {
        ("make", "make test")
    } else {
        ("git", "git diff --check HEAD")
    }
}

fn example(verify: &str) -> String {
    EXAMPLE.replace("@VERIFY@", verify)
}

const EXAMPLE: &str = r#"# A plan for `ccb fanout`: many tasks, each in a git worktree of its own, each proven by a command.
#
#   ccb fanout THIS_FILE --dry-run     what it would do
#   ccb fanout THIS_FILE               do it; results are in ccb-out/
#   ccb fanout apply ccb-out           take them over
#
# As it stands it needs no model and no key: shell commands do the work. `ccb fanout schema` has every key.
v: 1
name: example

defaults:
  retries: 1          # a task that fails is tried once more
  timeout: 10m        # one attempt may take so long
  # For tasks with a `prompt`:
  # runtime: claude   # or codex, opencode, gemini, qwen, …
  # budget: {usd: 1}  # for one attempt

# One task for each file at the top of the repository.
foreach:
  - id: count
    files: "*"
    task:
      subject: Count the lines of {{path}}
      # What stands for {{…}} is quoted for the shell.
      run: mkdir -p ccb-example && wc -l {{path}} > ccb-example/{{name}}.txt
      verify: test -s ccb-example/{{name}}.txt
      paths: ["ccb-example/{{name}}.txt"]

# Other things to go over:
#   lines: "-"                 each line of standard input        {{line}}
#   jsonl: items.jsonl         each JSON object                   {{key}}, {{key.inner}}
#   junit: report.xml          each test that failed              {{test}}, {{message}}, {{file}}, {{line}}
#   sarif: findings.sarif      each finding                       {{rule}}, {{message}}, {{path}}, {{line}}
#
# With an agent instead of a command:
#   task:
#     subject: Fix {{test}}
#     prompt: |
#       The test {{test}} fails: {{message}}
#       Find out why and repair it. Change nothing that the test does not need.

# Tasks one by one.
tasks:
  - id: whole
    subject: The project is still whole
    dependsOn: count  # all of them
    run: mkdir -p ccb-example && git ls-files > ccb-example/all-files.txt
    verify: "@VERIFY@"
    paths: [ccb-example/all-files.txt]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_follows_from_the_project() {
        for (file, text, tool) in [
            ("Cargo.toml", "[package]", "cargo"),
            ("package.json", "{\"scripts\":{\"test\":\"x\"}}", "npm"),
            ("package.json", "{}", "git"),
            ("pyproject.toml", "[tool.pytest.ini_options]", "pytest"),
            ("conftest.py", "", "pytest"),
            ("Makefile", "all:\n\ttrue\ntest:\n\ttrue\n", "make"),
            ("Makefile", "all:\n", "git"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let staged = Staged::write(dir.path(), text.as_bytes(), Durability::Relaxed).unwrap();
            staged.replace(&dir.path().join(file)).unwrap();
            assert_eq!(detect(dir.path()).0, tool, "{file}: {text}");
        }
    }
}
