//! The link is cut at every message of every kind of change: it happens once all the same.

use store::Explain;
use store::agent_id::LEAD;
use team::{NewTeam, Team};

use crate::proxy::{Cut, Proxy};
use crate::site::{Site, agent, names};

/// Does `change` to a fresh team with the link cut after 0, 1, 2, … messages, until it is done
/// before the cut, and lets `check` inspect the result.
fn at_every_message(
    site: &Site,
    name: &str,
    prepare: impl Fn(&Team),
    change: impl Fn(&Team),
    check: impl Fn(&Team, &str),
) {
    let direct = site.host();
    for cut in [Cut::BeforeServer, Cut::AfterServer] {
        let proxy = Proxy::start(site.server.port(), cut);
        let host = site.host_through(proxy.port());
        for after in 0.. {
            let name = format!("{name}-{}-{after}", cut as u8);
            let seen = direct.team(&name);
            prepare(&seen);
            // A connection that is there, so that the cut is in the change and not before it.
            host.teams().list().unwrap();
            proxy.cut_after(after);
            change(&host.team(&name));
            let was_cut = proxy.was_cut();
            check(&seen, &format!("{name}: {cut:?} after {after} messages"));
            if !was_cut {
                assert!(after > 0, "nothing was ever cut");
                break;
            }
            assert!(after < 100, "it is cut for ever");
        }
    }
}

#[test]
fn a_change_happens_once_wherever_the_link_is_cut() {
    let Some(site) = Site::new() else { return };
    let create = |team: &Team| drop(team.create(&NewTeam::default()).unwrap());
    let with_ann = |team: &Team| {
        create(team);
        team.join(&agent("ann")).unwrap();
    };
    // A second try that took the first for another caller's would be refused.
    at_every_message(
        &site,
        "create",
        |_| (),
        create,
        |team, when| {
            assert_eq!(names(team), [LEAD], "{when}");
        },
    );
    at_every_message(
        &site,
        "join",
        create,
        |team| {
            let (roster, member) = team.join(&agent("bob")).unwrap();
            assert_eq!(roster.members.last(), Some(&member));
            assert_eq!(member.color.as_deref(), Some("red"));
        },
        |team, when| assert_eq!(names(team), [LEAD, "bob"], "{when}"),
    );
    at_every_message(
        &site,
        "leave",
        with_ann,
        |team| {
            let (_, left) = team.leave("ann").unwrap();
            assert_eq!(left.name, "ann");
        },
        |team, when| assert_eq!(names(team), [LEAD], "{when}"),
    );
    at_every_message(
        &site,
        "mode",
        with_ann,
        |team| {
            assert_eq!(
                team.set_mode("ann", "plan").unwrap().mode.as_deref(),
                Some("plan")
            );
        },
        |team, when| {
            let roster = team.roster().unwrap();
            let ann = roster.member("ann").unwrap();
            assert_eq!(ann.mode_before_plan.as_deref(), Some("default"), "{when}");
        },
    );
    at_every_message(
        &site,
        "delete",
        with_ann,
        |team| {
            let (roster, living) = team.begin_delete(false).unwrap();
            assert_eq!((roster.members.len(), living.len()), (2, 0));
            team.finish_delete().unwrap();
        },
        |team, when| {
            assert_eq!(
                team.roster().unwrap_err().kind(),
                "team_not_found",
                "{when}"
            );
        },
    );
}
