//! Results that conflict with landed work: the other tasks and the lines; a worktree to resolve
//! each conflict in; and the resolutions that a person made there since the last run.

use std::collections::{BTreeSet, HashMap};

use worktrees::{Base, CreateRequest, RemoveRequest, Slug, TreeError, Trees};

use super::keep::Done;
use super::landing::{Queue, quoted};
use super::outcome::Outcome;
use super::task::PlannedTask;

/// The worktree in which the conflict of a task is resolved.
fn slug_of(task: &PlannedTask) -> Option<Slug> {
    let key = task.key.get(..8).unwrap_or(&task.key);
    Slug::new(&format!("conflict-{}-{key}", task.id)).ok()
}

/// The ref that keeps a landed resolution: the branch may be built anew.
fn kept_as(task: &PlannedTask) -> String {
    format!("fanout/resolved/{}", task.key)
}

/// The manual resolutions, by the place of the task: a commit that contains the task's commit. Also
/// returns notes about worktrees with uncommitted changes.
pub(super) fn resolved(
    trees: &Trees,
    tasks: &[PlannedTask],
    done: &[Done],
) -> (HashMap<usize, String>, Vec<String>) {
    let (mut found, mut notes) = (HashMap::new(), Vec::new());
    for (at, (task, done)) in tasks.iter().zip(done).enumerate() {
        let Some((slug, commit)) = slug_of(task).zip(done.commit.as_ref()) else {
            continue;
        };
        let more = |tip: &String| tip != commit && trees.contains(tip, commit).unwrap_or(false);
        let Ok(entry) = trees.get(&slug) else {
            let before = trees.pinned(&kept_as(task)).ok().flatten();
            found.extend(before.filter(more).map(|tip| (at, tip)));
            continue;
        };
        let changes = trees.changes_of(&entry);
        if changes.files + changes.untracked > 0 || changes.in_progress.is_some() {
            notes.push(format!(
                "{}: the conflict is not resolved yet: worktree {slug} has changes that are not \
                 committed ({})",
                task.id,
                changes.describe()
            ));
            continue;
        }
        if let Some(tip) = changes.head.filter(more) {
            found.insert(at, tip);
        }
    }
    (found, notes)
}

impl Queue<'_> {
    /// The commit that lands for a task: the resolution of its conflict, else its own commit.
    pub(super) fn commit(&self, at: usize) -> Option<&String> {
        self.resolved.get(&at).or(self.done[at].commit.as_ref())
    }

    /// How the task's result conflicts with `tip`, which has the results of `inside`.
    pub(super) fn conflict(
        &self,
        at: usize,
        tip: &str,
        inside: &[usize],
        files: Vec<String>,
    ) -> Outcome {
        let commit = self.done[at].commit.clone().unwrap_or_default();
        let theirs = self.commit(at).cloned().unwrap_or_default();
        let clash: BTreeSet<&String> = files.iter().collect();
        let shares = |other: &&usize| {
            let done = &self.done[**other];
            let (Some(base), Some(commit)) = (&done.base, &done.commit) else {
                return false;
            };
            let changed = self.trees.changed_paths(base, commit).unwrap_or_default();
            changed.iter().any(|path| clash.contains(path))
        };
        let with = inside.iter().filter(shares);
        let places = self.trees.conflict_places(tip, &theirs);
        let places = places.iter().flat_map(|place| {
            let lines = place.lines.iter().map(|(first, last)| match first == last {
                true => format!("{}:{first}", place.path),
                false => format!("{}:{first}-{last}", place.path),
            });
            let lines: Vec<String> = lines.collect();
            match lines.is_empty() {
                true => vec![place.path.clone()],
                false => lines,
            }
        });
        Outcome::Conflict {
            with: with.map(|other| self.tasks[*other].id.clone()).collect(),
            places: places.collect(),
            commit,
            files,
        }
    }

    /// Makes worktrees for the conflicts among `items`, and removes those of resolved conflicts.
    pub(super) fn settle_conflicts(&mut self, branch: &str, items: &[usize], inside: &[usize]) {
        for at in inside {
            let kept = match self.resolved.get(at) {
                Some(commit) => self.trees.pin(&kept_as(&self.tasks[*at]), commit),
                None => Ok(()),
            };
            if let Err(error) = kept.and_then(|()| self.drop_worktree(*at)) {
                tracing::info!(%error, "the worktree of a conflict stays");
            }
        }
        let mut made = 0;
        for at in items {
            let Outcome::Conflict { commit, .. } = &self.reports[*at].outcome else {
                continue;
            };
            let commit = commit.clone();
            let worktree = match made < self.options.keep_failed {
                true => self.conflict_worktree(*at, &commit),
                false => Err("too many".into()),
            };
            made += 1;
            let report = &mut self.reports[*at];
            let branch = shell_word(branch);
            report.resolve = match worktree {
                Ok(path) => {
                    let merge = format!("cd {} && git merge {branch}", shell_word(&path));
                    report.worktree = Some(path);
                    vec![merge]
                }
                Err(why) => {
                    tracing::info!(why, "no worktree to resolve the conflict in");
                    vec![format!("git checkout {branch} && git merge {commit}")]
                }
            };
            let files = "edit the files, git add them, git commit".to_owned();
            report.resolve.push(files);
            report.resolve.extend(self.options.again.clone());
        }
    }

    /// The worktree for a conflict: at the task's commit, on a branch of its own.
    fn conflict_worktree(&self, at: usize, commit: &str) -> Result<String, String> {
        let slug = slug_of(&self.tasks[at]).ok_or("its id is no name for a worktree")?;
        let request = CreateRequest {
            base: Base::Given(commit.to_owned()),
            set_up: self.set_up.clone(),
            ..CreateRequest::new(Some(slug), self.trees.main_tree())
        };
        let created = self.trees.create(&request);
        let created = created.map_err(|error| error.to_string())?;
        Ok(created.entry.path().to_string_lossy().into_owned())
    }

    fn drop_worktree(&self, at: usize) -> Result<(), TreeError> {
        let Some(slug) = slug_of(&self.tasks[at]).filter(|slug| self.trees.get(slug).is_ok())
        else {
            return Ok(());
        };
        let request = RemoveRequest {
            discard: true,
            kept: self.commit(at).map(String::as_str),
            ..RemoveRequest::default()
        };
        self.trees.remove(&slug, &request).map(drop)
    }
}

/// One word for a shell, in quotes only where it needs them.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}
