//! Merges several results into one: the parts of a plan that ran on several machines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use swarm::redact::Secrets;

use super::error::FanoutError;
use super::manifest::{Loaded, Manifest};
use super::outcome::Outcome;
use super::report::Report;
use super::results::{PageOf, Results};
use super::shard::Shard;

/// Merges the results in `dirs`; with `out`, writes the whole there, and its page.
pub fn merge_results(
    dirs: &[PathBuf],
    out: Option<&Path>,
    secrets: Arc<Secrets>,
    page: Option<PageOf<'_>>,
) -> Result<Report, FanoutError> {
    // A part whose job died has begun and reported nothing: the others still make a report.
    let unfinished = |dir: &&PathBuf| {
        let manifest = Manifest::load(dir).ok().flatten();
        manifest.is_some_and(|manifest| !manifest.complete)
    };
    let (dead, there): (Vec<&PathBuf>, Vec<&PathBuf>) = dirs.iter().partition(unfinished);
    let parts = there
        .iter()
        .map(|dir| Loaded::load(dir))
        .collect::<Result<Vec<_>, _>>()?;
    let mut whole = Report::merge(parts.iter().map(|part| part.report.clone()).collect())?;
    for dir in dead {
        let name = dir.file_name().unwrap_or(dir.as_os_str());
        let words = format!("the run in {} did not come to its end", name.display());
        whole.broken = Some(match whole.broken.take() {
            Some(other) => format!("{other}; {words}"),
            None => words,
        });
    }
    whole.judge();
    let Some(out) = out else {
        return Ok(whole);
    };
    let here = out.canonicalize().ok();
    if dirs
        .iter()
        .any(|dir| here.is_some() && dir.canonicalize().ok() == here)
    {
        let why = format!("{} cannot be merged into itself", out.display());
        return Err(FanoutError::Merge { why });
    }
    let results = Results::create(out, &whole.base, secrets)?;
    for task in &whole.tasks {
        let from = parts.iter().find(|part| part.report.tasks.contains(task));
        if let Some(from) = from {
            results.adopt(task, from)?;
        }
    }
    results.finish(&whole, page)
}

impl Report {
    /// One report of several parts of a plan.
    ///
    /// They must start from the same commit. For a task that is in several parts with the same
    /// content, the best outcome counts: it was done once, in any of them. A missing part is a
    /// failure with its name.
    pub fn merge(parts: Vec<Self>) -> Result<Self, FanoutError> {
        let missing = missing_shards(&parts)?;
        let mut parts = parts.into_iter();
        let Some(mut whole) = parts.next() else {
            let why = "there is no report to merge".into();
            return Err(FanoutError::Merge { why });
        };
        for part in parts {
            if part.base != whole.base {
                let why = format!(
                    "the reports start from different commits: {} and {}",
                    whole.base, part.base
                );
                return Err(FanoutError::Merge { why });
            }
            whole.take(part)?;
        }
        whole.shard = None;
        // A part that was missing before may be here now.
        let said = |broken: &String| broken.starts_with(MISSING);
        whole.broken = whole.broken.filter(|broken| !said(broken));
        if !missing.is_empty() {
            let words = format!("{MISSING}{}", missing.join(", "));
            whole.broken = Some(match whole.broken.take() {
                Some(other) => format!("{words}; {other}"),
                None => words,
            });
        }
        whole.missing_shards = missing;
        whole.judge();
        Ok(whole)
    }

    fn take(&mut self, part: Self) -> Result<(), FanoutError> {
        // RFC 3339 in UTC sorts as text.
        self.started_at = part.started_at.min(std::mem::take(&mut self.started_at));
        self.ended_at = part.ended_at.max(std::mem::take(&mut self.ended_at));
        self.signal = self.signal.or(part.signal);
        self.landed = self.landed.take().or(part.landed);
        self.cut = self.cut.take().or(part.cut);
        self.broken = self.broken.take().or(part.broken);
        self.notes.extend(part.notes);
        for task in part.tasks {
            let Some(there) = self.tasks.iter_mut().find(|one| one.id == task.id) else {
                self.tasks.push(task);
                continue;
            };
            if there.key != task.key {
                let why = format!("task {:?} is not the same in all reports", task.id);
                return Err(FanoutError::Merge { why });
            }
            if rank(&task.outcome) > rank(&there.outcome) {
                *there = task;
            }
        }
        Ok(())
    }
}

/// The more informative of two outcomes of the same task has the higher rank.
fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Proven { .. } => 6,
        Outcome::Cached { .. } => 5,
        Outcome::Unchecked { .. } | Outcome::NoChange { .. } => 4,
        Outcome::Conflict { .. } => 3,
        Outcome::Skipped { .. } => 1,
        _ => 2,
    }
}

/// The beginning of a text about missing parts.
const MISSING: &str = "no results of shard ";

/// The missing parts of the plan, if these are parts of one.
fn missing_shards(parts: &[Report]) -> Result<Vec<String>, FanoutError> {
    let different = |why: String| Err(FanoutError::Merge { why });
    let mut count: Option<u32> = None;
    let mut cut: Option<&str> = None;
    let mut there: BTreeSet<u32> = BTreeSet::new();
    for part in parts {
        let missing = part.missing_shards.iter();
        let missing: Vec<Shard> = missing.filter_map(|text| Shard::parse(text)).collect();
        let own = part.shard.as_deref().and_then(Shard::parse);
        let Some(any) = own.or(missing.first().copied()) else {
            continue;
        };
        let all = *count.get_or_insert(any.count);
        if any.count != all {
            return different(format!(
                "the reports are of {all} and of {} shards; merge those of one run",
                any.count
            ));
        }
        if let Some(own_cut) = part.cut.as_deref()
            && *cut.get_or_insert(own_cut) != own_cut
        {
            return different(format!(
                "shard {any} was cut in another way than the others: their plan, inputs, \
                 --timings or --only differ"
            ));
        }
        match own {
            Some(own) => {
                there.insert(own.index);
            }
            // It is a merged report: it has all parts except the missing ones.
            None => there.extend(
                (1..=all).filter(|index| !missing.iter().any(|shard| shard.index == *index)),
            ),
        }
    }
    let Some(count) = count else {
        return Ok(Vec::new());
    };
    let missing = (1..=count).filter(|index| !there.contains(index));
    Ok(missing
        .map(|index| Shard { index, count }.to_string())
        .collect())
}
