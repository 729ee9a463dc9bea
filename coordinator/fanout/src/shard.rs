//! A plan in parts, for several machines.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::error::FanoutError;
use super::report::Report;
use super::task::{PlannedTask, graph, sha256};

/// One part of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// The number of the part, from 1.
    pub index: u32,
    /// The number of parts.
    pub count: u32,
}

/// The durations of earlier tasks in milliseconds, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timings(BTreeMap<String, u64>);

/// A part of a plan's tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    /// Its tasks.
    pub tasks: Vec<PlannedTask>,
    /// Identifies this way to cut the plan.
    pub cut: String,
}

impl Timings {
    /// The durations of the tasks of these reports. Tasks that did not run are left out.
    pub fn of<'r>(reports: impl IntoIterator<Item = &'r Report>) -> Self {
        let tasks = reports.into_iter().flat_map(|report| &report.tasks);
        let ran = tasks.filter(|task| task.attempts > 0);
        Self(
            ran.map(|task| (task.id.clone(), task.duration_ms.max(1)))
                .collect(),
        )
    }

    /// Reads a `report.json`, or the one in a directory with results.
    pub fn read(path: &Path) -> Result<Self, FanoutError> {
        let file = match path.is_dir() {
            true => path.join("report.json"),
            false => path.to_owned(),
        };
        let wrong = |why: String| FanoutError::Input {
            what: format!("--timings {}", file.display()),
            why,
        };
        let bytes = std::fs::read(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => wrong("there is no such file".into()),
            _ => wrong(error.to_string()),
        })?;
        let report: Value = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("it is not a report: {error}")))?;
        let report: Report = serde_json::from_value(report)
            .map_err(|error| wrong(format!("it is not a report of a plan: {error}")))?;
        Ok(Self::of([&report]))
    }

    /// Adds the values of another one; existing values have precedence.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The estimate for a task without a known duration: the median of the others.
    fn usual(&self) -> u64 {
        let mut all: Vec<u64> = self.0.values().copied().collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(1)
    }
}

impl Shard {
    /// Reads `2/8`.
    pub fn parse(text: &str) -> Option<Self> {
        let (index, count) = text.split_once('/')?;
        let (index, count) = (index.trim().parse().ok()?, count.trim().parse().ok()?);
        (index >= 1 && index <= count && count <= 10_000).then_some(Self { index, count })
    }

    /// The tasks of this part. Connected tasks, also over others, are in the same part. Its number
    /// follows from their keys alone; with timings, also from these, so that all parts take about
    /// the same time. The same tasks and timings give the same parts.
    pub fn select(self, tasks: Vec<PlannedTask>, timings: &Timings) -> Part {
        let component = graph(&tasks).components();
        let mut smallest: BTreeMap<usize, &str> = BTreeMap::new();
        for (task, root) in tasks.iter().zip(&component) {
            let so_far = smallest.entry(*root).or_insert(&task.key);
            *so_far = (*so_far).min(&task.key);
        }
        let shards: BTreeMap<usize, u32> = match timings.0.is_empty() {
            true => {
                let all = smallest.iter();
                all.map(|(root, key)| (*root, self.by_key(key))).collect()
            }
            false => self.balanced(&tasks, &component, &smallest, timings),
        };
        let of = |at: usize| shards.get(&component[at]).copied().unwrap_or(0);
        let mut all: Vec<String> = (0..tasks.len())
            .map(|at| format!("{} {}\n", tasks[at].key, of(at)))
            .collect();
        all.sort_unstable();
        let here: Vec<bool> = (0..tasks.len()).map(|at| of(at) == self.index).collect();
        let mut here = here.into_iter();
        Part {
            cut: sha256(all.concat().as_bytes())[..16].to_owned(),
            tasks: tasks
                .into_iter()
                .filter(|_| here.next().unwrap_or(false))
                .collect(),
        }
    }

    /// The longest first, each to the part that has the least so far.
    fn balanced(
        self,
        tasks: &[PlannedTask],
        component: &[usize],
        smallest: &BTreeMap<usize, &str>,
        timings: &Timings,
    ) -> BTreeMap<usize, u32> {
        let usual = timings.usual();
        let mut times: BTreeMap<usize, u64> = BTreeMap::new();
        for (task, root) in tasks.iter().zip(component) {
            let time = timings.0.get(&task.id).copied().unwrap_or(usual);
            *times.entry(*root).or_default() += time;
        }
        let mut order: Vec<(u64, &str, usize)> = times
            .into_iter()
            .map(|(root, time)| (time, smallest.get(&root).copied().unwrap_or_default(), root))
            .collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let mut load: Vec<(u64, u32)> = (1..=self.count).map(|index| (0, index)).collect();
        let mut shards = BTreeMap::new();
        for (time, _, root) in order {
            if let Some(least) = load.iter_mut().min() {
                least.0 = least.0.saturating_add(time);
                shards.insert(root, least.1);
            }
        }
        shards
    }

    /// Keys are hashes: their first digits spread evenly.
    fn by_key(self, key: &str) -> u32 {
        let start = key.get(..15).unwrap_or(key);
        let number = u64::from_str_radix(start, 16).unwrap_or(0);
        u32::try_from(number % u64::from(self.count)).map_or(1, |rest| rest + 1)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}
