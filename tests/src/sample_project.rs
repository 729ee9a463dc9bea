//! A small Rust library with twelve defects, each in a module of its own beside the test that finds
//! it. It is built by the compiler alone, without network and locks.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fan::{Fan, kinds};

/// A module's name, its defect, its test, and the repair.
pub const DEFECTS: [(&str, &str, &str, &str); 12] = [
    (
        "sum",
        "pub fn sum(n: &[i64]) -> i64 { n.iter().product() }",
        "assert_eq!(super::sum(&[1, 2, 4]), 7);",
        "s/product/sum/",
    ),
    (
        "max",
        "pub fn max(n: &[i64]) -> Option<i64> { n.iter().min().copied() }",
        "assert_eq!(super::max(&[4, 9, 2]), Some(9));",
        "s/min()/max()/",
    ),
    (
        "count",
        "pub fn count(t: &str) -> usize { t.lines().count() + 1 }",
        r#"assert_eq!(super::count("a\nb\n"), 2);"#,
        "s/ + 1//",
    ),
    (
        "upper",
        "pub fn upper(t: &str) -> String { t.to_lowercase() }",
        r#"assert_eq!(super::upper("aB"), "AB");"#,
        "s/to_lowercase/to_uppercase/",
    ),
    (
        "last",
        "pub fn last(t: &str) -> Option<&str> { t.lines().next() }",
        r#"assert_eq!(super::last("a\nb\n"), Some("b"));"#,
        "s/next()/last()/",
    ),
    (
        "swap",
        "pub fn swap(pair: (i64, i64)) -> (i64, i64) { (pair.0, pair.1) }",
        "assert_eq!(super::swap((1, 2)), (2, 1));",
        "s/pair.0, pair.1/pair.1, pair.0/",
    ),
    (
        "uniq",
        "pub fn uniq(mut n: Vec<i64>) -> Vec<i64> { n.sort(); n }",
        "assert_eq!(super::uniq(vec![2, 1, 2]), [1, 2]);",
        "s/n.sort();/n.sort(); n.dedup();/",
    ),
    (
        "mean",
        "pub fn mean(n: &[f64]) -> f64 { n.iter().sum::<f64>() }",
        "assert_eq!(super::mean(&[2.0, 4.0]), 3.0);",
        "s|sum::<f64>()|sum::<f64>() / n.len() as f64|",
    ),
    (
        "even",
        "pub fn even(n: i64) -> bool { n % 2 == 1 }",
        "assert!(super::even(4));",
        "s/== 1/== 0/",
    ),
    (
        "trim",
        "pub fn trim(t: &str) -> &str { t.trim_start() }",
        r#"assert_eq!(super::trim(" a "), "a");"#,
        "s/trim_start/trim/",
    ),
    (
        "words",
        "pub fn words(t: &str) -> usize { t.lines().count() }",
        r#"assert_eq!(super::words("a b c"), 3);"#,
        "s/lines()/split_whitespace()/",
    ),
    (
        "rev",
        "pub fn rev(t: &str) -> String { t.chars().collect() }",
        r#"assert_eq!(super::rev("abc"), "cba");"#,
        "s/chars()/chars().rev()/",
    ),
];

/// The path of a module.
pub fn file(name: &str) -> String {
    format!("src/{name}.rs")
}

/// The command that repairs a module.
pub fn repaired(name: &str, repair: &str) -> String {
    let file = file(name);
    format!("sed -i.bak '{repair}' {file} && rm {file}.bak")
}

/// Writes and commits it. `sh check.sh` tests everything, `sh checks/NAME.sh` one module.
pub fn project(fan: &Fan) {
    let mut library = String::new();
    for (name, wrong, test, _) in DEFECTS {
        let test = format!(
            "#[cfg(test)]\nmod tests {{\n    #[test]\n    fn works() {{\n        {test}\n    }}\n}}\n"
        );
        fan.write(&file(name), &format!("{wrong}\n\n{test}"));
        let check = format!("exec sh check.sh {name}::tests::works\n");
        fan.write(&format!("checks/{name}.sh"), &check);
        library.push_str(&format!("pub mod {name};\n"));
    }
    fan.write("src/lib.rs", &library);
    fan.write(
        "Cargo.toml",
        "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    // The compiler itself: the one on the path may be a proxy that wants the user's own home.
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(sysroot.unwrap().stdout).unwrap();
    let rustc = Path::new(sysroot.trim()).join("bin/rustc");
    let check = format!(
        "out=$(mktemp -d) || exit 1\n\
         '{}' --edition 2021 --test -C debuginfo=0 -o \"$out/tests\" src/lib.rs && \"$out/tests\" -q $1\n\
         code=$?\nrm -rf \"$out\"\nexit $code\n",
        rustc.display()
    );
    fan.write("check.sh", &check);
    fan.commit();
}

/// True if all its tests pass.
pub fn is_green(dir: &Path) -> bool {
    let ended = Command::new("sh")
        .arg("check.sh")
        .current_dir(dir)
        .output()
        .unwrap();
    ended.status.success()
}

/// Checks the results of every run that made the project green.
pub fn all_is_well(fan: &Fan, report: &Value) {
    for (id, kind) in kinds(report) {
        assert_eq!(kind, "proven", "{id}: {report}");
    }
    assert!(!is_green(fan.0.repo.main()), "nothing but the branch moved");
    fan.git(&[
        "checkout",
        "-q",
        report["landed"]["branch"].as_str().unwrap(),
    ]);
    assert!(is_green(fan.0.repo.main()));
    // The patches do the same to a clone, with nothing but git.
    let clone = fan.0.repo.beside("clone");
    let base = report["base"].as_str().unwrap();
    fan.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let manifest: Value = serde_json::from_str(&fan.read("manifest.json")).unwrap();
    let patches = manifest["patches"].as_array().unwrap();
    let git = |args: &[&str]| {
        let ended = crate::git_command(&clone, args).status();
        assert!(ended.unwrap().success(), "{args:?}");
    };
    git(&["checkout", "-q", base]);
    for patch in patches {
        let path = fan.out().join(patch["path"].as_str().unwrap());
        git(&["am", "-q", path.to_str().unwrap()]);
    }
    assert!(is_green(&clone), "{} patches", patches.len());
    // Only the main worktree is left, and git does not see the results.
    let trees = fan.git(&["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
    let status = fan.git(&["status", "--porcelain"]);
    assert!(!status.contains("ccb-out"), "{status}");
}
