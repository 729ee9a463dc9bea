//! A block of network ports for each run, so that servers that agents start do not meet.

use serde::{Deserialize, Serialize};
use store::atomic::{self, Durability};
use store::home::{Home, create_private_dir};
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use swarm::run::RunDir;

use super::error::AgentError;

/// The first port; below the range that systems assign automatically.
const FIRST: u16 = 12_000;
/// Number of ports of a run.
const SIZE: u16 = 10;
/// Maximum number of runs with ports.
const BLOCKS: usize = 2_000;
/// Number of blocks to check for each block that is assigned; those whose runs have ended are
/// freed. More than one, so that the length of the file follows the number of present runs, not of
/// all past ones.
const LOOKED_AT: usize = 4;

/// The runs and their blocks; the content of `<home>/ccb/ports.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Blocks {
    /// The block at which the search begins.
    next: usize,
    /// The block at which the next check for ended runs begins.
    #[serde(default)]
    looked: usize,
    /// The directories of the runs.
    taken: std::collections::BTreeMap<usize, String>,
}

/// The first port of a block that no other living run has; `None` if all are taken.
pub(super) fn take(home: &Home, run: &RunDir) -> Result<Option<u16>, AgentError> {
    let dir = home.path().join("ccb");
    create_private_dir(&dir)?;
    let _lock = FileLock::exclusive(&dir.join("ports.lock"), "the ports", DEFAULT_TIMEOUT)?;
    let path = dir.join("ports.json");
    // A process that cannot read the file starts anew: at worst two runs get the same ports.
    let bytes = atomic::read(&path)?.unwrap_or_default();
    let mut blocks: Blocks = serde_json::from_slice(&bytes).unwrap_or_default();
    blocks.free_some();
    let free = |block: &usize| blocks.taken.get(block).is_none_or(|dir| has_ended(dir));
    let order = (0..BLOCKS).map(|offset| (blocks.next + offset) % BLOCKS);
    let Some(block) = order.into_iter().find(|block| free(block)) else {
        return Ok(None);
    };
    blocks.next = (block + 1) % BLOCKS;
    let run_dir = run.path().to_string_lossy().into_owned();
    blocks.taken.insert(block, run_dir);
    let text = serde_json::to_vec(&blocks).unwrap_or_default();
    atomic::replace(&dir, &path, &text, Durability::Relaxed)?;
    let offset = u16::try_from(block).unwrap_or(0) * SIZE;
    Ok(Some(FIRST + offset))
}

impl Blocks {
    /// Forgets some of the runs that have ended, in turn.
    fn free_some(&mut self) {
        let order = (self.taken.range(self.looked..)).chain(self.taken.range(..self.looked));
        let some: Vec<usize> = order.map(|(block, _)| *block).take(LOOKED_AT).collect();
        for block in some {
            self.looked = block + 1;
            if self.taken.get(&block).is_some_and(|dir| has_ended(dir)) {
                self.taken.remove(&block);
            }
        }
    }
}

/// True if the run in this directory has no supervisor any more.
fn has_ended(dir: &str) -> bool {
    let run = RunDir::at(std::path::Path::new(dir));
    run.is_none_or(|run| !run.is_alive().unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_runs_that_have_ended_are_forgotten_and_those_of_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().to_owned()).unwrap();
        let runs = dir.path().join("runs");
        let run = |number: usize| RunDir::new(&runs, &format!("a{number:016}"));
        let mut alive = Vec::new();
        let mut given = std::collections::BTreeSet::new();
        for number in 0..200 {
            let run = run(number);
            create_private_dir(run.path()).unwrap();
            if number % 50 == 0 {
                let lock = run.path().join("alive.lock");
                alive.push(FileLock::try_exclusive(&lock).unwrap().unwrap());
            }
            let port = take(&home, &run).unwrap().unwrap();
            assert!(given.insert(port), "{port} twice within the first round");
        }
        let bytes = atomic::read(&dir.path().join("ccb/ports.json")).unwrap();
        let blocks: Blocks = serde_json::from_slice(&bytes.unwrap()).unwrap();
        assert!(blocks.taken.len() < 20, "{}", blocks.taken.len());
        for number in [0, 50, 100, 150] {
            let dir = run(number).path().to_string_lossy().into_owned();
            assert!(blocks.taken.values().any(|taken| *taken == dir), "{number}");
        }
    }
}
