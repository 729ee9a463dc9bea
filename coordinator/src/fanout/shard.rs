//! A plan in parts, for several machines.

use super::task::{PlannedTask, graph};

/// One part of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub index: u32,
    /// Of how many.
    pub count: u32,
}

impl Shard {
    /// Reads `2/8`.
    pub fn parse(text: &str) -> Option<Self> {
        let (index, count) = text.split_once('/')?;
        let (index, count) = (index.trim().parse().ok()?, count.trim().parse().ok()?);
        (index >= 1 && index <= count && count <= 10_000).then_some(Self { index, count })
    }

    /// The tasks of this part. Tasks that depend on each other, also over others, are in the
    /// same; which one that is follows from their keys alone.
    pub fn select(self, tasks: Vec<PlannedTask>) -> Vec<PlannedTask> {
        let graph = graph(&tasks);
        let component = graph.components();
        let mut smallest: Vec<Option<&str>> = vec![None; tasks.len()];
        for (task, root) in tasks.iter().zip(&component) {
            let so_far = smallest[*root].get_or_insert(&task.key);
            *so_far = (*so_far).min(&task.key);
        }
        let here: Vec<bool> = component
            .iter()
            .map(|root| self.holds(smallest[*root].unwrap_or_default()))
            .collect();
        let mut here = here.into_iter();
        tasks
            .into_iter()
            .filter(|_| here.next().unwrap_or(false))
            .collect()
    }

    /// Keys are hashes: their first digits spread evenly.
    fn holds(self, key: &str) -> bool {
        let start = key.get(..15).unwrap_or(key);
        let number = u64::from_str_radix(start, 16).unwrap_or(0);
        number % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}
