//! Worktrees that are fully deleted: `removed.jsonl`.
//!
//! They stay listed, but the registry, which is read and written whole at every step, must not grow
//! with them. One line each, appended; changed only under the repository's lock.

use std::path::PathBuf;

use store::atomic::{self, Durability};
use store::log;

use crate::error::TreeError;
use crate::layout::Layout;
use crate::registry::events::append_line;
use crate::registry::{Entry, Section};
use crate::slug::Slug;

fn path(layout: &Layout) -> PathBuf {
    layout.registry().with_file_name("removed.jsonl")
}

/// All of them, oldest first.
pub(crate) fn all(layout: &Layout) -> Result<Vec<Entry>, TreeError> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in log::read_from(&path(layout), 0)?.lines {
        match serde_json::from_slice::<Entry>(&line) {
            // A crash may have written one twice.
            Ok(entry) if entries.last().is_some_and(|last| last.trash == entry.trash) => {}
            Ok(entry) => entries.push(entry),
            Err(error) => tracing::warn!(%error, "the line of a removed worktree cannot be read"),
        }
    }
    Ok(entries)
}

/// The last one of this name.
pub(crate) fn last(layout: &Layout, slug: &Slug) -> Result<Option<Entry>, TreeError> {
    let of_name = |entry: &Entry| entry.name == slug.as_str();
    Ok(all(layout)?.into_iter().rev().find(of_name))
}

/// Moves the worktree that was in this directory of the trash here.
pub(crate) fn add(layout: &Layout, section: &mut Section<'_>, id: &str) -> Result<(), TreeError> {
    let gone = |entry: &Entry| entry.trash.as_ref().is_some_and(|trash| trash.id == id);
    let Some(at) = section.registry.worktrees.iter().position(gone) else {
        return Ok(());
    };
    let mut entry = section.registry.worktrees.remove(at);
    (entry.task_id, entry.task_list) = (None, None);
    let line = to_line(layout, &entry)?;
    // First here, then removed there: a crash in between leaves it twice, not nowhere.
    let tail = append_line(path(layout), &line)?;
    if section.durability() != Durability::Relaxed {
        tail.sync()?;
    }
    section.save()
}

/// Removes the entries that `keep` rejects.
pub(crate) fn retain(
    layout: &Layout,
    section: &Section<'_>,
    keep: impl Fn(&Entry) -> bool,
) -> Result<(), TreeError> {
    let all = all(layout)?;
    let kept: Vec<&Entry> = all.iter().filter(|entry| keep(entry)).collect();
    if kept.len() == all.len() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for entry in kept {
        bytes.extend(to_line(layout, entry)?);
    }
    atomic::replace(&layout.tmp(), &path(layout), &bytes, section.durability())?;
    Ok(())
}

fn to_line(layout: &Layout, entry: &Entry) -> Result<Vec<u8>, TreeError> {
    let mut line = serde_json::to_vec(entry).map_err(|error| TreeError::Registry {
        path: path(layout),
        why: error.to_string(),
    })?;
    line.push(b'\n');
    Ok(line)
}
