//! `cli` reads arguments and prints. What happens, and when, is decided below it.

use crate::sources::Source;

/// Paths `cli` may not name, and what it uses instead. The beginning of a path stands for all below.
pub const DENIED: &[(&str, &str)] = &[];

/// The denied paths that the sources name.
pub fn denied(sources: &[Source], list: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for path in &source.paths {
            let path = path.join("::");
            for (denied, instead) in list {
                let below = path.strip_prefix(denied);
                if below.is_some_and(|rest| rest.is_empty() || rest.starts_with("::")) {
                    found.push(format!("{} names {path}: {instead}", source.file.display()));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_path_is_found_and_its_neighbours_are_not() {
        let path = |text: &str| -> Vec<String> { text.split("::").map(str::to_owned).collect() };
        let source = Source {
            file: "src/a.rs".into(),
            module: vec!["a".into()],
            paths: ["x::y::Z", "x::yes", "x::w"]
                .map(path)
                .into_iter()
                .collect(),
        };
        let found = denied(&[source], &[("x::y", "use w")]);
        assert_eq!(found, ["src/a.rs names x::y::Z: use w"]);
    }
}
