//! The check of everything that lands together.
//!
//! Either a command that must pass, or one that writes a JUnit report: then no test may fail that
//! did not fail before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use roxmltree::{Document, ParsingOptions};
use schemars::JsonSchema;
use serde::Deserialize;

/// The check of landing results, as a plan writes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a command, or {no-new-failures: a command that writes a JUnit report}"
)]
pub enum CheckSpec {
    /// A command that must pass.
    Command(String),
    /// No test may fail that did not fail before.
    NoNewFailures(NoNewFailures),
}

/// A command that writes a JUnit report.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NoNewFailures {
    /// The command. Its exit code does not count.
    pub no_new_failures: String,
    /// The file of the report, from the top of the repository. Default: `$CCB_JUNIT`.
    #[serde(default)]
    pub report: Option<String>,
}

/// The check of landing results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeCheck {
    /// The rule for a pass.
    pub spec: CheckSpec,
    /// Environment variables for it.
    pub env: BTreeMap<String, String>,
}

impl WholeCheck {
    /// The command.
    pub fn command(&self) -> &str {
        match &self.spec {
            CheckSpec::Command(command) => command,
            CheckSpec::NoNewFailures(check) => &check.no_new_failures,
        }
    }

    pub(super) fn compares(&self) -> bool {
        matches!(self.spec, CheckSpec::NoNewFailures(_))
    }

    /// A shell script that runs it, and writes its report, if any, to `to`.
    pub(super) fn script(&self, to: &Path, quoted: fn(&str) -> String) -> String {
        let CheckSpec::NoNewFailures(check) = &self.spec else {
            return self.command().to_owned();
        };
        let to = quoted(&to.to_string_lossy());
        let command = &check.no_new_failures;
        match &check.report {
            None => format!("export CCB_JUNIT={to}\n(\n{command}\n)\ntrue"),
            Some(report) => {
                let report = quoted(report);
                format!(
                    "rm -f -- {report}\n(\n{command}\n)\n\
                     if test -f {report}; then cp -- {report} {to}; fi"
                )
            }
        }
    }
}

/// The tests that a JUnit report says failed.
pub(super) fn failures(report: &Path) -> Result<BTreeSet<String>, String> {
    let bytes = store::atomic::read(report).map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or(
        "it wrote no JUnit report; write it to \"$CCB_JUNIT\", or say where with `report`",
    )?;
    failures_in(&bytes)
}

/// The same in a report with this content.
pub(super) fn failures_in(bytes: &[u8]) -> Result<BTreeSet<String>, String> {
    let text = String::from_utf8_lossy(bytes);
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let text = text.trim_start_matches('\u{feff}');
    let document = Document::parse_with_options(text, options)
        .map_err(|error| format!("its JUnit report cannot be read: {error}"))?;
    let mut failed = BTreeSet::new();
    let mut tests = 0;
    for case in document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
    {
        tests += 1;
        let bad = |node: roxmltree::Node<'_, '_>| {
            node.has_tag_name("failure") || node.has_tag_name("error")
        };
        if case.children().any(bad) {
            let of = |name: &str| case.attribute(name).unwrap_or_default();
            let class = of("classname");
            let dot = if class.is_empty() { "" } else { "." };
            failed.insert(format!("{class}{dot}{}", of("name")));
        }
    }
    match tests {
        0 => Err("its JUnit report has no test".into()),
        _ => Ok(failed),
    }
}

/// Why what lands is not as good as before, if so.
pub(super) fn worse(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Option<String> {
    const SHOWN: usize = 20;
    let new: Vec<&str> = after.difference(before).map(String::as_str).collect();
    let shown = new
        .iter()
        .take(SHOWN)
        .copied()
        .collect::<Vec<_>>()
        .join("\n");
    let more = new.len().saturating_sub(SHOWN);
    let more = match more {
        0 => String::new(),
        more => format!("\nand {more} more"),
    };
    (!new.is_empty()).then(|| {
        let tests = if new.len() == 1 {
            "test fails"
        } else {
            "tests fail"
        };
        format!(
            "{} {tests} that did not fail before:\n{shown}{more}",
            new.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_are_new_count() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = dir.path().join(name);
            let durability = store::atomic::Durability::Relaxed;
            store::atomic::replace(dir.path(), &path, text.as_bytes(), durability).unwrap();
            failures(&path)
        };
        let before = at(
            "before",
            r#"<testsuites><testsuite><testcase classname="a" name="one"><failure/></testcase>
               <testcase classname="a" name="two"/></testsuite></testsuites>"#,
        )
        .unwrap();
        assert_eq!(before, BTreeSet::from(["a.one".to_owned()]));
        assert_eq!(worse(&before, &before), None);
        assert_eq!(worse(&before, &BTreeSet::new()), None);
        let after = at(
            "after",
            r#"<testsuite><testcase name="x"><error/></testcase>
               <testcase classname="a" name="one"><failure/></testcase></testsuite>"#,
        )
        .unwrap();
        let words = worse(&before, &after).unwrap();
        assert_eq!(words, "1 test fails that did not fail before:\nx");
        assert!(at("none", "<testsuite/>").unwrap_err().contains("no test"));
        assert!(at("bad", "<test").unwrap_err().contains("cannot be read"));
        let missing = failures(&dir.path().join("missing"));
        assert!(missing.unwrap_err().contains("wrote no JUnit report"));
    }
}
