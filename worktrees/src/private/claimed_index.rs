//! Two questions to the index of an agent's private repository: which files have conflicts, and
//! which are missing because git was told to leave them out.

use std::collections::BTreeSet;

use store::beneath::Root;

use crate::private::claims;

/// Maximum size of an index that is read, in bytes.
const MOST: u64 = 256 << 20;
/// The parts of an entry before the name of its object.
const STAT: usize = 40;
const STAGE: u16 = 0x3000;
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;

/// The claims of the index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClaimedIndex {
    pub(super) unmerged: usize,
    pub(super) skipped: Vec<Vec<u8>>,
}

/// Reads the index in the private directory. An invalid one yields nothing.
pub(super) fn read(root: &Root) -> ClaimedIndex {
    let bytes = claims::bytes(root, "index", MOST).unwrap_or_default();
    // All names of objects in it have the same length, which the file does not say.
    parse(&bytes, 20)
        .or_else(|| parse(&bytes, 32))
        .unwrap_or_default()
}

/// `name_length`: of an object's name, in bytes.
pub(super) fn parse(bytes: &[u8], name_length: usize) -> Option<ClaimedIndex> {
    if bytes.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(bytes, 4)?;
    if !matches!(version, 2..=4) {
        return None;
    }
    let (mut unmerged, mut skipped) = (BTreeSet::new(), Vec::new());
    let (mut at, mut name) = (12, Vec::new());
    for _ in 0..number(bytes, 8)? {
        let start = at;
        at += STAT + name_length;
        let flags = half(bytes, at)?;
        at += 2;
        let mut more = 0;
        if flags & EXTENDED != 0 {
            more = half(bytes, at)?;
            at += 2;
        }
        if version == 4 {
            let dropped = varint(bytes, &mut at)?;
            name.truncate(name.len().checked_sub(dropped)?);
        } else {
            name.clear();
        }
        let rest = bytes.get(at..)?;
        let length = memchr::memchr(0, rest)?;
        name.extend_from_slice(rest.get(..length)?);
        if name.len() > 4096 {
            return None;
        }
        at += length + 1;
        if version < 4 {
            // At least one zero byte, up to a multiple of eight.
            at = start + (at - start).next_multiple_of(8);
        }
        if flags & STAGE != 0 {
            unmerged.insert(name.clone());
        }
        if more & SKIP_WORKTREE != 0 {
            skipped.push(name.clone());
        }
    }
    // With another length of names the rest would not come out even.
    let end = bytes.len().checked_sub(name_length)?;
    while at < end {
        at = at
            .checked_add(8)?
            .checked_add(usize::try_from(number(bytes, at + 4)?).ok()?)?;
    }
    (at == end).then_some(ClaimedIndex {
        unmerged: unmerged.len(),
        skipped,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u32::from_be_bytes(four))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(u16::from_be_bytes(two))
}

/// A number of seven bits a byte, as git writes offsets.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value
            .checked_shl(7)?
            .checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
        if value > 1 << 24 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    fn sh(dir: &Path, line: &str) {
        let mut command = Command::new("sh");
        crate::process::forget_git(&mut command);
        let line =
            format!("set -e\ng() {{ git -c user.name=x -c user.email=x@x \"$@\"; }}\n{line}");
        let ended = command.args(["-c", &line]).current_dir(dir).status();
        assert!(ended.unwrap().success(), "{line}");
    }

    #[test]
    fn every_form_that_git_writes_is_read() {
        for format in ["sha1", "sha256"] {
            for version in ["2", "3", "4"] {
                let dir = tempfile::tempdir().unwrap();
                sh(
                    dir.path(),
                    &format!(
                        "g init -q -b main --object-format={format} .; mkdir -p a/b; \
                         for i in 1 2 3; do echo $i > a/b/file$i; echo $i > a/other$i; done; \
                         g add .; g commit -qm one; \
                         g switch -qc two; echo two > a/b/file2; g commit -qam two; \
                         g switch -q main; echo main > a/b/file2; g commit -qam main; \
                         g merge -q two > /dev/null || true; \
                         g update-index --index-version {version}; \
                         g update-index --skip-worktree a/other3"
                    ),
                );
                let root = Root::open(&dir.path().join(".git")).unwrap();
                let found = read(&root);
                assert_eq!(found.unmerged, 1, "{format} {version}");
                assert_eq!(found.skipped, [b"a/other3".to_vec()], "{format} {version}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_index_say_nothing() {
        for bytes in [
            &b""[..],
            b"DIRC",
            b"DIRC\0\0\0\x02\xff\xff\xff\xff",
            b"DIRC\0\0\0\x04\0\0\0\x01",
        ] {
            assert_eq!(parse(bytes, 20), None);
        }
    }
}
