//! The machine of the numbers: kernel, cores, date, file systems.

use std::path::{Path, PathBuf};

use store::clock::{Clock, SystemClock, rfc3339};

use crate::Failure;

/// A directory in which the benchmark measures.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// Short and unique, for tables: `tmpfs`, `ext4`, `ext4 (2)`.
    pub(crate) label: String,
    /// File system, mount options, journal.
    about: String,
}

impl Place {
    /// The places of `dirs`, which must exist.
    pub(crate) fn all(dirs: &[PathBuf]) -> Result<Vec<Self>, Failure> {
        let mut places: Vec<Self> = Vec::new();
        for dir in dirs {
            let path = dir
                .canonicalize()
                .map_err(|error| format!("--dir {}: {error}", dir.display()))?;
            let mount = Mount::of(&path)?;
            let kind = mount.label();
            let same = places.iter().filter(|p| p.label.starts_with(&kind)).count();
            let label = match same {
                0 => kind,
                n => format!("{kind} ({})", n + 1),
            };
            places.push(Self {
                path,
                label,
                about: mount.about()?,
            });
        }
        Ok(places)
    }

    /// A new directory here that is removed when the value is dropped.
    pub(crate) fn scratch(&self) -> Result<tempfile::TempDir, Failure> {
        Ok(tempfile::Builder::new()
            .prefix("ccb-bench-")
            .tempdir_in(&self.path)?)
    }

    /// Writes all dirty data to the disk, so that the next fsync pays only for its own data.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        Ok(rustix::fs::syncfs(std::fs::File::open(&self.path)?)?)
    }
}

/// The head of the report.
pub(crate) fn header(places: &[Place]) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or_else(|| "unknown".into(), |(_, value)| value.trim().to_owned())
    };
    let date = rfc3339(SystemClock.now_ms());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mut text = format!(
        "# Benchmark\n\n- date: {}\n- kernel: Linux {}\n- processor: {cores} × {}, \
         memory {}\n- SQLite {}, {}\n",
        date.split('T').next().unwrap_or(&date),
        read("/proc/sys/kernel/osrelease").trim(),
        field(&read("/proc/cpuinfo"), "model name"),
        field(&read("/proc/meminfo"), "MemTotal"),
        rusqlite::version(),
        git_version(),
    );
    for place in places {
        text.push_str(&format!("- {}: {}\n", place.label, place.about));
    }
    text
}

fn git_version() -> String {
    let said = std::process::Command::new("git").arg("--version").output();
    said.map_or_else(
        |_| "no git".into(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    device: String,
    kind: String,
    options: String,
}

impl Mount {
    /// The mount `path` (absolute, without links) is on.
    fn of(path: &Path) -> Result<Self, Failure> {
        let table = std::fs::read_to_string("/proc/self/mountinfo")?;
        // Later mounts hide earlier ones at the same point.
        let mounts = table.lines().filter_map(Self::parse);
        mounts
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
            .ok_or_else(|| format!("{}: on no mounted file system", path.display()).into())
    }

    /// `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let mut options: Vec<&str> = Vec::new();
        for option in left.get(5)?.split(',').chain(right.get(2)?.split(',')) {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        Some(Self {
            point: left.get(4)?.replace("\\040", " ").into(),
            device: (*left.get(2)?).to_owned(),
            kind: (*right.first()?).to_owned(),
            options: options.join(","),
        })
    }

    fn label(&self) -> String {
        match self.journal() {
            Some(true) => format!("{} with journal", self.kind),
            Some(false) => format!("{} without journal", self.kind),
            None => self.kind.clone(),
        }
    }

    fn about(&self) -> Result<String, Failure> {
        let mut text = format!("{}, mounted {}", self.label(), self.options);
        let backing = self.block_device().map(|dev| dev.join("loop/backing_file"));
        if let Some(file) = backing.and_then(|file| std::fs::read_to_string(file).ok()) {
            let below = Path::new(file.trim()).parent().map(Self::of).transpose()?;
            let below = below.map_or_else(|| "an unknown file system".into(), |m| m.label());
            text.push_str(&format!(", on a loop device whose file is on {below}"));
        }
        Ok(text)
    }

    /// True if it has a journal, on file systems with and without one.
    fn journal(&self) -> Option<bool> {
        if !self.kind.starts_with("ext") {
            return None;
        }
        let device = self.block_device()?.file_name()?.to_str()?.to_owned();
        let journals = std::fs::read_dir("/proc/fs/jbd2");
        let mut names = journals.into_iter().flatten().flatten();
        // `loop0-8`: the device and the inode of its journal.
        Some(names.any(|entry| {
            let name = entry.file_name();
            name.to_str()
                .and_then(|name| name.rsplit_once('-'))
                .map(|(dev, _)| dev)
                == Some(device.as_str())
        }))
    }

    fn block_device(&self) -> Option<PathBuf> {
        Path::new("/sys/dev/block")
            .join(&self.device)
            .canonicalize()
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table() {
        let line = "40 29 7:0 / /mnt/my\\040disk rw,relatime shared:9 - ext4 /dev/loop0 rw,discard";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.point, Path::new("/mnt/my disk"));
        assert_eq!(
            (mount.kind.as_str(), mount.device.as_str()),
            ("ext4", "7:0")
        );
        assert_eq!(mount.options, "rw,relatime,discard");
    }
}
