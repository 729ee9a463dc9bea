//! A hook that never lets an agent end is stopped.

use std::collections::HashMap;

use super::event::HookEvent;

/// Blocks by one hook without a pass between that end the loop.
pub const BLOCKS_IN_A_ROW: u32 = 3;

/// Counts blocks, for one agent.
#[derive(Debug, Clone, Default)]
pub struct LoopGuard {
    counts: HashMap<(HookEvent, String), u32>,
}

impl LoopGuard {
    /// Notes that the hook with this command has blocked. True if that is once too often: the block
    /// is then not followed, and the caller should report that.
    pub fn blocked(&mut self, event: HookEvent, command: &str) -> bool {
        let count = self.counts.entry((event, command.to_owned())).or_default();
        *count += 1;
        *count >= BLOCKS_IN_A_ROW
    }

    /// Notes that this event has passed all hooks: counting starts over.
    pub fn passed(&mut self, event: HookEvent) {
        self.counts.retain(|(other, _), _| *other != event);
    }
}
