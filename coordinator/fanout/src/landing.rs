//! Lands proven results on a branch, together.
//!
//! All of them are merged and checked once. If the check fails, ccb splits the batch until it finds
//! the result that does not fit with the rest; that one is left out and its task gets the check's
//! output, the rest lands. The order follows from the tasks alone, so the same results give the
//! same branch. The branch moves once, at the end: a run that is killed before has changed nothing.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use director::Interrupted;
use runs::{Agents, Prove};
use store::atomic::Durability;
use taskboard::{Attempt, Caller};
use worktrees::{AfterCheck, Check, SetUp, Slug, TreeError, Trees};

use super::board::Prepared;
use super::event::FanoutEvent;
use super::keep::Done;
use super::outcome::{Outcome, Skip};
use super::report::{Landing, TaskReport};
use super::run::{Events, Land, Landed, RunOptions};
use super::task::{PlannedTask, graph, places};
use super::whole_check::{self, WholeCheck, worse};

/// Maximum bytes of a failing check's output that the task gets.
const PRINTED: u64 = 4096;
/// Poll interval for a stop request.
const LOOK: Duration = Duration::from_millis(100);

/// Results that are to land.
pub(super) struct Queue<'a> {
    pub(super) tasks: &'a [PlannedTask],
    pub(super) done: &'a [Done],
    /// The resolutions of conflicts, by the place of the task.
    pub(super) resolved: HashMap<usize, String>,
    pub(super) reports: &'a mut Vec<TaskReport>,
    pub(super) trees: &'a Trees,
    pub(super) agents: &'a Agents,
    pub(super) prepared: &'a Prepared,
    pub(super) options: &'a RunOptions,
    pub(super) set_up: SetUp,
    pub(super) interrupted: Interrupted,
    pub(super) events: &'a mut dyn Events,
}

/// A branch being built.
struct Build<'q> {
    /// The commit it began with.
    start: String,
    /// Its present head.
    tip: String,
    inside: Vec<usize>,
    /// The check of the whole, as long as it distinguishes single results.
    whole: Option<WholeCheck>,
    /// The tests that fail at the start, once that is known.
    before: OnceCell<Result<BTreeSet<String>, String>>,
    stop: &'q AtomicBool,
    label: Slug,
}

/// The reason why a branch is not finished.
enum Broken {
    /// A caller asked for a stop.
    Stopped,
    /// The check of the whole fails, and it failed before anything landed. Contains its output from
    /// then.
    RedBase(String),
    Tree(TreeError),
}

impl From<store::StoreError> for Broken {
    fn from(error: store::StoreError) -> Self {
        Self::Tree(error.into())
    }
}

impl From<TreeError> for Broken {
    fn from(error: TreeError) -> Self {
        Self::Tree(error)
    }
}

