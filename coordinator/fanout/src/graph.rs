//! Dependencies: cycles, order, levels, the longest chain.

use std::collections::{BTreeSet, HashMap};

/// The dependencies of tasks, which are identified by their places.
#[derive(Debug, Clone)]
pub struct Graph {
    /// For each task, the tasks it depends on.
    pub before: Vec<Vec<usize>>,
}

impl Graph {
    /// Builds the graph of tasks with these ids and dependencies; ignores unknown ids.
    pub fn new<'a>(tasks: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Self {
        let tasks: Vec<_> = tasks.into_iter().collect();
        let places: HashMap<&str, usize> = tasks
            .iter()
            .enumerate()
            .map(|(n, (id, _))| (*id, n))
            .collect();
        let of = |(_, on): &(&str, &'a [String])| {
            let places = on.iter().filter_map(|id| places.get(id.as_str()).copied());
            places.collect()
        };
        Self {
            before: tasks.iter().map(of).collect(),
        }
    }

    /// A cycle: each task waits for the next and the last for the first.
    pub fn cycle(&self) -> Option<Vec<usize>> {
        // 0: not seen, 1: on the path, 2: done. No recursion: a chain may be long.
        let mut state = vec![0u8; self.before.len()];
        for start in 0..self.before.len() {
            let mut path: Vec<(usize, usize)> = Vec::new();
            if state[start] == 0 {
                state[start] = 1;
                path.push((start, 0));
            }
            while let Some((task, next)) = path.last_mut() {
                let task = *task;
                let Some(on) = self.before[task].get(*next).copied() else {
                    state[task] = 2;
                    path.pop();
                    continue;
                };
                *next += 1;
                if state[on] == 1 {
                    let from = path.iter().position(|(one, _)| *one == on).unwrap_or(0);
                    return Some(path[from..].iter().map(|(one, _)| *one).collect());
                }
                if state[on] == 0 {
                    state[on] = 1;
                    path.push((on, 0));
                }
            }
        }
        None
    }

    /// Every task after its dependencies, otherwise in the given order. Tasks in a cycle, or behind
    /// one, are left out.
    pub fn order(&self) -> Vec<usize> {
        self.order_by(|task| task)
    }

    /// The same; of the tasks that can come next, the one with the lowest key comes first.
    pub fn order_by<K: Ord>(&self, key: impl Fn(usize) -> K) -> Vec<usize> {
        let mut left: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); left.len()];
        for (task, before) in self.before.iter().enumerate() {
            for on in before {
                after[*on].push(task);
            }
        }
        let ready = (0..left.len()).filter(|task| left[*task] == 0);
        let mut ready: BTreeSet<(K, usize)> = ready.map(|task| (key(task), task)).collect();
        let mut order = Vec::with_capacity(left.len());
        while let Some((_, task)) = ready.pop_first() {
            order.push(task);
            for next in &after[task] {
                left[*next] -= 1;
                if left[*next] == 0 {
                    ready.insert((key(*next), *next));
                }
            }
        }
        order
    }

    /// Tasks that can run together, level by level.
    pub fn levels(&self) -> Vec<Vec<usize>> {
        let mut level = vec![0usize; self.before.len()];
        let mut levels: Vec<Vec<usize>> = Vec::new();
        for task in self.order() {
            level[task] = self.before[task]
                .iter()
                .map(|on| level[*on] + 1)
                .max()
                .unwrap_or(0);
            if levels.len() <= level[task] {
                levels.resize(level[task] + 1, Vec::new());
            }
            levels[level[task]].push(task);
        }
        levels
    }

    /// The chain that takes longest when task `n` takes `cost(n)`, and how long it takes.
    pub fn longest(&self, cost: impl Fn(usize) -> u64) -> (u64, Vec<usize>) {
        let mut best: Vec<(u64, Option<usize>)> = vec![(0, None); self.before.len()];
        let mut end: Option<usize> = None;
        for task in self.order() {
            let behind = self.before[task].iter().copied();
            // The first of equals, so that the answer does not depend on chance.
            let from = behind.rev().max_by_key(|on| best[*on].0);
            let so_far = from.map_or(0, |on| best[on].0);
            best[task] = (so_far + cost(task), from);
            if end.is_none_or(|end| best[task].0 > best[end].0) {
                end = Some(task);
            }
        }
        let mut path: Vec<usize> = std::iter::successors(end, |task| best[*task].1).collect();
        path.reverse();
        (end.map_or(0, |end| best[end].0), path)
    }

    /// For each task the first one of its connected component, in either direction.
    pub fn components(&self) -> Vec<usize> {
        let mut root: Vec<usize> = (0..self.before.len()).collect();
        fn find(root: &mut [usize], mut of: usize) -> usize {
            while root[of] != of {
                root[of] = root[root[of]];
                of = root[of];
            }
            of
        }
        for task in 0..root.len() {
            for on in &self.before[task] {
                let (a, b) = (find(&mut root, task), find(&mut root, *on));
                root[a.max(b)] = a.min(b);
            }
        }
        (0..root.len()).map(|task| find(&mut root, task)).collect()
    }
}
