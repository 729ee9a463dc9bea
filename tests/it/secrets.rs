//! Secrets of the user who starts agents: in no kept file, in no supervising process.

use std::path::{Path, PathBuf};

use harness::runs::LONG;
use harness::team_session::SessionScene;
use harness::{Answer, TestHome, Workplace, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::CCB;

const NAME: &str = "MY_API_TOKEN";
const SECRET: &str = "zq7-correct-horse-4451";

/// A file with the secret, outside of all searched directories.
struct Leak(TempDir);

impl Leak {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("leak"), SECRET).unwrap();
        Self(dir)
    }

    fn file(&self) -> String {
        self.0.path().join("leak").display().to_string()
    }
}

/// The files below `dir` in which the secret is.
fn holding(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else {
        return found;
    };
    for entry in entries.map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(holding(&entry.path()));
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let holds = |part: &[u8]| part == SECRET.as_bytes();
            if bytes.windows(SECRET.len()).any(holds) {
                found.push(entry.path());
            }
        }
    }
    found
}

fn assert_clean(dir: &Path) {
    let found = holding(dir);
    assert!(found.is_empty(), "{found:#?}");
}

fn spawn(home: &TestHome, command: &str, more: &[&str]) -> (String, Answer) {
    let args = ["--json", "agent", "spawn", "--runtime", "shell"];
    let mut starting = home.command(&[&args, more, &[command]].concat());
    let answer = Answer::of(starting.env(NAME, SECRET).output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let id = answer.json()["agent"]["agentId"]
        .as_str()
        .map(str::to_owned);
    (id.unwrap(), answer)
}

fn read(home: &TestHome, id: &str, name: &str) -> String {
    std::fs::read_to_string(home.run_dir(id).join(name)).unwrap()
}

#[test]
fn what_an_agent_was_not_given_is_taken_out_of_all_it_says() {
    let home = TestHome::in_memory(CCB);
    let leak = Leak::new();
    let command = format!(
        "test -z \"${NAME}\" || exit 9; cat {0}; cat {0} >&2",
        leak.file()
    );
    let (id, _) = spawn(&home, &command, &["--background"]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "completed");
    for name in ["output.log", "transcript.jsonl", "exit.json"] {
        assert!(read(&home, &id, name).contains("[redacted]"), "{name}");
    }
    assert_eq!(home.notifications().len(), 1);
    assert_clean(home.path());
    // The waiting command does not see it either.
    let (_, waited) = spawn(&home, &command, &[]);
    assert!(waited.stdout.contains("[redacted]") && !waited.stdout.contains(SECRET));
}

#[test]
fn what_an_agent_was_given_is_taken_out_of_its_mail_and_tasks() {
    let home = TestHome::in_memory(CCB);
    home.settings(&json!({"agents": {"env": [NAME]}}).to_string());
    home.team(&["team-lead"]);
    let ccb = format!("'{CCB}'");
    let task = home.create("job").to_string();
    let command = format!(
        "set -e; {ccb} mail send team-lead \"it is ${NAME}\"; \
         {ccb} mail send '*' \"all: ${NAME}\"; \
         {ccb} task update {task} --description \"use ${NAME}\" --meta \"key=\\\"${NAME}\\\"\"; \
         {ccb} task create \"try ${NAME}\" --description \"with ${NAME}\"; \
         echo ${NAME}; exit 3"
    );
    let (id, _) = spawn(&home, &command, &["--background"]);
    home.await_settled(&id);
    assert_eq!(home.run_exit(&id).unwrap()["status"], "failed");
    let told = home.told_lead();
    assert_eq!(told, ["it is [redacted]", "all: [redacted]"]);
    let tasks = home.tasks_on_disk();
    assert_eq!(tasks[0]["description"], "use [redacted]");
    assert_eq!(tasks[0]["metadata"]["key"], "[redacted]");
    assert_eq!(tasks[1]["subject"], "try [redacted]");
    assert_clean(home.path());
}

#[test]
fn commands_are_carried_out_as_they_are() {
    let home = TestHome::in_memory(CCB);
    let check = format!("test {SECRET} = {SECRET}");
    let args = ["--json", "task", "create", "job", "--verify", &check];
    let answer = Answer::of(home.command(&args).env(NAME, SECRET).output().unwrap());
    let task: Value = answer.json()["task"].clone();
    assert_eq!(task["metadata"]["ccb"]["verify"], check);
}

/// The environment and the command line of a process, as others of its user see them.
fn seen(pid: i32) -> String {
    let part = |name: &str| std::fs::read(format!("/proc/{pid}/{name}"));
    // Without root's rights even reading is refused.
    let parts = [
        part("environ").unwrap_or_default(),
        part("cmdline").unwrap(),
    ]
    .concat();
    String::from_utf8_lossy(&parts).replace('\0', "\n")
}

#[test]
fn neither_guard_nor_host_shows_what_the_agent_was_not_given() {
    let home = TestHome::in_memory(CCB);
    let go = home.path().join("go");
    let command = format!("until test -e {}; do sleep 0.05; done", go.display());
    let (id, _) = spawn(&home, &command, &["--background"]);
    home.await_run(&id, "running");
    let processes = ["guard", "host", "pid"].map(|which| (which, home.run_process(&id, which)));
    let shown = processes.map(|(which, pid)| (which, seen(pid)));
    std::fs::write(&go, "").unwrap();
    home.await_settled(&id);
    for (which, shown) in shown {
        let clean = !shown.contains(SECRET) && !shown.contains(NAME);
        assert!(clean, "{which}: {shown}");
    }
}

#[test]
fn hooks_of_a_run_have_what_the_user_has() {
    let home = TestHome::in_memory(CCB);
    let leak = Leak::new();
    let seen = leak.0.path().join("seen");
    let hook = format!(
        "echo \"${NAME} $CLAUDE_CODE_TEAM_NAME\" >> {}",
        seen.display()
    );
    home.hooks(&json!({
        "SubagentStop": [{"hooks": [{"type": "command", "command": hook}]}],
        "TaskCompleted": [{"hooks": [{"type": "command", "command": hook}]}],
    }));
    let task = home.create("job").to_string();
    let (id, _) = spawn(&home, "true", &["--background", "--task", &task]);
    home.await_settled(&id);
    wait_until(LONG, "both hooks", || {
        std::fs::read_to_string(&seen).is_ok_and(|text| text.matches(SECRET).count() == 2)
    });
    assert_clean(home.path());
}

#[test]
fn nothing_a_session_keeps_holds_a_secret() {
    let scene = SessionScene::new(CCB);
    let leak = Leak::new();
    let say = format!("cat {}", leak.file());
    let run = format!("{say}; echo x > made");
    let good = scene.task("good", &["--run", &run, "--verify", &say]);
    let bad = scene.task(
        "bad",
        &["--run", &say, "--verify", &format!("{say}; false")],
    );
    let args = ["--json", "--runtime", "shell", "--verify", &say];
    let mut session = scene.command(&args);
    let answer = Answer::of(session.env(NAME, SECRET).output().unwrap());
    assert_eq!(scene.status(good), "completed", "{answer:?}");
    let why = scene.file(bad)["metadata"]["ccb"]["attempts"].to_string();
    assert!(why.contains("[redacted]"), "{why}");
    assert!(!answer.stdout.contains(SECRET) && !answer.stderr.contains(SECRET));
    assert_clean(scene.home.path());
    assert_clean(&scene.repo.main().join(".git/ccb"));
}

#[test]
fn nothing_a_fan_out_keeps_holds_a_secret() {
    let fan = Workplace::new(CCB);
    let leak = Leak::new();
    let say = format!("cat {}", leak.file());
    let plan = json!({
        "defaults": {"retries": 0},
        "tasks": [
            {"id": "good", "run": format!("{say}; echo x > made"), "verify": say},
            {"id": "bad", "run": say, "verify": format!("{say}; false")},
        ],
    });
    fan.repo.write("plan.json", &plan.to_string());
    let args = ["--json", "fanout", "plan.json", "--ci", "--land", "merge"];
    let mut command = fan.command(&args);
    let answer = Answer::of(command.env(NAME, SECRET).output().unwrap());
    assert!(answer.stdout.contains("[redacted]"), "{answer:?}");
    assert!(!answer.stdout.contains(SECRET) && !answer.stderr.contains(SECRET));
    assert_clean(fan.home.path());
    assert_clean(&fan.repo.main().join("ccb-out"));
    assert_clean(&fan.repo.main().join(".git/ccb"));
}
