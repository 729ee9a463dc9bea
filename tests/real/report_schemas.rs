//! The reports of a run, compared with published schemas. `tests/reports/run.sh` gets them and a
//! Python that can validate; without these the test is ignored.

use std::path::Path;
use std::process::Command;

use harness::{Fan, real_program, write};
use serde_json::{Value, json};

use crate::CCB;

/// The complaints of the validators about the reports in `dir`; empty if they are satisfied.
fn complaints(python: &str, schemas: &str, dir: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/validate.py");
    let output = Command::new(python)
        .arg(script)
        .arg(schemas)
        .arg(dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(failed, "", "the validator itself fails");
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
}

pub(crate) fn reports_are_what_the_published_schemas_say() {
    let python = real_program("CCB_TEST_REPORT_PYTHON");
    let schemas = std::env::var("CCB_TEST_REPORT_SCHEMAS").unwrap();
    let fan = Fan::new(CCB);
    let odd = "<odd> & \"quoted\" \u{1b}[31mred\u{1b}[0m ü 漢 'x' %20";
    fan.write(
        "findings.sarif",
        &json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": [
            {"ruleId": "no-odd", "level": "warning", "message": {"text": odd},
             "locations": [{"physicalLocation": {
                 "artifactLocation": {"uri": "src/a%20b.py"}, "region": {"startLine": 3, "startColumn": 7}}}]},
            {"ruleId": "no-place", "message": {"text": "nowhere"}},
        ]}]})
        .to_string(),
    );
    fan.plan(&json!({
        "name": odd, "defaults": {"retries": 0},
        "tasks": [
            {"id": "good", "subject": odd, "run": "echo 1 > good", "verify": "test -s good"},
            {"id": "unchecked", "run": "echo 1 > unchecked"},
            {"id": "idle", "run": "true", "verify": "true"},
            {"id": "bad", "run": "printf 'a\\033[1mb\\001\\377<c>&' >&2; exit 3", "verify": "true"},
            {"id": "wrong", "run": "echo 1 > w", "verify": "printf '\\001]]>\\377 no'; exit 1", "paths": ["w x/y"]},
            {"id": "no-tool", "run": "true", "verify": "no-such-tool-anywhere"},
            {"id": "slow", "run": "sleep 600", "timeout": "1s"},
            {"id": "after", "run": "true", "dependsOn": ["bad"]},
        ],
        "foreach": [{"sarif": "findings.sarif", "task": {
            "id": "f{{index}}", "subject": "{{message}}", "run": "exit 1", "verify": "true"}}],
    }));
    let (code, _) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(1));
    assert_eq!(complaints(&python, &schemas, &fan.out()), "");

    // They do find errors.
    let sarif: Value = serde_json::from_str(&fan.read("results.sarif")).unwrap();
    let mut broken = sarif.clone();
    broken["runs"][0]["results"][0]["level"] = "dreadful".into();
    write(&fan.out().join("results.sarif"), &broken.to_string());
    let junit = fan
        .read("junit.xml")
        .replace("<testcase name=", "<testcase nom=");
    write(&fan.out().join("junit.xml"), &junit);
    let said = complaints(&python, &schemas, &fan.out());
    assert!(
        said.contains("junit.xml") && said.contains("results.sarif"),
        "{said}"
    );
}
