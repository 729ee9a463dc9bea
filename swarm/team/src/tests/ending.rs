use store::Explain;
use store::agent_id::AgentId;

use super::*;

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
    let _reader = scene.reader(&team, "reads");
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
    assert!(scene.teams().list().unwrap().is_empty());
    team.create(&NewTeam::default()).unwrap();
}
