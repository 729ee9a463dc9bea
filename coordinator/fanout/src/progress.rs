//! The progress of a run and its estimated remaining time: from events, with no clock of its own.

use std::collections::HashMap;

use super::event::{FanoutEvent, PlannedEvent};
use super::graph::Graph;
use super::outcome::Outcome;

/// The stage of a task.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say what the fields are")]
pub enum Stage {
    /// It has not started.
    Waiting,
    /// An agent works on it.
    Running {
        /// The start in milliseconds, on the clock of the events.
        since_ms: u64,
        agent: String,
        attempt: u32,
        /// Its check runs.
        checking: bool,
    },
    /// It ended.
    Ended(Outcome),
}

/// The state of a run.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The tasks, in the order of the plan.
    pub tasks: Vec<PlannedEvent>,
    /// The stage of each task.
    pub stages: Vec<Stage>,
    /// The durations of tasks that ran and succeeded, in milliseconds.
    pub measured: Vec<u64>,
    /// The reason why no new task starts; `None` if tasks start.
    pub paused: Option<String>,
    /// Number of landed tasks.
    pub landed: usize,
    /// Maximum number of tasks that run at the same time.
    pub jobs: usize,
    graph: Graph,
    places: HashMap<String, usize>,
    started: Vec<Option<u64>>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            stages: Vec::new(),
            measured: Vec::new(),
            paused: None,
            landed: 0,
            jobs: 1,
            graph: Graph { before: Vec::new() },
            places: HashMap::new(),
            started: Vec::new(),
        }
    }
}

impl Progress {
    /// Applies an event at `now_ms`. An event about an unknown task changes nothing.
    pub fn take(&mut self, event: &FanoutEvent, now_ms: u64) {
        match event {
            FanoutEvent::Planned { tasks, jobs, .. } => {
                let each = tasks
                    .iter()
                    .map(|task| (task.id.as_str(), &task.depends_on[..]));
                self.graph = Graph::new(each);
                let places = tasks
                    .iter()
                    .enumerate()
                    .map(|(n, task)| (task.id.clone(), n));
                self.places = places.collect();
                self.stages = vec![Stage::Waiting; tasks.len()];
                self.started = vec![None; tasks.len()];
                self.tasks.clone_from(tasks);
                self.jobs = (*jobs).max(1);
            }
            FanoutEvent::Started {
                task,
                agent,
                attempt,
            } => {
                let Some(at) = self.place(task) else { return };
                self.started[at].get_or_insert(now_ms);
                self.stages[at] = Stage::Running {
                    since_ms: now_ms,
                    agent: agent.clone(),
                    attempt: *attempt,
                    checking: false,
                };
            }
            FanoutEvent::Checking { task } => {
                let Some(at) = self.place(task) else { return };
                if let Stage::Running { checking, .. } = &mut self.stages[at] {
                    *checking = true;
                }
            }
            FanoutEvent::Retrying { task, .. } => {
                let Some(at) = self.place(task) else { return };
                self.stages[at] = Stage::Waiting;
            }
            FanoutEvent::Finished { task, outcome } => {
                let Some(at) = self.place(task) else { return };
                // A cached task says nothing about durations.
                let ran = self.started[at].filter(|_| outcome.is_success());
                self.measured
                    .extend(ran.map(|from| now_ms.saturating_sub(from)));
                self.stages[at] = Stage::Ended(outcome.clone());
            }
            FanoutEvent::Landed { .. } => self.landed += 1,
            FanoutEvent::Paused { why } => self.paused = Some(why.clone()),
            FanoutEvent::Resumed => self.paused = None,
            FanoutEvent::Note { .. } | FanoutEvent::Tick | FanoutEvent::Ended => {}
        }
    }

    fn place(&self, task: &str) -> Option<usize> {
        self.places.get(task).copied()
    }

    /// The task of this id, if known.
    pub fn task(&self, id: &str) -> Option<&PlannedEvent> {
        self.place(id).map(|at| &self.tasks[at])
    }

    /// The tasks that run, the one that runs longest first.
    pub fn running(&self) -> Vec<usize> {
        let since = |at: &usize| match &self.stages[*at] {
            Stage::Running { since_ms, .. } => Some(*since_ms),
            _ => None,
        };
        let mut running: Vec<usize> = (0..self.stages.len())
            .filter(|at| since(at).is_some())
            .collect();
        running.sort_by_key(since);
        running
    }

    /// The numbers of tasks that succeeded, and that ended otherwise.
    pub fn ended(&self) -> (usize, usize) {
        self.stages
            .iter()
            .fold((0, 0), |(good, bad), stage| match stage {
                Stage::Ended(outcome) if outcome.is_success() => (good + 1, bad),
                Stage::Ended(_) => (good, bad + 1),
                _ => (good, bad),
            })
    }

    /// The estimated remaining time in milliseconds; `None` until a duration is known.
    pub fn eta_ms(&self, now_ms: u64) -> Option<u64> {
        let typical = median(&self.measured)?;
        let left = |at: usize| match &self.stages[at] {
            Stage::Waiting => typical,
            // A task that takes longer than usual may be about to end.
            Stage::Running { since_ms, .. } => {
                let so_far = now_ms.saturating_sub(*since_ms);
                typical.saturating_sub(so_far).max(typical / 10)
            }
            Stage::Ended(_) => 0,
        };
        Some(remaining(&self.graph, left, self.jobs))
    }
}

