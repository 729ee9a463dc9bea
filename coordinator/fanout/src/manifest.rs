//! `manifest.json`: the files of the results, with their hashes.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use store::atomic;

use super::error::FanoutError;
use super::report::{REPORT_VERSION, Report};
use super::task::sha256;

/// Its name in the directory.
pub const MANIFEST: &str = "manifest.json";
/// The newest format of manifests this version knows.
const VERSION: u64 = 1;

/// The files of a run's results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of this format.
    pub v: u64,
    /// The commit everything started from.
    pub base: String,
    /// True if the run came to its end; until then only its name is claimed here.
    pub complete: bool,
    /// Every file but this one.
    pub files: Vec<Entry>,
    /// The patches in an order in which they apply.
    pub patches: Vec<PatchEntry>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its path from the directory.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// One patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchEntry {
    /// The task it comes from.
    pub task: String,
    /// The file.
    pub path: String,
    /// The commit of the result.
    pub commit: String,
}

/// Results as they are on the disk, checked.
#[derive(Debug)]
pub struct Loaded {
    /// Where they are.
    pub dir: PathBuf,
    /// The list of files.
    pub manifest: Manifest,
    /// The report of the plan.
    pub report: Report,
}

impl Entry {
    pub(super) fn of(path: &str, bytes: &[u8]) -> Self {
        Self {
            path: path.to_owned(),
            sha256: sha256(bytes),
            bytes: bytes.len() as u64,
        }
    }
}

impl Manifest {
    pub(super) fn new(base: &str) -> Self {
        Self {
            v: VERSION,
            base: base.to_owned(),
            ..Self::default()
        }
    }

    /// The one in `dir`, if there is one.
    pub fn load(dir: &Path) -> Result<Option<Self>, FanoutError> {
        let path = dir.join(MANIFEST);
        let Some(bytes) = atomic::read(&path)? else {
            return Ok(None);
        };
        let manifest: Self = parse(&path, &bytes)?;
        if manifest.v > VERSION {
            return Err(wrong(
                &path,
                format!("version {} is newer than this ccb", manifest.v),
            ));
        }
        let names = manifest.files.iter().map(|file| &file.path);
        let names = names.chain(manifest.patches.iter().map(|patch| &patch.path));
        if let Some(bad) = names.into_iter().find(|name| !is_inside(name)) {
            return Err(wrong(
                &path,
                format!("{bad:?} is not a file of this directory"),
            ));
        }
        Ok(Some(manifest))
    }
}

impl Loaded {
    /// Reads the results in `dir` and compares every file with the manifest.
    pub fn load(dir: &Path) -> Result<Self, FanoutError> {
        let Some(manifest) = Manifest::load(dir)? else {
            return Err(wrong(
                dir,
                format!("there is no {MANIFEST}: these are no results of ccb"),
            ));
        };
        if !manifest.complete {
            let why = "the run that wrote it has not come to its end; run the plan again";
            return Err(wrong(dir, why));
        }
        let mut report = None;
        for entry in &manifest.files {
            let path = dir.join(&entry.path);
            let Some(bytes) = atomic::read(&path)? else {
                return Err(wrong(&path, "the file is missing"));
            };
            if Entry::of(&entry.path, &bytes) != *entry {
                return Err(wrong(&path, "the file is not the one that was written"));
            }
            if entry.path == "report.json" {
                report = Some(parse::<Report>(&path, &bytes)?);
            }
        }
        let listed =
            |patch: &&PatchEntry| !manifest.files.iter().any(|file| file.path == patch.path);
        if let Some(patch) = manifest.patches.iter().find(listed) {
            return Err(wrong(
                dir,
                format!("the manifest has no hash of {}", patch.path),
            ));
        }
        let Some(report) = report else {
            return Err(wrong(dir, "there is no report.json"));
        };
        if report.v > REPORT_VERSION {
            return Err(wrong(
                dir,
                format!("report version {} is newer than this ccb", report.v),
            ));
        }
        if report.base != manifest.base {
            return Err(wrong(dir, "report and manifest have different bases"));
        }
        Ok(Self {
            dir: dir.to_owned(),
            manifest,
            report,
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, FanoutError> {
    serde_json::from_slice(bytes)
        .map_err(|error| wrong(path, format!("it cannot be read: {error}")))
}

pub(super) fn wrong(path: &Path, why: impl Into<String>) -> FanoutError {
    FanoutError::Results {
        path: path.to_owned(),
        why: why.into(),
    }
}

/// True if a name leads to something in the directory and nowhere else.
fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}
