//! As much of GitHub's and GitLab's runners as the examples in `docs/ci.md` use: a fresh checkout
//! per job, steps that are scripts, our own action, a cache and artifacts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::git;

/// Runs jobs of one repository, one after the other.
#[derive(Debug)]
pub struct CiRunner {
    dir: TempDir,
    origin: PathBuf,
    /// Programs that come first in every job's PATH.
    bin: PathBuf,
    action: Value,
    jobs: usize,
}

/// The result of a job.
#[derive(Debug)]
pub struct Ended {
    /// Its checkout after the job.
    pub workspace: PathBuf,
    pub succeeded: bool,
    /// The output of all steps.
    pub log: String,
    /// The summary on GitHub's page of the job.
    pub summary: String,
}

struct Job {
    workspace: PathBuf,
    temp: PathBuf,
    context: BTreeMap<String, String>,
    /// The directories that steps have put in front of PATH.
    path: String,
    failed: bool,
    log: String,
}

impl CiRunner {
    /// `bin` has the programs of a runner; `action` is our `action.yml`.
    pub fn new(origin: &Path, bin: &Path, action: &str) -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
            origin: origin.to_owned(),
            bin: bin.to_owned(),
            action: yaml(action),
            jobs: 0,
        }
    }

    /// The artifacts of jobs, by name.
    pub fn artifact(&self, name: &str) -> PathBuf {
        self.dir.path().join("artifacts").join(name)
    }

    /// Runs a job of a workflow, with these values for `${{ … }}`.
    pub fn github_job(&mut self, job: &Value, context: &[(&str, &str)]) -> Ended {
        let mut state = self.begin(context);
        for step in job["steps"].as_array().expect("steps") {
            self.step(&mut state, step);
        }
        self.end(state)
    }

    /// Runs a job of GitLab's.
    pub fn gitlab_job(&mut self, job: &Value) -> Ended {
        let mut state = self.begin(&[]);
        let cached = texts(&job["cache"]["paths"]);
        for path in &cached {
            copy(&self.cache().join(path), &state.workspace.join(path));
        }
        let project = state.workspace.to_string_lossy().into_owned();
        let variables = job["variables"].as_object().cloned().unwrap_or_default();
        let variables = variables.iter().map(|(name, value)| {
            let text = value.as_str().unwrap_or_default();
            (name.clone(), text.replace("$CI_PROJECT_DIR", &project))
        });
        let variables: Vec<(String, String)> = variables.collect();
        let script = texts(&job["script"]).join("\n");
        self.script(&mut state, &script, &variables);
        let kept = !state.failed || job["cache"]["when"] == "always";
        for path in cached.iter().filter(|_| kept) {
            copy(&state.workspace.join(path), &self.cache().join(path));
        }
        for path in texts(&job["artifacts"]["paths"]) {
            copy(&state.workspace.join(&path), &self.artifact(&path));
        }
        self.end(state)
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn begin(&mut self, context: &[(&str, &str)]) -> Job {
        self.jobs += 1;
        let root = self.dir.path().join(format!("job-{}", self.jobs));
        let temp = root.join("temp");
        std::fs::create_dir_all(&temp).expect("a directory");
        for file in ["output", "summary", "path"] {
            std::fs::write(temp.join(file), "").expect("a file");
        }
        let workspace = root.join("work");
        let (from, to) = (self.origin.to_string_lossy(), workspace.to_string_lossy());
        git(&root, &["clone", "-q", &from, &to]);
        let mut context: BTreeMap<String, String> = context
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        context.insert("runner.temp".into(), temp.to_string_lossy().into_owned());
        Job {
            workspace,
            temp,
            context,
            path: String::new(),
            failed: false,
            log: String::new(),
        }
    }

    fn end(&self, job: Job) -> Ended {
        Ended {
            summary: std::fs::read_to_string(job.temp.join("summary")).unwrap_or_default(),
            workspace: job.workspace,
            succeeded: !job.failed,
            log: job.log,
        }
    }

    fn step(&self, job: &mut Job, step: &Value) {
        if !job.wants(step["if"].as_str().unwrap_or_default()) {
            return;
        }
        let with = job.filled(&step["with"]);
        if let Some(script) = step["run"].as_str() {
            let env: Vec<(String, String)> = job.filled(&step["env"]).into_iter().collect();
            let script = job.fill(script);
            self.script(job, &script, &env);
            job.take_outputs(step["id"].as_str());
            return;
        }
        let uses = step["uses"]
            .as_str()
            .expect("a step runs or uses something");
        let get = |name: &str| with.get(name).cloned().unwrap_or_default();
        match uses.split('@').next().unwrap_or_default() {
            // Every job begins with one.
            "actions/checkout" => {}
            "actions/cache/restore" => {
                if let Some(found) = self.cached(&get("key"), &get("restore-keys")) {
                    copy(&found, Path::new(&get("path")));
                }
            }
            "actions/cache/save" => {
                let to = self.cache().join(get("key"));
                // A key is used once.
                if !to.exists() {
                    copy(Path::new(&get("path")), &to);
                }
            }
            "actions/upload-artifact" => {
                let path = job.workspace.join(get("path"));
                copy(&path, &self.artifact(&get("name")));
            }
            "actions/download-artifact" => {
                let begins = get("pattern");
                let begins = begins.trim_end_matches('*');
                let all = std::fs::read_dir(self.dir.path().join("artifacts"));
                for entry in all.expect("artifacts").flatten() {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    if name.starts_with(begins) {
                        copy(&entry.path(), &job.workspace.join(get("path")).join(name));
                    }
                }
            }
            "./.github/actions/ccb" => self.own_action(job, &with),
            other => panic!("the examples use {other}, which this runner lacks"),
        }
    }

    fn own_action(&self, job: &mut Job, with: &BTreeMap<String, String>) {
        let inputs = self.action["inputs"].as_object().expect("inputs");
        for name in with.keys() {
            assert!(inputs.contains_key(name), "the action has no input {name}");
        }
        for (name, input) in inputs {
            let given = with.get(name).cloned();
            let default = input["default"].as_str().map(str::to_owned);
            let value = given.or(default);
            let value = value.unwrap_or_else(|| panic!("the input {name} is missing"));
            job.context.insert(format!("inputs.{name}"), value);
        }
        let run = self.jobs.to_string();
        job.context.extend(
            [
                ("github.ref_name", "main"),
                ("github.run_id", run.as_str()),
                ("github.run_attempt", "1"),
                ("runner.os", "Linux"),
                ("runner.arch", "X64"),
            ]
            .map(owned),
        );
        for step in self.action["runs"]["steps"].as_array().expect("steps") {
            self.step(job, step);
        }
    }

    /// The entry of the cache with this key, or the newest with one that begins so.
    fn cached(&self, key: &str, begins: &str) -> Option<PathBuf> {
        let exact = self.cache().join(key);
        if exact.exists() {
            return Some(exact);
        }
        let begins = begins.trim();
        let all = std::fs::read_dir(self.cache());
        let mut found: Vec<PathBuf> = all
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| {
                !begins.is_empty() && entry.file_name().to_string_lossy().starts_with(begins)
            })
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found.pop()
    }

    fn script(&self, job: &mut Job, script: &str, env: &[(String, String)]) {
        let file = |name: &str| job.temp.join(name);
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}{}:{path}", job.path, self.bin.display());
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(&job.workspace)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &job.temp)
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_WORKSPACE", &job.workspace)
            .env("GITHUB_ACTION_PATH", &job.workspace)
            .env("GITHUB_OUTPUT", file("output"))
            .env("GITHUB_STEP_SUMMARY", file("summary"))
            .env("GITHUB_PATH", file("path"))
            .env("RUNNER_TEMP", &job.temp)
            .envs(env.iter().map(|(name, value)| (name, value)));
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("bash");
        job.log.push_str(&String::from_utf8_lossy(&stdout));
        job.log.push_str(&String::from_utf8_lossy(&stderr));
        job.failed |= !status.success();
    }
}

