use serde_json::json;
use store::Explain;
use store::StoreError;
use store::agent_id::AgentId;

use super::*;

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
    // The first to join after another tool has added a member.
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
    let names: Vec<String> = scene
        .teams()
        .list()
        .unwrap()
        .into_iter()
        .map(|t| t.name)
        .collect();
    assert_eq!(names, ["fixers", "mixers", "other"]);
}
