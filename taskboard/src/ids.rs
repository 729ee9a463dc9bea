//! Giving out ids, none of them twice.

use std::os::unix::fs::FileExt;

use store::StoreError;
use store::atomic::Staged;
use store::fault::{pass, reached};

use crate::error::BoardError;
use crate::fault;
use crate::id::TaskId;
use crate::section::{ListDir, Section, Stop, release};

impl Section<'_> {
    /// Reserves `count` ids: nobody, ccb or another tool, will be given any of them again.
    pub(crate) fn reserve_ids(&mut self, count: usize) -> Result<Vec<TaskId>, Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        let last = self.last_id()?;
        let ids: Option<Vec<TaskId>> = (1..=count as u64)
            .map(|n| TaskId::new(last.saturating_add(n)))
            .collect();
        let ids = ids.ok_or_else(|| BoardError::invalid("task ids", "there are none left"))?;
        self.raise_high_water(last + count as u64)?;
        release(held)?;
        reached(fault::IDS_RESERVED);
        Ok(ids)
    }

    /// The highest id that was ever given out; certain only while the list's lock directory
    /// is held.
    pub(crate) fn last_id(&mut self) -> Result<u64, BoardError> {
        Ok(self.live().max_id().max(self.board.read_high_water()?))
    }

    /// Writes a higher mark over the lower one, in place: it never gets shorter, and until a
    /// task is deleted the files themselves say the same, so that no sync is needed.
    fn raise_high_water(&mut self, last: u64) -> Result<(), BoardError> {
        let path = self.board.high_water_path();
        let failed = |source| StoreError::Io {
            verb: "write",
            path: path.clone(),
            source,
        };
        let file = match std::fs::OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.write_high_water(last);
            }
            Err(error) => return Err(failed(error).into()),
        };
        pass(fault::HIGH_WATER).map_err(failed)?;
        file.write_all_at(last.to_string().as_bytes(), 0)
            .map_err(failed)?;
        Ok(())
    }

    /// Replaces the mark durably: from now on it alone remembers the highest id. Its name is
    /// made durable by the sync of the directory that follows the change it is for.
    pub(crate) fn write_high_water(&mut self, last: u64) -> Result<(), BoardError> {
        self.touched = true;
        let bytes = last.to_string().into_bytes();
        Staged::write(&self.board.tmp_dir(), &bytes, self.board.durability())?
            .replace(&self.board.high_water_path())?;
        Ok(())
    }

    /// Sets the high-water mark to the highest id anybody knows of, whatever it says now.
    pub(crate) fn rebuild_high_water(&mut self) -> Result<u64, Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        let last = self
            .live()
            .max_id()
            .max(self.board.read_high_water().unwrap_or(0));
        self.write_high_water(last)?;
        self.dirty = true;
        release(held)?;
        Ok(last)
    }
}
