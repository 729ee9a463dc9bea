//! A block of network ports for each run, so that servers that agents start do not meet.

use serde::{Deserialize, Serialize};
use store::atomic::{self, Durability};
use store::home::{Home, create_private_dir};
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use swarm::run::RunDir;

use super::error::AgentError;

/// Below what systems give out by themselves.
const FIRST: u16 = 12_000;
/// How many ports a run has.
const SIZE: u16 = 10;
/// How many runs can have some.
const BLOCKS: usize = 2_000;

/// Which run has which block; the content of `<home>/ccb/ports.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Blocks {
    /// Where the search begins.
    next: usize,
    /// The directories of the runs.
    taken: std::collections::BTreeMap<usize, String>,
}

/// The first port of a block no other living run has; none if all are taken.
pub(super) fn take(home: &Home, run: &RunDir) -> Result<Option<u16>, AgentError> {
    let dir = home.path().join("ccb");
    create_private_dir(&dir)?;
    let _lock = FileLock::exclusive(&dir.join("ports.lock"), "the ports", DEFAULT_TIMEOUT)?;
    let path = dir.join("ports.json");
    // Whoever cannot read it starts anew: at worst two runs get the same ports.
    let bytes = atomic::read(&path)?.unwrap_or_default();
    let mut blocks: Blocks = serde_json::from_slice(&bytes).unwrap_or_default();
    let free = |block: &usize| match blocks.taken.get(block) {
        Some(dir) => {
            let run = RunDir::at(std::path::Path::new(dir));
            run.is_none_or(|run| !run.is_alive().unwrap_or(true))
        }
        None => true,
    };
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
