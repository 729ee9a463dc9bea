//! Crates depend downwards only.

use serde_json::Value;

/// The crates from the bottom to the top. Those of one level do not know each other.
pub const LEVELS: [&[&str]; 13] = [
    &["ccb-store"],
    &["ccb-database"],
    &["ccb-taskboard", "ccb-mailbox", "ccb-worktrees", "ccb-swarm"],
    &["ccb-native", "ccb-team"],
    &["ccb-runs"],
    &["ccb-project", "ccb-landing"],
    &["ccb-director"],
    &["ccb-fanout"],
    &["ccb-observe"],
    &["ccb-coordinator"],
    &["ccb-term"],
    &["ccb-mcp", "ccb-top", "ccb-page", "ccb-otel"],
    &["ccb-cli"],
];

/// The dependencies that do not point downwards, also those of tests and examples.
/// `metadata` is what `cargo metadata --no-deps` prints.
pub fn not_downwards(metadata: &Value) -> Vec<String> {
    let level = |name: &str| LEVELS.iter().position(|level| level.contains(&name));
    let mut wrong = Vec::new();
    for package in list(&metadata["packages"]) {
        let name = text(&package["name"]);
        let Some(own) = level(name) else { continue };
        for dependency in list(&package["dependencies"]) {
            let other = text(&dependency["name"]);
            let ours = other.starts_with("ccb-");
            if ours && level(other).is_none_or(|other| other >= own) {
                wrong.push(format!("{name} depends on {other}, which is not below it"));
            }
        }
    }
    let known = LEVELS.concat();
    for name in known {
        let packages = list(&metadata["packages"]);
        if !packages
            .iter()
            .any(|package| text(&package["name"]) == name)
        {
            wrong.push(format!("{name} is gone; the levels name it"));
        }
    }
    wrong
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(more: &[(&str, &str)]) -> Value {
        let package = |name: &&str| {
            let needs = more.iter().filter(|(from, _)| from == name);
            let needs: Vec<Value> = needs.map(|(_, to)| json!({ "name": to })).collect();
            json!({ "name": name, "dependencies": needs })
        };
        let all: Vec<Value> = LEVELS.concat().iter().map(package).collect();
        json!({ "packages": all })
    }

    #[test]
    fn downwards_is_fine() {
        let fine = [
            ("ccb-cli", "ccb-store"),
            ("ccb-swarm", "ccb-store"),
            ("ccb-cli", "serde"),
        ];
        assert_eq!(not_downwards(&metadata(&fine)), Vec::<String>::new());
    }

    #[test]
    fn sideways_upwards_and_unknown_are_not() {
        for (from, to) in [
            ("ccb-swarm", "ccb-mailbox"),
            ("ccb-coordinator", "ccb-cli"),
            ("ccb-store", "ccb-taskboard"),
            ("ccb-cli", "ccb-tests"),
        ] {
            let wrong = not_downwards(&metadata(&[(from, to)]));
            assert_eq!(
                wrong,
                [format!("{from} depends on {to}, which is not below it")]
            );
        }
    }
}
