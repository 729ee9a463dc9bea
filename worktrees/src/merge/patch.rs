//! Commits as files: patches made for others, and patches applied.
//!
//! A patch is the output of `git format-patch`, whole and binary-safe, so that any git can apply it
//! without ccb. Applying is one `git am`: all patches, or the repository is unchanged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::TreeError;
pub use crate::git::FileStat;
use crate::git::{Git, History, line, path_from, zero_split};

/// Time limit of git for making or applying patches.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Makes `git diff-tree` print the paths that differ.
pub(crate) const NAMES_ONLY: [&str; 5] = [
    "-r",
    "-z",
    "--name-only",
    "--no-renames",
    "--end-of-options",
];

/// The committer, if the environment and no configuration file names one.
const IDENTITY: [&str; 2] = ["GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];

/// The result of applying patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// All of them were applied.
    All {
        /// The full name of the last commit.
        commit: String,
    },
    /// One of them does not apply; the repository is unchanged.
    Stopped {
        /// The file with that patch.
        file: PathBuf,
        /// The output of git.
        why: String,
    },
}

/// The full name of the commit that `spec` means in the repository of `dir`.
pub fn resolve(dir: &Path, spec: &str) -> Result<String, TreeError> {
    History::open(dir).resolve(spec)
}

/// The top of the worktree that `dir` is in.
pub fn top(dir: &Path) -> Result<PathBuf, TreeError> {
    let bytes = Git::at(dir, "rev-parse").arg("--show-toplevel").run();
    let bytes = bytes.map_err(|error| match error {
        TreeError::NoGit { .. } => error,
        _ => TreeError::NoRepository {
            dir: dir.to_owned(),
        },
    })?;
    Ok(path_from(bytes.strip_suffix(b"\n").unwrap_or(&bytes)))
}

/// The files of `commit` that match one of `globs` and none of `except`, in order.
///
/// The patterns are git's: `*` stays within a directory, `**/` does not.
pub fn files(
    dir: &Path,
    commit: &str,
    globs: &[String],
    except: &[String],
) -> Result<Vec<PathBuf>, TreeError> {
    // Compared with nothing, everything is new; unlike `ls-tree` this knows patterns.
    let nothing = Git::at(dir, "hash-object")
        .args(["-t", "tree", "-w", "--stdin"])
        .run()?;
    let wanted = globs.iter().map(|glob| format!(":(top,glob){glob}"));
    let unwanted = except
        .iter()
        .map(|glob| format!(":(top,glob,exclude){glob}"));
    let bytes = Git::at(dir, "diff-tree")
        .args(NAMES_ONLY)
        .args([line(&nothing).as_str(), commit, "--"])
        .args(wanted.chain(unwanted))
        .timeout(TIMEOUT)
        .run()?;
    Ok(zero_split(&bytes).map(path_from).collect())
}

/// Every file of `commit`, with its mode and the name of its content, in order.
pub fn contents(dir: &Path, commit: &str) -> Result<Vec<(String, String)>, TreeError> {
    let bytes = Git::at(dir, "ls-tree")
        .args(["-r", "-z", "--full-tree", "--end-of-options", commit])
        .timeout(TIMEOUT)
        .run()?;
    let read = |record: &[u8]| {
        let text = String::from_utf8_lossy(record).into_owned();
        let (about, path) = text.split_once('\t')?;
        Some((path.to_owned(), about.to_owned()))
    };
    Ok(zero_split(&bytes).filter_map(read).collect())
}

/// The number of files in the worktree of `dir` that differ from its last commit, and of untracked
/// ones.
pub fn uncommitted(dir: &Path) -> Result<(usize, usize), TreeError> {
    let bytes = Git::status(dir)
        .args(["--porcelain", "-z", "--no-renames", "--untracked-files=all"])
        .timeout(TIMEOUT)
        .run()?;
    let unknown = zero_split(&bytes).filter(|entry| entry.starts_with(b"??"));
    let unknown = unknown.count();
    Ok((zero_split(&bytes).count() - unknown, unknown))
}

/// True if git knows a committer in the repository of `dir`.
pub fn has_identity(dir: &Path) -> bool {
    // A name that git derives from the machine's does not count.
    with_identity(Git::with_config(dir, "var", &["user.useConfigOnly=true"]))
        .arg("GIT_COMMITTER_IDENT")
        .run()
        .is_ok()
}

/// The commits from `base` to `commit` as one file of mails.
///
/// A history with merges has no form as mails; it becomes one commit with the same result.
pub fn format(dir: &Path, base: &str, commit: &str) -> Result<Vec<u8>, TreeError> {
    let range = format!("{base}..{commit}");
    if History::open(dir).is_next(base, commit) {
        return mails(dir, &range);
    }
    let merges = Git::at(dir, "rev-list")
        .args(["--merges", "--max-count=1", "--end-of-options", &range])
        .run()?;
    if merges.is_empty() {
        return mails(dir, &range);
    }
    let one = squashed(dir, base, commit)?;
    mails(dir, &format!("{base}..{one}"))
}

