//! The fuzz targets of this crate; see [`store::fuzz`].

use std::path::Path;

use sha1::{Digest, Sha1};
use store::fuzz::{Target, assert_is_one_plain_line, halves};

use crate::change_report::Changes;
use crate::changes::read_records;
use crate::check::{CheckState, Traits};
use crate::git::files::{logged_commits, packed_ref, parse_head, stashes_in};
use crate::git::in_process::marked_lines;
use crate::git::index_times::{PlainIndex, assumes_unchanged};
use crate::git::{Head, files, locks, runs_code};
use crate::merge::{LandingList, in_a_line};
use crate::registry::{Entry, Registry};
use crate::remote::{plain_address, refusal};
use crate::slug::Slug;

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("git_files", git_files),
    ("git_index", git_index),
    ("git_output", git_output),
    ("git_config", git_config),
    ("worktree_records", worktree_records),
];

/// git's files that ccb reads itself, and agents can write.
fn git_files(data: &[u8]) {
    let (name, rest) = halves(data);
    let (name, text) = (String::from_utf8_lossy(name), String::from_utf8_lossy(rest));
    match parse_head(&text) {
        Head::Branch(name, _) => {
            assert!(name.starts_with("refs/heads/"), "{name:?}");
            let plain = |part| matches!(part, std::path::Component::Normal(_));
            let parts = Path::new(&name).components();
            assert!(
                parts.clone().all(plain),
                "{name:?} leads out of git's directory"
            );
            assert!(!name.contains(char::is_control), "{name:?}");
        }
        Head::Detached(oid) => assert!(files::is_oid(&oid)),
        Head::Elsewhere => {}
    }
    let known = packed_ref(&text, &name);
    assert!(known.is_none_or(|oid| files::is_oid(&oid)));
    let mut logged = logged_commits(rest);
    assert!(
        logged
            .iter()
            .all(|oid| files::is_oid(oid) && !files::is_zero(oid))
    );
    let count = logged.len();
    logged.sort_unstable();
    logged.dedup();
    assert_eq!(logged.len(), count, "a commit is named twice");
    let lines = rest.split(|byte| *byte == b'\n').count();
    assert!(stashes_in(rest, &name) <= lines);
    assert!(Slug::new(&text).is_err() || git2::Reference::is_valid_name(&format!("refs/{text}")));
}

/// An index, damaged but with the right checksum.
fn git_index(data: &[u8]) {
    assumes_unchanged(data);
    let mut bytes = data.to_vec();
    bytes.extend_from_slice(&Sha1::digest(data));
    let known = assumes_unchanged(&bytes);
    let index = PlainIndex::parse(bytes);
    assert_eq!(known.is_some(), index.is_some());
    let Some(index) = index else { return };
    for entry in index.files() {
        assert!(!entry.name().contains(&0));
    }
    // Each entry takes at least 64 bytes.
    assert!(index.files().count() <= data.len() / 64);
}

/// The output of git about files and refs whose names an agent chose.
fn git_output(data: &[u8]) {
    let mut changes = Changes::default();
    read_records(data, |path| path.ends_with(b"placed"), &mut changes);
    assert!(changes.paths.len() <= changes.files + changes.untracked);
    assert!(changes.staged <= changes.files && changes.unmerged <= changes.files);
    assert!(changes.head.as_deref().is_none_or(files::is_oid));
    for (first, last) in marked_lines(data) {
        assert!(first <= last && first > 0);
    }
    let said = String::from_utf8_lossy(data);
    let lock = locks::named_in(&said);
    assert!(lock.is_none_or(|path| path.is_absolute()));
    assert!(refusal(data).is_none_or(|why| !why.contains('\n')));
    assert!(!in_a_line(&said).contains('\n'));
    let address = plain_address(&said);
    assert!(address.len() <= 2 * said.len() + 1);
    assert_is_one_plain_line(&store::text::clean_line(&address));
}

/// Entries of a repository's configuration: those that run code, and those that a check's
/// repository gets.
fn git_config(data: &[u8]) {
    let (key, value) = halves(data);
    let key = String::from_utf8_lossy(key).replace(['\0', '\n'], "");
    let value = String::from_utf8_lossy(value).replace('\0', "");
    runs_code(&key, &value);
    let (traits, _) = Traits::of_settings(format!("{key}\n{value}").as_bytes(), false);
    // However a value is written, it begins no line of its own.
    for line in traits.config.lines() {
        let known = line.starts_with(['[', '\t']) || line.is_empty();
        assert!(known, "{line:?} in {:?}", traits.config);
    }
}

/// ccb's own records of worktrees, damaged.
fn worktree_records(data: &[u8]) {
    if let Ok(registry) = serde_json::from_slice::<Registry>(data) {
        let bytes = serde_json::to_vec(&registry).unwrap_or_default();
        let again = serde_json::from_slice::<Registry>(&bytes).ok();
        let json = again.and_then(|again| serde_json::to_value(again).ok());
        assert_eq!(json, serde_json::to_value(&registry).ok());
        assert!(registry.paths().len() <= registry.worktrees.len() + registry.pool.len());
    }
    if let Ok(entry) = serde_json::from_slice::<Entry>(data) {
        let bytes = serde_json::to_vec(&entry).unwrap_or_default();
        assert_eq!(serde_json::from_slice(&bytes).ok(), Some(entry));
    }
    drop(serde_json::from_slice::<LandingList>(data));
    drop(serde_json::from_slice::<CheckState>(data));
}
