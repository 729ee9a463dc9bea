//! `cli` reads arguments and prints. The crates below it decide what happens, and when.

use crate::sources::Source;

/// Where something is decided, and the paths to it that `cli` may not name. The beginning of a path
/// stands for all below it.
pub const DENIED: &[(&str, &[&str])] = &[
    (
        "how a session is directed is coordinator::session's business",
        &["director", "fanout::Equipment", "runs::progress"],
    ),
    (
        "what an agent is given is coordinator::agent's business",
        &[
            "coordinator::agent::PlanCrew",
            "coordinator::agent::TaskCrew",
            "runs::DefinedHooks",
            "runs::Grants",
            "runs::LaunchPlan",
            "runs::Prove",
            "runs::Spawn",
            "runs::Surroundings",
            "runs::WorksIn",
            "swarm::environment",
            "swarm::fork",
            "swarm::model",
            "swarm::starter",
        ],
    ),
    (
        "starting and supervising agents is the business of runs",
        &[
            "swarm::process",
            "swarm::run::LaunchPlan",
            "swarm::run::RuntimeSpec",
            "swarm::run::active",
            "swarm::runtime",
        ],
    ),
    (
        "who acts is project::workplace's business",
        &["runs::identity"],
    ),
];

/// The denied paths that the sources name.
pub fn denied(sources: &[Source], list: &[(&str, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for path in &source.paths {
            let path = path.join("::");
            let is_below = |denied: &&&str| {
                let rest = path.strip_prefix(**denied);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            for (why, paths) in list {
                if paths.iter().any(|denied| is_below(&denied)) {
                    found.push(format!("{} names {path}: {why}", source.file.display()));
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
        let found = denied(&[source], &[("it decides", &["x::y"])]);
        assert_eq!(found, ["src/a.rs names x::y::Z: it decides"]);
    }
}
