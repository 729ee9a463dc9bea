use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use crate::{Answer, TestHome};

/// A write point and which pass of it, counted from 1.
pub type Pass = (String, usize);

impl TestHome {
    /// Runs `ccb` to its end, which must be a success, and returns each write point it passed with
    /// the number of the pass.
    pub fn passes(&self, args: &[&str]) -> Vec<Pass> {
        let file = self.path().join("trace");
        let output = self.command(args).env("CCB_FAULT_TRACE", &file).output();
        let answer = Answer::of(output.expect("ccb starts"));
        assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::remove_file(&file).ok();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let numbered = text.lines().map(|point| {
            let count = counts.entry(point).or_default();
            *count += 1;
            (point.to_owned(), *count)
        });
        numbered.collect()
    }

    /// Runs `ccb`, which must die at this pass as if killed.
    pub fn crash(&self, args: &[&str], (point, nth): &Pass) {
        let fault = format!("crash:{point}:{nth}");
        let output = self.command(args).env("CCB_FAULT", &fault).output();
        let output = output.expect("ccb starts");
        let aborted = output.status.signal() == Some(rustix::process::Signal::ABORT.as_raw());
        assert!(aborted, "{args:?} did not come to {fault}: {output:?}");
    }

    /// Runs `ccb` with this error (`enospc`, `eio`, `erofs`) at this pass.
    pub fn run_with_error(&self, args: &[&str], error: &str, (point, nth): &Pass) -> Answer {
        let fault = format!("{error}:{point}:{nth}");
        let output = self.command(args).env("CCB_FAULT", &fault).output();
        Answer::of(output.expect("ccb starts"))
    }
}
