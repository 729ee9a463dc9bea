//! The permissions and the model of an agent: by argument, by environment, or by a request to its
//! session, as each program wants it.

use std::ffi::OsString;

use serde_json::{Value, json};

use super::super::{Launch, LaunchError};
use super::quirks::Quirks;
use super::withhold::{self, Withhold};

/// The variable with opencode's rules.
const RULES: &str = "OPENCODE_PERMISSION";

/// Arguments in addition to the command's own.
pub(super) fn arguments(launch: &Launch, quirks: &Quirks) -> Result<Vec<String>, LaunchError> {
    let mut arguments = Vec::new();
    if let (Some(flag), Some(model)) = (quirks.model_flag, &launch.model) {
        arguments.extend([flag.to_owned(), model.clone()]);
    }
    if let (Some((flag, tools)), true) = (quirks.own_tools, launch.has_own_tools()) {
        arguments.extend([flag.to_owned(), tools.to_owned()]);
    }
    arguments.extend(withhold::arguments(launch, quirks.withhold)?);
    Ok(arguments)
}

/// The environment, with what the agent may do in it where that is its place.
pub(super) fn environment(launch: &Launch, quirks: &Quirks) -> Vec<(OsString, OsString)> {
    let mut env = launch.env.clone();
    if quirks.withhold == Withhold::Rules {
        let theirs = env.iter().position(|(name, _)| name == RULES);
        let theirs = theirs.map(|at| env.swap_remove(at).1);
        let theirs = theirs.as_ref().and_then(|value| value.to_str());
        let rules = withhold::merged(theirs, withhold::rules(launch));
        env.push((RULES.into(), rules.to_string().into()));
    }
    env
}

/// A request to a new session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub method: &'static str,
    pub params: Value,
    /// Its purpose; if it fails and `required` is set, the agent must not start.
    pub what: String,
    pub required: bool,
}

/// The requests to the session that `opened` describes. An error names the option that it does not
/// offer.
pub(super) fn settings(
    launch: &Launch,
    quirks: &Quirks,
    session: &str,
    opened: &Value,
) -> Result<Vec<Setting>, String> {
    let mut settings = Vec::new();
    if let (Some(model), None) = (&launch.model, quirks.model_flag) {
        settings.push(model_setting(model, session, opened)?);
    }
    let mode = launch.permission_mode.as_deref().unwrap_or("default");
    if launch.reach.is_read_only() && quirks.withhold == Withhold::Nothing && mode != "plan" {
        // The nearest mode; its worktree shows if it kept to it.
        settings.extend(
            mode_setting("plan", session, opened).map(|setting| Setting {
                required: false,
                ..setting
            }),
        );
        return Ok(settings);
    }
    let setting = mode_setting(mode, session, opened);
    match (setting, mode) {
        (Some(setting), _) => settings.push(setting),
        // It would do the work that it should only plan.
        (None, "plan") => return Err("this agent cannot be kept to planning".into()),
        // It asks more often than necessary; that is safe.
        (None, _) => {}
    }
    Ok(settings)
}

fn model_setting(model: &str, session: &str, opened: &Value) -> Result<Setting, String> {
    let what = format!("the model {model}");
    if let Some(offered) = option_values(opened, "model") {
        return if offered.iter().any(|value| value == model) {
            let params = json!({ "sessionId": session, "configId": "model", "value": model });
            Ok(Setting {
                method: "session/set_config_option",
                params,
                what,
                required: true,
            })
        } else {
            let offered = offered.join(", ");
            Err(format!(
                "this agent has no model {model:?}; it has {offered}"
            ))
        };
    }
    let available = opened["models"]["availableModels"].as_array();
    let offered: Vec<&str> = available
        .into_iter()
        .flatten()
        .filter_map(|model| model["modelId"].as_str())
        .collect();
    if offered.contains(&model) {
        return Ok(Setting {
            method: "session/set_model",
            params: json!({ "sessionId": session, "modelId": model }),
            what,
            required: true,
        });
    }
    if offered.is_empty() {
        return Err(
            "this agent does not let others choose its model; set it in its own configuration"
                .into(),
        );
    }
    let offered = offered.join(", ");
    Err(format!(
        "this agent has no model {model:?}; it has {offered}"
    ))
}

pub(super) fn mode_setting(mode: &str, session: &str, opened: &Value) -> Option<Setting> {
    let names: &[&str] = match mode {
        "acceptEdits" => &["acceptedits", "autoedit", "edit"],
        "bypassPermissions" => &["bypasspermissions", "yolo", "fullaccess", "agentfullaccess"],
        "plan" => &["plan", "readonly"],
        "dontAsk" => &["dontask"],
        _ => return None,
    };
    let fits = |id: &&str| {
        let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
        names.contains(&plain.to_lowercase().as_str())
    };
    let (what, required) = (format!("the mode {mode}"), mode == "plan");
    let modes = opened["modes"]["availableModes"].as_array();
    let ids = modes.into_iter().flatten();
    let mut ids = ids.filter_map(|mode| mode["id"].as_str());
    if let Some(id) = ids.find(fits) {
        return Some(Setting {
            method: "session/set_mode",
            params: json!({ "sessionId": session, "modeId": id }),
            what,
            required,
        });
    }
    let values = option_values(opened, "mode")?;
    let value = values.iter().map(String::as_str).find(fits)?;
    Some(Setting {
        method: "session/set_config_option",
        params: json!({ "sessionId": session, "configId": "mode", "value": value }),
        what,
        required,
    })
}

/// The values that a session offers for the option `id`.
fn option_values(opened: &Value, id: &str) -> Option<Vec<String>> {
    let options = option(opened, id)?["options"].as_array()?;
    let values = options.iter().filter_map(|option| option["value"].as_str());
    Some(values.map(str::to_owned).collect())
}

fn option<'a>(opened: &'a Value, id: &str) -> Option<&'a Value> {
    let options = opened["configOptions"].as_array()?;
    options.iter().find(|option| option["id"] == id)
}

/// The model the session uses, as far as it says.
pub(super) fn current_model(opened: &Value) -> Option<String> {
    let current = option(opened, "model").and_then(|option| option["currentValue"].as_str());
    let current = current.or_else(|| opened["models"]["currentModelId"].as_str());
    current.map(str::to_owned)
}

/// The orders that this program cannot follow, in words. Limits are not among them: the host keeps
/// them.
pub(super) fn not_possible(launch: &Launch, quirks: &Quirks) -> Option<String> {
    let mut missing = Vec::new();
    let told = quirks.withhold == Withhold::Nothing;
    for (ordered, what) in [
        (launch.effort.is_some(), "effort"),
        (launch.tools.is_some() && told, "a choice of tools"),
        (
            !launch.disallowed_tools.is_empty() && told,
            "forbidden tools",
        ),
        (!launch.hooks.is_empty(), "hooks of its own"),
    ] {
        if ordered {
            missing.push(what);
        }
    }
    let what = missing.join(", ");
    (!what.is_empty()).then(|| format!("[the protocol cannot tell this agent: {what}]\n"))
}
