//! Many processes at once, some of them killed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use harness::{Answer, Random, TestRepo, Workplace, git, git_command, slug, write};
use serde_json::Value;

use crate::CCB;

fn spawn(at: &Workplace, args: &[&str]) -> Child {
    at.command(&[&["--json"], args].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn sixteen_at_once_five_times_make_eighty_trees() {
    let at = Workplace::new(CCB);
    let before = at.repo.surroundings();
    for round in 0..5 {
        let children: Vec<Child> = (0..16)
            .map(|n| spawn(&at, &["worktree", "create", &format!("r{round}/p{n}")]))
            .collect();
        for child in children {
            let answer = Answer::of(child.wait_with_output().unwrap());
            assert_eq!(answer.code, Some(0), "{answer:?}");
            assert_eq!(answer.json()["worktree"]["created"], true);
        }
    }
    assert_eq!(at.repo.tree_branches().len(), 80);
    let list = at.repo.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(
        list.lines()
            .filter(|line| line.starts_with("worktree "))
            .count(),
        81
    );
    let registered = at.ok(&["worktree", "list"]);
    let clean = |tree: &&Value| tree["changes"]["state"] == "clean";
    assert_eq!(
        registered["worktrees"]
            .as_array()
            .unwrap()
            .iter()
            .filter(clean)
            .count(),
        80
    );
    assert_eq!(at.repo.surroundings(), before);
    at.repo.check_sound();

    // And removed again, all at once.
    let children: Vec<Child> = (0..16)
        .map(|n| spawn(&at, &["worktree", "remove", &format!("r0/p{n}")]))
        .collect();
    for child in children {
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    assert_eq!(at.repo.tree_branches().len(), 64);
    at.repo.check_sound();
}

#[test]
fn sixteen_that_want_the_same_tree_get_one() {
    let at = Workplace::new(CCB);
    let children: Vec<Child> = (0..16)
        .map(|_| spawn(&at, &["worktree", "create", "x"]))
        .collect();
    let mut made = 0;
    for child in children {
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        made += usize::from(answer.json()["worktree"]["created"] == true);
    }
    assert_eq!(made, 1);
    assert_eq!(at.repo.tree_branches(), ["worktree/x"]);
    at.repo.check_sound();
}

const TREES: [&str; 3] = ["t0", "t1", "t2"];
/// Number of operations on a worktree; agents work meanwhile.
const ROUNDS: usize = 1_000;
const PLACES: usize = 2;

/// One repository, the work in its worktrees, and the pieces that must therefore still exist.
struct Place {
    at: Workplace,
    /// Every piece of work has a text of its own.
    tokens: Mutex<BTreeSet<String>>,
    next: AtomicU64,
    /// Held exclusively while a worktree is made.
    making: RwLock<()>,
    /// Held by agents whose work only the index has, and by removals exclusively: git gives no way
    /// to stage something and change the file again in one step.
    quiet: RwLock<()>,
    /// By worktree: the work its agent destroys itself when it stages everything again.
    staged: Mutex<Vec<(String, String)>>,
    kills: AtomicUsize,
    removals: AtomicUsize,
}

/// Agents work in worktrees without coordination, while others remove, collect and restore them,
/// and are killed at random moments. No piece of work may be lost.
#[test]
fn no_work_is_lost_whatever_happens() {
    let seed = harness::sample::seed();
    println!("seed: CCB_SEED={seed}");
    let places: Vec<Place> = (0..PLACES).map(|n| Place::new(n == 0)).collect();
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (n, place) in places.iter().enumerate() {
            for role in 0..3_u64 {
                let rounds = &rounds;
                scope.spawn(move || {
                    let _stop = StopAllOnPanic(rounds);
                    let mut random = Random::new(seed ^ (n as u64 * 31 + role) << 32);
                    while rounds.load(Ordering::Relaxed) < ROUNDS {
                        if role < 2 {
                            // A worktree has one agent; two would overwrite each other's work.
                            let tree = match role {
                                0 => *random.pick(&["t0", "t2"]),
                                _ => "t1",
                            };
                            place.agent(tree, &mut random);
                        } else {
                            rounds.fetch_add(1, Ordering::Relaxed);
                            let tree = *random.pick(&TREES);
                            place.keeper(tree, &mut random);
                        }
                    }
                });
            }
        }
    });
    for place in &places {
        place.check(seed);
    }
}

/// A failed check in one thread ends the others, too.
struct StopAllOnPanic<'a>(&'a AtomicUsize);

