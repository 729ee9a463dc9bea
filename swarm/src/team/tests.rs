use serde_json::{Value, json};
use store::StoreError;
use store::clock::ManualClock;
use store::home::create_private_dir;
use tempfile::TempDir;

use super::*;
use crate::agent_id::AgentId;

struct Scene {
    dir: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn home(&self) -> Home {
        Home::new(self.dir.path().to_owned()).unwrap()
    }

    fn team_in(&self, name: &str, repository: Option<&str>) -> Team {
        let options = TeamOptions {
            repository: repository.map(str::to_owned),
            durability: Durability::Relaxed,
            clock: Arc::new(ManualClock::at(1_700_000_000_007)),
            ..TeamOptions::default()
        };
        Team::new(&self.home(), Name::new("team", name).unwrap(), options)
    }

    fn team(&self) -> Team {
        self.team_in("fixers", None)
    }

    fn created(&self) -> Team {
        let team = self.team();
        team.create(&NewTeam::default()).unwrap();
        team
    }

    /// A team whose roster somebody else wrote.
    fn foreign(&self, config: &str) -> Team {
        let team = self.team();
        create_private_dir(team.dir()).unwrap();
        atomic::replace(
            team.dir(),
            &team.config_path(),
            config.as_bytes(),
            Durability::Relaxed,
        )
        .unwrap();
        team
    }
}

fn bytes(team: &Team) -> Vec<u8> {
    std::fs::read(team.config_path()).unwrap()
}

fn on_disk(team: &Team) -> Value {
    serde_json::from_slice(&bytes(team)).unwrap()
}

fn agent(name: &str) -> NewMember {
    NewMember::new(Name::new("agent", name).unwrap())
}

#[test]
fn a_new_team_has_its_lead_and_nobody_else() {
    let scene = Scene::new();
    let team = scene.team_in("fixers", Some("/repo/.git"));
    let new = NewTeam {
        description: Some("make it pass".into()),
        cwd: Some("/repo".into()),
        lead_session_id: Some("s1".into()),
    };
    let roster = team.create(&new).unwrap();
    assert_eq!(roster, team.roster().unwrap());
    assert_eq!(
        on_disk(&team),
        json!({
            "name": "fixers",
            "createdAt": 1_700_000_000_007_i64,
            "members": [{
                "agentId": "team-lead@fixers", "name": "team-lead", "agentType": "team-lead",
                "joinedAt": 1_700_000_000_007_i64, "tmuxPaneId": "", "cwd": "/repo",
                "subscriptions": [], "backendType": "ccb", "isActive": false
            }],
            "ccb": {"v": 1, "repository": "/repo/.git"},
            "description": "make it pass",
            "leadAgentId": "team-lead@fixers",
            "leadSessionId": "s1"
        })
    );
    let again = team.create(&new).unwrap_err();
    assert!(matches!(again, TeamError::Exists { .. }));
}

