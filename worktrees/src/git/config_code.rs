//! The entries of a repository's own git configuration that make git run programs, and its hooks.
//!
//! `.git/config` is no file of the repository, so it is in no review, and any program that worked
//! in the repository may have changed it. Git runs the programs that it names for ccb as for any
//! other caller; ccb's own calls switch off only some of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::TreeError;
use crate::git::Repository;
use crate::git::{Git, path_from, zero_split};

/// An entry that makes git run a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigCode {
    /// The entry's name, such as `filter.lfs.smudge`.
    pub key: String,
    /// The entry's value.
    pub value: String,
    /// The file that has it.
    pub file: PathBuf,
    /// True if it also runs when ccb calls git; if not, ccb switches it off or never does what
    /// needs it.
    pub by_ccb: bool,
}

/// The calls of git that run an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    Always,
    NotForUs,
}

/// Entries without a name in the middle.
const KEYS: &[(&str, Runs)] = &[
    ("core.alternaterefscommand", Runs::Always),
    ("core.askpass", Runs::NotForUs),
    ("core.editor", Runs::NotForUs),
    ("core.fsmonitor", Runs::NotForUs),
    ("core.gitproxy", Runs::Always),
    ("core.hookspath", Runs::NotForUs),
    ("core.pager", Runs::NotForUs),
    ("core.sshcommand", Runs::Always),
    ("credential.helper", Runs::Always),
    ("diff.external", Runs::Always),
    ("gpg.program", Runs::NotForUs),
    ("interactive.difffilter", Runs::NotForUs),
    ("sequence.editor", Runs::NotForUs),
];

/// Entries with one, by what is before and after it.
const KEYS_WITH_NAME: &[(&str, &str, Runs)] = &[
    ("credential.", ".helper", Runs::Always),
    ("diff.", ".command", Runs::Always),
    ("diff.", ".textconv", Runs::Always),
    ("difftool.", ".cmd", Runs::NotForUs),
    ("filter.", ".clean", Runs::Always),
    ("filter.", ".process", Runs::Always),
    ("filter.", ".smudge", Runs::Always),
    ("gpg.", ".program", Runs::NotForUs),
    ("hook.", ".command", Runs::NotForUs),
    ("merge.", ".driver", Runs::Always),
    ("mergetool.", ".cmd", Runs::NotForUs),
    ("remote.", ".receivepack", Runs::Always),
    ("remote.", ".uploadpack", Runs::Always),
    ("remote.", ".vcs", Runs::Always),
    ("trailer.", ".cmd", Runs::NotForUs),
    ("trailer.", ".command", Runs::NotForUs),
];

/// The entries that make git run programs, in the configuration of the repository around `dir` and
/// of its worktree, and the repository's hooks. Leaves out the user's and the system's.
pub fn config_code(dir: &Path) -> Result<Vec<ConfigCode>, TreeError> {
    let listed = Git::at(dir, "config")
        .args([
            "--list",
            "-z",
            "--includes",
            "--show-scope",
            "--show-origin",
        ])
        .run()?;
    let mut pieces = zero_split(&listed);
    let mut found = Vec::new();
    // The last one counts; the user's own hooks are not the repository's.
    let mut hooks_dir = Repository::discover(dir).map(|found| found.common_dir.join("hooks"));
    while let (Some(scope), Some(origin), Some(entry)) =
        (pieces.next(), pieces.next(), pieces.next())
    {
        let text = String::from_utf8_lossy(entry);
        // An entry without a value means "true".
        let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
        let own = matches!(scope, b"local" | b"worktree");
        if key == "core.hookspath" && scope != b"command" {
            hooks_dir = own.then(|| dir.join(value));
        }
        if !own {
            continue;
        }
        let file = path_from(origin.strip_prefix(b"file:").unwrap_or(origin));
        if let Some(runs) = runs(key, value) {
            found.push(ConfigCode {
                key: key.to_owned(),
                value: value.to_owned(),
                file: dir.join(file),
                by_ccb: runs == Runs::Always,
            });
        }
    }
    found.extend(hooks_dir.into_iter().flat_map(|dir| hooks(&dir)));
    Ok(found)
}

