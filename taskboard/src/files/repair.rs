//! The repairs that every section makes before its own work.

use petgraph::graphmap::DiGraphMap;

use crate::files::section::{ListDir, Section, Stop};
use crate::id::TaskId;
use crate::id::insert;
use crate::rules::cycles::cycle_with;

impl Section<'_> {
    /// Returns tasks whose lease ran out, parks those whose check another tool changed, and
    /// completes edges that are on one side only.
    pub(crate) fn repair(&mut self) -> Result<(), Stop> {
        for id in self.index().expired(self.files.now_ms()) {
            let before = self.read(id)?;
            let mut task = before.task.clone();
            task.make_pending();
            self.stage_and_write("expire", &before, task, ListDir::Leave)?;
        }
        self.settle_checks()?;
        self.repair_half_edges()
    }

    fn repair_half_edges(&mut self) -> Result<(), Stop> {
        if self.index().half_edges().is_empty() {
            return Ok(());
        }
        let half = self.index().half_edges().clone();
        let mut whole = DiGraphMap::<TaskId, ()>::new();
        for (from, to, ()) in self.index().edges().all_edges() {
            if !half.contains(&(from, to)) {
                whole.add_edge(from, to, ());
            }
        }
        for (blocker, dependent) in half {
            // Completing it would make a permanent cycle; it stays visible as it is.
            if cycle_with(&whole, blocker, dependent).is_some() {
                continue;
            }
            whole.add_edge(blocker, dependent, ());
            for (id, is_dependent) in [(dependent, true), (blocker, false)] {
                let before = self.read(id)?;
                let mut task = before.task.clone();
                if is_dependent {
                    insert(&mut task.blocked_by, blocker);
                } else {
                    insert(&mut task.blocks, dependent);
                }
                self.stage_and_write("repair", &before, task, ListDir::Leave)?;
            }
        }
        Ok(())
    }
}
