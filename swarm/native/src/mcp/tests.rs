use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::tools::{Call, MAX_RESULT, Toolbox, ToolboxOptions};

/// A server in a few lines of shell: what it does at the start, and on a call.
fn server(dir: &Path, name: &str, start: &str, call: &str) -> McpServer {
    let script = format!(
        r#"#!/bin/sh
{start}
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
text() {{ answer "{{\"content\":[{{\"type\":\"text\",\"text\":\"$1\"}}]}}"; }}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) answer '{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}' ;;
  *'"tools/list"'*) answer '{{"tools":[{{"name":"do","description":"Does it.","inputSchema":{{"$schema":"x","type":"object"}}}},{{"name":"look","inputSchema":{{}},"annotations":{{"readOnlyHint":true}}}}]}}' ;;
  *'"tools/call"'*) {call} ;;
  esac
done
"#
    );
    let file = dir.join(name);
    let relaxed = store::atomic::Durability::Relaxed;
    store::atomic::replace(dir, &file, script.as_bytes(), relaxed).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    McpServer {
        name: name.to_owned(),
        // Through the shell: a file that was written a moment ago may be busy.
        command: "/bin/sh".into(),
        args: vec![file.to_string_lossy().into_owned()],
        ..McpServer::default()
    }
}

struct Scene {
    dir: tempfile::TempDir,
    env: Vec<(OsString, OsString)>,
}

