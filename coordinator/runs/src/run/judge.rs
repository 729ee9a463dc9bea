//! Checks that an agent kept to its rights, as far as that is visible when it has ended: an agent
//! that only reads has changed nothing, and no agent has left work in a place that ccb does not
//! check.

use std::path::Path;

use store::clock::parse_rfc3339;
use swarm::run::{Exit, ExitStatus, Meta, Proof, RunDir};
use worktrees::{Stray, TreeSnapshot};

use super::agents::Agents;

/// Maximum number of file names shown.
const SHOWN: usize = 5;
/// The longest transcript that is searched for a name.
const SEARCHED: u64 = 32 << 20;

/// The state to record before an agent starts.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// The worktree's content, for an agent that may not change it; `None` for others.
    tree: Option<TreeSnapshot>,
    /// True if the system keeps the agent's program from writing, and not only its instructions.
    held: bool,
}

impl Before {
    /// Records the state before the agent of `meta` starts. `held` is true if the system can keep
    /// its program from writing.
    pub(super) fn look(meta: &Meta, held: bool) -> Self {
        let read_only = meta.launch.reach.is_read_only();
        let tree = read_only.then(|| TreeSnapshot::take(&meta.cwd)).flatten();
        Self { tree, held }
    }

    /// Judges the agent by what is there now.
    pub(super) fn judge(&self, agents: &Agents, run: &RunDir, meta: &Meta, exit: &mut Exit) {
        self.judge_tree(agents, meta, exit);
        judge_strays(agents, run, meta, exit);
    }

    /// Fails an agent that may only read and has changed a file. In a directory that others use as
    /// well, another agent may have done it: there a program that cannot write is not suspected,
    /// and if others were active the change is only reported.
    fn judge_tree(&self, agents: &Agents, meta: &Meta, exit: &mut Exit) {
        let Some(before) = &self.tree else {
            return;
        };
        let own_tree = meta.worktree.is_some();
        if !own_tree && self.held {
            return;
        }
        let changed = match TreeSnapshot::take(&meta.cwd) {
            Some(now) => before.changed(&now),
            None => return,
        };
        if changed.is_empty() {
            return;
        }
        let count = changed.len();
        let files = if count == 1 { "file" } else { "files" };
        let mut names: Vec<String> = changed
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        names.truncate(SHOWN);
        let names = names.join(", ");
        if own_tree || is_alone(agents, meta) {
            let why = format!(
                "an agent of type {} only reads, and it changed {count} {files}: {names}",
                meta.agent_type
            );
            fail(exit, why);
        } else {
            exit.notes.push(format!(
                "{count} {files} changed in its directory during this run, by it or by others: \
                 {names}"
            ));
        }
    }
}

fn fail(exit: &mut Exit, why: String) {
    match exit.status {
        ExitStatus::Completed => {
            exit.status = ExitStatus::Failed;
            exit.error = Some(why);
        }
        // It did not get through anyway, and why is known already.
        _ => exit.notes.push(why),
    }
}

/// Says which worktrees and branches came into being during the run. If what should be the agent's
/// result is unchanged and such a branch has commits, its work is there and not in the result.
fn judge_strays(agents: &Agents, run: &RunDir, meta: &Meta, exit: &mut Exit) {
    let Some(since) = parse_rfc3339(&meta.started_at) else {
        return;
    };
    let Ok(trees) = agents.trees() else {
        return;
    };
    let proof = exit.proof.clone();
    let result = proof.as_ref().and_then(|proof| proof.commit.clone());
    let strays = match trees.strays(since, &meta.cwd, result.as_deref()) {
        Ok(strays) => strays,
        Err(error) => {
            tracing::warn!(%error, "whether it made trees of its own is not known");
            return;
        }
    };
    for stray in strays {
        let its_own = is_named(run, &stray) || is_alone(agents, meta);
        let words = words(&stray, its_own, trees.main_tree());
        let unchanged = |proof: &Proof| proof.commit.is_some() && !proof.changed;
        let missing = proof.as_ref().is_some_and(unchanged) && stray.commits > 0;
        match missing && its_own && exit.status == ExitStatus::Completed {
            true => fail(
                exit,
                format!("its work is on a branch of its own making, not in its result: {words}"),
            ),
            false => exit.notes.push(words),
        }
    }
}

fn words(stray: &Stray, its_own: bool, main: &Path) -> String {
    let what = match (&stray.path, &stray.branch) {
        (Some(path), Some(branch)) => format!("worktree {} (branch {branch})", path.display()),
        (Some(path), None) => format!("worktree {}", path.display()),
        (None, branch) => format!("branch {}", branch.as_deref().unwrap_or("(none)")),
    };
    let made = match its_own {
        true => format!("it made {what}"),
        false => format!("{what} was made during this run"),
    };
    let commits = match stray.commits {
        0 => return made,
        1 => "1 commit that is".to_owned(),
        more => format!("{more} commits that are"),
    };
    let look = match (&stray.branch, &stray.path) {
        (Some(branch), _) if stray.kept_with.is_some() => format!(
            "ccb worktree run --private-git {} -- git log HEAD..{branch}",
            stray.kept_with.as_deref().unwrap_or_default()
        ),
        (Some(branch), _) => format!("git -C {} log HEAD..{branch}", main.display()),
        (None, Some(path)) => format!("git -C {} log", path.display()),
        (None, None) => String::new(),
    };
    format!("{made} with {commits} not in its result; look: {look}")
}

/// True if no other agent of the team was active in the repository during this life.
fn is_alone(agents: &Agents, meta: &Meta) -> bool {
    let Ok((listed, _)) = agents.list() else {
        return false;
    };
    let others = listed.iter().filter(|one| {
        let ended = one.meta.ended_at.as_ref();
        let meanwhile = one.alive || ended.is_some_and(|ended| *ended >= meta.started_at);
        one.meta.agent_id != meta.agent_id && meanwhile
    });
    others.count() == 0
}

/// True if what the agent said or did names the worktree or the branch.
fn is_named(run: &RunDir, stray: &Stray) -> bool {
    let file = run.transcript_path();
    let small = std::fs::metadata(&file).is_ok_and(|meta| meta.len() <= SEARCHED);
    let text = small
        .then(|| store::atomic::read(&file).ok().flatten())
        .flatten();
    let text = text.unwrap_or_default();
    let name = stray
        .path
        .as_ref()
        .and_then(|path| path.file_name()?.to_str());
    let names = [name, stray.branch.as_deref()];
    names.into_iter().flatten().any(|name| {
        let name = name.as_bytes();
        !name.is_empty() && text.windows(name.len()).any(|bytes| bytes == name)
    })
}
