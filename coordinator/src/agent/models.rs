//! The model of an agent, by the name its program knows.

use project::workplace::Workplace;
use runs::env;
use swarm::definitions::{Definition, PermissionMode};
use swarm::model::ModelChoice;
use swarm::run::RuntimeSpec;
use swarm::runtime::RuntimeKind;

use super::describe::Wish;

/// Names of models that only Claude Code knows.
const CLAUDE_ALIASES: [&str; 4] = ["haiku", "opus", "opusplan", "sonnet"];

/// The requested model of an agent, by any name.
pub(super) fn model(wish: &Wish, definition: &Definition, workplace: &Workplace) -> Option<String> {
    let everywhere = env::var(env::SUBAGENT_MODEL);
    let parent = workplace
        .run()
        .and_then(|id| workplace.agents().ok()?.find(id).ok());
    let plan = PermissionMode::Plan.as_str();
    let parent_plans = parent
        .as_ref()
        .is_some_and(|meta| meta.permission_mode.as_deref() == Some(plan));
    let parent = parent.and_then(|meta| meta.model);
    let choice = ModelChoice {
        everywhere: everywhere.as_deref(),
        call: wish.model.as_deref(),
        definition: definition.model.as_deref(),
        parent: parent.as_deref(),
        parent_plans,
        fork: false,
        coordinator: wish.coordinator,
    };
    choice.resolve()
}

/// The model by the name its runtime knows. `haiku` and similar names have a meaning in Claude Code
/// alone: for other programs the settings map them, or the program decides, with a note.
pub(super) fn known_model(
    model: Option<String>,
    runtime: &RuntimeSpec,
    workplace: &Workplace,
) -> (Option<String>, Option<String>) {
    let Some(alias) = model else {
        return (None, None);
    };
    let mapped = workplace.agent_settings().models.get(&runtime.name);
    if let Some(known) = mapped.and_then(|models| models.get(&alias)) {
        return (Some(known.clone()), None);
    }
    match runtime.kind {
        RuntimeKind::Codex | RuntimeKind::Acp if CLAUDE_ALIASES.contains(&alias.as_str()) => {
            (None, Some(alias))
        }
        _ => (Some(alias), None),
    }
}