/// Overrides settings of the user that would change the format.
const PLAIN: &[&str] = &[
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.context=3",
    "diff.interHunkContext=0",
    "diff.algorithm=default",
    "format.attach=",
    "format.pretty=",
    "log.showSignature=false",
    "log.decorate=false",
    "core.quotePath=true",
];
/// The form of the change itself.
const DIFF: &str = "--binary --full-index --no-renames --no-ext-diff --no-textconv \
    --src-prefix=a/ --dst-prefix=b/";
/// Maximum of patches made by one git: all of them are in memory.
const BATCH: usize = 100;

/// The result of [`format()`] for each of these pairs of base and commit, by far fewer processes.
pub fn format_all(dir: &Path, pairs: &[(String, String)]) -> Vec<Result<Vec<u8>, TreeError>> {
    let history = History::open(dir);
    let mut made: Vec<Option<Vec<u8>>> = vec![None; pairs.len()];
    let next = |at: &usize| history.is_next(&pairs[*at].0, &pairs[*at].1);
    let plain: Vec<usize> = (0..pairs.len()).filter(next).collect();
    for batch in plain.chunks(BATCH) {
        let commits: Vec<&str> = batch.iter().map(|at| pairs[*at].1.as_str()).collect();
        for (at, patch) in batch
            .iter()
            .zip(log_as_mails(dir, &commits).unwrap_or_default())
        {
            made[*at] = Some(patch);
        }
    }
    let each = made.into_iter().zip(pairs);
    each.map(|(made, (base, commit))| match made {
        Some(patch) => Ok(patch),
        None => format(dir, base, commit),
    })
    .collect()
}

/// One mail for each of these commits, none of which is a merge; `None` if the mails cannot be told
/// apart.
fn log_as_mails(dir: &Path, commits: &[&str]) -> Option<Vec<Vec<u8>>> {
    let out = Git::with_config(dir, "log", PLAIN)
        .args(["--no-walk=unsorted", "--stdin", "--pretty=email"])
        .args(["--no-color", "--no-notes", "--patch", "--stat", "--summary"])
        .args(DIFF.split_whitespace())
        .input(format!("{}\n", commits.join("\n")).into_bytes())
        .timeout(TIMEOUT)
        .run()
        .map_err(|error| tracing::info!(%error, "the patches are made one by one"))
        .ok()?;
    let heads: Vec<Vec<u8>> = commits
        .iter()
        .map(|commit| format!("From {commit} Mon Sep 17 00:00:00 2001\n").into_bytes())
        .collect();
    let mut rest = out.as_slice();
    let mut mails = Vec::new();
    for (at, head) in heads.iter().enumerate() {
        if !rest.starts_with(head) {
            return None;
        }
        // An empty line is between two of them.
        let mail = match heads.get(at + 1) {
            Some(next) => {
                let mark: Vec<u8> = [b"\n\n".as_slice(), next].concat();
                let end = memchr::memmem::find(rest, &mark)? + 1;
                let mail = &rest[..end];
                rest = &rest[end + 1..];
                mail
            }
            None => rest,
        };
        mails.push(mail.to_vec());
    }
    Some(mails)
}

/// The files that differ between two commits, in order.
pub fn stat(dir: &Path, base: &str, commit: &str) -> Result<Vec<FileStat>, TreeError> {
    stat_in(&History::open(dir), dir, base, commit)
}

/// The result of [`stat()`] for each of these pairs of base and commit. The repository is opened
/// once: that reads its index, which names every file.
pub fn stat_all(dir: &Path, pairs: &[(String, String)]) -> Vec<Result<Vec<FileStat>, TreeError>> {
    let history = History::open(dir);
    let one = |(base, commit): &(String, String)| stat_in(&history, dir, base, commit);
    pairs.iter().map(one).collect()
}

pub(super) fn stat_in(
    history: &History,
    dir: &Path,
    base: &str,
    commit: &str,
) -> Result<Vec<FileStat>, TreeError> {
    if let Some(found) = history.stat(base, commit) {
        return Ok(found);
    }
    let bytes = Git::with_config(dir, "diff-tree", PLAIN)
        .args(["-r", "-z", "--numstat", "--no-renames", "--no-ext-diff"])
        .args(["--end-of-options", base, commit])
        .timeout(TIMEOUT)
        .run()?;
    let read = |record: &[u8]| {
        let text = String::from_utf8_lossy(record).into_owned();
        let mut parts = text.splitn(3, '\t');
        let (added, deleted) = (parts.next()?.parse().ok(), parts.next()?.parse().ok());
        let path = parts.next()?.to_owned();
        Some(FileStat {
            path,
            added,
            deleted,
        })
    };
    Ok(zero_split(&bytes).filter_map(read).collect())
}

