//! Passwords from `~/.pgpass`, as libpq reads them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The password for this host, port, database and user, if the file has one. A file that others
/// may read is ignored, as libpq does.
pub(crate) fn look_up(file: &Path, wanted: [&str; 4]) -> Option<String> {
    let meta = std::fs::metadata(file).ok()?;
    if meta.mode() & 0o077 != 0 {
        tracing::warn!(file = %file.display(), "ignored, because others may read it: chmod 600");
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| matching(line, wanted))
}

fn matching(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = split(line);
    for wanted in wanted {
        let field = fields.next()?;
        if field != "*" && field != wanted {
            return None;
        }
    }
    fields.next()
}

/// The fields of a line; `\:` and `\\` stand for themselves. The password is the rest of the line.
fn split(line: &str) -> impl Iterator<Item = String> {
    let mut rest = line.chars();
    let mut fields = Vec::new();
    let mut field = String::new();
    while let Some(c) = rest.next() {
        match c {
            '\\' => field.extend(rest.next()),
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_matches_with_wildcards_and_escapes() {
        let wanted = ["db.example", "5432", "work", "ann"];
        let find = |line: &str| matching(line, wanted);
        assert_eq!(
            find("db.example:5432:work:ann:s3:cret"),
            Some("s3:cret".into())
        );
        assert_eq!(find("*:*:*:ann:a\\:b\\\\c"), Some("a:b\\c".into()));
        assert_eq!(find("*:*:*:bob:x"), None);
        assert_eq!(find("# db.example:5432:work:ann:x"), None);
        assert_eq!(find("db.example:5432:work"), None);
    }
}