#[test]
fn colours_go_round_and_those_who_leave_do_not_shift_them() {
    let scene = Scene::new();
    let team = scene.created();
    let mut given = Vec::new();
    for n in 0..10 {
        let (_, member) = team.join(&agent(&format!("a{n}"))).unwrap();
        given.push(member.color.unwrap());
        if n == 3 {
            team.leave("a1").unwrap();
        }
    }
    let expected: Vec<&str> = COLORS.iter().chain(&COLORS[..2]).copied().collect();
    assert_eq!(given, expected);
    // The first to join after another tool has added somebody.
    let foreign = Scene::new();
    let team = foreign.foreign(r#"{"members":[{"name":"team-lead"},{"name":"x"}]}"#);
    let (_, member) = team.join(&agent("y")).unwrap();
    assert_eq!(member.color.as_deref(), Some(COLORS[1]));
}

#[test]
fn names_are_unique_whatever_their_case_and_some_are_taken() {
    let scene = Scene::new();
    let team = scene.created();
    team.join(&agent("Alice")).unwrap();
    let before = bytes(&team);
    let kind = |name: &str| team.join(&agent(name)).unwrap_err().kind();
    assert_eq!(kind("Alice"), "already_member");
    assert_eq!(kind("aLICE"), "bad_name");
    for reserved in ["team-lead", "Team-Lead", "user", "USER", "a.JSON"] {
        assert_eq!(kind(reserved), "bad_name");
    }
    assert_eq!(bytes(&team), before);
    // A member can be spoken to in any case; its name stays as it was given.
    assert_eq!(team.set_mode("alice", "plan").unwrap().name, "Alice");
    let clash = scene
        .team_in("Fixers", None)
        .create(&NewTeam::default())
        .unwrap_err();
    assert!(matches!(
        clash,
        TeamError::Store(StoreError::NameClash { .. })
    ));
}

/// What another tool wrote, with keys nobody of us knows, at every level.
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
        (r#"{"members":{}}"#, "\"members\" is not a list"),
        (r#"{"members":[1]}"#, "not a JSON object"),
        (r#"{"members":[{}]}"#, "no \"name\""),
        (
            r#"{"members":[{"name":"a","isActive":1}]}"#,
            "\"members.isActive\" is not true or false",
        ),
        (r#"{"ccb":{"v":"x"}}"#, "\"ccb.v\" is not a number"),
        (r#"{"createdAt":"x"}"#, "\"createdAt\" is not a number"),
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

#[test]
fn a_team_belongs_to_one_repository() {
    let scene = Scene::new();
    let here = scene.team_in("fixers", Some("/one/.git"));
    here.create(&NewTeam::default()).unwrap();
    here.join(&agent("a")).unwrap();
    let before = bytes(&here);
    let there = scene.team_in("fixers", Some("/two/.git"));
    for error in [
        there.enter().unwrap_err(),
        there.join(&agent("b")).unwrap_err(),
        there.leave("a").unwrap_err(),
        there.set_active("a", true).unwrap_err(),
        there.begin_delete(true).unwrap_err(),
        there.finish_delete().unwrap_err(),
    ] {
        assert_eq!(error.kind(), "other_repository");
    }
    assert_eq!(bytes(&here), before);
    there.roster().unwrap();
    // From outside every repository.
    scene.team().leave("a").unwrap();
}

#[test]
fn members_change_but_the_lead_stays() {
    let scene = Scene::new();
    let team = scene.created();
    let run = AgentId::random();
    team.join(&agent("a")).unwrap();
    let update = MemberUpdate {
        is_active: Some(true),
        mode: Some("plan".into()),
        worktree_path: Some(Some("/tree".into())),
        run: Some(run.clone()),
        ..MemberUpdate::default()
    };
    let member = team.update("a", &update).unwrap();
    assert!(member.is_active);
    assert_eq!(member.mode.as_deref(), Some("plan"));
    assert_eq!(member.worktree_path.as_deref(), Some("/tree"));
    assert_eq!(member.run.as_deref(), Some(run.as_str()));
    let update = MemberUpdate {
        worktree_path: Some(None),
        ..MemberUpdate::default()
    };
    let member = team.update("a", &update).unwrap();
    assert_eq!((member.worktree_path, member.is_active), (None, true));
    assert_eq!(team.leave("team-lead").unwrap_err().kind(), "lead_stays");
    let TeamError::NoSuchMember { nearest, .. } = team.leave("aa").unwrap_err() else {
        panic!("it has no such member");
    };
    assert_eq!(nearest, ["a"]);
}

#[test]
fn the_living_are_told_with_the_reason() {
    let scene = Scene::new();
    let team = scene.created();
    let run = AgentId::random();
    for name in ["runs", "reads", "joined", "ended", "away"] {
        team.join(&agent(name)).unwrap();
    }
    let named = MemberUpdate {
        run: Some(run.clone()),
        ..MemberUpdate::default()
    };
    team.update("runs", &named).unwrap();
    team.set_active("joined", true).unwrap();
    team.set_active("ended", true).unwrap();
    let hold = |part: &str, lock: &str| {
        create_private_dir(&team.dir().join(part)).unwrap();
        let path = team.dir().join(part).join(lock);
        FileLock::exclusive(&path, "it", DEFAULT_TIMEOUT).unwrap()
    };
    let _run = hold(&format!("runs/{run}"), "alive.lock");
    let _stranger = hold("runs/a0123456789abcdef", "alive.lock");
    let _reader = hold("inboxes/reads", "consumer.lock");
    drop(hold("runs/ended@fixers", "alive.lock"));
    let living = team.living(&team.roster().unwrap()).unwrap();
    let told: Vec<(&str, Life)> = living.iter().map(|one| (&*one.name, one.why)).collect();
    assert_eq!(
        told,
        [
            ("runs", Life::Running),
            ("reads", Life::Reading),
            ("joined", Life::Joined),
            ("a0123456789abcdef", Life::Running),
        ]
    );
    let before = bytes(&team);
    assert_eq!(
        team.begin_delete(false).unwrap_err().kind(),
        "members_alive"
    );
    assert_eq!(bytes(&team), before);
    let (_, living) = team.begin_delete(true).unwrap();
    assert_eq!(living.len(), 4);
}

#[test]
fn nobody_joins_a_team_that_is_being_deleted() {
    let scene = Scene::new();
    let team = scene.created();
    team.begin_delete(false).unwrap();
    assert_eq!(team.join(&agent("a")).unwrap_err().kind(), "deleting");
    let again = team.create(&NewTeam::default()).unwrap_err();
    assert_eq!(again.kind(), "deleting");
    team.cancel_delete().unwrap();
    team.join(&agent("a")).unwrap();
    let late = team.finish_delete().unwrap_err();
    assert_eq!(late.kind(), "changed_meanwhile");
}

#[test]
fn a_deletion_leaves_the_lock_and_what_is_not_ours() {
    let scene = Scene::new();
    let team = scene.created();
    let tree = |part: &str| create_private_dir(&team.dir().join(part)).unwrap();
    for part in ["inboxes/a", "inboxes/b", "runs/a@fixers/deep", "requests"] {
        tree(part);
    }
    let foreign = team.dir().join("inboxes/a.json");
    atomic::replace(team.dir(), &foreign, b"[]", Durability::Relaxed).unwrap();
    team.begin_delete(false).unwrap();
    team.finish_delete().unwrap();
    assert_eq!(names_in(team.dir()).unwrap(), [".ccb", "inboxes"]);
    assert_eq!(names_in(&team.dir().join("inboxes")).unwrap(), ["a.json"]);
    assert_eq!(names_in(&team.ours()).unwrap(), ["lock", "tmp"]);
    assert!(list(&scene.home()).unwrap().is_empty());
    team.create(&NewTeam::default()).unwrap();
}

#[test]
fn many_threads_join_and_nobody_is_lost() {
    let scene = Scene::new();
    scene.created();
    std::thread::scope(|scope| {
        for n in 0..16 {
            let scene = &scene;
            scope.spawn(move || {
                let team = scene.team();
                team.join(&agent(&format!("a{n}"))).unwrap();
                team.set_active(&format!("a{n}"), true).unwrap();
            });
        }
    });
    let members = scene.team().roster().unwrap().members;
    assert_eq!(members.len(), 17);
    let colours: Vec<&str> = members[1..]
        .iter()
        .filter_map(|m| m.color.as_deref())
        .collect();
    let expected: Vec<&str> = COLORS.iter().chain(&COLORS).copied().collect();
    assert_eq!(colours, expected, "in the order of joining");
    assert!(members[1..].iter().all(|member| member.is_active));
}

#[test]
fn the_nearest_teams_are_named() {
    let scene = Scene::new();
    for name in ["fixers", "mixers", "other"] {
        let team = scene.team_in(name, None);
        team.create(&NewTeam::default()).unwrap();
    }
    let TeamError::NotFound { nearest, .. } = scene.team_in("fixer", None).roster().unwrap_err()
    else {
        panic!("there is no such team");
    };
    assert_eq!(nearest, ["fixers", "mixers"]);
    let names: Vec<String> = list(&scene.home())
        .unwrap()
        .into_iter()
        .map(|t| t.name)
        .collect();
    assert_eq!(names, ["fixers", "mixers", "other"]);
}