impl Queue<'_> {
    /// Lands everything that can land; returns the branch, and the signal that stopped it.
    pub(super) fn land(&mut self) -> (Landed, Option<u8>) {
        let (stop, signal, over) = (
            AtomicBool::new(false),
            AtomicU8::new(0),
            AtomicBool::new(false),
        );
        let interrupted = std::sync::Arc::clone(&self.interrupted);
        let landed = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    if let Some(number) = interrupted() {
                        signal.store(number, Ordering::SeqCst);
                        stop.store(true, Ordering::SeqCst);
                    }
                    std::thread::park_timeout(LOOK);
                }
            });
            let landed = self.all(&stop);
            over.store(true, Ordering::SeqCst);
            landed
        });
        let signal = Some(signal.load(Ordering::SeqCst)).filter(|number| *number > 0);
        (landed, signal)
    }

    fn all(&mut self, stop: &AtomicBool) -> Landed {
        let mut landed = Landed::default();
        let plan = clean(&self.options.name);
        let mut branches: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in self.order() {
            let branch = match (self.options.land, &self.options.into) {
                (Land::Branch, _) => {
                    let group = self.tasks[at].group.as_deref().unwrap_or("tasks");
                    format!("ccb/{plan}-{}", clean(group))
                }
                (_, Some(into)) => into.clone(),
                (_, None) => format!("ccb/{plan}"),
            };
            branches.entry(branch).or_default().push(at);
        }
        for (branch, items) in branches {
            match self.branch(&branch, &items, stop) {
                Ok((commit, broken)) => {
                    if let Some(printed) = broken {
                        let words = format!("the check of the whole fails on {branch}: {printed}");
                        landed.broken = Some(words);
                    }
                    if self.options.land == Land::Branch {
                        landed.notes.push(format!("landed on {branch} at {commit}"));
                    }
                    landed.branch = Some(Landing { branch, commit });
                }
                Err(Broken::Stopped) => {
                    let note = format!("{branch} was not built: the run was stopped");
                    landed.notes.push(note);
                }
                Err(Broken::RedBase(printed)) => {
                    let command = self.options.check.as_ref().map_or("", WholeCheck::command);
                    landed.broken = Some(format!(
                        "nothing has landed on {branch}: the check `{command}` fails on the \
                         results, and it already fails without them ({printed}). Make it pass \
                         first, compare with `check: {{no-new-failures: …}}` in the plan, or \
                         give --allow-red-base"
                    ));
                }
                Err(Broken::Tree(error)) => {
                    landed
                        .notes
                        .push(format!("{branch} was not built: {error}"));
                    for at in items {
                        self.left(at);
                    }
                }
            }
        }
        landed
    }

    /// The landing order: no result before one it builds on, then the one that shares files with
    /// the fewest others.
    fn order(&self) -> Vec<usize> {
        let lands = |at: &usize| {
            let outcome = &self.reports[*at].outcome;
            outcome.is_success() && self.done[*at].commit.is_some() && outcome.commit().is_some()
        };
        let mut files: HashMap<String, BTreeSet<usize>> = HashMap::new();
        for at in (0..self.tasks.len()).filter(lands) {
            if let (Some(base), Some(commit)) = (&self.done[at].base, &self.done[at].commit) {
                for path in self.trees.changed_paths(base, commit).unwrap_or_default() {
                    files.entry(path).or_default().insert(at);
                }
            }
        }
        let mut shares: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.tasks.len()];
        for those in files.values().filter(|those| those.len() > 1) {
            for at in those {
                shares[*at].extend(those);
            }
        }
        let order = graph(self.tasks).order_by(|at| shares[at].len());
        let mut order: Vec<usize> = order.into_iter().filter(lands).collect();
        // A resolution contains the work of others.
        order.sort_by_key(|at| self.resolved.contains_key(at));
        order
    }

    /// Builds one branch and puts it in place.
    fn branch(
        &mut self,
        branch: &str,
        items: &[usize],
        stop: &AtomicBool,
    ) -> Result<(String, Option<String>), Broken> {
        let landed = format!("landed/{branch}");
        let own = self.trees.pinned(&landed)?;
        let mut others = false;
        let start = match self.trees.branch_tip(branch)? {
            // The branch is unchanged since the last run: built anew, so that nothing of an older
            // plan is left.
            Some(tip) if own.as_ref() == Some(&tip) && self.options.into.is_none() => {
                self.options.base.clone()
            }
            Some(tip) => {
                others = true;
                let base = std::slice::from_ref(&self.options.base);
                self.trees.compose(&tip, base)?
            }
            None => self.options.base.clone(),
        };
        let mut build = Build {
            tip: start.clone(),
            start,
            inside: Vec::new(),
            whole: self.options.check.clone(),
            before: OnceCell::new(),
            stop,
            label: Slug::new("fanout")?,
        };
        self.settle(&mut build, items, false)?;
        let broken = match (&build.whole, &self.options.check) {
            // It was left out on the way: checked again with everything that landed.
            (None, Some(_)) => {
                build.whole = self.options.check.clone();
                self.check(&build, &build.tip, &[])?.err()
            }
            _ => None,
        };
        self.trees.put_branch(branch, &build.tip, own.as_deref())?;
        match others {
            // Commits of others on it must not be lost when the plan runs again.
            true => self.trees.unpin(&[landed])?,
            false => self.trees.pin(&landed, &build.tip)?,
        }
        // A landing is reported only after it is on the disk.
        self.trees.make_durable()?;
        self.settle_conflicts(branch, items, &build.inside);
        for at in &build.inside {
            self.reports[*at].branch = Some(branch.to_owned());
            self.events.event(&FanoutEvent::Landed {
                task: self.tasks[*at].id.clone(),
                branch: branch.to_owned(),
                commit: build.tip.clone(),
            });
        }
        Ok((build.tip, broken))
    }

    /// Adds as many of `items` as fit with the branch. In a `search` for a culprit only the checks
    /// run here count: a result that passed elsewhere may be the one that fails.
    fn settle(
        &mut self,
        build: &mut Build<'_>,
        items: &[usize],
        search: bool,
    ) -> Result<(), Broken> {
        let mut tip = build.tip.clone();
        let mut batch = Vec::new();
        for at in items.iter().copied() {
            if build.stop.load(Ordering::SeqCst) {
                return Err(Broken::Stopped);
            }
            if self.is_out(at) {
                continue;
            }
            let commit = self.commit(at).cloned().unwrap_or_default();
            let task = &self.tasks[at];
            let words = format!("Land {}: {}\n", task.id, task.subject);
            let commits = std::slice::from_ref(&commit);
            match self.trees.compose_as(&tip, commits, &words) {
                Ok(with) => {
                    tip = with;
                    batch.push(at);
                }
                Err(TreeError::Conflicts { files, .. }) => {
                    let inside: Vec<usize> = build.inside.iter().chain(&batch).copied().collect();
                    let outcome = self.conflict(at, &tip, &inside, files);
                    self.finished(at, outcome);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let Some(last) = batch.last().copied() else {
            return Ok(());
        };
        let checked = match batch.len() {
            // Exactly this commit was checked when the task was done.
            1 if !search
                && self.done[last].commit.as_ref() == Some(&tip)
                && !self.resolved.contains_key(&last)
                && build.whole.is_none() =>
            {
                Ok(())
            }
            _ => self.check_once_more(build, &tip, &batch)?,
        };
        match (checked, batch.as_slice()) {
            (Ok(()), _) => {
                build.tip = tip;
                build.inside.extend(batch);
            }
            (Err(printed), [alone]) => self.rejected(*alone, &printed),
            (Err(_), several) => {
                self.events.event(&FanoutEvent::Tick);
                let (first, second) = several.split_at(several.len() / 2);
                self.settle(build, first, true)?;
                self.settle(build, second, true)?;
            }
        }
        Ok(())
    }

    /// True if it was left out, or builds on something that was.
    fn is_out(&mut self, at: usize) -> bool {
        if !self.reports[at].outcome.is_success() {
            return true;
        }
        let places = places(self.tasks);
        let on = self.tasks[at].depends_on.iter();
        let mut on = on.filter_map(|id| places.get(id.as_str()));
        let Some(missing) = on.find(|on| !self.reports[**on].outcome.is_success()) else {
            return false;
        };
        let task = self.tasks[*missing].id.clone();
        self.reports[at].outcome = Outcome::Skipped {
            why: Skip::Dependency { task },
        };
        true
    }

    /// Records a task that did not land, for a reason outside of the task.
    fn left(&mut self, at: usize) {
        let outcome = Outcome::Conflict {
            commit: self.done[at].commit.clone().unwrap_or_default(),
            files: Vec::new(),
            with: Vec::new(),
            places: Vec::new(),
        };
        self.finished(at, outcome);
    }

    fn finished(&mut self, at: usize, outcome: Outcome) {
        self.reports[at].outcome = outcome.clone();
        let task = self.tasks[at].id.clone();
        self.events.event(&FanoutEvent::Finished { task, outcome });
    }

    /// Records a result that does not fit with the rest: its task is open again, with the output.
    fn rejected(&mut self, at: usize, printed: &str) {
        let why = format!("together with the others the checks fail: {printed}");
        if let Some(id) = self.prepared.ids[at] {
            let landing = format!("landing-{}", uuid::Uuid::new_v4());
            let attempt = Attempt::new(landing, "rejected", &why);
            let caller = Caller::forced("engine");
            let board = self.agents.board();
            let noted = board.attempt_failed(id, &caller, &attempt, &|_| None);
            if let Err(error) = noted {
                tracing::warn!(%error, "the task is not open again");
            }
        }
        self.finished(at, Outcome::VerifyFailed { why });
    }

    /// Checks the branch together with `batch`. A check of the whole that failed before anything
    /// landed says nothing about single results: then it is left out.
    fn check_once_more(
        &mut self,
        build: &mut Build<'_>,
        commit: &str,
        batch: &[usize],
    ) -> Result<Result<(), String>, Broken> {
        let members: Vec<usize> = build.inside.iter().chain(batch).copied().collect();
        let checked = self.check(build, commit, &members)?;
        if checked.is_ok() || build.whole.is_none() || !build.inside.is_empty() {
            return Ok(checked);
        }
        if build.whole.as_ref().is_some_and(WholeCheck::compares) {
            // It knows the earlier failures.
            return Ok(checked);
        }
        let start = build.start.clone();
        let Err(printed) = self.check(build, &start, &[])? else {
            return Ok(checked);
        };
        if !self.options.allow_red_base {
            return Err(Broken::RedBase(printed));
        }
        build.whole = None;
        self.check(build, commit, &members)
    }

    /// True if a test fails now that did not fail before anything landed.
    fn compare(
        &self,
        build: &Build<'_>,
        after: &Result<BTreeSet<String>, String>,
        commit: &str,
    ) -> Result<Result<(), String>, Broken> {
        if commit == build.start {
            build.before.get_or_init(|| after.clone());
            return Ok(Ok(()));
        }
        if build.before.get().is_none() {
            let checked = self.check(build, &build.start.clone(), &[])?;
            // It left a list of failed tests, unless even its setup could not run.
            build
                .before
                .get_or_init(|| Err(checked.err().unwrap_or_default()));
        }
        let unknown = Err(String::new());
        let before = build.before.get().unwrap_or(&unknown);
        Ok(match (before, after) {
            (Ok(before), Ok(after)) => worse(before, after).map_or(Ok(()), Err),
            (Err(why), _) => Err(format!("nobody knows what failed before: {why}")),
            (_, Err(why)) => Err(why.clone()),
        })
    }

    /// Runs the checks of these tasks, and of the whole, on `commit` in a worktree of its own.
    /// Returns the output of a check that fails.
    fn check(
        &self,
        build: &Build<'_>,
        commit: &str,
        members: &[usize],
    ) -> Result<Result<(), String>, Broken> {
        // In a file: a command line has a length limit.
        let scratch = scratch()?;
        let (file, junit) = (
            scratch.path().join("check"),
            scratch.path().join("junit.xml"),
        );
        let whole = build.whole.as_ref().map(|whole| (whole, junit.as_path()));
        let Some(script) = script(self.tasks, members.iter().copied(), whole) else {
            return Ok(Ok(()));
        };
        store::atomic::replace(
            scratch.path(),
            &file,
            script.as_bytes(),
            Durability::Relaxed,
        )?;
        let check = Check {
            command: format!("sh {}", quoted(&file.to_string_lossy())),
            timeout: Prove::TIMEOUT,
            set_up: self.set_up.clone(),
            after: AfterCheck::Keep,
            stop: build.stop,
        };
        let checked = self.trees.check_result(&build.label, commit, &check);
        if build.stop.load(Ordering::SeqCst) {
            return Err(Broken::Stopped);
        }
        match checked {
            Ok(_) if build.whole.as_ref().is_some_and(WholeCheck::compares) => {
                self.compare(build, &whole_check::failures(&junit), commit)
            }
            Ok(_) => Ok(Ok(())),
            Err(TreeError::CheckFailed { how, log, .. }) => {
                let printed = store::log::tail(&log, PRINTED).unwrap_or_default();
                Ok(Err(format!("{how}\n{}", printed.trim_end())))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn scratch() -> Result<tempfile::TempDir, TreeError> {
    tempfile::Builder::new()
        .prefix("ccb-check-")
        .tempdir()
        .map_err(|error| scratch_error(&error))
}

fn scratch_error(error: &std::io::Error) -> TreeError {
    TreeError::Invalid {
        what: "a temporary file".into(),
        why: error.to_string(),
    }
}

/// The checks of these tasks, each once, and the one of the whole.
fn script(
    tasks: &[PlannedTask],
    members: impl Iterator<Item = usize>,
    whole: Option<(&WholeCheck, &Path)>,
) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut script = String::new();
    let mut add = |of: &str, env: &BTreeMap<String, String>, command: &str, again: u32| {
        let mut part = String::new();
        for (name, value) in env {
            part.push_str(&format!("export {name}={}\n", quoted(value)));
        }
        part.push_str(command);
        if seen.insert(part.clone()) {
            let words = quoted(&format!("ccb: {of} does not pass: {command}"));
            // As many times as the task's own check may run.
            for _ in 0..=again {
                script.push_str(&format!("(\n{part}\n) || "));
            }
            script.push_str(&format!("{{ printf '%s\\n' {words}; exit 1; }}\n"));
        }
    };
    for task in members.map(|at| &tasks[at]) {
        if let Some(verify) = &task.verify {
            let of = format!("the check of {}", task.id);
            add(&of, &task.env, verify, task.check_retries);
        }
    }
    if let Some((whole, junit)) = whole {
        let script = whole.script(junit, quoted);
        add("the check of the whole", &whole.env, &script, 0);
    }
    (!script.is_empty()).then_some(script)
}

/// One word for a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text that can be part of a branch's name.
fn clean(text: &str) -> String {
    let kept = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
        true => c,
        false => '-',
    };
    let text: String = text.chars().take(60).map(kept).collect();
    match text.trim_matches('-') {
        "" => "plan".into(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_s_name_becomes_part_of_a_branch() {
        for (text, expected) in [("a b/c", "a-b-c"), ("..", "plan"), ("Fix_1", "Fix_1")] {
            assert_eq!(clean(text), expected);
        }
    }
}
