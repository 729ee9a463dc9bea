//! Several machines with one roster.

use store::Explain;
use store::agent_id::LEAD;
use store::home::create_private_dir;
use store::lock::{DEFAULT_TIMEOUT, FileLock};
use team::{Life, MemberUpdate, NewMember, NewTeam, TeamOptions, Teams, Version};

use crate::site::{Host, Site, agent, names};

#[test]
fn what_one_machine_records_the_others_see() {
    let Some(site) = Site::new() else { return };
    let (one, two) = (site.host(), site.host());
    one.team("fixers").create(&NewTeam::default()).unwrap();
    let (_, bob) = two.team("fixers").join(&agent("bob")).unwrap();
    assert_eq!(bob.machine, two.options.machine);
    let seen_by_two = two.team("fixers").roster().unwrap();
    let roster = one.team("fixers").roster().unwrap();
    assert_eq!(roster, seen_by_two);
    assert_eq!(roster.members[0].machine, one.options.machine);
    // The machine that starts a member again becomes the member's machine.
    let moved = MemberUpdate {
        is_active: Some(true),
        ..MemberUpdate::default()
    };
    let bob = one.team("fixers").update("bob", &moved).unwrap();
    assert_eq!(bob.machine, one.options.machine);
    let version = || match two.team("fixers").version().unwrap() {
        Some(Version::Row(number)) => Some(number),
        Some(Version::File(_)) => panic!("the roster is a row"),
        None => None,
    };
    let before = version();
    one.team("fixers").leave("bob").unwrap();
    assert!(version() > before);
    one.team("fixers").begin_delete(false).unwrap();
    one.team("fixers").finish_delete().unwrap();
    assert_eq!(version(), None);
    one.team("fixers").create(&NewTeam::default()).unwrap();
    assert!(version() > before, "it is not the team of before");
    // None of it is a file.
    assert!(!one.team("fixers").dir().exists());
}

#[test]
fn machines_that_create_join_and_leave_at_once_lose_nobody() {
    let Some(site) = Site::new() else { return };
    let hosts: Vec<Host> = (0..4).map(|_| site.host()).collect();
    let made: Vec<&str> = std::thread::scope(|scope| {
        let tries: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(n, host)| {
                // Names that are one name, and the same one twice.
                let name = ["fixers", "Fixers", "fixers", "FIXERS"][n];
                scope.spawn(move || match host.team(name).create(&NewTeam::default()) {
                    Ok(_) => Some(name),
                    Err(error) => {
                        let kind = error.kind();
                        assert!(["team_exists", "bad_name"].contains(&kind), "{error}");
                        None
                    }
                })
            })
            .collect();
        let made = tries.into_iter().filter_map(|one| one.join().unwrap());
        made.collect()
    });
    assert_eq!(made.len(), 1, "{made:?}");
    let name = made[0];
    std::thread::scope(|scope| {
        for (n, host) in hosts.iter().enumerate() {
            scope.spawn(move || {
                for m in 0..10 {
                    let team = host.team(name);
                    let who = format!("a{n}-{m}");
                    team.join(&agent(&who)).unwrap();
                    team.set_active(&who, true).unwrap();
                    if m % 2 == 0 {
                        team.leave(&who).unwrap();
                    }
                    // All machines want this one, and one of them gets it.
                    match team.join(&agent(&format!("all-{m}"))) {
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.kind(), "already_member"),
                    }
                }
            });
        }
    });
    let mut found = names(&hosts[0].team(name));
    found.sort();
    let mut expected = vec![LEAD.to_owned()];
    expected.extend((0..10).map(|m| format!("all-{m}")));
    for n in 0..4 {
        expected.extend((0..10).filter(|m| m % 2 == 1).map(|m| format!("a{n}-{m}")));
    }
    expected.sort();
    assert_eq!(found, expected);
    // Each joining took the next colour, however they met.
    let roster = hosts[1].team(name).roster().unwrap();
    assert_eq!(roster.to_json()["ccb"]["colorsGiven"], 50);
}

#[test]
fn who_is_alive_follows_from_the_runs_here_and_the_readers_everywhere() {
    let Some(site) = Site::new() else { return };
    let (here, there) = (site.host(), site.host());
    let team = here.team("fixers");
    team.create(&NewTeam::default()).unwrap();
    let active = |name: &str| NewMember {
        is_active: true,
        ..agent(name)
    };
    let external = |name: &str| NewMember {
        backend_type: "external".into(),
        ..active(name)
    };
    let elsewhere = there.team("fixers");
    team.join(&active("runs")).unwrap();
    for new in [active("reads"), active("gone"), external("person")] {
        elsewhere.join(&new).unwrap();
    }
    site.readers.lock().unwrap().push("reads".into());
    let run = |name: &str| {
        let dir = team.dir().join(format!("runs/{name}@fixers"));
        create_private_dir(&dir).unwrap();
        FileLock::exclusive(&dir.join("alive.lock"), "it", DEFAULT_TIMEOUT).unwrap()
    };
    let _alive = run("runs");
    let living = |host: &Host| {
        let team = host.team("fixers");
        let living = team.living(&team.roster().unwrap()).unwrap();
        let told = living.into_iter().map(|one| (one.name, one.why));
        told.collect::<Vec<_>>()
    };
    let told = |name: &str, why| (name.to_owned(), why);
    assert_eq!(
        living(&here),
        [
            told("runs", Life::Running),
            told("reads", Life::Reading),
            told("person", Life::Joined)
        ]
    );
    // From there, the run can be told by its reading alone, and it does not read. Its machine's own
    // word for those of its agents without a run is that they have joined.
    assert_eq!(
        living(&there),
        [
            told("reads", Life::Reading),
            told("gone", Life::Joined),
            told("person", Life::Joined)
        ]
    );
    assert_eq!(
        team.begin_delete(false).unwrap_err().kind(),
        "members_alive"
    );
}

#[test]
fn a_database_that_is_not_prepared_says_what_to_do() {
    let Some(site) = Site::new() else { return };
    let host = site.host();
    let bare = database::Database::new(site.server.settings("elsewhere"));
    let error = Teams::on(&bare, &host.home(), host.options.clone())
        .list()
        .unwrap_err();
    assert_eq!(error.kind(), "old_schema", "{error}");
    assert!(error.hint().unwrap().contains("ccb board migrate"));
}

#[test]
fn files_of_another_team_of_this_name_are_left_alone() {
    let Some(site) = Site::new() else { return };
    let host = site.host();
    let in_files = TeamOptions::default();
    let name = store::name::Name::new("team", "fixers").unwrap();
    let old = Teams::new(&host.home(), in_files).team(name);
    old.create(&NewTeam::default()).unwrap();
    create_private_dir(&old.dir().join("runs/a@fixers")).unwrap();
    let team = host.team("fixers");
    team.create(&NewTeam::default()).unwrap();
    team.begin_delete(false).unwrap();
    team.finish_delete().unwrap();
    assert_eq!(old.roster().unwrap().members.len(), 1);
    assert!(old.dir().join("runs/a@fixers").is_dir());
}
