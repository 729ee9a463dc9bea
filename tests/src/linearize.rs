//! Explains a concurrent history by making its calls one at a time, if possible.
//!
//! The search of Wing and Gong with Lowe's memory of tried configurations: pick any call that no
//! unexplained call strictly precedes, make it on the model, compare the answer, continue; never
//! visit the same set of explained calls with the same state twice. Calls overlap only within a
//! small window, which keeps the number of such sets small.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// The effect of a call without others at the same time.
pub trait Spec {
    type State: Clone + Eq + Hash + Debug;
    type Op: Debug;
    type Answer: PartialEq + Debug;

    fn start(&self) -> Self::State;

    /// The state and the answer after `op`.
    fn step(&self, state: &Self::State, op: &Self::Op) -> (Self::State, Self::Answer);

    /// True if a call with this answer changes nothing in whatever state it is made.
    fn only_looks(&self, answer: &Self::Answer) -> bool;
}

/// One call; times are comparable across all callers.
#[derive(Debug, Clone)]
pub struct Call<Op, Answer> {
    pub op: Op,
    pub invoked: u64,
    /// The time it returned, or for a call without answer the time its caller was gone.
    pub returned: u64,
    /// `None` if the caller died: it may have happened or not, with any answer.
    pub answer: Option<Answer>,
}

/// The result of the search.
#[derive(Debug)]
pub enum Verdict {
    /// An explanation, with the number of visited pairs (set of calls, state).
    Linearizable { configurations: usize },
    /// No explanation, with the call where the best attempt failed.
    Impossible { why: String },
}

impl Verdict {
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Self::Linearizable { .. })
    }
}

/// The explained calls, and the state after them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration<State> {
    explained: Vec<u64>,
    state: State,
}

impl<State> Configuration<State> {
    fn has(&self, n: usize) -> bool {
        self.explained[n / 64] & (1 << (n % 64)) != 0
    }

    fn with(&self, n: usize, state: State) -> Self {
        let mut explained = self.explained.clone();
        explained[n / 64] |= 1 << (n % 64);
        Self { explained, state }
    }

    fn first_left(&self) -> usize {
        let word = self.explained.iter().position(|word| *word != u64::MAX);
        word.map_or(0, |word| {
            word * 64 + self.explained[word].trailing_ones() as usize
        })
    }

    fn last_explained(&self) -> Option<usize> {
        let word = self.explained.iter().rposition(|word| *word != 0)?;
        Some(word * 64 + 63 - self.explained[word].leading_zeros() as usize)
    }

    fn count(&self) -> u32 {
        self.explained.iter().map(|word| word.count_ones()).sum()
    }
}

/// Number of calls shown before and after the place where the search failed.
const AROUND: usize = 25;

/// Checks `calls`, in any order, against `spec`.
pub fn check<S: Spec>(spec: &S, calls: &[Call<S::Op, S::Answer>]) -> Verdict {
    let mut order: Vec<&Call<S::Op, S::Answer>> = calls.iter().collect();
    order.sort_by_key(|call| call.invoked);
    let start = Configuration {
        explained: vec![0; order.len() / 64 + 1],
        state: spec.start(),
    };
    let mut furthest = start.clone();
    let mut seen = HashSet::from([start.clone()]);
    let mut to_do = vec![start];
    while let Some(here) = to_do.pop() {
        let candidates = candidates(&order, &here);
        if candidates.iter().all(|n| order[*n].answer.is_none()) {
            let configurations = seen.len();
            return Verdict::Linearizable { configurations };
        }
        let unanswered = candidates.iter().filter(|n| order[**n].answer.is_none());
        let first_death = unanswered.map(|n| order[*n].returned).min();
        let mut ways: Vec<Configuration<S::State>> = Vec::new();
        for n in candidates {
            let (state, answer) = spec.step(&here.state, &order[n].op);
            match &order[n].answer {
                Some(given) if *given != answer => {}
                // No later call can show if this came first, so no other order need be tried;
                // unless, having begun after a caller was gone, it would rule out that this
                // caller's last call happened.
                Some(given)
                    if spec.only_looks(given)
                        && first_death.is_none_or(|death| order[n].invoked <= death) =>
                {
                    ways = vec![here.with(n, state)];
                    break;
                }
                // It may as well not have happened.
                None if state == here.state => {}
                _ => ways.push(here.with(n, state)),
            }
        }
        // The one pushed last is tried first: the one that returned first is the likeliest.
        for next in ways.into_iter().rev() {
            if next.count() > furthest.count() {
                furthest = next.clone();
            }
            if seen.insert(next.clone()) {
                to_do.push(next);
            }
        }
    }
    Verdict::Impossible {
        why: explain(spec, &order, &furthest),
    }
}

/// The calls that may come next, sorted by their return.
fn candidates<Op, Answer, State>(
    order: &[&Call<Op, Answer>],
    here: &Configuration<State>,
) -> Vec<usize> {
    // A call can come next unless an unexplained answered call returned before it began. One
    // without answer need not happen at all, so it never holds others back ...
    let mut first_return = u64::MAX;
    let mut candidates = Vec::new();
    for n in (here.first_left()..order.len()).filter(|n| !here.has(*n)) {
        if order[n].invoked > first_return {
            break;
        }
        if order[n].answer.is_some() {
            first_return = first_return.min(order[n].returned);
        }
        candidates.push(n);
    }
    // ... but it cannot happen after a call that began when its caller was gone.
    let last_invoked = here.last_explained().map_or(0, |n| order[n].invoked);
    candidates.retain(|n| order[*n].returned >= last_invoked);
    candidates.sort_by_key(|n| order[*n].returned);
    candidates
}

fn explain<S: Spec>(
    spec: &S,
    order: &[&Call<S::Op, S::Answer>],
    furthest: &Configuration<S::State>,
) -> String {
    let mut text = format!(
        "{} of {} calls can be explained, then the state is {:?} and none of these fits:\n",
        furthest.count(),
        order.len(),
        furthest.state
    );
    for n in candidates(order, furthest) {
        let (_, expected) = spec.step(&furthest.state, &order[n].op);
        text += &format!("  {:?}\n    would answer {expected:?}\n", order[n]);
    }
    text += "those around them (+ explained):\n";
    let first = furthest.first_left();
    let around = first.saturating_sub(AROUND)..order.len().min(first + AROUND);
    for n in around {
        let mark = if furthest.has(n) { '+' } else { ' ' };
        text += &format!("{mark} {:?}\n", order[n]);
    }
    text
}
