//! Nothing is left behind: worktrees of failed attempts, and half-made files of killed processes.

use harness::runs::{LONG, kill};
use harness::team_session::SessionScene;
use harness::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::CCB;

/// The only run that works on a task.
fn running(scene: &SessionScene) -> Option<String> {
    let active = std::fs::read_dir(scene.home.team_dir().join("runs/.active")).ok()?;
    let ids = active.flatten().map(|entry| entry.file_name());
    ids.map(|id| id.to_string_lossy().into_owned())
        .find(|id| scene.home.run_dir(id).join("meta.json").exists())
}

fn registry(scene: &SessionScene) -> Value {
    let text = std::fs::read_to_string(scene.repo.ours().join("index.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_tree_of_a_lost_attempt_goes_when_its_task_has_landed_and_can_be_brought_back() {
    let scene = SessionScene::new(CCB);
    let (once, up) = (scene.home.path().join("once"), scene.home.path().join("up"));
    let run = format!(
        "if mkdir {}; then echo draft > draft; touch {}; sleep 600; fi; echo done > a",
        once.display(),
        up.display()
    );
    let id = scene.task("a", &["--run", &run, "--verify", "test -f a"]);
    let mut session = scene.start(&[]);
    wait_until(LONG, "the first agent to be at work", || up.exists());
    let lost = running(&scene).unwrap();
    scene.home.await_run(&lost, "running");
    let name = format!("agent-{lost}");
    let entry = registry(&scene)["worktrees"][0].clone();
    assert_eq!(entry["name"], name.as_str());
    assert_eq!(entry["madeFor"], format!("board#{id}"), "{entry}");
    let processes = ["guard", "host"].map(|which| scene.home.run_process(&lost, which));
    for process in processes {
        kill(process, Signal::KILL);
    }
    assert_eq!(scene.await_end(&mut session), Some(0));
    assert_eq!(scene.status(id), "completed");
    assert_eq!(scene.trees(), Vec::<String>::new());
    assert_eq!(scene.repo.tree_branches(), Vec::<String>::new());
    assert_eq!(scene.repo.git(&["show", "main:a"]), "done\n");

    // It is superseded, not lost.
    scene.ok(&["worktree", "undo", &name]);
    let draft = std::fs::read_to_string(scene.repo.tree(&name).join("draft"));
    assert_eq!(draft.unwrap(), "draft\n");
    // A restored worktree is wanted.
    assert_eq!(scene.session(&[]).code, Some(0));
    assert_eq!(scene.trees(), [name]);
}

#[test]
fn a_tree_of_a_task_that_is_not_done_stays_and_is_said_at_the_end() {
    let scene = SessionScene::new(CCB);
    let id = scene.task("a", &["--run", "echo draft > draft; false"]);
    let answer = scene.session(&["--attempts", "2"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let end = answer.json_lines().pop().unwrap();
    let staying = end["stayingTrees"].as_array().unwrap();
    assert_eq!(staying.len(), scene.trees().len(), "{end}");
    assert!(!staying.is_empty(), "{end}");
    for tree in staying {
        assert_eq!(
            (&tree["task"], &tree["why"]),
            (&json!(id.to_string()), &json!("its task is parked"))
        );
    }
    // Its task was completed by hand, so the leftovers of its attempts are not needed.
    scene.ok(&["task", "update", &id.to_string(), "--status", "pending"]);
    scene.ok(&["task", "done", &id.to_string(), "--force"]);
    let listed = scene.ok(&["worktree", "gc"]);
    let rows = listed["candidates"].as_array().unwrap();
    assert_eq!(rows.len(), staying.len(), "{listed}");
    assert!(
        rows.iter().all(|row| row["reason"] == "superseded"),
        "{listed}"
    );
    scene.ok(&["worktree", "gc", "--yes"]);
    assert_eq!(scene.trees(), Vec::<String>::new());
}

#[test]
fn a_plan_leaves_no_tree_of_an_attempt_that_was_lost() {
    let scene = SessionScene::new(CCB);
    let once = scene.home.path().join("once");
    let kill = "h=$PPID; g=$(sed -n 's/^PPid:\\s*//p' /proc/$h/status); kill -9 $g $h; sleep 600";
    let run = format!(
        "if mkdir {}; then echo draft > draft; {kill}; fi; echo a > a",
        once.display()
    );
    let plan = json!({"name": "one", "tasks": [{"id": "a", "run": run, "verify": "test -f a"}]});
    scene.repo.write("plan.json", &plan.to_string());
    let answer = scene.run(&["--json", "fanout", "plan.json", "--ci", "--land", "merge"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(once.exists());
    assert_eq!(scene.trees(), Vec::<String>::new());
    assert_eq!(scene.repo.tree_branches(), Vec::<String>::new());
}

/// The kinds of the doctor's findings, sorted, and true if all were repaired.
fn doctor(scene: &SessionScene, fix: bool) -> (Vec<String>, bool) {
    let args: &[&str] = if fix {
        &["--json", "doctor", "--fix"]
    } else {
        &["--json", "doctor"]
    };
    let answer = scene.run(args).json();
    let findings = answer["findings"].as_array().unwrap();
    let mut kinds: Vec<String> = findings
        .iter()
        .map(|finding| finding["kind"].as_str().unwrap().to_owned())
        .collect();
    kinds.sort();
    (kinds, answer["left"] == 0)
}

/// A team with a completed task, in a repository with a worktree.
fn scene() -> SessionScene {
    let scene = SessionScene::new(CCB);
    scene.task("a", &["--run", "echo a > a"]);
    assert_eq!(scene.session(&[]).code, Some(0));
    assert_eq!(doctor(&scene, false), (vec![], true));
    scene
}

const ID: &str = "a0123456789abcdef";

#[test]
fn the_doctor_repairs_what_killed_processes_left_half_made() {
    type Break = fn(&SessionScene);
    let cases: &[(&str, Break)] = &[
        ("half_made_run", |scene| {
            std::fs::create_dir(scene.home.run_dir(ID)).unwrap();
        }),
        ("unfinished_run", |scene| {
            let active = scene.home.team_dir().join("runs/.active").join(ID);
            std::fs::write(active, "").unwrap();
        }),
        ("half_done", |scene| {
            let mut command = scene.command(&["worktree", "create", "t"]);
            command.env("CCB_FAULT", "crash:create.registered:1");
            assert!(command.output().unwrap().status.code().is_none());
        }),
        ("half_done", |scene| {
            scene.ok(&["worktree", "create", "t"]);
            let mut command = scene.command(&["worktree", "remove", "t"]);
            command.env("CCB_FAULT", "crash:removal.tree-moved:1");
            assert!(command.output().unwrap().status.code().is_none());
        }),
        ("record_without_tree", |scene| {
            let tree = scene.repo.tree("t");
            let path = tree.to_str().unwrap();
            scene.repo.git(&["worktree", "add", "-q", "--detach", path]);
            std::fs::remove_dir_all(tree).unwrap();
        }),
        ("half_made_record", |scene| {
            std::fs::create_dir_all(scene.repo.main().join(".git/worktrees/t")).unwrap();
        }),
        ("branch_left", |scene| {
            scene.repo.git(&["branch", &format!("worktree/agent-{ID}")]);
        }),
        ("not_registered", |scene| {
            let tree = scene.repo.tree("t");
            let path = tree.to_str().unwrap();
            scene.repo.git(&["worktree", "add", "-q", "--detach", path]);
        }),
        ("stray_directory", |scene| {
            std::fs::create_dir_all(scene.repo.tree("t")).unwrap();
        }),
        ("git_lock_left", |scene| {
            std::fs::write(scene.repo.main().join(".git/packed-refs.lock"), "").unwrap();
        }),
        ("git_lock_left", |scene| {
            std::fs::write(scene.repo.main().join(".git/index.lock"), "").unwrap();
        }),
        ("tree_gone", |scene| {
            let mut task = scene.file(1);
            task["metadata"]["ccb"]["worktree"] = "gone".into();
            std::fs::write(scene.home.task_file(1), task.to_string()).unwrap();
        }),
        ("tree_unbound", |scene| {
            scene.ok(&["worktree", "create", "t"]);
            let mut registry = registry(scene);
            let trees = registry["worktrees"].as_array_mut().unwrap();
            let tree = trees.iter_mut().find(|tree| tree["name"] == "t").unwrap();
            tree["task_id"] = "77".into();
            tree["task_list"] = "board".into();
            let path = scene.repo.ours().join("index.json");
            std::fs::write(path, registry.to_string()).unwrap();
        }),
    ];
    for (kind, spoil) in cases {
        let scene = scene();
        spoil(&scene);
        let found = (vec![(*kind).to_owned()], false);
        // Any command repairs some of it, also one that only reads.
        if *kind != "unfinished_run" {
            assert_eq!(doctor(&scene, false), found);
        }
        let (_, all) = doctor(&scene, true);
        assert!(all, "{kind}");
        assert_eq!(doctor(&scene, false), (vec![], true), "{kind}");
        // And work continues.
        scene.task("b", &["--run", "echo b > b"]);
        let answer = scene.session(&[]);
        assert_eq!(answer.code, Some(0), "{kind}: {answer:?}");
        scene.repo.check_sound();
    }
}

#[test]
fn a_branch_that_holds_something_and_a_lock_that_somebody_has_are_left_alone() {
    let scene = scene();
    let branch = format!("worktree/agent-{ID}");
    let tree = scene.repo.beside("elsewhere");
    let path = tree.to_str().unwrap();
    scene
        .repo
        .git(&["worktree", "add", "-q", "-b", &branch, path]);
    harness::write(&tree.join("work"), "work\n");
    harness::git(&tree, &["add", "."]);
    harness::git(&tree, &["commit", "-qm", "work"]);
    scene.repo.git(&["worktree", "remove", "--force", path]);
    let lock = scene.repo.main().join(".git/index.lock");
    let held = std::fs::File::create(&lock).unwrap();
    assert_eq!(doctor(&scene, true), (vec![], true));
    assert!(lock.exists());
    assert_eq!(scene.repo.tree_branches(), [branch]);
    drop(held);
}
