//! A team that is deleted while a person watches it.

use harness::team_session::SessionScene;
use observe::live::{Live, TeamLife};
use project::workplace::{Asked, Workplace};
use store::clock::{Clock, SystemClock};

use crate::CCB;
use crate::live::{look, look_until, team, workplace};

#[test]
fn a_team_that_is_deleted_or_whose_home_goes_is_shown_as_gone() {
    let scene = SessionScene::new(CCB);
    scene.task("good", &["--run", "true"]);
    let ended = scene.session(&["--merge", "never"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut live = Live::open(&workplace(&scene)).unwrap();
    let before = look(&mut live);
    assert_eq!(team(&before).agents.len(), 1);
    let aside = scene.home.path().join("aside");
    for part in ["teams", "tasks"] {
        std::fs::create_dir_all(&aside).unwrap();
        std::fs::rename(scene.home.path().join(part), aside.join(part)).unwrap();
    }
    let gone = look(&mut live);
    let now = team(&gone);
    assert_eq!(now.life, TeamLife::Vanished);
    assert_eq!(now.agents.len(), 1, "what was seen stays");
    assert_eq!(now.attention, []);
    assert!(now.troubles[0].contains("is gone"), "{:?}", now.troubles);
    // Again and again, also by the clock.
    for seconds in 1..5 {
        live.look(SystemClock.now_ms() + seconds * 1_000);
    }
    assert!(
        !scene.home.path().join("teams/board").exists(),
        "looking makes nothing"
    );
    for part in ["teams", "tasks"] {
        std::fs::remove_dir_all(scene.home.path().join(part)).ok();
        std::fs::rename(aside.join(part), scene.home.path().join(part)).unwrap();
    }
    let back = look(&mut live);
    assert_eq!(team(&back).life, TeamLife::Ended, "it is back");
    scene.ok(&["team", "delete", "board"]);
    let gone = look_until(&mut live, "the team to be gone", |team| {
        team.agents.is_empty() || team.life == TeamLife::Vanished
    });
    assert!(gone.attention.is_empty(), "{:?}", gone.attention);
}

/// A view of the repository without a named team shows a team only if it has something to show; and
/// half way through a deletion there is nothing.
#[test]
fn a_team_that_is_half_deleted_is_shown_as_it_was() {
    let scene = SessionScene::new(CCB);
    scene.task("good", &["--run", "true"]);
    let ended = scene.session(&["--merge", "never"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let place = Workplace::open(&Asked {
        home: Some(scene.home.path().to_owned()),
        directory: Some(scene.repo.main().to_owned()),
        ..Asked::default()
    });
    let mut live = Live::open(&place.unwrap()).unwrap();
    let before = look(&mut live);
    assert_eq!(team(&before).agents.len(), 1);
    let delete = ["team", "delete", "board"];
    for point in ["team.marked", "team.aside", "team.emptied"] {
        let mut command = scene.command(&delete);
        let fault = format!("crash:{point}:1");
        let killed = command.env("CCB_FAULT", &fault).output().unwrap();
        assert!(!killed.status.success(), "{fault}: {killed:?}");
        // For as long as that lasts.
        for seconds in [0, 5] {
            let half = live.look(SystemClock.now_ms() + seconds * 1_000);
            let now = half.team("board").expect("it is still shown");
            assert_eq!((now.agents.len(), now.tasks.len()), (1, 1), "{point}");
            assert_eq!(half.attention, [], "{point}");
            assert!(now.troubles[0].contains("is being deleted"), "{now:?}");
        }
    }
    scene.ok(&delete);
    let gone = look(&mut live);
    let now = team(&gone);
    assert_eq!(now.life, TeamLife::Vanished);
    assert_eq!((now.agents.len(), now.tasks.len()), (1, 1));
    assert!(now.troubles[0].contains("is gone"), "{now:?}");
}
