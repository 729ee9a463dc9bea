//! Worktrees beside plain git, in repositories of several sizes.
//!
//! Every round does both, one after the other, in the same repository: a file system that is
//! slow at the moment is slow for both. ccb's side is called as a library, as a coordinator
//! calls it; git is a process, as it always is (and ccb starts git, too).

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use worktrees::{ChangeState, CreateRequest, RemoveRequest, Slug, TreeOptions, Trees};

use crate::args::Options;
use crate::environment::Place;
use crate::repository::{Repository, git, run as finish};
use crate::stats::Spread;
use crate::table::{Table, ms, significant, thousands};
use crate::{Failure, check_interrupted};

/// Number of worktrees made at once.
const AT_ONCE: usize = 16;
/// In larger repositories sixteen worktrees, twice, would be millions of files.
const AT_ONCE_FILES: u64 = 20_000;

/// One line of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    files: u64,
    what: &'static str,
    git: &'static str,
    git_ms: f64,
    ccb_ms: f64,
    runs: usize,
    #[serde(skip)]
    texts: [String; 2],
}

/// Measures every size in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for place in &options.places {
        for files in &options.files {
            eprintln!("worktrees: {}, {files} files", place.label);
            samples.extend(size(place, *files, rounds(*files, options.quick))?);
        }
    }
    Ok(samples)
}

fn rounds(files: u64, quick: bool) -> usize {
    match (files, quick) {
        (..=5_000, false) => 20,
        (..=50_000, false) => 7,
        (_, false) => 3,
        (..=5_000, true) => 5,
        (_, true) => 2,
    }
}

/// Times of one operation, git's and ours.
#[derive(Debug, Default)]
struct Pair {
    git: Vec<Duration>,
    ccb: Vec<Duration>,
}

#[derive(Debug, Default)]
struct Times {
    create: Pair,
    resume: Pair,
    take: Pair,
    changes: Pair,
    remove: Pair,
    at_once: Pair,
}

fn size(place: &Place, files: u64, rounds: usize) -> Result<Vec<Sample>, Failure> {
    let repository = Repository::generate(place.scratch()?, files)?;
    let main = repository.main.as_path();
    let trees = Trees::discover(main, TreeOptions::default())?;
    let mut times = Times::default();
    for round in 0..rounds {
        check_interrupted()?;
        place.flush()?;
        one_round(&trees, main, round, &mut times)?;
    }
    if files <= AT_ONCE_FILES {
        let rounds = if files < AT_ONCE_FILES {
            rounds.min(5)
        } else {
            1
        };
        for round in 0..rounds {
            check_interrupted()?;
            place.flush()?;
            sixteen(main, round, &mut times.at_once)?;
        }
    }
    let status = times.changes.git.clone();
    let removals = times.remove.ccb.clone();
    let rows = [
        ("create", "worktree add", times.create),
        ("resume", "worktree add", times.resume),
        ("take from the pool", "worktree add", times.take),
        ("changes", "status --porcelain", times.changes),
        ("remove", "worktree remove", times.remove),
        (
            "remove",
            "status --porcelain",
            Pair {
                git: status,
                ccb: removals,
            },
        ),
        ("16 created at once", "16 × worktree add", times.at_once),
    ];
    let sample = |(what, git, pair): (&'static str, &'static str, Pair)| {
        let (theirs, ours) = (Spread::of(pair.git), Spread::of(pair.ccb));
        Sample {
            place: place.label.clone(),
            files,
            what,
            git,
            git_ms: theirs.p50.as_secs_f64() * 1e3,
            ccb_ms: ours.p50.as_secs_f64() * 1e3,
            runs: ours.count,
            texts: [ms(theirs.p50), ms(ours.p50)],
        }
    };
    let measured = rows.into_iter().filter(|(_, _, pair)| !pair.ccb.is_empty());
    Ok(measured.map(sample).collect())
}

