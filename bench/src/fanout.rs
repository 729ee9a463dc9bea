//! `ccb fanout` beside a shell script that does the same with `git worktree add`.
//!
//! Each task makes one file, is checked by one command, and ends as a commit and a patch; then its
//! worktree is removed. ccb and the scripts do it in turn, each in a new copy of the same
//! repository. Besides the time, the benchmark measures processors, memory and disk.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use crate::args::Options;
use crate::environment::Place;
use crate::repository::{Repository, git, run as finish};
use crate::table::{Table, significant, thousands};
use crate::{Failure, check_interrupted, startup};

/// Files in the repository, tasks, and the tasks of a script: it needs seconds for each worktree of
/// the largest one, and hardly longer for each if there are more.
const CASES: &[(u64, u64, u64)] = &[(200, 2000, 2000), (5000, 2000, 500), (50_000, 2000, 100)];
/// Number of tasks that are compared at the beginning and at the end.
const PART: usize = 200;
/// Poll interval for the processor time of ccb's processes.
const LOOK: Duration = Duration::from_millis(200);

/// The script for one task.
const SCRIPT: &str = r#"n=$1
git worktree add -q -b "s/$n" "../trees/$n" HEAD || exit 1
cd "../trees/$n" || exit 1
sh -c "echo $n > out-$n" && git add -A && git commit -qm "task $n" && sh -c "test -s out-$n" || exit 1
git format-patch -q --stdout HEAD~1 > "../../patches/$n.patch" || exit 1
cd ../../main && git worktree remove --force "../trees/$n"
"#;

/// One line of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    how: &'static str,
    files: u64,
    tasks: u64,
    total_ms: f64,
    each_ms: f64,
    failed: u64,
    used: Used,
    /// The duration of each of the first and of the last tasks, in ms.
    parts: Option<(f64, f64)>,
}

/// The resources besides time.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Used {
    /// Processor time of everything, in ms.
    all_cpu_ms: f64,
    /// Processor time of the process that was started, in ms.
    main_cpu_ms: f64,
    /// The same with the supervisors it started: all of ccb, without git and the tasks' own
    /// commands.
    own_cpu_ms: f64,
    /// The most memory of that process, in KiB.
    memory: u64,
    /// The most disk space, in MiB.
    disk: u64,
}

/// Measures every number of tasks in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = startup::binary(options)?;
    let cases = match options.quick {
        true => &[(200, 50, 50)],
        false => CASES,
    };
    let jobs = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    // Supervisors of agents outlive their starter; as their parent the benchmark learns what they
    // used.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut samples = Vec::new();
    for place in &options.places {
        for (files, tasks, by_script) in cases {
            for (how, tasks) in [
                ("ccb fanout", tasks),
                ("xargs -P", by_script),
                ("parallel", by_script),
            ] {
                check_interrupted()?;
                eprintln!(
                    "fanout: {}, {files} files, {tasks} tasks, {how}",
                    place.label
                );
                let bench = Bench::new(place, *files, *tasks, jobs)?;
                samples.extend(bench.run(place, how, &binary)?);
            }
        }
    }
    Ok(samples)
}

/// Prints the table.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Fan-out\n");
    println!(
        "Tasks that make one file each, in worktrees. × is the time per task as a multiple of xargs.\n"
    );
    for place in &options.places {
        println!("### {}\n", place.label);
        let heads = [
            "files", "tasks", "how", "total s", "×", "each ms", "CPU ms", "ccb ms", "main ms",
            "first", "last", "failed", "peak MB", "disk MB",
        ];
        let mut table = Table::new(3, heads);
        let here = || samples.iter().filter(|sample| sample.place == place.label);
        for sample in here() {
            let xargs = here().find(|other| other.files == sample.files && other.how == "xargs -P");
            let times = xargs.map(|xargs| significant(sample.each_ms / xargs.each_ms));
            let per_task = |ms: f64| significant(ms / sample.tasks as f64);
            let (first, last) = sample.parts.unzip();
            table.row(vec![
                thousands(sample.files),
                thousands(sample.tasks),
                sample.how.to_owned(),
                significant(sample.total_ms / 1000.0),
                times.unwrap_or_default(),
                significant(sample.each_ms),
                per_task(sample.used.all_cpu_ms),
                match sample.used.own_cpu_ms {
                    0.0 => String::new(),
                    ms => per_task(ms),
                },
                per_task(sample.used.main_cpu_ms),
                first.map(significant).unwrap_or_default(),
                last.map(significant).unwrap_or_default(),
                sample.failed.to_string(),
                significant(sample.used.memory as f64 / 1024.0),
                sample.used.disk.to_string(),
            ]);
        }
        println!("{table}");
    }
}

