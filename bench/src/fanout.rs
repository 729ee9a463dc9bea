//! `ccb fanout` beside a shell script that does the same with `git worktree add`.
//!
//! Each task makes one file, is checked by one command, and ends as a commit and a patch; then
//! its tree goes. ccb and the scripts do it in turn, each in a new copy of the same repository of
//! a thousand files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::args::Options;
use crate::environment::Place;
use crate::repository::{Repository, git, run as finish};
use crate::table::{Table, ms, significant, thousands};
use crate::{Failure, check_interrupted, startup};

/// Files of the repository.
const FILES: u64 = 1000;

/// What a script does for one task.
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
    tasks: u64,
    total_ms: f64,
    each_ms: f64,
    failed: u64,
    /// The most memory of ccb itself, in KiB.
    memory: Option<u64>,
    #[serde(skip)]
    texts: [String; 2],
}

/// Measures every number of tasks in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = startup::binary(options)?;
    let sizes: &[u64] = match options.quick {
        true => &[10, 50],
        false => &[10, 100, 300, 1000],
    };
    let jobs = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    let mut samples = Vec::new();
    for place in &options.places {
        for tasks in sizes {
            eprintln!("fanout: {}, {tasks} tasks", place.label);
            check_interrupted()?;
            let bench = Bench::new(place, *tasks, jobs)?;
            samples.push(bench.ccb(place, &binary)?);
            for how in ["xargs -P", "parallel"] {
                check_interrupted()?;
                let bench = Bench::new(place, *tasks, jobs)?;
                samples.extend(bench.script(place, how)?);
            }
        }
    }
    Ok(samples)
}

/// Prints the table.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## Fan-out\n");
    println!("Tasks that make one file each, in worktrees of a repository of {FILES} files.\n");
    for place in &options.places {
        println!("### {}\n", place.label);
        let heads = ["tasks", "how", "total s", "each ms", "failed", "peak MB"];
        let mut table = Table::new(2, heads);
        for sample in samples.iter().filter(|sample| sample.place == place.label) {
            let memory = sample.memory.map(|kib| significant(kib as f64 / 1024.0));
            table.row(vec![
                thousands(sample.tasks),
                sample.how.to_owned(),
                sample.texts[0].clone(),
                sample.texts[1].clone(),
                sample.failed.to_string(),
                memory.unwrap_or_default(),
            ]);
        }
        println!("{table}");
    }
}

struct Bench {
    repository: Repository,
    root: PathBuf,
    tasks: u64,
    jobs: String,
}

impl Bench {
    fn new(place: &Place, tasks: u64, jobs: usize) -> Result<Self, Failure> {
        let repository = Repository::generate(place.scratch()?, FILES)?;
        let main = &repository.main;
        for (key, value) in [("user.name", "bench"), ("user.email", "bench@example.org")] {
            finish(git(main, &["config", key, value]))?;
        }
        let root = main.parent().ok_or("no parent")?.to_owned();
        let list: String = (1..=tasks).map(|n| format!("{n}\n")).collect();
        std::fs::write(root.join("list"), list)?;
        std::fs::write(root.join("one.sh"), SCRIPT)?;
        std::fs::create_dir(root.join("patches"))?;
        std::fs::create_dir(root.join("trees"))?;
        place.flush()?;
        Ok(Self {
            repository,
            root,
            tasks,
            jobs: jobs.to_string(),
        })
    }

    fn sample(&self, place: &Place, how: &'static str, total: Duration) -> Sample {
        let each = total / u32::try_from(self.tasks).unwrap_or(1).max(1);
        Sample {
            place: place.label.clone(),
            how,
            tasks: self.tasks,
            total_ms: total.as_secs_f64() * 1000.0,
            each_ms: each.as_secs_f64() * 1000.0,
            failed: 0,
            memory: None,
            texts: [significant(total.as_secs_f64()), ms(each)],
        }
    }

    fn ccb(&self, place: &Place, binary: &Path) -> Result<Sample, Failure> {
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
        let began = Instant::now();
        let child = Command::new(binary)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &self.root)
            .arg("--home")
            .arg(self.root.join("home"))
            .args(["fanout", "--ci", "-j", &self.jobs, "--out", "../out"])
            .arg(&plan)
            .current_dir(&self.repository.main)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let memory = watch(child)?;
        let mut sample = self.sample(place, "ccb fanout", began.elapsed());
        sample.memory = Some(memory);
        sample.failed = self.tasks - patches(&self.root.join("out"))?;
        Ok(sample)
    }

    /// `None` if the program is not there.
    fn script(&self, place: &Place, how: &'static str) -> Result<Option<Sample>, Failure> {
        let mut command = match how {
            "parallel" => {
                let mut command = Command::new("parallel");
                command.args(["-j", &self.jobs, "-a", "../list", "sh", "../one.sh"]);
                command
            }
            _ => {
                let mut command = Command::new("xargs");
                command.args(["-a", "../list", "-P", &self.jobs, "-n", "1", "sh", "../one.sh"]);
                command
            }
        };
        let began = Instant::now();
        let ended = command
            .current_dir(&self.repository.main)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if ended.is_err() {
            return Ok(None);
        }
        let mut sample = self.sample(place, how, began.elapsed());
        sample.failed = self.tasks - patches(&self.root.join("patches"))?;
        Ok(Some(sample))
    }
}

/// How many patches are whole.
fn patches(dir: &Path) -> Result<u64, Failure> {
    let mut count = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        count += u64::from(name.to_string_lossy().ends_with(".patch") && entry.metadata()?.len() > 0);
    }
    Ok(count)
}

/// Waits for its end; the most memory it had, in KiB.
fn watch(mut child: Child) -> Result<u64, Failure> {
    let path = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait()?.is_none() {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(number.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(most)
}
