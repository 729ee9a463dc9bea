//! The findings of a SARIF log, as things to make tasks of.

use serde_json::Value;

use super::error::FanoutError;
use super::items::{Item, Origin, as_text, item, wrong};
use super::paths::Checkout;

/// Maximum depth of URI bases that build on each other.
const MOST_BASES: usize = 8;

/// The findings of all runs, except those that were suppressed, fixed, or are no problem.
pub(super) fn sarif(
    what: &str,
    bytes: &[u8],
    checkout: &Checkout,
) -> Result<Vec<Item>, FanoutError> {
    let log: Value = serde_json::from_str(as_text(what, bytes)?)
        .map_err(|error| wrong(what, format!("it is not a SARIF log: {error}")))?;
    let Some(runs) = log.get("runs").and_then(Value::as_array) else {
        return Err(wrong(what, "it is not a SARIF log: it has no \"runs\""));
    };
    match log.get("version").and_then(Value::as_str) {
        Some("2.1.0") => {}
        other => {
            let version = other.unwrap_or("none");
            return Err(wrong(
                what,
                format!("its SARIF version is {version}, known is 2.1.0"),
            ));
        }
    }
    let mut items = Vec::new();
    for run in runs {
        let results = run.get("results").and_then(Value::as_array);
        for result in results.into_iter().flatten() {
            items.extend(finding(result, run, checkout));
        }
    }
    Ok(items)
}

fn finding(result: &Value, run: &Value, checkout: &Checkout) -> Option<Item> {
    let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str);
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_u64);
    let is_list = |key: &str| result.get(key).and_then(Value::as_array);
    let suppressed = is_list("suppressions").is_some_and(|list| !list.is_empty());
    let problem = text("/kind").is_none_or(|kind| kind == "fail");
    if suppressed || !problem || text("/baselineState") == Some("absent") {
        return None;
    }
    let tool = run.pointer("/tool/driver/name").and_then(Value::as_str);
    let tool = tool.unwrap_or_default();
    let entry = rule_of(result, run);
    let of_rule = |pointer: &str| entry.and_then(|rule| rule.pointer(pointer)?.as_str());
    let rule = text("/ruleId")
        .or(text("/rule/id"))
        .or(of_rule("/id"))
        .unwrap_or_default();
    let about = of_rule("/shortDescription/text").or(of_rule("/fullDescription/text"));
    let message = text("/message/text").or(text("/message/markdown"));
    let message = checkout.without_top(message.or(about).unwrap_or_default());
    let level = text("/level")
        .or(of_rule("/defaultConfiguration/level"))
        .unwrap_or("warning");
    let mut one = Item::default();
    let at = "/locations/0/physicalLocation";
    let place = result.pointer(&format!("{at}/artifactLocation"));
    let path = place.map(|place| path_of(place, run, checkout, &mut one));
    let path = path.unwrap_or_default();
    let line = number(&format!("{at}/region/startLine"));
    let column = number(&format!("{at}/region/startColumn"));
    let shown = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
    let label = match line {
        Some(line) => format!("{rule}-{path}-{line}"),
        None => format!("{rule}-{path}"),
    };
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    one.origin = Some(Origin {
        file: some(&path),
        line,
        column,
        rule: some(rule),
        level: some(level),
        tool: some(tool),
        message: some(&message),
        rule_text: about.map(str::to_owned),
        rule_uri: of_rule("/helpUri").map(str::to_owned),
    });
    let values = item(
        &label,
        [
            ("rule", rule.to_owned()),
            ("message", message),
            ("level", level.to_owned()),
            ("tool", tool.to_owned()),
            ("path", path),
            ("line", shown(line)),
            ("column", shown(column)),
        ],
    );
    Some(Item {
        label: values.label,
        values: values.values,
        ..one
    })
}

/// The tool's description of a finding's rule.
fn rule_of<'r>(result: &Value, run: &'r Value) -> Option<&'r Value> {
    let rules = run.pointer("/tool/driver/rules")?.as_array()?;
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_u64);
    let by_index = number("/ruleIndex").or_else(|| number("/rule/index"));
    let by_index = by_index.and_then(|index| rules.get(usize::try_from(index).ok()?));
    by_index.or_else(|| {
        let id = result.get("ruleId").and_then(Value::as_str)?;
        let is_it = |rule: &&Value| rule.get("id").and_then(Value::as_str) == Some(id);
        rules.iter().find(is_it)
    })
}

/// The file of a finding, from the top of the repository.
fn path_of(place: &Value, run: &Value, checkout: &Checkout, item: &mut Item) -> String {
    // A location that only has a number refers to the list of all files.
    let index = place.get("index").and_then(Value::as_u64);
    let listed = index.and_then(|index| {
        let all = run.get("artifacts").and_then(Value::as_array)?;
        all.get(usize::try_from(index).ok()?)?.get("location")
    });
    let place = match place.get("uri") {
        Some(_) => place,
        None => listed.unwrap_or(place),
    };
    let Some(uri) = place.get("uri").and_then(Value::as_str) else {
        return String::new();
    };
    if uri.is_empty() {
        return String::new();
    }
    let base = place.get("uriBaseId").and_then(Value::as_str);
    let Some(base) = base.and_then(|id| base_uri(id, run, MOST_BASES)) else {
        return item.inside(uri, checkout.relative_uri(uri));
    };
    let whole = match uri.starts_with("file:") || uri.starts_with('/') {
        true => uri.to_owned(),
        false => format!("{}/{uri}", base.trim_end_matches('/')),
    };
    let relative = checkout.relative_uri(&whole).or_else(|why| {
        // The base is that of the machine the tool ran on; here it is the top.
        let here = checkout.relative_uri(uri).ok();
        here.filter(|path| checkout.holds(path)).ok_or(why)
    });
    item.inside(&whole, relative)
}

/// The URI of a base; `None` if the log leaves it open: then it is the top of the repository.
fn base_uri(id: &str, run: &Value, left: usize) -> Option<String> {
    let base = run.get("originalUriBaseIds")?.get(id)?;
    let uri = base.get("uri").and_then(Value::as_str)?;
    let below = base.get("uriBaseId").and_then(Value::as_str);
    match below.filter(|_| left > 0 && !uri.starts_with("file:")) {
        Some(id) => {
            let start = base_uri(id, run, left - 1).unwrap_or_default();
            let start = start.trim_end_matches('/');
            Some(match start {
                "" => uri.to_owned(),
                start => format!("{start}/{uri}"),
            })
        }
        None => Some(uri.to_owned()),
    }
}