impl Drop for StopAllOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(ROUNDS, Ordering::Relaxed);
        }
    }
}

impl Place {
    fn new(hasty: bool) -> Self {
        let at = Workplace::new(CCB);
        if hasty {
            // The trash is emptied at once, and worktrees that look unused are collected.
            at.home
                .settings(r#"{"worktree":{"trashDays":0,"gcDays":0}}"#);
        }
        for tree in TREES {
            at.ok(&["worktree", "create", tree]);
        }
        Self {
            at,
            tokens: Mutex::default(),
            next: AtomicU64::new(0),
            making: RwLock::new(()),
            quiet: RwLock::new(()),
            staged: Mutex::default(),
            kills: AtomicUsize::new(0),
            removals: AtomicUsize::new(0),
        }
    }

    /// Runs git in a worktree that may vanish meanwhile; true if it succeeded.
    fn try_git(&self, tree: &Path, args: &[&str]) -> bool {
        tree.join(".git").exists()
            && git_command(tree, args)
                .output()
                .is_ok_and(|output| output.status.success())
    }

    /// Writes a new file; returns its name if it succeeded.
    fn new_file(&self, tree: &Path, token: &str) -> Option<String> {
        let name = token.replace(['<', '>', ' '], "");
        std::fs::write(tree.join(&name), token).ok().map(|()| name)
    }

    /// A step of an agent.
    fn agent(&self, name: &str, random: &mut Random) {
        let tree = self.at.repo.tree(name);
        // No agent knows a worktree before it is made, so none is in it meanwhile.
        let _made = self.making.read().unwrap();
        if self.at.repo.trees().get(&slug(name)).is_err() {
            std::thread::yield_now();
            return;
        }
        let what = random.below(8);
        let token = format!(
            "<work {} of kind {what}>",
            self.next.fetch_add(1, Ordering::Relaxed)
        );
        // Some hold the worktree, some do not.
        let held = match random.below(3) {
            0 => self.at.repo.trees().hold(&slug(name)).ok(),
            _ => None,
        };
        let done = match what {
            0 | 1 => self.new_file(&tree, &token).is_some(),
            2 => self.append(&tree, &token),
            3 => self
                .new_file(&tree, &token)
                .is_some_and(|file| self.try_git(&tree, &["add", &file])),
            4 => {
                let added = self.try_git(&tree, &["add", "-A"]);
                self.forget_staged(name);
                added && self.try_git(&tree, &["commit", "-qm", &token, "--allow-empty"])
            }
            5 => {
                // Only the reflog knows it afterwards.
                let made = self.try_git(&tree, &["commit", "-qm", &token, "--allow-empty"]);
                self.try_git(&tree, &["reset", "-q", "--soft", "HEAD~1"]);
                made
            }
            6 => {
                let appended = self.append(&tree, &token);
                self.try_git(&tree, &["stash", "push", "-q"]);
                appended
            }
            7 if random.below(2) == 0 => {
                self.try_git(&tree, &["checkout", "-q", "--detach"]);
                let made = self.try_git(&tree, &["commit", "-qm", &token, "--allow-empty"]);
                let branch = format!("worktree/{name}");
                self.try_git(&tree, &["checkout", "-q", &branch]);
                made
            }
            _ => {
                // Staged, then changed again: only the index has it.
                let _quiet = self.quiet.read().unwrap();
                let staged = self
                    .new_file(&tree, &token)
                    .filter(|file| self.try_git(&tree, &["add", "--", file]));
                if let Some(file) = &staged {
                    write(&tree.join(file), "other content");
                    let mut known = self.staged.lock().unwrap();
                    known.push((name.to_owned(), token.clone()));
                }
                staged.is_some()
            }
        };
        if held.is_some() {
            assert!(
                tree.join(".git").exists(),
                "{name} was removed while it was held"
            );
        }
        drop(held);
        if done {
            self.tokens.lock().unwrap().insert(token);
        }
    }

    fn forget_staged(&self, tree: &str) {
        let mut staged = self.staged.lock().unwrap();
        let mut tokens = self.tokens.lock().unwrap();
        staged.retain(|(at, token)| {
            if at == tree {
                tokens.remove(token);
            }
            at != tree
        });
    }

    fn append(&self, tree: &Path, token: &str) -> bool {
        use std::io::Write;
        let file = std::fs::OpenOptions::new()
            .append(true)
            .open(tree.join("readme"));
        file.is_ok_and(|mut file| writeln!(file, "{token}").is_ok())
    }

    /// An operation on a worktree, perhaps killed on the way.
    fn keeper(&self, name: &str, random: &mut Random) {
        let args: &[&str] = match random.below(10) {
            0 | 1 => &["worktree", "create", name],
            2 => &["worktree", "remove", name],
            3..=5 => &["worktree", "remove", name, "--discard"],
            6 | 7 => &["worktree", "undo", name],
            8 => &["worktree", "gc", "--yes"],
            _ => {
                self.at.repo.git(&["worktree", "prune"]);
                return;
            }
        };
        let _making = (args[1] == "create").then(|| self.making.write().unwrap());
        let _quiet = self.quiet.write().unwrap();
        let mut child = spawn(&self.at, args);
        if random.below(2) == 0 {
            // Anywhere between its start and its end.
            std::thread::park_timeout(Duration::from_micros(random.below(60_000)));
            child.kill().unwrap();
            self.kills.fetch_add(1, Ordering::Relaxed);
        }
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert!(
            matches!(answer.code, None | Some(0 | 1 | 3 | 4)),
            "{args:?}: {answer:?}"
        );
        assert!(
            !answer.stdout.contains("git_failed"),
            "{args:?}: {answer:?}"
        );
        let removed = args[1] == "remove" && answer.code == Some(0);
        self.removals
            .fetch_add(usize::from(removed), Ordering::Relaxed);
    }

    fn check(&self, seed: u64) {
        let repo = &self.at.repo;
        self.at.ok(&["worktree", "create", "probe"]);
        let list = self.at.ok(&["worktree", "list", "--all", "--quick"]);
        for tree in list["worktrees"].as_array().unwrap() {
            assert!(tree.get("underWay").is_none(), "{tree}");
        }
        repo.check_sound();
        // A git that was killed together with its ccb leaves its lock where no other ccb has come
        // since; the doctor removes it. It would keep a user's git out.
        self.at.run(&["doctor", "--fix"]);
        // This deletes all unreferenced objects.
        repo.git(&["gc", "-q", "--prune=now"]);
        let everything = everything(repo);
        let tokens = self.tokens.lock().unwrap();
        let lost: Vec<&String> = tokens.iter().filter(|t| !everything.contains(*t)).collect();
        println!(
            "{} pieces of work, {} removals, {} kills",
            tokens.len(),
            self.removals.load(Ordering::Relaxed),
            self.kills.load(Ordering::Relaxed)
        );
        assert!(lost.is_empty(), "CCB_SEED={seed}: lost {lost:?}");
        assert!(tokens.len() > 50, "the test has to do something");
        for tree in TREES {
            self.at.run(&["worktree", "undo", tree]);
            let answer = self.at.run(&["worktree", "create", tree]);
            if answer.stdout.contains("branch_exists") {
                // A commit moved the branch after git's directory of the worktree had gone, so no
                // reflog names its worktree. Such a branch is kept until a person has decided.
                repo.git(&["branch", "-qD", &format!("worktree/{tree}")]);
                self.at.ok(&["worktree", "create", tree]);
            } else {
                assert_eq!(answer.code, Some(0), "{answer:?}");
            }
        }
        repo.check_sound();
    }
}

/// The text of all files in worktrees and trash, and of every object git would keep.
fn everything(repo: &TestRepo) -> String {
    let mut text = String::new();
    for root in [repo.main().join(".claude"), repo.ours().join("trash")] {
        store::tree::walk(&root, &mut |path, meta| {
            if meta.is_file() && meta.len() < 100_000 {
                text.push_str(&String::from_utf8_lossy(&std::fs::read(path)?));
            }
            Ok(!path.ends_with("admin"))
        })
        .unwrap();
    }
    let listed = git(
        repo.main(),
        &[
            "rev-list",
            "--objects",
            "--all",
            "--reflog",
            "--indexed-objects",
        ],
    );
    let names: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let mut child = git_command(repo.main(), &["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input: String = names.iter().map(|name| format!("{name}\n")).collect();
    std::thread::scope(|scope| {
        use std::io::Write;
        scope.spawn(move || stdin.write_all(input.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        text.push_str(&String::from_utf8_lossy(&output.stdout));
    });
    text
}
