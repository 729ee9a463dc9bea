//! Fuzz target: definitions of agents, which repositories contain; see [`store::fuzz`].

use super::read::{self, Mistake};
use super::{front_matter, json};

/// A Markdown file, and the JSON form of the same.
pub(crate) fn definition(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count() + 1;
    let check = |mistake: &Mistake| {
        assert!(
            mistake.line.is_none_or(|line| (1..=lines).contains(&line)),
            "{mistake:?}"
        );
        assert!(mistake.why.len() <= 2 * data.len() + 1024, "{mistake:?}");
    };
    match read::markdown(&text) {
        Ok(Some(reading)) => {
            reading.ignored.iter().for_each(check);
            assert!(reading.definition.to_json().is_object());
        }
        Ok(None) => {}
        Err(mistake) => check(&mistake),
    }
    if let Some((fields, body)) = front_matter(&text) {
        assert!(text.ends_with(body) && fields.len() <= text.len());
    }
    match json::entries(&text) {
        Ok(entries) => {
            for (name, value) in entries {
                match read::json(&name, &value) {
                    Ok(reading) => assert_eq!(reading.definition.name.as_str(), name),
                    Err(mistake) => check(&mistake),
                }
            }
        }
        Err(mistake) => check(&mistake),
    }
}
