//! One piece of work from its worktree to the main branch, in a repository made for the example:
//!
//! ```sh
//! cargo run -p ccb-worktrees --example land
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use worktrees::{CreateRequest, MergeRequest, RemoveRequest, RunRequest, Slug, TreeOptions, Trees};

fn main() -> Result<(), Box<dyn Error>> {
    for line in walk_through()? {
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

/// Returns the events, one line for each step.
pub(crate) fn walk_through() -> Result<Vec<String>, Box<dyn Error>> {
    let mut happened = Vec::new();
    let dir = tempfile::tempdir()?;
    let main = dir.path();
    git(main, &["init", "--quiet", "--initial-branch=main"])?;
    git(main, &["commit", "--quiet", "--allow-empty", "-mfirst"])?;

    // A worktree on a branch of its own, beside whatever is checked out.
    let trees = Trees::discover(main, TreeOptions::default())?;
    let name = Slug::new("greeting")?;
    let created = trees.create(&CreateRequest::new(Some(name.clone()), main))?;
    let branch = created.entry.branch.unwrap_or_default();
    happened.push(format!("created {name} on branch {branch}"));

    // A command runs in it; the worktree cannot be removed meanwhile.
    let command = ["sh", "-c", "echo hello > hello.txt"].map(Into::into);
    trees.run(
        &name,
        &RunRequest {
            command: &command,
            timeout: Duration::from_secs(60),
            capture: true,
            private_git: false,
            no_input: true,
            stop: &AtomicBool::new(false),
        },
    )?;
    let changes = trees.changes(&name)?.describe();
    happened.push(format!("worked in it: {changes}"));

    // Everything in it becomes one commit, which lands on the branch the main worktree is on.
    trees.seal(&name, "Say hello")?;
    let merged = trees.merge(&name, &MergeRequest::default())?;
    happened.push(format!(
        "landed {} commit on {}",
        merged.commits, merged.into
    ));

    // Its work has landed, so nothing is lost.
    let removed = trees.remove(&name, &RemoveRequest::default())?;
    let undo = if removed.undoable { "can" } else { "cannot" };
    happened.push(format!("removed it; undo {undo} bring it back"));
    let hello = std::fs::read_to_string(main.join("hello.txt"))?;
    happened.push(format!("the main worktree says {}", hello.trim()));
    Ok(happened)
}

fn git(dir: &Path, args: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new("git")
        .args(["-c", "user.name=example", "-c", "user.email=e@example.org"])
        .args(args)
        .current_dir(dir)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("git {args:?}: {status}").into()),
    }
}
