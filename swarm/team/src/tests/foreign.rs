use store::Explain;

use super::*;

/// A roster of another tool, with keys that ccb does not know, at every level.
const FOREIGN: &str = r#"{
  "zeta": {
    "deep": [
      null,
      1e-7
    ]
  },
  "name": "fixers",
  "description": null,
  "members": [
    {
      "name": "bob",
      "agentId": "bob@fixers",
      "isActive": null,
      "prompt": "do it",
      "joinedAt": 1700000000000.5,
      "odd": {
        "a": 12345678901234567
      }
    },
    {
      "name": "carol",
      "colour": "mauve"
    }
  ],
  "leadProcess": {
    "pid": 12
  },
  "ccb": {
    "future": [
      1
    ],
    "v": 1
  }
}
"#;

#[test]
fn unknown_keys_survive_at_every_level_and_null_is_absent() {
    let scene = Scene::new();
    let team = scene.foreign(FOREIGN);
    let roster = team.roster().unwrap();
    assert_eq!(roster.description, None);
    assert_eq!(roster.members[0].joined_at, Some(1_700_000_000_000));
    assert!(!roster.members[0].is_active);
    assert_eq!(roster.members[1].agent_id, "carol@fixers");
    team.set_active("bob", true).unwrap();
    let expected = FOREIGN.replace("\"isActive\": null", "\"isActive\": true");
    assert_eq!(String::from_utf8(bytes(&team)).unwrap(), expected);
    team.join(&agent("dora")).unwrap();
    team.leave("dora").unwrap();
    let mut left = on_disk(&team);
    assert_eq!(left["ccb"]["colorsGiven"], 3);
    left["ccb"].as_object_mut().unwrap().remove("colorsGiven");
    assert_eq!(left, serde_json::from_str::<Value>(&expected).unwrap());
}

#[test]
fn a_team_of_a_tool_that_knows_nothing_of_us_can_be_joined() {
    let scene = Scene::new();
    let team = scene.foreign(r#"{"name":"fixers","createdAt":1,"members":null}"#);
    let (roster, member) = team.join(&agent("a")).unwrap();
    assert_eq!(roster.members, [member]);
    assert_eq!(on_disk(&team)["ccb"]["v"], 1);
}

#[test]
fn what_is_no_roster_says_why_and_is_left_alone() {
    let scene = Scene::new();
    for (text, why) in [
        ("", "empty"),
        ("{", "EOF"),
        ("[]", "not a JSON object"),
        (r#"{"members":{}}"#, "\"members\" must be a list"),
        (r#"{"members":[1]}"#, "not a JSON object"),
        (r#"{"members":[{}]}"#, "no \"name\""),
        (
            r#"{"members":[{"name":"a","isActive":1}]}"#,
            "\"members.isActive\" must be true or false",
        ),
        (r#"{"ccb":{"v":"x"}}"#, "\"ccb.v\" must be a number"),
        (r#"{"createdAt":"x"}"#, "\"createdAt\" must be a number"),
    ] {
        let name = Name::new("team", "fixers").unwrap();
        let error = Document::parse(&name, text.as_bytes()).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    let team = scene.foreign("{ half");
    for error in [
        team.roster().unwrap_err(),
        team.create(&NewTeam::default()).unwrap_err(),
        team.join(&agent("a")).unwrap_err(),
    ] {
        assert!(matches!(error, TeamError::Corrupt { .. }), "{error:?}");
    }
    assert_eq!(bytes(&team), b"{ half");
}

#[test]
fn a_later_format_is_read_and_not_written() {
    let scene = Scene::new();
    let team = scene.foreign(r#"{"members":[{"name":"a"}],"ccb":{"v":2}}"#);
    assert_eq!(team.roster().unwrap().members.len(), 1);
    let before = bytes(&team);
    for error in [
        team.join(&agent("b")).unwrap_err(),
        team.leave("a").unwrap_err(),
        team.begin_delete(true).unwrap_err(),
    ] {
        assert_eq!(error.kind(), "newer_version");
    }
    assert_eq!(bytes(&team), before);
}
