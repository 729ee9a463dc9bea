//! No circles between the top modules of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::sources::Source;

/// The circles among the top modules of a crate, each with one import for each of its steps.
///
/// A name that a crate's root exports counts as the module it is from.
pub fn find(sources: &[Source]) -> Vec<String> {
    let exported = exports(sources);
    let tops: BTreeSet<&str> = sources.iter().filter_map(top).collect();
    let mut graph: DiGraphMap<&str, ()> = DiGraphMap::new();
    let mut where_: BTreeMap<(&str, &str), (PathBuf, String)> = BTreeMap::new();
    for source in sources {
        let Some(from) = top(source) else { continue };
        for path in &source.paths {
            let Some(to) = target(path, &tops, &exported) else {
                continue;
            };
            if from != to {
                graph.add_edge(from, to, ());
                let example = (source.file.clone(), path.join("::"));
                where_.entry((from, to)).or_insert(example);
            }
        }
    }
    let circles = tarjan_scc(&graph).into_iter().filter(|scc| scc.len() > 1);
    circles
        .map(|mut scc| {
            scc.sort_unstable();
            let mut text = format!("a circle of {}:", scc.join(", "));
            for ((from, to), (file, path)) in &where_ {
                if scc.contains(from) && scc.contains(to) {
                    text.push_str(&format!(
                        "\n  {from} -> {to}: {} names {path}",
                        file.display()
                    ));
                }
            }
            text
        })
        .collect()
}

fn top(source: &Source) -> Option<&str> {
    source.module.first().map(String::as_str)
}

/// The exports of the root: a name, and the module it is from.
fn exports(sources: &[Source]) -> BTreeMap<&str, &str> {
    let roots = sources.iter().filter(|source| source.module.is_empty());
    let paths = roots.flat_map(|root| &root.paths);
    paths
        .filter_map(|path| match path.as_slice() {
            [first, .., last] if first != "crate" => Some((last.as_str(), first.as_str())),
            _ => None,
        })
        .collect()
}

fn target<'a>(
    path: &'a [String],
    tops: &BTreeSet<&'a str>,
    exported: &BTreeMap<&str, &'a str>,
) -> Option<&'a str> {
    let [first, name, ..] = path else { return None };
    if first != "crate" {
        return None;
    }
    let module = if tops.contains(name.as_str()) {
        name.as_str()
    } else {
        exported.get(name.as_str()).copied()?
    };
    tops.contains(module).then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(module: &str, paths: &[&str]) -> Source {
        let split = |text: &str| -> Vec<String> { text.split("::").map(str::to_owned).collect() };
        Source {
            file: format!("src/{module}.rs").into(),
            module: if module.is_empty() {
                Vec::new()
            } else {
                split(module)
            },
            paths: paths.iter().map(|path| split(path)).collect(),
        }
    }

    #[test]
    fn imports_downwards_are_fine() {
        let sources = [
            source("a", &["crate::b::B", "crate::c::C", "std::fs"]),
            source("a::inner", &["crate::a::A"]),
            source("b", &["crate::c::C"]),
            source("c", &[]),
        ];
        assert_eq!(find(&sources), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_found_with_an_import_for_each_step() {
        let sources = [
            source("a::deep", &["crate::b::B"]),
            source("b", &["crate::c::C"]),
            source("c", &["crate::a::A"]),
            source("d", &["crate::a::A"]),
        ];
        let found = find(&sources);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("a circle of a, b, c:"), "{}", found[0]);
        assert!(
            found[0].contains("c -> a: src/c.rs names crate::a::A"),
            "{}",
            found[0]
        );
        assert!(!found[0].contains("d ->"), "{}", found[0]);
    }

    #[test]
    fn a_circle_over_an_export_of_the_root_is_found() {
        let sources = [
            source("", &["a::A"]),
            source("a", &["crate::b::B"]),
            source("b", &["crate::A"]),
        ];
        assert_eq!(find(&sources).len(), 1);
    }
}
