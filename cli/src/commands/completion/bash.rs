//! Bash, with descriptions. Bash has no place for descriptions, so they follow the values, but only
//! where bash lists the values and not where it inserts one.

use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::EnvCompleter;
use unicode_width::UnicodeWidthStr;

/// The variable with the index of the word to complete, from 0.
pub(super) const INDEX: &str = "CCB_COMPLETE_INDEX";
/// The variable with the value of bash's `COMP_TYPE`.
const TYPE: &str = "CCB_COMPLETE_TYPE";

/// The values of `COMP_TYPE` with which bash only lists: `?`, `!` and `@`.
const LISTS: [&str; 3] = ["63", "33", "64"];

const SCRIPT: &str = r#"_ccb_complete() {
    local line words=("${COMP_WORDS[@]}")
    words[COMP_CWORD]="$2"
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(CCB_COMPLETE=bash CCB_COMPLETE_INDEX="$COMP_CWORD" CCB_COMPLETE_TYPE="$COMP_TYPE" \
        command ccb -- "${words[@]}" 2> /dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
if [[ ${BASH_VERSINFO[0]} -gt 4 || ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 ]]; then
    complete -o nosort -o bashdefault -F _ccb_complete ccb
else
    complete -o bashdefault -F _ccb_complete ccb
fi"#;

pub(super) struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        _var: &str,
        _name: &str,
        _bin: &str,
        _completer: &str,
        to: &mut dyn Write,
    ) -> Result<(), Error> {
        writeln!(to, "{SCRIPT}")
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        to: &mut dyn Write,
    ) -> Result<(), Error> {
        let index = std::env::var(INDEX).ok();
        let index = index.and_then(|index| index.parse().ok());
        let index: usize = index.unwrap_or_else(|| words.len().saturating_sub(1));
        let kind = std::env::var(TYPE).unwrap_or_default();
        let (words, index) = without_equals(words, index);
        let found = complete(command, words, index, directory)?;
        let described = found.len() > 1 && LISTS.contains(&kind.as_str());
        for line in lines(&found, described) {
            writeln!(to, "{line}")?;
        }
        Ok(())
    }
}

/// Joins `--team=x`, which bash splits into three words. Only the value is completed.
fn without_equals(words: Vec<OsString>, index: usize) -> (Vec<OsString>, usize) {
    let (mut left, mut place) = (Vec::new(), index);
    for (n, word) in words.into_iter().enumerate() {
        let after_flag = left.last().and_then(|word: &OsString| word.to_str());
        let after_flag = after_flag.is_some_and(|word| word.starts_with("--"));
        if word == "=" && after_flag && n != index {
            place -= usize::from(n < index);
            continue;
        }
        left.push(word);
    }
    (left, place)
}

fn lines(found: &[CompletionCandidate], described: bool) -> Vec<String> {
    let values: Vec<String> = found
        .iter()
        .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
        .collect();
    if !described {
        return values;
    }
    let widest = values.iter().map(|value| value.width()).max();
    let widest = widest.unwrap_or_default();
    let rows = values.iter().zip(found).map(|(value, candidate)| {
        let help = candidate.get_help().map(ToString::to_string);
        let help = help.as_deref().and_then(|help| help.lines().next());
        match help {
            Some(help) => format!("{value:widest$}  ({help})"),
            None => value.clone(),
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_behind_an_equals_sign_is_a_word() {
        let words = |text: &str| -> Vec<OsString> { text.split(' ').map(Into::into).collect() };
        let given = words("ccb --team = fi task");
        assert_eq!(without_equals(given, 3), (words("ccb --team fi task"), 2));
        let given = words("ccb task = 3");
        assert_eq!(without_equals(given.clone(), 3), (given, 3));
    }

    #[test]
    fn descriptions_are_for_lists() {
        let found = [
            CompletionCandidate::new("1").help(Some("one\ntwo".to_owned().into())),
            CompletionCandidate::new("12"),
        ];
        assert_eq!(lines(&found, false), ["1", "12"]);
        assert_eq!(lines(&found, true), ["1   (one)", "12"]);
    }
}
