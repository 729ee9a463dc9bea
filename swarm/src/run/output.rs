//! An agent's output, kept within bounds: the latest is always there.

use std::path::PathBuf;

use store::atomic;
use store::log::LogTail;

use super::run_dir::{RunDir, RunError};

/// The end of what an agent printed, at most `limit` bytes.
pub fn tail_of_output(run: &RunDir, limit: u64) -> Result<String, RunError> {
    Ok(store::log::tail(&run.output_path(), limit)?)
}

/// `output.log`, and the part before it.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    earlier: PathBuf,
    log: LogTail,
    written: u64,
    limit: u64,
}

impl Output {
    /// Opens the run's output to append to it. At most about `limit` bytes are kept.
    pub(super) fn open(run: &RunDir, limit: u64) -> Self {
        Self::named(run, "output", limit)
    }

    /// The same for something else than the agent's own output.
    pub(super) fn named(run: &RunDir, name: &str, limit: u64) -> Self {
        let path = run.path().join(format!("{name}.log"));
        let written = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        Self {
            log: LogTail::new(path.clone(), written),
            earlier: run.path().join(format!("{name}.1.log")),
            path,
            written,
            limit: limit.max(4096),
        }
    }

    /// The same, forgetting what is there. From now on there is a file, however silent whatever
    /// writes to it is.
    pub(super) fn afresh(run: &RunDir, name: &str, limit: u64) -> Result<Self, RunError> {
        for part in ["log", "1.log"] {
            store::tree::delete(&run.path().join(format!("{name}.{part}")))?;
        }
        let output = Self::named(run, name, limit);
        atomic::open_private(&output.path)?;
        Ok(output)
    }

    /// Adds what was printed.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        for piece in bytes.chunks(1 << 20) {
            if self.written + piece.len() as u64 > self.limit / 2 && self.written > 0 {
                self.turn_over()?;
            }
            self.append(piece)?;
        }
        Ok(())
    }

    /// The last of what was written, at most `bytes` of it.
    pub(super) fn last(&self, bytes: u64) -> String {
        store::log::tail(&self.path, bytes).unwrap_or_default()
    }

    /// Makes the present part the earlier one, and drops the previous earlier part.
    fn turn_over(&mut self) -> Result<(), RunError> {
        atomic::rename(&self.path, &self.earlier)?;
        self.log = LogTail::new(self.path.clone(), 0);
        self.written = 0;
        let earlier = self.earlier.file_name().unwrap_or_default();
        let note = format!(
            "[what came before is in {}; what came before that is dropped]\n",
            earlier.to_string_lossy()
        );
        self.append(note.as_bytes())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        self.log.append(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}
