//! A run that is killed over and over comes to the same end.

use harness::runs::LONG;
use harness::scene_processes::of_home;
use harness::{Fan, Random, kinds, wait_until};
use serde_json::{Value, json};

use crate::CCB;

const TASKS: usize = 50;
const KILLS: usize = 10;

/// Fifty tasks in chains of five; each records that it ran.
fn plan(fan: &Fan) {
    let ran = fan.0.home.path().join("ran");
    std::fs::create_dir_all(&ran).unwrap();
    let tasks: Vec<Value> = (0..TASKS)
        .map(|n| {
            let before = (n % 5 > 0).then(|| format!("t{}", n - 1));
            let input = before.as_ref().map_or("readme", |_| "chain");
            let chain = n - n % 5;
            json!({
                "id": format!("t{n}"),
                "run": format!("echo x >> {}/t{n}; mkdir -p c{chain}; cat {input} c{chain}/* 2>/dev/null | wc -l > c{chain}/{n}; sleep 0.02", ran.display()),
                "verify": format!("test -s c{chain}/{n}"),
                "dependsOn": before.into_iter().collect::<Vec<_>>(),
            })
        })
        .collect();
    fan.plan(&json!({"name": "fifty", "tasks": tasks}));
}

fn runs(fan: &Fan, n: usize) -> usize {
    let path = fan.0.home.path().join("ran").join(format!("t{n}"));
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn begun(fan: &Fan) -> usize {
    (0..TASKS).filter(|n| runs(fan, *n) > 0).count()
}

#[test]
fn killed_at_ten_points_it_comes_to_the_same_end_and_nothing_proven_runs_again() {
    let undisturbed = Fan::new(CCB);
    plan(&undisturbed);
    let (code, report) = undisturbed.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");

    let fan = Fan::new(CCB);
    plan(&fan);
    let mut random = Random::new(std::process::id().into());
    let mut before = 0;
    for kill in 0..KILLS {
        // Somewhere in its tenth of the run.
        let next = TASKS * kill / KILLS + usize::try_from(random.below(5)).unwrap();
        let mut child = fan.start(&["--land", "merge"]);
        wait_until(LONG, "more tasks to begin", || {
            begun(&fan) >= next.max(before).min(TASKS - 1) || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        before = begun(&fan);
    }
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(0), "{report}");
    let done = kinds(&report);
    assert!(
        done.iter()
            .all(|(_, kind)| kind == "proven" || kind == "cached"),
        "{done:?}"
    );
    assert_eq!(fan.files("ccb/fifty"), undisturbed.files("ccb/fifty"));
    let often: Vec<usize> = (0..TASKS).filter(|n| runs(&fan, *n) != 1).collect();
    assert_eq!(
        often,
        Vec::<usize>::new(),
        "each ran once, although ccb was killed"
    );
    let trees = fan.git(&["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
    assert_eq!(fan.0.repo.tree_branches(), Vec::<String>::new());
    assert_eq!(fan.0.repo.git_locks(), Vec::<std::path::PathBuf>::new());
    wait_until(LONG, "every process to be gone", || {
        of_home(fan.0.home.path()).is_empty()
    });
    let doctor = fan.0.ok(&["doctor"]);
    assert_eq!(doctor["findings"], json!([]));
    fan.0.repo.check_sound();
}
