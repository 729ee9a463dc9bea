//! Every attack from an agent's own `.git`: no code runs, no byte is written outside, no ref moves
//! but the worktree's own, and honest work is there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use worktrees::{Lease, Trees};

use crate::attacks::{ATTACKS, Attack, Ends, PRELUDE};
use crate::repo::{TestRepo, git, slug, write};

const VICTIM: &str = "a file of the user's\n";
/// Time limit for a process to begin.
const START_LIMIT: Duration = Duration::from_secs(60);

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
        let done = self.shell(script).output().unwrap();
        assert!(done.status.success(), "{script}\n{done:?}");
    }

    /// A shell in the worktree, as an agent starts one.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command
            .args(["-c", &format!("{PRELUDE}\n{script}")])
            .current_dir(&self.tree)
            .env("COMMON", self.repo.main().join(".git"))
            .env("VICTIM", &self.victim)
            .env("CODE", format!("touch {}", self.ran.display()))
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    fn assert_unharmed(&self, about: &str) {
        assert!(!self.ran.exists(), "{about}: code ran");
        let victim = std::fs::read_to_string(&self.victim).unwrap();
        assert_eq!(victim, VICTIM, "{about}");
        assert_eq!(refs(&self.repo), self.refs, "{about}");
    }
}

/// All refs but the worktree's own, and the commit of HEAD of the main worktree.
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
    // A look while the agent is inside is as safe.
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
    // The next agent's is whole again; and without its `.git` the repository is, too.
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
#[ignore = "takes a minute and 2 GB: tests/torture.sh runs it"]
fn heavy_attacks_from_a_private_git_come_to_nothing() {
    strike_all(ATTACKS.iter().filter(|attack| attack.heavy));
}

/// The acts of a process that continues after its run has ended: it changes files, makes links to places outside and
/// puts a repository of its own in the place of `.git`. It ends by itself after a while.
const OUTLIVES: &str = r#"
git init -q "$STOP.git"; git -C "$STOP.git" config core.fsmonitor "$CODE"; git -C "$STOP.git" config filter.t.clean "$CODE"
echo '* filter=t' > "$STOP.git/.git/info/attributes"
echo "gitdir: $COMMON" > "$STOP.link"
set +e
i=0
while [ $i -lt 5000 ] && [ ! -e "$STOP" ]; do
    i=$((i+1))
    echo $i > work
    rm -rf d; ln -s "$(dirname "$VICTIM")" d; rm -f d; mkdir -p d; echo $i > "d/f"
    rm -f readme; ln -s "$VICTIM" readme; rm -f readme; echo $i > readme
    case $((i % 7)) in
        0) rm -rf .git; cp -r "$STOP.git/.git" .git ;;
        3) rm -rf .git; ln -sn "$COMMON" .git ;;
        5) rm -rf .git; cp "$STOP.link" .git ;;
    esac
done 2> /dev/null
rm -rf d; mkdir d; echo last > d/f; echo last > work
rm -f readme; echo last > readme"#;

#[test]
fn a_process_that_outlives_its_run_changes_nothing_outside() {
    for _ in 0..3 {
        let mut scene = Scene::new();
        let stop = scene.repo.beside("stop");
        let mut outlives = scene.shell(OUTLIVES).env("STOP", &stop).spawn().unwrap();
        let began = Instant::now();
        while !scene.tree.join("d/f").exists() {
            assert!(began.elapsed() < START_LIMIT, "the process never began");
            std::thread::yield_now();
        }
        // While files change under it, a seal may fail; it must not do harm.
        for _ in 0..5 {
            scene.trees.leave(&slug("x"), Some(&mut scene.lease)).ok();
            scene.trees.seal(&slug("x"), "while files change").ok();
            scene.trees.changes(&slug("x")).ok();
            scene.assert_unharmed("outlived");
        }
        write(&stop, "");
        assert!(outlives.wait().unwrap().success());
        scene.assert_unharmed("outlived, at its end");
        scene
            .trees
            .leave(&slug("x"), Some(&mut scene.lease))
            .unwrap();
        // The file it put in the place of `.git` is refused by name. A person restores the ordinary one.
        let git_file = scene.tree.join(".git");
        let ordinary = scene.repo.main().join(".git/worktrees/x");
        let ordinary = format!("gitdir: {}\n", ordinary.display());
        if std::fs::read_to_string(&git_file).ok() != Some(ordinary.clone()) {
            let error = scene.trees.seal(&slug("x"), "refused").unwrap_err();
            assert!(error.to_string().contains(".git"), "{error}");
            scene.sh("rm -rf .git");
            write(&git_file, &ordinary);
        }
        let sealed = scene.trees.seal(&slug("x"), "sealed").unwrap();
        let last = |path: &str| {
            scene
                .repo
                .git(&["show", &format!("{}:{path}", sealed.commit)])
        };
        for path in ["work", "readme", "d/f"] {
            assert_eq!(last(path), "last\n", "{path}");
        }
        let mut lease = scene.trees.hold(&slug("x")).unwrap();
        scene.trees.enter(&slug("x"), &mut lease).unwrap();
        scene.trees.leave(&slug("x"), Some(&mut lease)).unwrap();
        assert!(scene.tree.join(".git").is_file());
        scene.repo.git(&["fsck", "--strict", "--no-dangling"]);
        scene.assert_unharmed("outlived, and the next one");
    }
}
