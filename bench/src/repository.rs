//! A git repository with a chosen number of files.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// Files per directory, and bytes per file: about those of source code.
const PER_DIRECTORY: u64 = 100;
const LINES: u64 = 32;

/// A repository in a temporary directory.
#[derive(Debug)]
pub(crate) struct Repository {
    _dir: tempfile::TempDir,
    pub(crate) main: PathBuf,
}

impl Repository {
    /// One commit of `files` files of 2 KB, checked out.
    pub(crate) fn generate(dir: tempfile::TempDir, files: u64) -> Result<Self, Failure> {
        let main = dir.path().canonicalize()?.join("main");
        std::fs::create_dir(&main)?;
        run(git(&main, &["init", "-q", "-b", "main"]))?;
        let mut import = git(&main, &["fast-import", "--quiet"])
            .stdin(Stdio::piped())
            .spawn()?;
        let pipe = import.stdin.take().ok_or("no pipe to git")?;
        write_commit(&mut BufWriter::with_capacity(1 << 20, pipe), files)?;
        if !import.wait()?.success() {
            return Err("git fast-import failed".into());
        }
        run(git(&main, &["reset", "-q", "--hard"]))?;
        Ok(Self { _dir: dir, main })
    }
}

fn write_commit(out: &mut impl Write, files: u64) -> Result<(), Failure> {
    writeln!(out, "commit refs/heads/main")?;
    writeln!(out, "committer bench <bench@example.org> 1700000000 +0000")?;
    writeln!(out, "data 5\nfirst")?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = String::new();
    for file in 0..files {
        text.clear();
        for _ in 0..LINES {
            for _ in 0..4 {
                // xorshift: no two files are alike, and every run makes the same.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                text.push_str(&format!("{:015x}", state >> 4));
                text.push(' ');
            }
            text.push('\n');
        }
        let (outer, inner) = (file / PER_DIRECTORY / 20, file / PER_DIRECTORY);
        writeln!(out, "M 100644 inline d{outer}/d{inner}/f{file}.txt")?;
        writeln!(out, "data {}\n{text}", text.len())?;
    }
    out.flush()?;
    Ok(())
}

/// git without any user's settings.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null());
    command
}

/// Runs it to its end, which must be a success.
pub(crate) fn run(mut command: Command) -> Result<(), Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{command:?} ended with {}: {words}", output.status).into())
}
