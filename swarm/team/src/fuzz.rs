//! The fuzz targets of this crate; see [`store::fuzz`].

use store::fuzz::Target;
use store::name::Name;

use crate::format::Document;

/// The targets of this crate.
pub const TARGETS: &[Target] = &[("roster", roster)];

/// The roster of a team, which other tools write, too.
fn roster(data: &[u8]) {
    let Ok(team) = Name::new("team", "t") else {
        return;
    };
    let Ok(mut document) = Document::parse(&team, data) else {
        return;
    };
    let bytes = document.to_bytes();
    let again = Document::parse(&team, &bytes).map(|again| again.to_bytes());
    assert_eq!(again.as_ref(), Ok(&bytes), "changed by a rewrite");
    let read = document.read(&team);
    let members = read.as_ref().map_or(0, |roster| roster.members.len());
    assert!(read.is_ok_and(|roster| roster.to_json().is_object()));
    document.take_color();
    document.add_member(serde_json::json!({ "name": "new" }));
    let read = document.read(&team).map(|roster| roster.members.len());
    assert_eq!(read.ok(), Some(members + 1));
    document.remove_member("new");
    assert!(
        document
            .read(&team)
            .is_ok_and(|roster| roster.members.len() <= members)
    );
}