struct Bench {
    repository: Repository,
    root: PathBuf,
    files: u64,
    tasks: u64,
    jobs: String,
}

impl Bench {
    fn new(place: &Place, files: u64, tasks: u64, jobs: usize) -> Result<Self, Failure> {
        let repository = Repository::generate(place.scratch()?, files)?;
        let main = &repository.main;
        for (key, value) in [("user.name", "bench"), ("user.email", "bench@example.org")] {
            finish(git(main, &["config", key, value]))?;
        }
        let root = main.parent().ok_or("no parent")?.to_owned();
        let list: String = (1..=tasks).map(|n| format!("{n}\n")).collect();
        std::fs::write(root.join("list"), list)?;
        std::fs::write(root.join("one.sh"), SCRIPT)?;
        for dir in ["patches", "trees", "out"] {
            std::fs::create_dir(root.join(dir))?;
        }
        place.flush()?;
        Ok(Self {
            repository,
            root,
            files,
            tasks,
            jobs: jobs.to_string(),
        })
    }

    /// Runs the program; `None` if it is missing.
    fn run(
        &self,
        place: &Place,
        how: &'static str,
        binary: &Path,
    ) -> Result<Option<Sample>, Failure> {
        let ccb = how == "ccb fanout";
        let mut command = match how {
            "ccb fanout" => self.ccb(binary)?,
            "parallel" => {
                let mut command = Command::new("parallel");
                command.args(["-j", &self.jobs, "-a", "../list", "sh", "../one.sh"]);
                command
            }
            _ => {
                let mut command = Command::new("xargs");
                command.args([
                    "-a",
                    "../list",
                    "-P",
                    &self.jobs,
                    "-n",
                    "1",
                    "sh",
                    "../one.sh",
                ]);
                command
            }
        };
        let began = Instant::now();
        let started = command
            .current_dir(&self.repository.main)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            return Ok(None);
        };
        let (total, used) = watch(child, began, &self.root)?;
        let dir = if ccb { "out" } else { "patches" };
        let patches = patches(&self.root.join(dir))?;
        Ok(Some(Sample {
            place: place.label.clone(),
            how,
            files: self.files,
            tasks: self.tasks,
            total_ms: total.as_secs_f64() * 1000.0,
            each_ms: total.as_secs_f64() * 1000.0 / self.tasks as f64,
            failed: self.tasks - patches,
            used,
            parts: match ccb {
                true => parts(&self.root.join("home"))?,
                false => None,
            },
        }))
    }

    fn ccb(&self, binary: &Path) -> Result<Command, Failure> {
        let plan = self.root.join("plan.json");
        let list = self.root.join("list");
        std::fs::write(
            &plan,
            serde_json::json!({"foreach": [{"lines": list, "task": {
                "id": "t{{line}}", "run": "echo {{line}} > out-{{line}}",
                "verify": "test -s out-{{line}}",
            }}]})
            .to_string(),
        )?;
        let mut command = Command::new(binary);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &self.root)
            .arg("--home")
            .arg(self.root.join("home"))
            .args(["fanout", "--ci", "-j", &self.jobs, "--out", "../out"])
            .arg(&plan);
        Ok(command)
    }
}

