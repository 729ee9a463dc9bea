//! `.gitmodules` that an agent wrote. An address in it can be an option of a program, so git
//! refuses a push of such a file; a commit of ccb must not contain it either.

use std::path::Path;

use store::atomic;
use store::home::create_private_dir;

use crate::error::TreeError;
use crate::git::Git;
use crate::layout::Layout;

/// The file's name.
pub(super) const NAME: &str = ".gitmodules";

/// The reason why git refuses the file in `tree`, if it does. The file is not added to the
/// repository's objects.
pub(super) fn refused(layout: &Layout, tree: &Path) -> Result<Option<String>, TreeError> {
    let file = tree.join(NAME);
    let Ok(meta) = std::fs::symlink_metadata(&file) else {
        return Ok(None);
    };
    if !meta.is_file() {
        return Ok(Some(format!("{NAME} is no file, which git refuses")));
    }
    let scratch = layout.tmp();
    let scratch = scratch.join(format!("modules-{}", uuid::Uuid::new_v4().simple()));
    create_private_dir(&scratch)?;
    let checked = check(layout, &scratch, &file);
    store::tree::delete(&scratch)?;
    match checked {
        Err(TreeError::Git { stderr, .. }) => {
            let said = stderr.lines().find(|line| line.contains("gitmodules"));
            let said = store::text::clean_line(said.unwrap_or(&stderr).trim());
            Ok(Some(format!("git refuses its {NAME}: {said}")))
        }
        checked => checked.map(|()| None),
    }
}

/// Makes a git tree with only this file, in an object store of its own, and has git check it like a
/// push.
fn check(layout: &Layout, scratch: &Path, file: &Path) -> Result<(), TreeError> {
    let git = |verb: &str| -> Git {
        layout
            .git(verb)
            .env("GIT_OBJECT_DIRECTORY", scratch.join("objects"))
    };
    let text = atomic::read(file)?.unwrap_or_default();
    let blob = git("hash-object")
        .args(["-w", "--stdin"])
        .input(text)
        .line()?;
    let entry = format!("100644 blob {blob}\t{NAME}\n");
    let tree = git("mktree").input(entry.into_bytes()).line()?;
    let pack = git("pack-objects")
        .args(["-q", "--stdout"])
        .input(format!("{tree}\n{blob}\n").into_bytes())
        .run()?;
    let checked = git("index-pack").args(["--strict", "--stdin"]).input(pack);
    checked.run().map(drop)
}
