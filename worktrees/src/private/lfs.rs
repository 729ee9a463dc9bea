//! Large files of git LFS that an agent's commits name.
//!
//! LFS keeps the bytes of a file outside git's objects, under their SHA-256. A version that only a
//! commit in the middle has would be missing in the repository, and the user's next push refused.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use store::atomic;
use store::beneath::Root;
use store::home::create_dir;

use crate::error::TreeError;
use crate::layout::Layout;

/// The directory of the objects, below a git directory.
const OBJECTS: &str = "lfs/objects";
/// Maximum of objects that are examined.
const MOST: usize = 10_000;

/// Copies the objects of the private repository at `git_dir` that the repository does not have and
/// that are what their names say.
pub(super) fn take_over(layout: &Layout, git_dir: &Path) -> Result<(), TreeError> {
    let objects = git_dir.join(OBJECTS);
    let is_dir = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    if !is_dir(git_dir) || !is_dir(&objects) {
        return Ok(());
    }
    let Ok(root) = Root::open(&objects) else {
        return Ok(());
    };
    let mut names = Vec::new();
    store::tree::walk(&objects, &mut |path, meta| {
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(name) = name.filter(|name| meta.is_file() && is_sha256(name)) {
            names.push(name.to_owned());
        }
        Ok(names.len() < MOST)
    })?;
    for name in names {
        take_over_one(layout, &root, &name)?;
    }
    Ok(())
}

fn take_over_one(layout: &Layout, root: &Root, name: &str) -> Result<(), TreeError> {
    let below = format!("{}/{}/{name}", &name[..2], &name[2..4]);
    let ours = layout.common.join(OBJECTS).join(&below);
    if std::fs::symlink_metadata(&ours).is_ok() {
        return Ok(());
    }
    let Ok(file) = root.read(Path::new(&below)) else {
        return Ok(());
    };
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(());
    }
    // Checks the copy, not the original: that may change.
    let copy = layout.tmp().join(format!("lfs-{name}"));
    store::tree::delete(&copy)?;
    let mut sum = Sha256::new();
    let mut reader = Hashing {
        file,
        sum: &mut sum,
    };
    atomic::write_stream(&copy, &mut reader)?;
    let found: String = sum
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if found != name {
        tracing::warn!(
            name,
            "an LFS object is not what its name says; it is left out"
        );
        return Ok(store::tree::delete(&copy)?);
    }
    if let Some(dir) = ours.parent() {
        create_dir(dir)?;
    }
    Ok(atomic::rename(&copy, &ours)?)
}

fn is_sha256(name: &str) -> bool {
    name.len() == 64
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

struct Hashing<'a> {
    file: std::fs::File,
    sum: &'a mut Sha256,
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.sum.update(&buffer[..count]);
        Ok(count)
    }
}
