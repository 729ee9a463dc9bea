//! The arguments of a call, checked against the tool's schema.
//!
//! It checks only as much of JSON Schema as our own schemas use. Every error names the argument and
//! its expected value, so that a model can correct the call.

use serde_json::{Map, Value};
use store::Failure;

use super::tool::Definition;

/// Arguments that fit the tool's schema.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Checks `given` against the tool's schema. `null` means absent, and an id may be a number:
    /// clients that guess types from the words of a command line send ids that way.
    pub(crate) fn check(tool: &Definition, given: Map<String, Value>) -> Result<Self, Failure> {
        let given: Map<String, Value> = given
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let value = if IDS.contains(&name.as_str()) {
                    id(value)
                } else {
                    value
                };
                (name, value)
            })
            .collect();
        let schema = Value::Object(tool.input_schema.clone());
        let given = Value::Object(given);
        match (check(&schema, &given, ""), given) {
            (Ok(()), Value::Object(given)) => Ok(Self(given)),
            (Err(problem), _) => {
                let message = format!("{}: {}", tool.name, problem.what);
                let error = Failure::usage("invalid_arguments", message);
                Err(error.with_hint(problem.hint))
            }
            (Ok(()), _) => Err(Failure::internal("arguments are an object")),
        }
    }

    /// A text; empty if it is absent, which only optional ones can be.
    pub(crate) fn text(&self, name: &str) -> String {
        self.optional(name).unwrap_or_default()
    }

    pub(crate) fn optional(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let list = self.0.get(name).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    pub(crate) fn objects(&self, name: &str) -> impl Iterator<Item = &Map<String, Value>> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object)
    }

    pub(crate) fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.0.get(name)?.as_object()
    }

    /// True if `name` is the only argument.
    pub(crate) fn only(&self, name: &str) -> bool {
        self.0.keys().all(|key| key == name)
    }
}

/// Arguments that are ids, or lists of ids.
const IDS: [&str; 5] = ["taskId", "task_id", "shell_id", "addBlocks", "addBlockedBy"];

fn id(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_u64() => number.to_string().into(),
        Value::Array(items) => items.into_iter().map(id).collect(),
        other => other,
    }
}

/// An error in an argument.
struct Problem {
    what: String,
    hint: String,
}

fn check(schema: &Value, value: &Value, at: &str) -> Result<(), Problem> {
    if let Some(options) = schema["anyOf"].as_array() {
        return check_any(options, value, at);
    }
    let kind = schema["type"].as_str().unwrap_or("object");
    if !has_type(kind, value) {
        let what = format!("{} is {}, not {}", shown(at), a(type_of(value)), a(kind));
        let hint = format!("give {} as {}", shown(at), a(kind));
        return Err(Problem { what, hint });
    }
    if let (Some(options), Some(given)) = (schema["enum"].as_array(), value.as_str()) {
        let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
        if !options.contains(&given) {
            let what = format!("{} cannot be {given:?}", shown(at));
            let hint = match store::nearest(given, options.iter().copied()) {
                Some(near) => format!("did you mean {near:?}? It takes {}", options.join(", ")),
                None => format!("it takes {}", options.join(", ")),
            };
            return Err(Problem { what, hint });
        }
    }
    if let (Some(number), Some(max)) = (value.as_u64(), schema["maximum"].as_u64())
        && number > max
    {
        let what = format!("{} is {number}, and the most is {max}", shown(at));
        let hint = format!("give {max} or less");
        return Err(Problem { what, hint });
    }
    if let Some(items) = value.as_array() {
        for (n, item) in items.iter().enumerate() {
            check(&schema["items"], item, &format!("{at}[{n}]"))?;
        }
    }
    match value.as_object() {
        Some(object) => check_object(schema, object, at),
        None => Ok(()),
    }
}

fn check_object(schema: &Value, object: &Map<String, Value>, at: &str) -> Result<(), Problem> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    let takes = || match properties.is_empty() {
        true => "it takes no arguments".to_owned(),
        false => {
            let names: Vec<&str> = properties.keys().map(String::as_str).collect();
            format!("it takes {}", names.join(", "))
        }
    };
    let inner = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    for (name, value) in object {
        let Some(schema) = properties.get(name) else {
            let what = format!("there is no argument {:?}", inner(name));
            let hint = match store::nearest(name, properties.keys().map(String::as_str)) {
                Some(near) => format!("did you mean {near:?}? {}", capital(&takes())),
                None => takes(),
            };
            return Err(Problem { what, hint });
        };
        check(schema, value, &inner(name))?;
    }
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !object.contains_key(name) {
            let what = format!("the argument {:?} is missing", inner(name));
            return Err(Problem {
                what,
                hint: takes(),
            });
        }
    }
    Ok(())
}

/// Reports the error in the option of the right type, if there is one.
fn check_any(options: &[Value], value: &Value, at: &str) -> Result<(), Problem> {
    let kinds: Vec<&str> = options.iter().filter_map(|o| o["type"].as_str()).collect();
    let fitting = options.iter().find(|option| {
        option["type"]
            .as_str()
            .is_some_and(|kind| has_type(kind, value))
    });
    match fitting {
        Some(option) => check(option, value, at),
        None => {
            let kinds = kinds.iter().map(|kind| a(kind)).collect::<Vec<_>>();
            let kinds = kinds.join(" or ");
            let what = format!("{} is {}, not {kinds}", shown(at), a(type_of(value)));
            let hint = format!("give {} as {kinds}", shown(at));
            Err(Problem { what, hint })
        }
    }
}

fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn a(kind: &str) -> String {
    match kind {
        "null" => "null".to_owned(),
        "array" | "object" | "integer" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

fn shown(at: &str) -> String {
    match at {
        "" => "the arguments".to_owned(),
        at => format!("{at:?}"),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
