//! Giving out ids, none of them twice.
//!
//! `.highwatermark` holds the highest one. It is not synced when it grows, and other tools write it
//! in place, so after a power cut it may be empty or old. Then the ids are derived from the other
//! sources: the existing tasks and their edges, the history, files that were set aside, and ccb's
//! copy of the mark from the last time a task was removed.

use std::os::unix::fs::FileExt;
use std::path::Path;

use store::IoContext;
use store::atomic::{self, Staged};
use store::fault::{pass, reached};

use crate::error::BoardError;
use crate::fault;
use crate::files::Files;
use crate::files::section::{ListDir, Section, Stop, release};
use crate::id::TaskId;

/// The value of a high-water mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HighWater {
    /// There is none.
    Absent,
    /// The highest id that was given out when it was written.
    At(u64),
    /// No number: empty, cut short in the middle of nothing, or garbage.
    Unreadable,
}

impl HighWater {
    fn read(path: &Path) -> Result<Self, BoardError> {
        let Some(bytes) = atomic::read(path)? else {
            return Ok(Self::Absent);
        };
        let text = String::from_utf8_lossy(&bytes);
        let mark = text.trim().parse().ok();
        let mark = mark.filter(|mark| *mark <= TaskId::MAX);
        Ok(mark.map_or(Self::Unreadable, Self::At))
    }

    fn number(self) -> Option<u64> {
        match self {
            Self::At(mark) => Some(mark),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

impl Files {
    /// The value of `.highwatermark`.
    pub(crate) fn read_high_water(&self) -> Result<HighWater, BoardError> {
        HighWater::read(&self.high_water_path())
    }

    /// ccb's copy of the mark, written whenever the tasks themselves no longer show the highest id.
    fn high_water_copy(&self) -> std::path::PathBuf {
        self.dir.join(".ccb/highwatermark")
    }

    /// The highest id among the files that the doctor set aside.
    fn highest_set_aside(&self) -> u64 {
        let entries = std::fs::read_dir(self.dir.join(".ccb/corrupt"));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let id = |name: String| name.split_once('-')?.0.parse::<TaskId>().ok();
        names.filter_map(id).map(TaskId::get).max().unwrap_or(0)
    }
}

impl Section<'_> {
    /// Reserves `count` ids: neither ccb nor another tool will get any of them again.
    pub(crate) fn reserve_ids(&mut self, count: usize) -> Result<Vec<TaskId>, Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        let last = self.last_id_on_disk()?;
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
        let in_use = self.live().max_id();
        match self.files.read_high_water()? {
            HighWater::At(mark) => Ok(in_use.max(mark)),
            HighWater::Absent | HighWater::Unreadable => Ok(in_use.max(self.other_evidence()?)),
        }
    }

    /// The same, with what another tool has made since the section began. That tool may be so quick
    /// that the directory's time does not change; its ids follow each other, and the mark has the
    /// id of a task that is deleted again.
    fn last_id_on_disk(&mut self) -> Result<u64, BoardError> {
        let mut last = self.last_id()?;
        while let Some(next) = TaskId::new(last.saturating_add(1))
            && self.files.task_path(next).exists()
        {
            last = next.get();
        }
        Ok(last)
    }

    /// The highest id that anything but the mark and the history knows of.
    fn other_evidence(&mut self) -> Result<u64, BoardError> {
        let copy = HighWater::read(&self.files.high_water_copy())?;
        let mentioned = self.index().iter().flat_map(|(_, slim)| {
            let both = slim.blocks.iter().chain(&*slim.blocked_by);
            both.map(|id| id.get())
        });
        let mentioned = mentioned.max().unwrap_or(0);
        let aside = self.files.highest_set_aside();
        Ok(copy.number().unwrap_or(0).max(mentioned).max(aside))
    }

    /// Writes a higher mark over the lower one, in place: it never gets shorter, and until a
    /// task is deleted the files themselves say the same, so that no sync is needed.
    fn raise_high_water(&mut self, last: u64) -> Result<(), BoardError> {
        if self.files.read_high_water()?.number().is_none() {
            // Over garbage, the rest of it would stay.
            return self.write_high_water(last);
        }
        let path = self.files.high_water_path();
        let file = std::fs::OpenOptions::new().write(true).open(&path);
        let written = file.and_then(|file| {
            pass(fault::HIGH_WATER)?;
            file.write_all_at(last.to_string().as_bytes(), 0)
        });
        Ok(written.context("write", &path)?)
    }

    /// Replaces the mark durably: from now on it alone stores the highest id. Its name is made
    /// durable by the sync of the directory that follows the change it is for.
    pub(crate) fn write_high_water(&mut self, last: u64) -> Result<(), BoardError> {
        self.touched = true;
        let files = self.files;
        let bytes = last.to_string().into_bytes();
        let places = [files.high_water_copy(), files.high_water_path()];
        for path in places {
            Staged::write(&files.tmp_dir(), &bytes, files.durability())?.replace(&path)?;
        }
        Ok(())
    }

    /// Sets the high-water mark to the highest known id, whatever its present value.
    pub(crate) fn rebuild_high_water(&mut self) -> Result<u64, Stop> {
        let held = self.take_dirs(ListDir::Take, &[])?;
        let last = self.last_id_on_disk()?;
        self.write_high_water(last)?;
        self.dirty = true;
        release(held)?;
        Ok(last)
    }
}
