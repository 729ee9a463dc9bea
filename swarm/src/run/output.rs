//! What an agent prints, kept within bounds: the latest is always there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use store::atomic;
use store::log::LogTail;

use super::run_dir::{RunDir, RunError};

/// The end of what an agent printed, at most `limit` bytes.
pub fn tail_of_output(run: &RunDir, limit: u64) -> Result<String, RunError> {
    let path = run.output_path();
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|mut file| {
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(end.saturating_sub(limit)))?;
        file.take(limit).read_to_end(&mut bytes)
    });
    match read {
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(RunError::Store(store::StoreError::Io {
            verb: "read",
            path,
            source,
        })),
    }
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
    /// Goes on with the run's output. At most about `limit` bytes are kept.
    pub(super) fn open(run: &RunDir, limit: u64) -> Self {
        let path = run.output_path();
        let written = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        Self {
            log: LogTail::new(path.clone(), written),
            earlier: run.path().join("output.1.log"),
            path,
            written,
            limit: limit.max(4096),
        }
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

    /// What there is becomes the part before; what was that is gone.
    fn turn_over(&mut self) -> Result<(), RunError> {
        atomic::rename(&self.path, &self.earlier)?;
        self.log = LogTail::new(self.path.clone(), 0);
        self.written = 0;
        self.append(b"[what came before is in output.1.log; what came before that is dropped]\n")
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        self.log.append(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}