/// Minimum duration of work of this shape: at least its longest chain, and at least all of it
/// shared among `jobs`.
pub fn remaining(graph: &Graph, left: impl Fn(usize) -> u64, jobs: usize) -> u64 {
    let (chain, _) = graph.longest(&left);
    let all: u64 = (0..graph.before.len()).map(&left).sum();
    chain.max(all.div_ceil(jobs.max(1) as u64))
}

fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[&[usize]]) -> Graph {
        Graph {
            before: edges.iter().map(|before| before.to_vec()).collect(),
        }
    }

    #[test]
    fn the_longest_chain_and_the_amount_of_work_both_count() {
        let chain = graph(&[&[], &[0], &[1]]);
        let loose = graph(&[&[], &[], &[], &[]]);
        let diamond = graph(&[&[], &[0], &[0], &[1, 2]]);
        for (graph, costs, jobs, expected) in [
            (&chain, vec![10, 10, 10], 8, 30),
            (&chain, vec![0, 5, 10], 1, 15),
            (&loose, vec![10, 10, 10, 10], 2, 20),
            (&loose, vec![10, 10, 10, 10], 3, 14),
            (&loose, vec![1, 1, 1, 30], 2, 30),
            (&loose, vec![1, 1, 1, 30], 1, 33),
            (&diamond, vec![5, 1, 9, 5], 2, 19),
            (&diamond, vec![5, 1, 9, 5], 0, 20),
            (&diamond, vec![0, 0, 0, 0], 2, 0),
        ] {
            assert_eq!(
                remaining(graph, |at| costs[at], jobs),
                expected,
                "{costs:?} on {jobs}"
            );
        }
    }

    fn planned(edges: &[(&str, &[&str])], jobs: usize) -> FanoutEvent {
        let task = |(id, on): &(&str, &[&str])| PlannedEvent {
            id: (*id).into(),
            depends_on: on.iter().map(|on| (*on).to_owned()).collect(),
            ..PlannedEvent::default()
        };
        FanoutEvent::Planned {
            tasks: edges.iter().map(task).collect(),
            jobs,
            team: "t".into(),
        }
    }

    fn started(task: &str, attempt: u32) -> FanoutEvent {
        FanoutEvent::Started {
            task: task.into(),
            agent: "a1".into(),
            attempt,
        }
    }

    fn finished(task: &str, outcome: Outcome) -> FanoutEvent {
        FanoutEvent::Finished {
            task: task.into(),
            outcome,
        }
    }

    #[test]
    fn time_left_follows_what_was_measured() {
        let mut run = Progress::default();
        run.take(
            &planned(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &[])], 2),
            0,
        );
        assert_eq!(run.eta_ms(0), None);
        run.take(&started("a", 1), 0);
        run.take(&started("d", 1), 0);
        assert_eq!(run.eta_ms(50), None, "nothing was measured yet");
        run.take(&finished("a", Outcome::NoChange { proven: true }), 100);
        // b and c one after the other.
        assert_eq!(run.eta_ms(100), Some(200));
        run.take(&finished("d", Outcome::Cached { commit: None }), 150);
        run.take(&started("b", 1), 150);
        // Measured: 100 and 150. The middle of two is the upper one.
        assert_eq!(run.eta_ms(200), Some(250));
        run.take(&finished("b", Outcome::Failed { why: String::new() }), 300);
        let skip = Outcome::Skipped {
            why: super::super::Skip::Canary,
        };
        run.take(&finished("c", skip), 300);
        assert_eq!(run.eta_ms(300), Some(0));
        assert_eq!(run.ended(), (2, 2));
    }

    #[test]
    fn stages_follow_events() {
        let mut run = Progress::default();
        run.take(&planned(&[("a", &[]), ("b", &[])], 0), 0);
        assert_eq!(run.jobs, 1);
        run.take(&started("b", 1), 5);
        run.take(&started("a", 1), 9);
        run.take(&FanoutEvent::Checking { task: "a".into() }, 10);
        assert_eq!(run.running(), [1, 0]);
        assert!(matches!(
            run.stages[0],
            Stage::Running { checking: true, .. }
        ));
        run.take(
            &FanoutEvent::Retrying {
                task: "a".into(),
                why: "x".into(),
            },
            11,
        );
        assert_eq!(run.running(), [1]);
        run.take(&started("a", 2), 12);
        assert!(matches!(
            run.stages[0],
            Stage::Running {
                attempt: 2,
                checking: false,
                ..
            }
        ));
        run.take(&started("nobody", 1), 13);
        run.take(
            &FanoutEvent::Paused {
                why: "quota".into(),
            },
            14,
        );
        assert_eq!(run.paused.as_deref(), Some("quota"));
        run.take(&FanoutEvent::Resumed, 15);
        assert_eq!(run.paused, None);
    }
}
