//! Names of OpenTelemetry's conventions.

use store::text::clean_cut;
use swarm::run::Meta;

use super::model::{Attribute, Value};

/// Maximum characters of a text in an attribute.
pub(super) const TEXT: usize = 200;

/// The kind of error a span ended with.
pub(super) fn error_type(kind: Option<&'static str>) -> Option<Attribute> {
    kind.map(|kind| ("error.type", Value::Text(kind.to_owned())))
}

/// The attributes of the conventions for generative AI.
pub(super) fn gen_ai(operation: &str, model: Option<&str>, meta: &Meta) -> Vec<Attribute> {
    let mut all = vec![
        ("gen_ai.operation.name", Value::Text(operation.to_owned())),
        ("gen_ai.provider.name", Value::Text(provider(model, meta))),
    ];
    if let Some(model) = model {
        all.push(("gen_ai.request.model", Value::Text(clean_cut(model, TEXT))));
    }
    all
}

/// The provider of a model, by its name in the conventions if there is one.
fn provider(model: Option<&str>, meta: &Meta) -> String {
    let model = model.unwrap_or_default().to_ascii_lowercase();
    let runtime = meta.runtime.name.as_str();
    let begins = |with: &[&str]| with.iter().any(|with| model.starts_with(with));
    let known = match () {
        () if begins(&["claude", "anthropic"]) => "anthropic",
        () if begins(&["gpt", "o1", "o3", "o4", "codex", "openai"]) => "openai",
        () if begins(&["gemini"]) => "gcp.gemini",
        () if begins(&["deepseek"]) => "deepseek",
        () if begins(&["mistral", "codestral", "devstral"]) => "mistral_ai",
        () if begins(&["grok"]) => "x_ai",
        () if runtime == "claude" => "anthropic",
        () if runtime == "codex" => "openai",
        () => runtime,
    };
    clean_cut(known, TEXT)
}