/// Each operation once, git's and ours in turn; who comes first changes.
fn one_round(trees: &Trees, main: &Path, round: usize, times: &mut Times) -> Result<(), Failure> {
    let slug = Slug::new(&format!("ours{round}"))?;
    let tree = main.join(".claude/worktrees").join(slug.flat());
    let theirs = main.join(format!("../theirs{round}"));
    let branch = format!("theirs{round}");
    let request = CreateRequest::new(Some(slug.clone()), main);
    let path = theirs.to_string_lossy().into_owned();
    let add = ["worktree", "add", "-q", "-b", &branch, &path];
    if round % 2 == 0 {
        times.create.git.push(wall(main, &add)?);
    }
    let started = Instant::now();
    drop(trees.create(&request)?);
    times.create.ccb.push(started.elapsed());
    if round % 2 == 1 {
        times.create.git.push(wall(main, &add)?);
    }

    let started = Instant::now();
    let found = trees.create(&request)?;
    times.resume.ccb.push(started.elapsed());
    if found.created {
        return Err("it was to be found, not made".into());
    }
    // The index notes that the files are as they are; from then on only their times are read.
    for _ in 0..2 {
        finish(git(&tree, &["status", "--porcelain"]))?;
    }
    for _ in 0..3 {
        times
            .changes
            .git
            .push(wall(&tree, &["status", "--porcelain"])?);
        let started = Instant::now();
        let changes = trees.changes(&slug)?;
        times.changes.ccb.push(started.elapsed());
        if changes.state != ChangeState::Clean {
            return Err(format!("a new tree is {}", changes.describe()).into());
        }
    }
    let started = Instant::now();
    trees.remove(&slug, &RemoveRequest::default())?;
    times.remove.ccb.push(started.elapsed());
    times
        .remove
        .git
        .push(wall(main, &["worktree", "remove", &path])?);
    times.resume.git.clone_from(&times.create.git);

    let filled = trees.fill_pool(1, &request)?;
    if filled.ready != 1 {
        return Err(format!("the pool is not filled: {filled:?}").into());
    }
    let slug = Slug::new(&format!("taken{round}"))?;
    let started = Instant::now();
    drop(trees.create(&CreateRequest::new(Some(slug.clone()), main))?);
    times.take.ccb.push(started.elapsed());
    if !trees.pool()?.is_empty() {
        return Err("it was to come from the pool".into());
    }
    times.take.git.clone_from(&times.create.git);
    trees.remove(&slug, &RemoveRequest::default())?;
    empty_trash(main)
}

/// Sixteen threads of ours at once; sixteen calls of git in a row.
fn sixteen(main: &Path, round: usize, times: &mut Pair) -> Result<(), Failure> {
    let started = Instant::now();
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|n| {
                scope.spawn(move || {
                    let make = || -> Result<(), Failure> {
                        let trees = Trees::discover(main, TreeOptions::default())?;
                        let slug = Slug::new(&format!("once{round}-{n}"))?;
                        trees.create(&CreateRequest::new(Some(slug), main))?;
                        Ok(())
                    };
                    make().map_err(|error| error.to_string())
                })
            })
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|result| result.unwrap_or_else(|_| Err("a thread died".into())))
            .collect()
    });
    times.ccb.push(started.elapsed());
    if let Some(error) = results.into_iter().find_map(Result::err) {
        return Err(format!("one of {AT_ONCE} failed: {error}").into());
    }
    let trees = Trees::discover(main, TreeOptions::default())?;
    for n in 0..AT_ONCE {
        trees.remove(
            &Slug::new(&format!("once{round}-{n}"))?,
            &RemoveRequest::default(),
        )?;
    }
    empty_trash(main)?;
    let mut paths = Vec::new();
    let started = Instant::now();
    for n in 0..AT_ONCE {
        let name = format!("row{round}-{n}");
        let path = main.join("..").join(&name).to_string_lossy().into_owned();
        finish(git(main, &["worktree", "add", "-q", "-b", &name, &path]))?;
        paths.push(path);
    }
    times.git.push(started.elapsed());
    for path in paths {
        finish(git(main, &["worktree", "remove", &path]))?;
    }
    Ok(())
}

fn wall(dir: &Path, args: &[&str]) -> Result<Duration, Failure> {
    let started = Instant::now();
    finish(git(dir, args))?;
    Ok(started.elapsed())
}

/// Not measured: it happens days later, when no user waits.
fn empty_trash(main: &Path) -> Result<(), Failure> {
    for entry in std::fs::read_dir(main.join(".git/ccb/trash"))? {
        store::tree::delete(&entry?.path())?;
    }
    Ok(())
}

/// Prints one table per place.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Worktrees\n");
    println!("Medians. Files of 2 KB, a hundred to a directory. git's `worktree add` and");
    println!("`worktree remove` write and delete the files; ours moves them to the trash.\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let heads = [
            "operation",
            "beside git",
            "files",
            "git ms",
            "ccb ms",
            "ccb / git",
            "runs",
        ];
        let mut table = Table::new(2, heads);
        for sample in samples.iter().filter(|s| s.place == place.label) {
            let [theirs, ours] = sample.texts.clone();
            table.row(vec![
                sample.what.to_owned(),
                sample.git.to_owned(),
                thousands(sample.files),
                theirs,
                ours,
                significant(sample.ccb_ms / sample.git_ms),
                sample.runs.to_string(),
            ]);
        }
        println!("{table}");
    }
}
