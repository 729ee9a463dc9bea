//! The description of its tools that each program gets, for every built-in type: a table. The
//! programs are scripts that record their input; `tests/real/tools.rs` tests its effect on the real
//! ones.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use harness::{Workplace, write};
use serde_json::{Value, json};

use crate::CCB;

const TYPES: [&str; 5] = [
    "general-purpose",
    "Explore",
    "Plan",
    "worker",
    "verification",
];

/// Records its arguments, its rules and its policy; answers Codex's greeting, to see how a thread
/// is opened.
const RECORDER: &str = r#"#!/bin/sh
dir=$(dirname "$0")
printf '%s\n' "$@" > "$dir/args"
printf '%s' "$OPENCODE_PERMISSION" > "$dir/rules"
while [ $# -gt 0 ]; do
    case $1 in --admin-policy) cat "$2" > "$dir/policy" ;; esac
    shift
done
read -r greeting
echo "$greeting" | sed 's/.*"id":\([0-9]*\).*/{"id":\1,"result":{}}/'
read -r ready
read -r opening
printf '%s' "$opening" > "$dir/opening"
"#;

struct Scene {
    place: Workplace,
    dir: PathBuf,
}

impl Scene {
    /// A scene with a recorder of this name as the runtime of this kind.
    fn new(program: &str, kind: &str) -> Self {
        let place = Workplace::new(CCB);
        let dir = place.home.path().join("recorder");
        let file = dir.join(program);
        write(&file, RECORDER);
        let can_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, can_run).unwrap();
        let settings = json!({"runtimes": {program: {"kind": kind, "command": [file]}}});
        place.home.settings(&settings.to_string());
        Self { place, dir }
    }

    /// Starts an agent; it fails, having recorded its input.
    fn start(&self, program: &str, kind: &str) {
        let mut answer = self.place.run(&[
            "agent",
            "spawn",
            "--runtime",
            program,
            "--type",
            kind,
            "--wait",
            "Go.",
        ]);
        let agent = answer.json()["agent"].clone();
        if agent["status"] == "async_launched" {
            let id = agent["agentId"].as_str().unwrap();
            answer = self.place.run(&["agent", "output", id]);
        }
        assert_eq!(answer.code, Some(1), "{answer:?}");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join(name)).unwrap()
    }

    /// The value of an argument, `-` if there is none.
    fn value(&self, flag: &str) -> String {
        let args = self.read("args");
        let mut lines = args.lines().skip_while(|line| *line != flag);
        lines.next();
        lines.next().unwrap_or("-").to_owned()
    }
}

fn table(program: &str, kind: &str, row: impl Fn(&Scene) -> String) -> String {
    let scene = Scene::new(program, kind);
    let rows = TYPES.map(|kind| {
        scene.start(program, kind);
        format!("{kind}: {}\n", row(&scene))
    });
    rows.concat()
}

#[test]
fn claude_gets_a_list_of_tools_a_mode_and_nothing_to_orchestrate_with() {
    let told = table("claude", "claude", |scene| {
        let flags = [
            "--tools",
            "--permission-mode",
            "--allowedTools",
            "--disallowedTools",
        ];
        flags.map(|flag| scene.value(flag)).join(" | ")
    });
    let expected = "\
general-purpose: Bash,Edit,Glob,Grep,NotebookEdit,Read,Skill,WebFetch,WebSearch,Write | acceptEdits | mcp__ccb | -
Explore: Bash,Glob,Grep,Read,Skill,WebFetch,WebSearch | default | - | Agent,ExitPlanMode,Edit,Write,NotebookEdit
Plan: Bash,Glob,Grep,Read,Skill,WebFetch,WebSearch | plan | - | Agent,Edit,Write,NotebookEdit
worker: Bash,Edit,Glob,Grep,NotebookEdit,Read,Skill,WebFetch,WebSearch,Write | acceptEdits | - | Agent
verification: Bash,Glob,Grep,Read,WebFetch,WebSearch | default | mcp__ccb | Agent,ExitPlanMode
";
    assert_eq!(told, expected);
}

#[test]
fn codex_gets_settings_and_a_sandbox() {
    let told = table("codex", "codex", |scene| {
        let args = scene.read("args");
        let settings: Vec<&str> = args.lines().filter(|line| line.contains('=')).collect();
        let expected = [
            "agents.enabled=false",
            "features.multi_agent=false",
            "features.goals=false",
            "features.sleep_tool=false",
            "tools.update_plan.enabled=false",
            "tools.experimental_request_user_input.enabled=false",
        ];
        assert_eq!(settings, expected);
        let opening: Value = serde_json::from_str(&scene.read("opening")).unwrap();
        let params = &opening["params"];
        format!("{} {}", params["approvalPolicy"], params["sandbox"])
    });
    let expected = r#"general-purpose: "on-request" "workspace-write"
Explore: "never" "read-only"
Plan: "never" "read-only"
worker: "on-request" "workspace-write"
verification: "on-request" "read-only"
"#;
    assert_eq!(told, expected);
}

