//! The files below a directory, without those that .gitignore names.

use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::TypesBuilder;
use ignore::{Walk, WalkBuilder};

use super::Cancel;
use super::places::Located;

/// Maximum files of one walk.
const MOST: usize = 500_000;

/// The files to find.
#[derive(Debug, Default)]
pub(super) struct Wanted<'a> {
    /// A pattern of file names, as in .gitignore.
    pub(super) glob: Option<&'a str>,
    /// A kind of file by ripgrep's names, such as `rust`.
    pub(super) kind: Option<&'a str>,
}

/// Calls `visit` with each file, by its path below `located` and as a whole, until that returns
/// `false`. A link is not followed. True if it saw all of them.
pub(super) fn files(
    located: &Located<'_>,
    wanted: &Wanted<'_>,
    cancel: &Cancel,
    visit: &mut dyn FnMut(&Path, &Path) -> bool,
) -> Result<bool, String> {
    let dir = located.read()?;
    let real = located
        .real(&dir)
        .ok_or_else(|| format!("{} has moved.", located.path().display()))?;
    let names = match wanted.glob {
        Some(glob) => Some(patterns(&real, glob)?),
        None => None,
    };
    let mut seen = 0;
    for entry in walk(&real, wanted.kind)? {
        if cancel.is_cancelled() {
            return Err("It was cancelled.".into());
        }
        // A directory that cannot be listed is left out, as ripgrep does.
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        seen += 1;
        if seen > MOST {
            return Ok(false);
        }
        let fits = |names: &Override| names.matched(path, false).is_whitelist();
        if !names.as_ref().is_none_or(fits) {
            continue;
        }
        let below = path.strip_prefix(&real).unwrap_or(path);
        if !visit(below, path) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn walk(dir: &Path, kind: Option<&str>) -> Result<Walk, String> {
    let mut walk = WalkBuilder::new(dir);
    // Hidden files are part of many projects; git's own are not.
    walk.hidden(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_path(Path::cmp)
        .filter_entry(|entry| entry.file_name() != ".git");
    if let Some(kind) = kind {
        let mut types = TypesBuilder::new();
        types.add_defaults().select(kind);
        let types = types
            .build()
            .map_err(|_| format!("There is no type of files {kind:?}; use glob instead."))?;
        walk.types(types);
    }
    Ok(walk.build())
}

/// `**/` at the front means what no slash does.
fn patterns(dir: &Path, glob: &str) -> Result<Override, String> {
    let wrong = |error: ignore::Error| format!("{glob:?} is no pattern of file names: {error}.");
    let mut builder = OverrideBuilder::new(dir);
    builder.add(glob).map_err(wrong)?;
    builder.build().map_err(wrong)
}

/// The whole path of what a pattern was given as, split into the directory it begins with and
/// the rest; models give absolute patterns at times.
pub(super) fn split(pattern: &str) -> Option<(PathBuf, String)> {
    if !pattern.starts_with('/') {
        return None;
    }
    let special = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let slash = pattern[..special].rfind('/')?;
    let dir = if slash == 0 { "/" } else { &pattern[..slash] };
    Some((PathBuf::from(dir), pattern[slash + 1..].to_owned()))
}
