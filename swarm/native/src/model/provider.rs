//! The properties of a service: addresses of requests, secrets, and the size of the context.

use std::ffi::{OsStr, OsString};

use store::secret_filter::SecretFilter;
use swarm::provider::{Provider, Wire};
use swarm::starter::Starter;

/// The variables that hold keys by themselves; no command of an agent gets them.
pub(crate) const KEY_VARIABLES: [&str; 3] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
];

/// The URL of requests.
pub(super) fn url(provider: &Provider) -> String {
    let base = provider.base_url.trim_end_matches('/');
    let after_scheme = base.split_once("://").map_or(base, |(_, rest)| rest);
    let has_path = after_scheme.contains('/');
    let (version, what) = match provider.wire {
        // Anthropic's own variable never has the version in it.
        Wire::Anthropic => (!base.ends_with("/v1"), "messages"),
        Wire::Chat => (!has_path, "chat/completions"),
        Wire::Responses => (!has_path, "responses"),
    };
    let version = if version { "/v1" } else { "" };
    format!("{base}{version}/{what}")
}

/// Takes out of texts what must be in none: keys, and what else is secret in `env`.
pub(crate) fn secret_filter(provider: &Provider, env: &[(OsString, OsString)]) -> SecretFilter {
    let named = provider.secret_variables().chain(KEY_VARIABLES);
    let named: Vec<String> = named.map(str::to_owned).collect();
    Starter::with_environment(env.to_vec(), Vec::new(), &named).secret_filter()
}

/// Maximum tokens of a request and its answer together.
pub(crate) fn context_window(provider: &Provider) -> u64 {
    provider.context_window.unwrap_or_else(|| {
        let model = provider.model.to_lowercase();
        match () {
            () if model.contains("claude") => 200_000,
            () if model.contains("gpt-4.1") => 1_000_000,
            () if model.contains("gpt-5") => 400_000,
            () => 128_000,
        }
    })
}

/// Maximum tokens of an answer, where a request has to contain it.
pub(crate) fn max_output(provider: &Provider) -> u64 {
    provider.max_output.unwrap_or_else(|| {
        let model = provider.model.to_lowercase();
        // The length that every Claude of that family can write.
        let most: u64 = match () {
            () if model.contains("claude-3-5") => 8_192,
            () if model.contains("claude-3") => 4_096,
            () => 32_000,
        };
        most.min(context_window(provider) / 2)
    })
}

/// A variable that is set to something.
pub(crate) fn variable(env: &[(OsString, OsString)], name: &str) -> Option<String> {
    let found = env.iter().find(|(known, _)| known == OsStr::new(name))?;
    let value = found.1.to_str()?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
