//! Commits from a private repository, as a stream that is checked on both sides.
//!
//! git reads the private objects under the repository's own configuration, never under the agent's;
//! where the kernel can do it, that git may write nothing at all. Its output is imported like a
//! push: every object is read and checked.

use std::path::Path;
use std::time::Duration;

use store::atomic;
use store::home::{create_dir, create_private_dir};

use crate::error::TreeError;
use crate::git::Git;
use crate::trees::Trees;

/// Time limit of either side.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Maximum that one stay adds to the repository's objects, packed, in bytes.
const MOST_BYTES: usize = 256 << 20;
/// Maximum size of a commit or tag, and of the list of files in one directory, in bytes.
const MOST_TEXT: u64 = 1 << 20;
const MOST_TREE: u64 = 32 << 20;
/// Maximum memory of git for one object, whose own claim about its size git believes.
const MOST_MEMORY: &str = "256m";
/// Larger objects in one file are not taken over: `git add` of ccb itself has them.
const LARGE_FILE: &str = "blob:limit=50m";
/// With fewer objects than this each becomes a file, as with a push; else they are kept as a pack.
const LOOSE: u32 = 100;

/// Settings that keep files of the agent from deciding what git reads.
const READER: &[&str] = &[
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "pack.useBitmaps=false",
    "pack.threads=1",
];

impl Trees {
    /// Takes the objects that `tips` have and `known` does not from the private repository at
    /// `git_dir` into the repository's. The inner `Err` is the reason for a refusal.
    pub(super) fn take_in_objects(
        &self,
        git_dir: &Path,
        tips: &[&str],
        known: &[&str],
    ) -> Result<Result<(), String>, TreeError> {
        let mut asked: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        asked.extend(known.iter().map(|known| format!("^{known}\n")));
        let objects = git_dir.join("objects");
        // Both at once: they only read.
        let (sizes, pack) = std::thread::scope(|scope| {
            let sizes = scope.spawn(|| self.too_large(&objects));
            let pack = self
                .reader("pack-objects", &objects)
                .args(["--revs", "--stdout", "--quiet", "--threads=1"])
                .arg(format!("--filter={LARGE_FILE}"))
                .env(
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                    self.layout.common.join("objects"),
                )
                .input(asked.into_bytes())
                .most_output(MOST_BYTES)
                .run();
            (sizes.join(), pack)
        });
        let too_large = sizes.unwrap_or_else(|_| Ok(Some("its sizes are not known".into())));
        match too_large {
            Ok(None) => {}
            Ok(Some(why)) => return Ok(Err(why)),
            Err(error) => return refused(error),
        }
        let pack = match pack {
            Ok(pack) => pack,
            Err(error) => return refused(error),
        };
        let count = pack.get(8..12).and_then(|count| count.try_into().ok());
        let limit = format!("--max-input-size={MOST_BYTES}");
        let git = match count.map(u32::from_be_bytes) {
            None => return Ok(Err("git printed no pack".into())),
            Some(0) => return Ok(Ok(())),
            Some(count) if count < LOOSE => self
                .layout
                .git("unpack-objects")
                .args(["-q", "--strict", &limit]),
            Some(_) => {
                self.layout
                    .git("index-pack")
                    .args(["--stdin", "--strict", "--threads=1", &limit])
            }
        };
        // Aside first: a refusal half way leaves no objects behind.
        let aside = self.layout.tmp();
        let aside = aside.join(format!("incoming-{}", uuid::Uuid::new_v4().simple()));
        create_private_dir(&aside)?;
        let taken = git
            .env("GIT_DIR", &self.layout.common)
            .env("GIT_OBJECT_DIRECTORY", &aside)
            .env("GIT_ALLOC_LIMIT", MOST_MEMORY)
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.layout.common.join("objects"),
            )
            .input(pack)
            .timeout(TIME_LIMIT)
            .run();
        let done = match taken {
            Ok(_) => self.add_objects(&aside).map(Ok),
            Err(error) => refused(error),
        };
        store::tree::delete(&aside)?;
        done
    }

    /// Moves checked objects to those of the repository. The index of a pack comes last: by that
    /// git knows it. Existing objects are not replaced.
    fn add_objects(&self, aside: &Path) -> Result<(), TreeError> {
        let objects = self.layout.common.join("objects");
        let mut files = Vec::new();
        store::tree::walk(aside, &mut |path, meta| {
            if meta.is_file() {
                files.push(path.to_owned());
            }
            Ok(true)
        })?;
        files.sort_by_key(|path| path.extension().is_some_and(|it| it == "idx"));
        for file in files {
            let Ok(below) = file.strip_prefix(aside) else {
                continue;
            };
            let place = objects.join(below);
            if let Some(dir) = place.parent() {
                create_dir(dir)?;
            }
            atomic::rename_new(&file, &place)?;
        }
        Ok(())
    }

    /// The reason why the private objects must not be read, if one of them is too large to be
    /// honest. A file may be large; it is left out by its size.
    fn too_large(&self, objects: &Path) -> Result<Option<String>, TreeError> {
        let listed = self
            .reader("cat-file", objects)
            .args(["--batch-all-objects", "--unordered"])
            .arg("--batch-check=%(objecttype) %(objectsize)")
            .most_output(MOST_BYTES)
            .run()?;
        let text = String::from_utf8_lossy(&listed);
        let found = text.lines().find_map(|line| {
            let (kind, size) = line.split_once(' ')?;
            let size: u64 = size.parse().ok()?;
            let most = match kind {
                "blob" => u64::MAX,
                "tree" => MOST_TREE,
                _ => MOST_TEXT,
            };
            (size > most).then(|| format!("a {kind} has {size} bytes, more than {most}"))
        });
        Ok(found)
    }

    /// A git that reads these objects and may write nothing.
    pub(super) fn reader(&self, verb: &str, objects: &Path) -> Git {
        Git::behind(&self.options.reader, &self.layout.main, verb, READER)
            .env("GIT_DIR", &self.layout.common)
            .env("GIT_OBJECT_DIRECTORY", objects)
            .env("GIT_ALLOC_LIMIT", MOST_MEMORY)
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .timeout(TIME_LIMIT)
    }
}

/// Turns an error of git about the agent's objects into a refusal, unless git is missing.
fn refused<T>(error: TreeError) -> Result<Result<T, String>, TreeError> {
    match error {
        TreeError::Git { stderr, .. } => {
            let said = stderr.lines().last().unwrap_or_default();
            let said = said.trim_start_matches("fatal: ");
            Ok(Err(store::text::clean_line(said)))
        }
        TreeError::GitTimedOut { after, .. } => Ok(Err(format!(
            "reading it took longer than {} s",
            after.as_secs()
        ))),
        TreeError::TooMuch { most, .. } => Ok(Err(format!("it has more than {most} bytes"))),
        error => Err(error),
    }
}
