//! Where file tools may read and write.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use store::beneath::{Root, Target};

use crate::path::plain;
use crate::permission::PathRule;

/// The directories an agent's file tools reach, and nothing besides.
#[derive(Debug)]
pub(super) struct Places {
    cwd: PathBuf,
    places: Vec<Place>,
    rules: Denied,
}

/// The places that the user's rules deny.
#[derive(Debug, Clone, Default)]
pub(super) struct Denied {
    pub(super) read: Vec<PathRule>,
    pub(super) write: Vec<PathRule>,
}

#[derive(Debug)]
struct Place {
    /// As it was named; paths may begin with it although it is a link.
    named: PathBuf,
    root: Root,
    writable: bool,
}

/// A path of a model's, as a place and what is below it.
#[derive(Debug)]
pub(super) struct Located<'a> {
    place: &'a Place,
    rules: &'a Denied,
    below: PathBuf,
}

impl Places {
    /// `tree` is the worktree that `cwd` is in. Directories that do not exist are left out.
    pub(super) fn new(
        cwd: &Path,
        tree: &Path,
        write: &[PathBuf],
        read: &[PathBuf],
        rules: Denied,
    ) -> Self {
        let tree = [(tree.to_owned(), true)];
        let write = write.iter().map(|path| (path.clone(), true));
        let read = read.iter().map(|path| (path.clone(), false));
        let all = tree.into_iter().chain(write).chain(read);
        let places = all.filter_map(|(named, writable)| {
            let root = Root::open(&named).ok()?;
            Some(Place {
                named,
                root,
                writable,
            })
        });
        Self {
            cwd: cwd.to_owned(),
            places: places.collect(),
            rules,
        }
    }

    /// The place `path` is in; an error that says which places there are.
    pub(super) fn locate(&self, path: &str) -> Result<Located<'_>, String> {
        if path.is_empty() || path.contains('\0') {
            return Err("The path is empty or contains a NUL byte.".into());
        }
        let whole = plain(&self.cwd.join(path));
        let inside = |place: &'_ Place| {
            let named = whole.strip_prefix(&place.named);
            let below = named.or_else(|_| whole.strip_prefix(place.root.path()));
            below.ok().map(Path::to_owned)
        };
        // The innermost: the temporary directory may be inside another place.
        let depth = |place: &Place| place.root.path().components().count();
        let found = self.places.iter().filter_map(|place| {
            let below = inside(place)?;
            let rules = &self.rules;
            Some(Located {
                place,
                rules,
                below,
            })
        });
        found.max_by_key(|found| depth(found.place)).ok_or_else(|| {
            format!(
                "{path} is outside the directories you may use: {}. Use a path below one of them.",
                self.list()
            )
        })
    }

    fn list(&self) -> String {
        let names: Vec<String> = self
            .places
            .iter()
            .map(|place| match place.writable {
                true => place.named.display().to_string(),
                false => format!("{} (read only)", place.named.display()),
            })
            .collect();
        names.join(", ")
    }

    /// `path` as it is shown: below where the agent works, or whole.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.cwd).unwrap_or(path);
        match below.as_os_str().is_empty() {
            true => ".".into(),
            false => below.display().to_string(),
        }
    }
}

impl Located<'_> {
    /// Its whole path, links on the way not followed.
    pub(super) fn path(&self) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => self.place.named.clone(),
            false => self.place.named.join(&self.below),
        }
    }

    /// Opens it for reading.
    pub(super) fn read(&self) -> Result<File, String> {
        let file = self.read_below(Path::new(""));
        file.map_err(|error| self.failure("read", &error))
    }

    /// Opens what is at `below` it, for reading.
    pub(super) fn read_below(&self, below: &Path) -> io::Result<File> {
        let file = match below.as_os_str().is_empty() {
            true => self.place.root.read(&self.below),
            false => self.place.root.read(&self.below.join(below)),
        }?;
        // The real path counts, whatever links led there.
        let denied = match self.real(&file) {
            Some(real) => self.rules.read.iter().any(|rule| rule.fits(&real)),
            None => false,
        };
        match denied {
            true => Err(io::Error::other("a rule denies reading it")),
            false => Ok(file),
        }
    }

    /// The real path of an open file, links followed; `None` if it has left the place.
    pub(super) fn real(&self, file: &File) -> Option<PathBuf> {
        let below = self.place.root.place_of(file)?;
        Some(self.place.root.path().join(below))
    }

    /// The path that a write to it changes. Not outside, and not in git's own files.
    pub(super) fn target(&self, make_dirs: bool) -> Result<Target, String> {
        if !self.place.writable {
            let why = format!("{} can only be read.", self.path().display());
            return Err(why);
        }
        if of_git(&self.below) {
            return Err(self.refuse_git());
        }
        let target = self.place.root.target(&self.below, false);
        let target = match target {
            // Only now: a link on the way might have led into git's files.
            Err(error) if make_dirs && error.kind() == io::ErrorKind::NotFound => {
                self.existing_parent()?;
                self.place.root.target(&self.below, true)
            }
            target => target,
        };
        let target = target.map_err(|error| self.failure("write", &error))?;
        if of_git(&target.place()) {
            return Err(self.refuse_git());
        }
        let real = self.real_target(&target);
        match self.rules.write.iter().any(|rule| rule.fits(&real)) {
            true => Err(format!("A rule denies writing {}.", self.path().display())),
            false => Ok(target),
        }
    }

    /// Checks the nearest directory above that is there.
    fn existing_parent(&self) -> Result<(), String> {
        for above in self.below.ancestors().skip(1) {
            if let Ok(dir) = self.place.root.find(above) {
                let real = self.place.root.place_of(&dir).unwrap_or_default();
                return match of_git(&real) {
                    true => Err(self.refuse_git()),
                    false => Ok(()),
                };
            }
        }
        Ok(())
    }

    /// Its place with links followed, and the whole path.
    pub(super) fn real_target(&self, target: &Target) -> PathBuf {
        self.place.root.path().join(target.place())
    }

    fn refuse_git(&self) -> String {
        format!(
            "{} belongs to git; use git itself to change it.",
            self.path().display()
        )
    }

    /// The error, in words for the model.
    pub(super) fn failure(&self, verb: &str, error: &io::Error) -> String {
        let path = self.path();
        let path = path.display();
        match error.kind() {
            io::ErrorKind::NotFound => format!("{path} does not exist."),
            io::ErrorKind::PermissionDenied => format!(
                "Cannot {verb} {path}: {error}. Links that lead out of the working tree are not \
                 followed."
            ),
            _ => format!("Cannot {verb} {path}: {error}."),
        }
    }
}

/// True if a part of the path is git's own directory or file.
fn of_git(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(OsStr::new(".git")))
}
