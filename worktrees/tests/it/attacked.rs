//! Every attack from an agent's own `.git`: no code runs, no byte is written outside, no ref moves but
//! the worktree's own, and honest work is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use worktrees::{Lease, Trees};

use crate::attacks::{ATTACKS, Attack, Ends, PRELUDE};
use crate::repo::{TestRepo, git, slug, write};

const VICTIM: &str = "a file of the user's\n";

struct Scene {
    repo: TestRepo,
    trees: Trees,
    lease: Lease,
    tree: PathBuf,
    ran: PathBuf,
    victim: PathBuf,
    refs: String,
}

impl Scene {
    fn new() -> Self {
        let repo = TestRepo::new();
        repo.git(&["branch", "feature/x"]);
        repo.create("x");
        let trees = repo.trees();
        let mut lease = trees.hold(&slug("x")).unwrap();
        assert_eq!(trees.enter(&slug("x"), &mut lease).unwrap(), None);
        let (ran, victim) = (repo.beside("ran"), repo.beside("victim"));
        write(&victim, VICTIM);
        let scene = Self {
            tree: repo.tree("x"),
            refs: refs(&repo),
            repo,
            trees,
            lease,
            ran,
            victim,
        };
        scene.sh("echo work > work; g add work; c work");
        scene
    }

    fn sh(&self, script: &str) {
        let script = format!("{PRELUDE}\n{script}");
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let done = command
            .args(["-c", &script])
            .current_dir(&self.tree)
            .env("COMMON", self.repo.main().join(".git"))
            .env("VICTIM", &self.victim)
            .env("CODE", format!("touch {}", self.ran.display()))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}\n{done:?}");
    }

    fn assert_unharmed(&self, about: &str) {
        assert!(!self.ran.exists(), "{about}: code ran");
        let victim = std::fs::read_to_string(&self.victim).unwrap();
        assert_eq!(victim, VICTIM, "{about}");
        assert_eq!(refs(&self.repo), self.refs, "{about}");
    }
}

/// All refs but the worktree's own, and where HEAD of the main worktree is.
fn refs(repo: &TestRepo) -> String {
    let all = repo.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let others = all
        .lines()
        .filter(|line| !line.contains("refs/heads/worktree/x "));
    others.collect::<Vec<_>>().join("\n") + &repo.git(&["symbolic-ref", "HEAD"])
}

fn strike(attack: &Attack) {
    let about = attack.name;
    if let Some(control) = attack.control {
        let scene = Scene::new();
        scene.sh(attack.script);
        scene.sh(control);
        let changed = std::fs::read_to_string(&scene.victim).unwrap() != VICTIM;
        assert!(scene.ran.exists() || changed, "{about}: the trap works");
    }
    let mut scene = Scene::new();
    scene.sh(attack.script);
    // Whoever looks while the agent is inside is as safe.
    let seen = scene.trees.changes(&slug("x")).unwrap();
    assert_ne!(seen.state, worktrees::ChangeState::Clean, "{about}");
    worktrees::fingerprint_of(&scene.tree);
    scene.assert_unharmed(about);
    scene
        .trees
        .leave(&slug("x"), Some(&mut scene.lease))
        .unwrap();
    scene.assert_unharmed(about);
    let sealed = scene.trees.seal(&slug("x"), "sealed");
    scene.assert_unharmed(about);
    match (attack.ends, sealed) {
        (Ends::Not(why), Err(error)) => {
            assert!(error.to_string().contains(why), "{about}: {error}");
        }
        (Ends::Whole | Ends::Files, Ok(sealed)) => {
            let log = scene.repo.git(&["log", "--format=%s", &sealed.commit]);
            assert_eq!(
                log.contains("work"),
                attack.ends == Ends::Whole,
                "{about}: {log}, {:?}",
                sealed.history_refused
            );
            let tree = scene
                .repo
                .git(&["ls-tree", "-r", "--name-only", &sealed.commit]);
            assert!(tree.contains("work"), "{about}: {tree}");
            let found = scene.trees.unsealed(&slug("x"), &sealed.commit).unwrap();
            assert_eq!(found, None, "{about}");
        }
        (ends, sealed) => assert_eq!(format!("{sealed:?}"), format!("{ends:?}"), "{about}"),
    }
    // The next one is whole again; and without its `.git` the repository is, too.
    let mut lease = scene.trees.hold(&slug("x")).unwrap();
    assert_eq!(
        scene.trees.enter(&slug("x"), &mut lease).unwrap(),
        None,
        "{about}"
    );
    git(&scene.tree, &["log", "-1", "--format=%H"]);
    scene.assert_unharmed(about);
    scene.trees.leave(&slug("x"), Some(&mut lease)).unwrap();
    delete(&scene.repo.ours().join("private"));
    scene.repo.git(&["fsck", "--strict", "--no-dangling"]);
    assert!(scene.tree.join(".git").is_file(), "{about}");
    scene.assert_unharmed(about);
}

fn delete(dir: &Path) {
    if dir.exists() {
        std::fs::remove_dir_all(dir).unwrap();
    }
}

fn strike_all(attacks: impl Iterator<Item = &'static Attack>) {
    let only = std::env::var("CCB_ATTACK").ok();
    let mut failed = Vec::new();
    for attack in attacks {
        if only
            .as_ref()
            .is_some_and(|only| !attack.name.contains(only.as_str()))
        {
            continue;
        }
        if std::panic::catch_unwind(|| strike(attack)).is_err() {
            failed.push(attack.name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn attacks_from_a_private_git_come_to_nothing() {
    strike_all(ATTACKS.iter().filter(|attack| !attack.heavy));
}

#[test]
#[ignore = "takes a minute and 2 GB: tests/attacks.sh runs it"]
fn heavy_attacks_from_a_private_git_come_to_nothing() {
    strike_all(ATTACKS.iter().filter(|attack| attack.heavy));
}
