//! Reports of sessions and plans that have ended, kept in the home: `<home>/ccb/history/<id>/`.
//!
//! `report.json` is the report, `summary.json` the input of `ccb runs`. The summary is written
//! last, so a directory with one is whole. Reports older than `history.days` are deleted, then the
//! oldest until all together are at most `history.maxBytes`. They are copies: work that has not
//! landed is never in them alone.

use std::path::{Path, PathBuf};

use project::workplace::Workplace;
use serde::{Deserialize, Serialize};
use store::atomic::{self, Durability};
use store::clock::{Clock, SystemClock, parse_rfc3339};
use store::{Category, Failure};

use super::model::{REPORT_VERSION, Report, ReportKind, ReportState, Totals};

const REPORT: &str = "report.json";
const SUMMARY: &str = "summary.json";
const TMP: &str = ".tmp";
const DAY_MS: i64 = 24 * 3600 * 1000;

/// One run in the list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// The version of this format.
    pub v: u64,
    /// The id for `ccb report`.
    pub id: String,
    /// Its team.
    pub team: String,
    /// The kind of run.
    pub kind: ReportKind,
    /// The first line of its title.
    pub title: String,
    /// The start, RFC 3339.
    pub started_at: String,
    /// The end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The state.
    pub state: ReportState,
    /// The state in words.
    pub words: String,
    /// Its figures.
    pub totals: Totals,
    /// The repository it worked on, by its git directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
}

fn dir(workplace: &Workplace) -> PathBuf {
    workplace.home().ours().join("history")
}

/// Keeps a report, replacing an earlier one of the same run, and removes old ones.
pub fn keep(report: &Report, workplace: &Workplace) -> Result<(), Failure> {
    let all = dir(workplace);
    let settings = &workplace.settings().history;
    if settings.days == 0 {
        return Ok(());
    }
    let (tmp, own) = (all.join(TMP), all.join(&report.id));
    store::home::create_private_dir(&tmp)?;
    store::home::create_private_dir(&own)?;
    let summary = Summary {
        v: REPORT_VERSION,
        id: report.id.clone(),
        team: report.team.clone(),
        kind: report.kind,
        title: report.title.lines().next().unwrap_or_default().to_owned(),
        started_at: report.started_at.clone(),
        ended_at: report.ended_at.clone(),
        state: report.state,
        words: report.words.clone(),
        totals: report.totals.clone(),
        repository: workplace.common_dir().map(str::to_owned),
    };
    put(&tmp, &own.join(REPORT), &report)?;
    put(&tmp, &own.join(SUMMARY), &summary)?;
    prune(
        &all,
        i64::from(settings.days),
        settings.max_bytes,
        &report.id,
    )
}

fn put(tmp: &Path, path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(value);
    let bytes = bytes.map_err(|error| Failure::internal(error.to_string()))?;
    Ok(atomic::replace(tmp, path, &bytes, Durability::Relaxed)?)
}

/// Removes reports that are too old, and then the oldest while all are too large; never `newest`.
fn prune(all: &Path, days: i64, max_bytes: u64, newest: &str) -> Result<(), Failure> {
    let now = SystemClock.now_ms();
    let mut kept = Vec::new();
    for name in names(all) {
        let own = all.join(&name);
        let summary = read(&own).unwrap_or_default();
        let ended = summary.ended_at.as_deref().unwrap_or(&summary.started_at);
        // A report without a summary was interrupted, and is old if it is not being written now.
        let ended = parse_rfc3339(ended).unwrap_or_else(|| changed_ms(&own));
        if name == newest {
            continue;
        }
        match now - ended > days * DAY_MS {
            true => store::tree::delete(&own)?,
            false => kept.push((ended, store::tree::size(&own).unwrap_or(0), own)),
        }
    }
    kept.sort_by_key(|(ended, _, _)| std::cmp::Reverse(*ended));
    let mut bytes = store::tree::size(&all.join(newest)).unwrap_or(0);
    for (_, size, own) in kept {
        bytes = bytes.saturating_add(size);
        if bytes > max_bytes {
            store::tree::delete(&own)?;
        }
    }
    Ok(())
}