fn mails(dir: &Path, range: &str) -> Result<Vec<u8>, TreeError> {
    const FORM: &str = "--stdout --no-signature --no-cover-letter --no-numbered --no-thread \
        --no-base";
    Git::with_config(dir, "format-patch", PLAIN)
        .args(FORM.split_whitespace())
        .args(DIFF.split_whitespace())
        .arg("--end-of-options")
        .arg(range)
        .timeout(TIMEOUT)
        .run()
}

/// One commit on `base` with the files, the author and the message of `commit`.
fn squashed(dir: &Path, base: &str, commit: &str) -> Result<String, TreeError> {
    let said = Git::at(dir, "show")
        .args([
            "--no-patch",
            "--format=%an%x00%ae%x00%ad%x00%B",
            "--date=raw",
        ])
        .args(["--end-of-options", commit])
        .run()?;
    let mut parts = said.splitn(4, |byte| *byte == 0);
    let mut next = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (name, email, date, message) = (next(), next(), next(), next());
    let mut git = Git::at(dir, "commit-tree").args(["-p", base, &format!("{commit}^{{tree}}")]);
    for who in ["AUTHOR", "COMMITTER"] {
        git = git
            .env(&format!("GIT_{who}_NAME"), &name)
            .env(&format!("GIT_{who}_EMAIL"), &email)
            .env(&format!("GIT_{who}_DATE"), &date);
    }
    Ok(line(&git.input(message.into_bytes()).run()?))
}

/// Applies `files`, in this order, to the worktree of `dir`: all of them or none.
pub fn apply(dir: &Path, files: &[PathBuf], three_way: bool) -> Result<Applied, TreeError> {
    let before = resolve(dir, "HEAD")?;
    if files.is_empty() {
        return Ok(Applied::All { commit: before });
    }
    let state = Git::at(dir, "rev-parse")
        .args(["--git-path", "rebase-apply"])
        .run()?;
    let state = dir.join(path_from(state.strip_suffix(b"\n").unwrap_or(&state)));
    if state.exists() {
        return Err(TreeError::Invalid {
            what: "the repository".into(),
            why: "a `git am` or `git rebase` is under way; end it first".into(),
        });
    }
    let git = with_identity(Git::at(dir, "am"))
        .args(["--quiet", "--keep-cr", "--keep-non-patch"])
        .args(three_way.then_some("--3way"));
    match git.arg("--").args(files).timeout(TIMEOUT).once().run() {
        Ok(_) => Ok(Applied::All {
            commit: resolve(dir, "HEAD")?,
        }),
        Err(TreeError::Git { stderr, .. }) if state.exists() => {
            let at = store::atomic::read(&state.join("next"))?.unwrap_or_default();
            let at = line(&at).parse().unwrap_or(1);
            with_identity(Git::at(dir, "am")).arg("--abort").run()?;
            Ok(Applied::Stopped {
                file: file_with_mail(files, at)?,
                why: stderr,
            })
        }
        Err(error) => Err(error),
    }
}

/// Checks if `files` would apply to the last commit of `dir`; touches neither worktree nor index.
pub fn check(
    dir: &Path,
    files: &[PathBuf],
    three_way: bool,
    scratch: &Path,
) -> Result<Applied, TreeError> {
    let index = scratch.join("index");
    Git::at(dir, "read-tree")
        .arg("HEAD")
        .env("GIT_INDEX_FILE", &index)
        .run()?;
    for file in files {
        let git = Git::at(dir, "apply")
            .args(["--cached", "--binary", "--whitespace=nowarn"])
            .args(three_way.then_some("--3way"))
            .env("GIT_INDEX_FILE", &index);
        match git.arg("--").arg(file).timeout(TIMEOUT).once().run() {
            Ok(_) => {}
            Err(TreeError::Git { stderr, .. }) => {
                return Ok(Applied::Stopped {
                    file: file.clone(),
                    why: stderr,
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Applied::All {
        commit: resolve(dir, "HEAD")?,
    })
}

fn with_identity(mut git: Git) -> Git {
    for name in IDENTITY {
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            git = git.env(name, value);
        }
    }
    git
}

/// The file that holds the mail number `at`, counted from 1 over all of them.
fn file_with_mail(files: &[PathBuf], at: usize) -> Result<PathBuf, TreeError> {
    let mut seen = 0;
    for file in files {
        let bytes = store::atomic::read(file)?.unwrap_or_default();
        seen += mails_in(&bytes);
        if at <= seen {
            return Ok(file.clone());
        }
    }
    Ok(files.last().cloned().unwrap_or_default())
}

/// The number of mails that `git format-patch` put into a file.
fn mails_in(bytes: &[u8]) -> usize {
    let starts = |row: &&[u8]| {
        row.strip_prefix(b"From ").is_some_and(|rest| {
            let hex = rest
                .iter()
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count();
            hex >= 40 && rest[hex..].starts_with(b" Mon Sep 17 00:00:00 2001")
        })
    };
    bytes.split(|byte| *byte == b'\n').filter(starts).count()
}
