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

/// What became of a job.
#[derive(Debug)]
pub struct Ended {
    /// Its checkout, as it was left.
    pub workspace: PathBuf,
    pub succeeded: bool,
    /// What all steps printed.
    pub log: String,
    /// What GitHub would show on the job's page.
    pub summary: String,
}

struct Job {
    workspace: PathBuf,
    temp: PathBuf,
    context: BTreeMap<String, String>,
    /// What is put into the cache once all went well.
    cache: Option<PathBuf>,
    failed: bool,
    log: String,
}

impl CiRunner {
    /// `bin` has the programs a machine of theirs would have; `action` is our `action.yml`.
    pub fn new(origin: &Path, bin: &Path, action: &str) -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
            origin: origin.to_owned(),
            bin: bin.to_owned(),
            action: yaml(action),
            jobs: 0,
        }
    }

    /// What jobs have kept, by name.
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
        for path in &cached {
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
        for file in ["output", "summary"] {
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
            cache: None,
            failed: false,
            log: String::new(),
        }
    }

    fn end(&self, job: Job) -> Ended {
        if let Some(path) = job.cache.as_ref().filter(|_| !job.failed) {
            copy(path, &self.cache());
        }
        Ended {
            summary: std::fs::read_to_string(job.temp.join("summary")).unwrap_or_default(),
            workspace: job.workspace,
            succeeded: !job.failed,
            log: job.log,
        }
    }

    fn step(&self, job: &mut Job, step: &Value) {
        let always = step["if"] == "always()";
        if (job.failed && !always) || step["if"] == "inputs.cache == 'true'" && !job.is("cache") {
            return;
        }
        let with = job.filled(&step["with"]);
        if let Some(script) = step["run"].as_str() {
            let env: Vec<(String, String)> = job.filled(&step["env"]).into_iter().collect();
            let script = job.fill(script);
            self.script(job, &script, &env);
            return;
        }
        let uses = step["uses"]
            .as_str()
            .expect("a step runs or uses something");
        let get = |name: &str| with.get(name).cloned().unwrap_or_default();
        match uses.split('@').next().unwrap_or_default() {
            // Every job begins with one.
            "actions/checkout" => {}
            "actions/cache" => {
                let path = PathBuf::from(get("path"));
                copy(&self.cache(), &path);
                job.cache = Some(path);
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
            other => panic!("the examples use {other}, which nobody runs here"),
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
        job.context
            .extend([("github.ref_name", "main"), ("github.run_id", "1")].map(owned));
        for step in self.action["runs"]["steps"].as_array().expect("steps") {
            self.step(job, step);
        }
    }

    fn script(&self, job: &mut Job, script: &str, env: &[(String, String)]) {
        let file = |name: &str| job.temp.join(name);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(&job.workspace)
            .env_clear()
            .env("PATH", format!("{}:{path}", self.bin.display()))
            .env("HOME", &job.temp)
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_WORKSPACE", &job.workspace)
            .env("GITHUB_ACTION_PATH", &job.workspace)
            .env("GITHUB_OUTPUT", file("output"))
            .env("GITHUB_STEP_SUMMARY", file("summary"))
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
    fn is(&self, input: &str) -> bool {
        self.context
            .get(&format!("inputs.{input}"))
            .map(String::as_str)
            == Some("true")
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
            let secret = name.trim().starts_with("secrets.");
            assert!(value.is_some() || secret, "nobody knows {name}");
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
