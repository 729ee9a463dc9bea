//! The tools as clients see them. `tools.json` has their arguments, for the list and for the check.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value};
use store::Failure;

use coordinator::agent::Role;

/// A tool's name, purpose and arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Map<String, Value>,
}

/// All tools, by name.
#[derive(Debug)]
pub(crate) struct Catalogue(Arc<Tools>);

type Tools = BTreeMap<String, Definition>;

/// The catalogues read so far: a process of many agents serves each of them.
static KNOWN: Mutex<Vec<(Role, Arc<Tools>)>> = Mutex::new(Vec::new());

impl Catalogue {
    /// The tools that `role` sees.
    pub(crate) fn new(role: Role) -> Result<Self, Failure> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tools)) = known.iter().find(|(of, _)| *of == role) {
            return Ok(Self(Arc::clone(tools)));
        }
        let tools = Arc::new(Self::read(role)?);
        known.push((role, Arc::clone(&tools)));
        Ok(Self(tools))
    }

    fn read(role: Role) -> Result<Tools, Failure> {
        let all: Vec<Definition> = serde_json::from_str(include_str!("tools.json"))
            .map_err(|error| Failure::internal(format!("tools.json: {error}")))?;
        let mut tools: Tools = all
            .into_iter()
            .map(|tool| (tool.name.clone(), tool))
            .collect();
        if let Some(properties) = tools
            .get_mut("Agent")
            .and_then(|agent| agent.input_schema.get_mut("properties"))
            .and_then(Value::as_object_mut)
        {
            for name in role.agent_arguments_without() {
                properties.shift_remove(*name);
            }
        }
        Ok(tools)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Definition> {
        self.0.get(name)
    }
}