/// The duration of each of the first and of the last tasks, in ms, by the ends of their runs.
fn parts(home: &Path) -> Result<Option<(f64, f64)>, Failure> {
    let mut ends: Vec<SystemTime> = Vec::new();
    let mut dirs = vec![home.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            } else if entry.file_name() == "exit.json" {
                ends.push(entry.metadata()?.modified()?);
            }
        }
    }
    ends.sort();
    let each = |part: &[SystemTime]| {
        let took = part.last()?.duration_since(*part.first()?).ok()?;
        Some(took.as_secs_f64() * 1000.0 / (part.len() - 1) as f64)
    };
    let (Some(first), Some(last)) = (ends.get(..PART), ends.len().checked_sub(PART)) else {
        return Ok(None);
    };
    Ok(each(first).zip(each(&ends[last..])))
}

/// The number of whole patches.
fn patches(dir: &Path) -> Result<u64, Failure> {
    let mut count = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        count +=
            u64::from(name.to_string_lossy().ends_with(".patch") && entry.metadata()?.len() > 0);
    }
    Ok(count)
}

/// Waits for its end, and for that of everything it started; returns its own duration.
fn watch(mut child: Child, began: Instant, root: &Path) -> Result<(Duration, Used), Failure> {
    let (before, free) = (children_ms()?, free_mib(root)?);
    let own = format!("/proc/{}", child.id());
    let mut used = Used::default();
    let mut supervisors = Supervisors::new(root);
    let ended = loop {
        if let Ok(text) = std::fs::read_to_string(format!("{own}/stat")) {
            used.main_cpu_ms = ticks(&text, 11).unwrap_or(used.main_cpu_ms);
        }
        let status = std::fs::read_to_string(format!("{own}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        used.memory = used.memory.max(number.unwrap_or(0));
        used.disk = used.disk.max(free.saturating_sub(free_mib(root)?));
        supervisors.look();
        if child.try_wait()?.is_some() {
            break began.elapsed();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    if !supervisors.used.is_empty() {
        used.own_cpu_ms = used.main_cpu_ms + supervisors.used.values().sum::<f64>();
    }
    let late = Instant::now() + Duration::from_secs(30);
    while Instant::now() < late {
        match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => break,
        }
    }
    used.all_cpu_ms = children_ms()? - before;
    Ok((ended, used))
}

/// The processor time of guards and hosts, as far as it was sampled.
struct Supervisors {
    /// A directory that their command lines name.
    root: Vec<u8>,
    looked: Instant,
    used: HashMap<String, f64>,
}

impl Supervisors {
    fn new(root: &Path) -> Self {
        Self {
            root: root.as_os_str().as_bytes().to_vec(),
            looked: Instant::now(),
            used: HashMap::new(),
        }
    }

    /// Samples, unless it was just done. They serve many tasks, so that hardly anything is missed.
    fn look(&mut self) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let line = read("cmdline");
            let mut words = line.split(|byte| *byte == 0).skip(1);
            let role = words.next().unwrap_or_default();
            let ours = words.next().is_some_and(|dir| dir.starts_with(&self.root));
            if ours && matches!(role, b"__guard" | b"__host") {
                let stat = String::from_utf8_lossy(&read("stat")).into_owned();
                let pid = entry.file_name().to_string_lossy().into_owned();
                self.used.extend(ticks(&stat, 11).map(|ms| (pid, ms)));
            }
        }
    }
}

/// Processor time of all children that have ended, in ms.
fn children_ms() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    Ok(ticks(&text, 13).ok_or("no times in /proc/self/stat")?)
}

/// The sum of two neighbouring times in a `stat` of `/proc`, counted behind the name, in ms.
fn ticks(stat: &str, first: usize) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let of = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((of(first)? + of(first + 1)?) * 10.0)
}

fn free_mib(dir: &Path) -> Result<u64, Failure> {
    let stat = rustix::fs::statvfs(dir)?;
    Ok(stat.f_bfree * stat.f_frsize / (1024 * 1024))
}
