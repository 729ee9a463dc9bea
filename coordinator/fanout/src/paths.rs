//! Paths of inputs, made relative to the repository.
//!
//! Tools write the place of a finding in many ways: from the top of the repository, from the root
//! of the file system, as a URI. A task works in a worktree of its own, so the only path that means
//! the right file there is one from the top. An absolute path would lead out of the worktree, into
//! the checkout in which the user runs the plan.

use std::path::{Component, Path, PathBuf};

/// The checkout that paths of inputs mean.
#[derive(Debug, Clone, Default)]
pub struct Checkout {
    /// Its top by the names of git and of the caller, without symbolic links first.
    tops: Vec<PathBuf>,
}

impl Checkout {
    /// The one whose top is `top`. `directory` is where the caller is, perhaps by another name.
    pub fn new(top: &Path, directory: &Path) -> Self {
        let real = top.canonicalize().unwrap_or_else(|_| top.to_owned());
        let mut tops = vec![real.clone(), top.to_owned()];
        // The same place by the name the caller knows it by.
        let named = directory.ancestors();
        let is_top = |dir: &&Path| dir.canonicalize().is_ok_and(|dir| dir == real);
        tops.extend(named.filter(is_top).map(Path::to_owned));
        tops.dedup();
        Self { tops }
    }

    /// `given` from the top of the repository; or why that is not possible, as the end of a sentence.
    pub fn relative(&self, given: &str) -> Result<String, String> {
        if let Some(rest) = given.strip_prefix("file:") {
            return self.of_file_uri(rest);
        }
        if let Some(scheme) = scheme_of(given) {
            return Err(format!("is a {scheme}: address and not a file"));
        }
        self.of_path(given)
    }

    /// The same for a URI, in which `%20` is a space.
    pub(super) fn relative_uri(&self, uri: &str) -> Result<String, String> {
        match scheme_of(uri) {
            Some(_) => self.relative(uri),
            None if uri.starts_with("file:") => self.relative(uri),
            None => self.of_path(&decoded(uri)),
        }
    }

    fn of_file_uri(&self, rest: &str) -> Result<String, String> {
        let path = match rest.strip_prefix("//") {
            None => rest,
            Some(rest) => {
                let (host, _) = rest.split_once('/').unwrap_or((rest, ""));
                if !matches!(host, "" | "localhost") {
                    return Err(format!("is on another machine, {host}"));
                }
                &rest[host.len()..]
            }
        };
        self.of_path(&decoded(path))
    }

    fn of_path(&self, given: &str) -> Result<String, String> {
        if given.contains('\0') {
            return Err("has a NUL byte".into());
        }
        let windows = given.trim_start_matches('/').as_bytes();
        if windows.len() > 2 && windows[0].is_ascii_alphabetic() && windows[1] == b':' {
            return Err("is a path of Windows, outside of this repository".into());
        }
        let path = match given.contains('\\') && !self.holds(given) {
            // The form of tools on Windows.
            true => given.replace('\\', "/"),
            false => given.to_owned(),
        };
        let path = Path::new(&path);
        let inside = match path.is_absolute() {
            true => self.of_absolute(path),
            false => normal(path),
        };
        let inside = inside.ok_or("is outside of the repository")?;
        if inside.components().any(|part| part.as_os_str() == ".git") {
            return Err("is git's own".into());
        }
        if self.leads_out(&inside) {
            return Err("leads out of the repository by a symbolic link".into());
        }
        match inside.to_str() {
            Some("") => Ok(".".into()),
            Some(text) => Ok(text.to_owned()),
            None => Err("is not valid UTF-8".into()),
        }
    }

    pub(super) fn holds(&self, given: &str) -> bool {
        self.tops.iter().any(|top| top.join(given).exists())
    }

    /// By one of the names of the top, or by its real path.
    fn of_absolute(&self, path: &Path) -> Option<PathBuf> {
        let plain = normal_absolute(path);
        let below = |path: &Path| {
            let mut tops = self.tops.iter();
            tops.find_map(|top| path.strip_prefix(top).ok().map(Path::to_owned))
        };
        below(&plain).or_else(|| below(&really(&plain)?))
    }

    /// True if something on the way is a link to a place that is not in the checkout.
    fn leads_out(&self, inside: &Path) -> bool {
        let Some(top) = self.tops.first() else {
            return false;
        };
        let real = really(&top.join(inside));
        real.is_some_and(|real| !real.starts_with(top))
    }

    /// Replaces absolute paths of files in the checkout, such as in a test's output, by paths from
    /// the top: an agent would follow the absolute ones out of its worktree.
    pub(super) fn without_top(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for top in &self.tops {
            let Some(top) = top.to_str().filter(|top| top.len() > 1) else {
                continue;
            };
            for prefix in [format!("file://{top}/"), format!("{top}/")] {
                text = without(&text, &prefix);
            }
        }
        text
    }
}

/// Takes `prefix` out wherever a path begins with it.
fn without(text: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(prefix) {
        out.push_str(before);
        let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~');
        if before.chars().next_back().is_some_and(goes_on) {
            out.push_str(prefix);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The scheme of an address that is no file: `https`, `untitled`, …
fn scheme_of(given: &str) -> Option<&str> {
    let (scheme, rest) = given.split_once(':')?;
    let mut chars = scheme.chars();
    let valid = scheme.len() > 1
        && chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (valid && scheme != "file" && rest.starts_with("//")).then_some(scheme)
}

/// A relative path without `.` and `..`; `None` if it leads above its start.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

fn normal_absolute(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            _ => {}
        }
    }
    out
}

/// The path after following links, as far as it exists.
fn really(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find_map(|dir| {
        let real = dir.canonicalize().ok()?;
        Some((real, path.strip_prefix(dir).ok()?))
    });
    there.map(|(real, rest)| match rest.as_os_str().is_empty() {
        true => real,
        false => real.join(rest),
    })
}

/// A URI's path without its percent signs.
fn decoded(uri: &str) -> String {
    let bytes = uri.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| uri.get(at + 1..at + 3))
            .flatten()
            // A number can have a sign, a code cannot.
            .filter(|hex| !hex.starts_with('+'));
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn a_percent_sign_before_a_signed_number_is_no_code() {
        assert_eq!(decoded("a%20b%2Fc"), "a b/c");
        assert_eq!(decoded("a%+1b%+Fc%"), "a%+1b%+Fc%");
    }
}