fn changed_ms(path: &Path) -> i64 {
    let changed = std::fs::metadata(path).and_then(|found| found.modified());
    let since = changed
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    since
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

fn names(all: &Path) -> Vec<String> {
    let names = store::tree::names_in(all).unwrap_or_default();
    names
        .into_iter()
        .filter(|name| !name.starts_with('.'))
        .collect()
}

fn read(own: &Path) -> Option<Summary> {
    let bytes = atomic::read(&own.join(SUMMARY)).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

/// The ended runs of the workplace's repository, the latest first; of its team alone if one was
/// named.
pub fn list(workplace: &Workplace) -> Result<Vec<Summary>, Failure> {
    let mut found = everywhere(workplace);
    let here = workplace.common_dir();
    let team = match workplace.team_is_explicit() {
        true => Some(workplace.team()?.to_string()),
        false => None,
    };
    found.retain(|one| match &team {
        Some(team) => one.team == *team,
        None => one.repository.as_deref() == here,
    });
    Ok(found)
}

/// The same for every repository of this home.
pub fn everywhere(workplace: &Workplace) -> Vec<Summary> {
    let all = dir(workplace);
    let read = |name: &String| read(&all.join(name));
    let mut found: Vec<Summary> = names(&all).iter().filter_map(read).collect();
    found.sort_by(|a, b| b.started_at.cmp(&a.started_at));
    found
}

/// The id that `given`, or its beginning, stands for. `None` if there is none.
pub(super) fn resolve(given: &str, workplace: &Workplace) -> Result<Option<String>, Failure> {
    let all = everywhere(workplace);
    if all.iter().any(|one| one.id == given) {
        return Ok(Some(given.to_owned()));
    }
    // A team's name alone means the team.
    let begins = |one: &&Summary| one.team != given && one.id.starts_with(given);
    let found: Vec<&Summary> = all.iter().filter(begins).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.id.clone())),
        // It may be an agent or a team.
        _ if !given.contains('-') => Ok(None),
        several => {
            let ids: Vec<&str> = several.iter().take(5).map(|one| one.id.as_str()).collect();
            let message = format!(
                "{given:?} is the beginning of {}: {}",
                several.len(),
                ids.join(", ")
            );
            Err(Failure::usage("ambiguous", message)
                .with_hint("give the whole name of one of them"))
        }
    }
}

/// The last run of a team, whether or not the team is there.
pub(super) fn last_of_team(team: &str, workplace: &Workplace) -> Result<Option<String>, Failure> {
    let all = everywhere(workplace);
    Ok(all
        .into_iter()
        .find(|one| one.team == team)
        .map(|one| one.id))
}

/// The report with this id.
pub fn load(id: &str, workplace: &Workplace) -> Result<Report, Failure> {
    let path = dir(workplace).join(id).join(REPORT);
    let Some(bytes) = atomic::read(&path)? else {
        let message = format!("the report of {id} is gone");
        return Err(Failure::new(Category::NotFound, "not_found", message)
            .with_hint("`ccb runs` lists what is kept"));
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("{} cannot be read: {error}", path.display());
        Failure::failed("report_unreadable", message)
            .with_hint("a newer ccb may have written it; `ccb --version` says which this is")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::clock::rfc3339;

    fn kept(all: &Path, id: &str, days_ago: i64, bytes: usize) {
        let own = all.join(id);
        std::fs::create_dir_all(&own).unwrap();
        let ended = SystemClock.now_ms() - days_ago * DAY_MS;
        let summary = Summary {
            id: id.into(),
            ended_at: Some(rfc3339(ended)),
            ..Summary::default()
        };
        put(&own, &own.join(SUMMARY), &summary).unwrap();
        put(&own, &own.join(REPORT), &"x".repeat(bytes)).unwrap();
    }

    #[test]
    fn what_is_old_goes_and_then_the_oldest_of_what_is_too_much() {
        let home = tempfile::tempdir().unwrap();
        let all = home.path();
        kept(all, "old", 31, 10);
        kept(all, "big", 3, 600_000);
        kept(all, "mid", 2, 600_000);
        kept(all, "new", 0, 600_000);
        std::fs::create_dir(all.join("half")).unwrap();
        prune(all, 30, 1_500_000, "new").unwrap();
        let mut left = names(all);
        left.sort();
        assert_eq!(left, ["half", "mid", "new"]);
        // The newest is kept, however large it is.
        prune(all, 30, 10, "new").unwrap();
        assert!(names(all).contains(&"new".to_owned()));
        assert!(!names(all).contains(&"mid".to_owned()));
    }
}