#[test]
fn opencode_gets_rules() {
    let told = table("opencode", "acp", |scene| {
        let rules: Value = serde_json::from_str(&scene.read("rules")).unwrap();
        let rules = rules.as_object().unwrap().iter();
        let words = |what: &str| {
            let names = rules.clone().filter(|(_, rule)| *rule == what);
            let mut names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            names.join(" ")
        };
        ["allow", "ask", "deny"].map(words).join(" | ")
    });
    let expected = "\
general-purpose: ccb_* edit | bash external_directory webfetch | plan_enter plan_exit question task todoread todowrite
Explore:  | external_directory webfetch | bash edit plan_enter plan_exit question task todoread todowrite
Plan:  | external_directory webfetch | bash edit plan_enter plan_exit question task todoread todowrite
worker: edit | bash external_directory webfetch | plan_enter plan_exit question task todoread todowrite
verification: ccb_* codesearch glob grep list read websearch | bash external_directory webfetch | * edit plan_enter plan_exit question skill task todoread todowrite
";
    assert_eq!(told, expected);
}

#[test]
fn gemini_gets_a_policy() {
    let told = table("gemini", "acp", |scene| {
        let policy = scene.read("policy");
        assert!(policy.contains("decision = \"deny\""), "{policy}");
        let names = policy
            .split_once('[')
            .unwrap()
            .1
            .split_once("= [")
            .unwrap()
            .1;
        let names = names.split_once(']').unwrap().0.replace(['"', ','], " ");
        let always = [
            "ask_user",
            "complete_task",
            "enter_plan_mode",
            "exit_plan_mode",
            "invoke_agent",
            "update_topic",
            "write_todos",
        ];
        let words: Vec<&str> = names.split_whitespace().collect();
        for name in always {
            assert!(words.contains(&name), "{policy}");
        }
        let others = words
            .into_iter()
            .filter(|name| !always.contains(name) && !name.starts_with("tracker_"));
        others.collect::<Vec<_>>().join(" ")
    });
    let expected = "\
general-purpose: 
Explore: list_background_processes read_background_output replace run_shell_command write_file
Plan: list_background_processes read_background_output replace run_shell_command write_file
worker: 
verification: activate_skill replace write_file
";
    assert_eq!(told, expected);
}

#[test]
fn qwen_gets_names_to_leave_out() {
    let told = table("qwen", "acp", |scene| scene.value("--exclude-tools"));
    let expected = "\
general-purpose: agent,ask_user_question,cron_create,cron_delete,cron_list,exit_plan_mode,monitor,send_message,task,task_stop,todo_write,tool_search
Explore: agent,ask_user_question,cron_create,cron_delete,cron_list,edit,exit_plan_mode,monitor,run_shell_command,send_message,task,task_stop,todo_write,tool_search,write_file
Plan: agent,ask_user_question,cron_create,cron_delete,cron_list,edit,exit_plan_mode,monitor,run_shell_command,send_message,task,task_stop,todo_write,tool_search,write_file
worker: agent,ask_user_question,cron_create,cron_delete,cron_list,exit_plan_mode,monitor,send_message,task,task_stop,todo_write,tool_search
verification: agent,ask_user_question,cron_create,cron_delete,cron_list,edit,exit_plan_mode,monitor,send_message,skill,task,task_stop,todo_write,tool_search,write_file
";
    assert_eq!(told, expected);
}

/// Claude Code starts a repository's servers unasked where it reads the repository's settings. It
/// reads them if the user trusts all of both.
#[test]
fn claude_reads_what_a_repository_says_once_all_of_it_is_trusted() {
    let scene = Scene::new("claude", "claude");
    let reads = || {
        scene.start("claude", "general-purpose");
        scene.value("--setting-sources") == "-"
    };
    let servers = |names: &[&str]| {
        let server = json!({"command": "true"});
        let all = names
            .iter()
            .map(|name| ((*name).to_owned(), server.clone()));
        let all: serde_json::Map<String, Value> = all.collect();
        let text = json!({ "mcpServers": all }).to_string();
        scene.place.repo.write(".mcp.json", &text);
    };
    servers(&["one"]);
    assert!(!reads(), "it is not trusted yet");
    scene.place.ok(&["trust"]);
    assert!(reads(), "a server alone");
    scene
        .place
        .repo
        .write(".claude/settings.json", r#"{"env":{"A":"1"}}"#);
    assert!(!reads(), "settings are new");
    scene.place.ok(&["trust"]);
    assert!(reads(), "both");
    servers(&["one", "two"]);
    assert!(!reads(), "a server is new");
    scene.place.repo.write(".mcp.json", "{");
    assert!(!reads(), "it cannot be read");
}
