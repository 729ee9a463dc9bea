//! A part of a plan's tasks, chosen by ids.

use std::collections::BTreeSet;

use super::error::FanoutError;
use super::task::{PlannedTask, graph, sha256};

/// The selected tasks. Empty means all of them.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Those whose id is one of these or matches one of these patterns, with what they depend on.
    pub only: Vec<String>,
    /// But not those whose id is one of these or matches one of these patterns; nor what depends on them.
    pub skip: Vec<String>,
    /// Number of tasks to choose by their ids: the same ones every time.
    pub sample: Option<usize>,
    /// Maximum number of tasks, the first ones.
    pub limit: Option<usize>,
}

impl Selection {
    fn is_all(&self) -> bool {
        let Self {
            only,
            skip,
            sample,
            limit,
        } = self;
        only.is_empty() && skip.is_empty() && sample.is_none() && limit.is_none()
    }

    /// The selected tasks, and notes for every reader.
    pub fn apply(
        &self,
        tasks: Vec<PlannedTask>,
    ) -> Result<(Vec<PlannedTask>, Option<String>), FanoutError> {
        if self.is_all() {
            return Ok((tasks, None));
        }
        for (flag, patterns) in [("--only", &self.only), ("--skip", &self.skip)] {
            for pattern in patterns {
                if !tasks.iter().any(|task| matches(pattern, &task.id)) {
                    let ids = tasks.iter().map(|task| task.id.as_str());
                    let near = store::nearest(pattern, ids);
                    return Err(FanoutError::NotInPlan {
                        what: format!("{flag} {pattern}: no task of the plan has such an id"),
                        hint: near.map(|id| format!("did you mean {id:?}?")),
                    });
                }
            }
        }
        let graph = graph(&tasks);
        let mut out: BTreeSet<usize> = BTreeSet::new();
        for at in graph.order() {
            let behind = graph.before[at].iter().any(|on| out.contains(on));
            if behind || any_matches(&self.skip, &tasks[at].id) {
                out.insert(at);
            }
        }
        let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        let wanted = (0..tasks.len()).filter(|at| {
            !out.contains(at) && (self.only.is_empty() || any_matches(&self.only, ids[*at]))
        });
        let print = |at: &usize| sha256(ids[*at].as_bytes());
        let wanted = few(wanted.collect(), self.sample, self.limit, print);
        // Their dependencies are selected too.
        let mut all: BTreeSet<usize> = wanted.into_iter().collect();
        for at in graph.order().into_iter().rev() {
            if all.contains(&at) {
                all.extend(graph.before[at].iter().copied());
            }
        }
        let before = tasks.len();
        let mut at = 0..;
        let chosen: Vec<PlannedTask> = tasks
            .into_iter()
            .filter(|_| at.next().is_some_and(|at| all.contains(&at)))
            .collect();
        let note = format!("{} of {before} tasks of the plan were chosen", chosen.len());
        Ok((chosen, Some(note)))
    }
}

/// `sample` of these by their prints, then the first `limit`; the order is kept.
pub(super) fn few<T>(
    all: Vec<T>,
    sample: Option<usize>,
    limit: Option<usize>,
    print: impl Fn(&T) -> String,
) -> Vec<T> {
    let mut prints: Vec<String> = Vec::new();
    if let Some(sample) = sample.filter(|sample| *sample < all.len()) {
        prints = all.iter().map(&print).collect();
        prints.sort_unstable();
        prints.truncate(sample);
    }
    let chosen = |one: &T| {
        sample.is_none() || prints.is_empty() || prints.binary_search(&print(one)).is_ok()
    };
    let mut chosen: Vec<T> = all.into_iter().filter(chosen).collect();
    chosen.truncate(limit.unwrap_or(usize::MAX));
    chosen
}

pub(super) fn any_matches(patterns: &[String], id: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, id))
}

/// True if an id matches a pattern: `*` is any text, `?` any character.
fn matches(pattern: &str, id: &str) -> bool {
    let (pattern, id): (Vec<char>, Vec<char>) = (pattern.chars().collect(), id.chars().collect());
    let (mut p, mut i) = (0, 0);
    // Where the last star was, and what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while i < id.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, i));
                p += 1;
            }
            Some(c) if *c == '?' || *c == id[i] => (p, i) = (p + 1, i + 1),
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, i) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
