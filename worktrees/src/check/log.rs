//! Writes a check's output to its log, without secrets.

use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use store::secret_filter::SecretFilter;

/// Maximum length of a line, in bytes; a longer one is filtered in pieces.
const MAX_LINE: u64 = 1024 * 1024;
/// Time to wait for the end of the output if a process that the check started keeps it open.
const WAIT_AFTER_END: Duration = Duration::from_millis(500);

/// The two ends a check writes to.
pub(crate) struct CheckLog {
    copied: Option<Receiver<()>>,
}

impl CheckLog {
    /// Standard output and standard error for a check.
    pub(crate) fn open(log: File, filter: &SecretFilter) -> io::Result<(Stdio, Stdio, Self)> {
        if filter.is_none() {
            let errors = log.try_clone()?;
            return Ok((log.into(), errors.into(), Self { copied: None }));
        }
        let (reader, writer) = io::pipe()?;
        let errors = writer.try_clone()?;
        let (done, copied) = mpsc::channel();
        let filter = filter.clone();
        thread::spawn(move || {
            copy(reader, &log, &filter);
            done.send(()).ok();
        });
        let copied = Some(copied);
        Ok((writer.into(), errors.into(), Self { copied }))
    }

    /// Waits until the output of the ended check is written.
    pub(crate) fn finish(self) {
        if let Some(copied) = self.copied {
            copied.recv_timeout(WAIT_AFTER_END).ok();
        }
    }
}

fn copy(reader: PipeReader, mut log: &File, filter: &SecretFilter) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let shown = String::from_utf8_lossy(&line).into_owned();
        let mut filtered = shown.clone();
        filter.text(&mut filtered);
        let bytes = match filtered == shown {
            true => line.as_slice(),
            false => filtered.as_bytes(),
        };
        // A full disk does not stop the check: ccb keeps reading its output.
        log.write_all(bytes).ok();
    }
}
