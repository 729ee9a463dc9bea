//! The order to a keeper to start a program, as bytes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{MemfdFlags, memfd_create};

/// A program, where it runs, and its whole environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) dir: PathBuf,
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
}

impl Order {
    /// The order for `command`. Its environment has to be given in full (`env_clear`): otherwise it
    /// would inherit another process's.
    pub(super) fn of(command: &Command) -> Self {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let env = command.get_envs();
        let env = env.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let dir = command.get_current_dir().map(ToOwned::to_owned);
        Self {
            dir: dir.unwrap_or_else(|| PathBuf::from("/")),
            words: words.map(OsStr::to_owned).collect(),
            env: env.collect(),
        }
    }

    pub(super) fn command(&self) -> io::Result<Command> {
        let (program, arguments) = self
            .words
            .split_first()
            .ok_or_else(|| io::Error::from_raw_os_error(einval()))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.dir)
            .env_clear()
            .envs(self.env.iter().cloned());
        Ok(command)
    }

    /// In a file that is in no directory: environments hold keys.
    pub(super) fn write(&self) -> io::Result<File> {
        let mut bytes = Vec::new();
        let mut add = |text: &OsStr| {
            let text = text.as_bytes();
            let length = u32::try_from(text.len()).map_err(io::Error::other)?;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(text);
            io::Result::Ok(())
        };
        add(self.dir.as_os_str())?;
        add(OsStr::new(&self.words.len().to_string()))?;
        for word in &self.words {
            add(word)?;
        }
        for (name, value) in &self.env {
            add(name)?;
            add(value)?;
        }
        let mut file = File::from(memfd_create("ccb", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        Ok(file)
    }

    pub(super) fn read(mut file: File) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Self::parse(&bytes).ok_or_else(|| io::Error::from_raw_os_error(einval()))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut next = || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (text, after) = after.split_at_checked(length)?;
            rest = after;
            Some(OsString::from_vec(text.to_vec()))
        };
        let dir = PathBuf::from(next()?);
        let count: usize = next()?.to_str()?.parse().ok()?;
        let words = (0..count).map(|_| next()).collect::<Option<_>>()?;
        let mut env = Vec::new();
        while let Some(name) = next() {
            env.push((name, next()?));
        }
        Some(Self { dir, words, env })
    }
}

/// The kernel's error for arguments that make no sense.
fn einval() -> i32 {
    rustix::io::Errno::INVAL.raw_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_arrives_as_it_was() {
        let odd = OsString::from_vec(b"\xff=\n".to_vec());
        let mut command = Command::new("sh");
        command
            .args([OsStr::new("-c"), OsStr::new(""), &odd])
            .current_dir("/a b")
            .env_clear()
            .env("A", "")
            .env("B", &odd);
        let order = Order::of(&command);
        assert_eq!(order.words.len(), 4);
        let again = Order::read(order.write().unwrap()).unwrap();
        assert_eq!(again, order);
        assert!(Order::parse(b"\x09\0\0\0short").is_none());
    }
}