impl Scene {
    fn new() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self {
            dir: tempfile::tempdir().unwrap(),
            env: vec![("PATH".into(), path), ("A_KEY".into(), "secret".into())],
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    async fn connect(&self, servers: &[McpServer], required: &[&str]) -> Result<Mcp, String> {
        let required: Vec<String> = required.iter().map(ToString::to_string).collect();
        let options = McpOptions {
            servers,
            required: &required,
            cwd: self.path(),
            env: &self.env,
            withheld: &["A_KEY".to_owned()],
            processes: &Processes::own().unwrap(),
        };
        Mcp::connect(options, None).await
    }

    /// Waits for a file that a server makes.
    async fn file(&self, name: &str) -> String {
        let file: PathBuf = self.path().join(name);
        for _ in 0..1_000 {
            if let Ok(text) = std::fs::read_to_string(&file)
                && text.ends_with('\n')
            {
                return text.trim().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there is no {name}");
    }
}

fn toolbox(mcp: &Mcp) -> Toolbox {
    Toolbox::new(&ToolboxOptions::default(), mcp.tools())
}

async fn call(mcp: &Mcp, tool: &str) -> (String, bool) {
    let output = toolbox(mcp).call(tool, json!({}), &Call::new("t1")).await;
    (output.text, output.is_error)
}

fn is_gone(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    state.map_or(true, |stat| stat.contains(") Z "))
}

async fn until_gone(pid: &str) {
    for _ in 0..1_000 {
        if is_gone(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid} still runs");
}

#[tokio::test]
async fn tools_are_named_after_their_server_and_called() {
    let scene = Scene::new();
    let start = "echo \"key=$A_KEY\" > env";
    let servers = [
        server(scene.path(), "db", start, "text \"called $PWD\""),
        server(scene.path(), "web", "", "text ok"),
    ];
    let mcp = scene.connect(&servers, &["db"]).await.unwrap();
    let specs = toolbox(&mcp).specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let all = [
        "mcp__db__do",
        "mcp__db__look",
        "mcp__web__do",
        "mcp__web__look",
    ];
    let named = |name: &str| specs.iter().find(|spec| spec.name == name).unwrap();
    assert!(all.iter().all(|name| names.contains(name)), "{names:?}");
    assert_eq!(named("mcp__db__do").description, "Does it.");
    assert_eq!(named("mcp__db__do").input_schema, json!({"type": "object"}));
    assert!(!named("mcp__db__do").reads_only && named("mcp__db__look").reads_only);
    let (text, wrong) = call(&mcp, "mcp__db__do").await;
    assert!(text.starts_with("called /") && !wrong, "{text}");
    // The model's key is no business of theirs.
    assert_eq!(scene.file("env").await, "key=");
    mcp.close().await;
}

#[tokio::test]
async fn a_server_that_dies_says_so_in_the_result() {
    let scene = Scene::new();
    let dies = "echo 'the disk is full' >&2; exit 3";
    let servers = [server(scene.path(), "db", "", dies)];
    let mcp = scene.connect(&servers, &[]).await.unwrap();
    let (text, wrong) = call(&mcp, "mcp__db__do").await;
    assert!(wrong, "{text}");
    assert!(text.contains("exit code 3 (the disk is full)"), "{text}");
    // And again, at once.
    let (text, wrong) = call(&mcp, "mcp__db__look").await;
    assert!(wrong && text.contains("cannot be used any more"), "{text}");
}

#[tokio::test]
async fn a_required_server_that_fails_is_named_at_once_and_the_others_end() {
    let scene = Scene::new();
    let started = std::time::Instant::now();
    let servers = [
        server(scene.path(), "slow", "echo $$ > slow-pid; sleep 300", ""),
        server(scene.path(), "db", "echo 'no licence' >&2; exit 1", ""),
    ];
    let error = scene.connect(&servers, &["slow", "db"]).await.unwrap_err();
    assert!(
        error.starts_with("MCP servers it needs are missing: db: "),
        "{error}"
    );
    assert!(error.contains("exit code 1 (no licence)"), "{error}");
    assert!(
        started.elapsed() < REQUIRED,
        "it did not wait for the other one"
    );
    if scene.path().join("slow-pid").exists() {
        until_gone(&scene.file("slow-pid").await).await;
    }
    let error = scene.connect(&[], &["db"]).await.unwrap_err();
    assert!(error.contains("db: it is not among its servers"), "{error}");
    let gone = McpServer {
        name: "db".into(),
        command: "/nowhere/at-all".into(),
        ..McpServer::default()
    };
    let error = scene
        .connect(std::slice::from_ref(&gone), &["db"])
        .await
        .unwrap_err();
    assert!(
        error.contains("cannot start \"/nowhere/at-all\""),
        "{error}"
    );
    // Not required: the agent starts without it.
    let mcp = scene.connect(&[gone], &[]).await.unwrap();
    assert!(mcp.tools().is_empty() && mcp.absent()[0].starts_with("db: "));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_waited_for_no_longer_than_it_may_take() {
    let scene = Scene::new();
    let servers = [server(
        scene.path(),
        "db",
        "echo $$ > pid; exec sleep 300",
        "",
    )];
    let error = scene.connect(&servers, &["db"]).await.unwrap_err();
    assert!(
        error.contains("did not show its tools within 30s"),
        "{error}"
    );
    let mcp = scene.connect(&servers, &[]).await.unwrap();
    assert_eq!(mcp.absent(), ["db: it did not show its tools within 10s"]);
}

#[tokio::test]
async fn a_long_answer_is_cut_and_nonsense_is_skipped() {
    let scene = Scene::new();
    let noise = "echo 'Server listening!'; echo; echo '{\"half\":'";
    let long = r#"text "$(head -c 3000000 /dev/zero | tr '\0' x)""#;
    let servers = [server(scene.path(), "db", noise, long)];
    let mcp = scene.connect(&servers, &[]).await.unwrap();
    assert_eq!(mcp.absent(), [""; 0]);
    let (text, wrong) = call(&mcp, "mcp__db__do").await;
    assert!(!wrong && text.len() < MAX_RESULT + 100, "{}", text.len());
    assert!(text.contains("bytes left out"));
}

#[tokio::test]
async fn a_cancelled_call_is_called_off_and_a_server_ends_with_its_agent() {
    let scene = Scene::new();
    let waits = "echo $$ > pid; :";
    let servers = [server(scene.path(), "db", "", waits)];
    let mcp = scene.connect(&servers, &[]).await.unwrap();
    let tools = toolbox(&mcp);
    let one = Call::new("t1");
    let cancel = one.cancel.clone();
    let called = tools.call("mcp__db__do", json!({}), &one);
    let cancelled = async {
        let pid = scene.file("pid").await;
        cancel.cancel();
        pid
    };
    let (output, pid) = tokio::join!(called, cancelled);
    assert!(
        output.is_error && output.text.contains("cancelled"),
        "{output:?}"
    );
    assert!(!is_gone(&pid));
    drop((tools, mcp));
    until_gone(&pid).await;
}