/// The hooks that git would run in a directory: executable files. None run when ccb calls git.
fn hooks(dir: &Path) -> Vec<ConfigCode> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let runs = std::fs::metadata(entry.path())
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        if runs && !name.ends_with(".sample") {
            found.push(ConfigCode {
                key: format!("hook {name}"),
                value: entry.path().to_string_lossy().into_owned(),
                file: entry.path(),
                by_ccb: false,
            });
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// The first entry of a worktree's own configuration, in git's directory for it, that makes git run
/// a program or read other files. Agents can write there.
pub(super) fn of_tree(admin: &Path) -> Option<String> {
    let file = admin.join("config.worktree");
    if std::fs::symlink_metadata(&file).is_err() {
        return None;
    }
    let unreadable = || Some("an unreadable entry".to_owned());
    let Ok(config) = git2::Config::open(&file) else {
        return unreadable();
    };
    let Ok(mut entries) = config.entries(None) else {
        return unreadable();
    };
    while let Some(entry) = entries.next() {
        let Ok(entry) = entry else {
            return unreadable();
        };
        let key = String::from_utf8_lossy(entry.name_bytes()).into_owned();
        let value = String::from_utf8_lossy(entry.value_bytes()).into_owned();
        let points = key.starts_with("include") || key == "core.worktree";
        if points || runs(&key, &value).is_some() {
            return Some(key);
        }
    }
    None
}

/// True if an entry of this name and value makes git run a program.
pub(crate) fn runs_code(key: &str, value: &str) -> bool {
    runs(key, value).is_some()
}

fn runs(key: &str, value: &str) -> Option<Runs> {
    let is_switch = matches!(
        value,
        "" | "true" | "false" | "yes" | "no" | "on" | "off" | "0" | "1"
    );
    if let Some((_, runs)) = KEYS.iter().find(|(plain, _)| *plain == key) {
        // The built-in monitor is git's own.
        return (!is_switch).then_some(*runs);
    }
    let named = |start: &str, end: &str| {
        key.len() > start.len() + end.len() && key.starts_with(start) && key.ends_with(end)
    };
    if let Some((.., runs)) = KEYS_WITH_NAME
        .iter()
        .find(|(start, end, _)| named(start, end))
    {
        return (!value.is_empty()).then_some(*runs);
    }
    // A transport that is itself a command, and addresses that are turned into one.
    let url = named("remote.", ".url") || named("remote.", ".pushurl");
    let instead = named("url.ext::", ".insteadof") || named("url.ext::", ".pushinsteadof");
    if (url && value.starts_with("ext::")) || instead {
        return Some(Runs::Always);
    }
    if named("submodule.", ".update") && value.starts_with('!') {
        return Some(Runs::Always);
    }
    if key.starts_with("alias.") && value.starts_with('!') {
        return Some(Runs::NotForUs);
    }
    let pager = key
        .strip_prefix("pager.")
        .is_some_and(|verb| !verb.is_empty());
    (pager && !is_switch).then_some(Runs::NotForUs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_programs_is_told_from_what_does_not() {
        for (key, value, expected) in [
            ("filter.lfs.smudge", "git-lfs smudge -- %f", Some(true)),
            ("filter.x.y.process", "p", Some(true)),
            ("filter.x.required", "true", None),
            ("filter.x.clean", "", None),
            ("merge.ours.driver", "true", Some(true)),
            ("diff.doc.textconv", "catdoc", Some(true)),
            ("remote.origin.url", "ext::sh -c evil", Some(true)),
            ("remote.origin.url", "https://example.com/x", None),
            ("url.ext::sh -c x.insteadof", "https://", Some(true)),
            ("url.https://mirror/.insteadof", "https://", None),
            ("core.fsmonitor", "true", None),
            ("core.fsmonitor", ".git/run-me", Some(false)),
            ("core.hookspath", "evil", Some(false)),
            ("core.sshcommand", "ssh -o X", Some(true)),
            ("credential.https://h.helper", "!f() { x; }; f", Some(true)),
            ("alias.st", "status", None),
            ("alias.x", "!rm -rf /", Some(false)),
            ("submodule.a.update", "!sh x", Some(true)),
            ("user.name", "person", None),
        ] {
            let found = runs(key, value).map(|runs| runs == Runs::Always);
            assert_eq!(found, expected, "{key}={value}");
        }
    }
}