impl Job {
    /// True if a step runs, by its `if`.
    fn wants(&self, condition: &str) -> bool {
        let mut parts = condition.split("&&").map(str::trim);
        let always = condition.contains("always()");
        let holds = |part: &str| {
            let (name, value, equal) = match (part.split_once("=="), part.split_once("!=")) {
                (Some((name, value)), _) => (name, value, true),
                (_, Some((name, value))) => (name, value, false),
                _ if matches!(part, "" | "always()") => return true,
                _ => panic!("this runner does not understand {part:?}"),
            };
            let is = self.context.get(name.trim()).map_or("", String::as_str);
            (is == value.trim().trim_matches('\'')) == equal
        };
        (always || !self.failed) && parts.all(holds)
    }

    /// Reads the outputs of a step for those after it.
    fn take_outputs(&mut self, id: Option<&str>) {
        let read = |name: &str| std::fs::read_to_string(self.temp.join(name)).unwrap_or_default();
        let (outputs, paths) = (read("output"), read("path"));
        for line in outputs.lines() {
            if let (Some(id), Some((name, value))) = (id, line.split_once('=')) {
                let name = format!("steps.{id}.outputs.{name}");
                self.context.insert(name, value.to_owned());
            }
        }
        std::fs::write(self.temp.join("output"), "").expect("a file");
        self.path = paths.lines().map(|line| format!("{line}:")).collect();
    }

    /// Puts values in the place of `${{ … }}`.
    fn fill(&self, text: &str) -> String {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, tail)) = rest.split_once("${{") {
            let (name, after) = tail.split_once("}}").expect("an expression ends");
            done.push_str(before);
            // Secrets are not there, as in a fork.
            let value = self.context.get(name.trim());
            let secret = name.trim().starts_with("secrets.") || name.trim().starts_with("steps.");
            assert!(value.is_some() || secret, "{name} is unknown");
            done.push_str(value.map_or("", String::as_str));
            rest = after;
        }
        done + rest
    }

    fn filled(&self, map: &Value) -> BTreeMap<String, String> {
        let map = map.as_object().cloned().unwrap_or_else(Map::new);
        let text = |value: &Value| match value {
            Value::String(text) => self.fill(text),
            other => other.to_string(),
        };
        map.iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect()
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    let texts = list.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn copy(from: &Path, to: &Path) {
    if !from.exists() {
        return;
    }
    std::fs::create_dir_all(to).expect("a directory");
    let status = Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(to)
        .status();
    assert!(status.expect("cp").success(), "{from:?} {to:?}");
}

/// A YAML document.
pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
