//! Values that are secret because of what they are called.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The endings of names of variables with secrets.
const ENDINGS: [&str; 9] = [
    "_TOKEN",
    "_KEY",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PASSPHRASE",
    "_APIKEY",
    "_CREDENTIALS",
    "_PAT",
];
/// The endings of names of variables with secrets, also without anything before them.
const WHOLE_ENDINGS: [&str; 2] = ["PASSWORD", "SECRET"];
/// Endings that are also used for names of things, such as `CACHE_KEY=linux-release`.
const AMBIGUOUS: [&str; 2] = ["KEY", "TOKEN"];
/// A value of an ambiguous variable that is longer is a secret whatever it is made of.
const NAME_MOST: usize = 20;
/// Minimum length of a secret value. A shorter value of a variable that the user did not name is
/// more likely a word.
const LEAST: usize = 8;
/// A line of a value may be printed alone.
const LINE_LEAST: usize = 16;

/// The values of variables that are in `named`, and of those whose names say that they are
/// secret.
pub fn secret_values<N, V>(
    environment: impl IntoIterator<Item = (N, V)>,
    named: &[String],
) -> Vec<Vec<u8>>
where
    N: AsRef<OsStr>,
    V: AsRef<OsStr>,
{
    let mut values = Vec::new();
    for (name, value) in environment {
        let value = value.as_ref().as_bytes().trim_ascii();
        let name = name.as_ref().to_string_lossy();
        let is_named = named.iter().any(|one| *one == name);
        let upper = name.to_ascii_uppercase();
        if is_named || (is_telling(&upper) && value.len() >= LEAST && !is_word(&upper, value)) {
            values.push(value.to_vec());
        }
        if is_headers(&upper) {
            values.extend(header_values(value));
        }
    }
    values
}

/// True if a variable holds headers for a collector, such as `api-key=…,x-team=…`.
fn is_headers(name: &str) -> bool {
    name.starts_with("OTEL_EXPORTER_OTLP_") && name.ends_with("HEADERS")
}

/// The value of each header, and what follows `Bearer` or another word in it.
fn header_values(headers: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let pairs = headers.split(|byte| *byte == b',');
    let values = pairs.filter_map(|pair| pair.splitn(2, |byte| *byte == b'=').nth(1));
    let words = values.flat_map(|value| value.split(|byte| *byte == b' '));
    words
        .flat_map(|word| {
            // A space may be written as `%20`.
            let text = String::from_utf8_lossy(word).replace("%20", " ");
            text.split(' ')
                .map(|part| part.as_bytes().to_vec())
                .collect::<Vec<_>>()
        })
        .filter(|value| value.len() >= LEAST && !is_word("_KEY", value))
}

fn is_telling(name: &str) -> bool {
    let ends = |end: &&str| name.ends_with(*end) || name == &end[1..];
    ENDINGS.iter().any(ends) || WHOLE_ENDINGS.iter().any(|end| name.ends_with(end))
}

/// True if a value is more likely the name of something than a secret: taking every mention of it
/// out would hide more than it protects.
fn is_word(name: &str, value: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_' | b'.');
    AMBIGUOUS.iter().any(|end| name.ends_with(end))
        && value.len() < NAME_MOST
        && value.iter().all(plain)
}

/// The forms in which a value may be printed: as it is, inside a JSON string, line by line.
pub(super) fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let value = value.trim_ascii();
    let mut forms = vec![value.to_vec()];
    if let Ok(text) = std::str::from_utf8(value) {
        let quoted = serde_json::Value::from(text).to_string();
        let inside = &quoted.as_bytes()[1..quoted.len() - 1];
        if inside != value {
            forms.push(inside.to_vec());
        }
    }
    if value.contains(&b'\n') {
        let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let long = lines.filter(|line| line.len() >= LINE_LEAST);
        forms.extend(long.map(<[u8]>::to_vec));
    }
    forms
}
