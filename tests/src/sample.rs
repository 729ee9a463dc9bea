//! The part of a long list of cases that one test run tries.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

/// Chooses cases at random. The choice depends on the seed and the case's name alone, so threads
/// that take cases in any order choose the same ones.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    seed: u64,
    /// One case of this many is chosen.
    one_in: u64,
}

impl Sample {
    /// One case in `one_in`; every case if `CCB_FULL` is set. `CCB_SEED` repeats an earlier choice,
    /// whose seed the failed test has printed.
    pub fn one_in(one_in: u64) -> Self {
        let one_in = match is_full() {
            true => 1,
            false => one_in,
        };
        let seed = seed();
        println!("CCB_SEED={seed} chooses the same cases again");
        Self { seed, one_in }
    }

    /// True if this run tries the case of that name.
    pub fn takes(&self, case: impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        (self.seed, case).hash(&mut hasher);
        hasher.finish().is_multiple_of(self.one_in)
    }
}

/// True if this run tries every case of every test.
pub fn is_full() -> bool {
    std::env::var_os("CCB_FULL").is_some()
}

/// The seed of this run: `CCB_SEED`, else one from the clock.
pub fn seed() -> u64 {
    let given = std::env::var("CCB_SEED").ok();
    given.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |now| now.as_secs())
    })
}
