//! The programs follow the scripted model's orders.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use harness::model::{ModelServer, Outcome, Role, Step, prompt};
use harness::real_program;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A program, in surroundings of its own.
struct Real {
    program: String,
    dir: TempDir,
    server: ModelServer,
}

impl Real {
    /// The program `variable` names.
    fn new(variable: &str) -> Self {
        // Not below the usual place for temporary files: one of them refuses to work there.
        let dir = tempfile::Builder::new()
            .prefix(".ccb-real-")
            .tempdir_in(home_of_tests());
        let dir = dir.expect("a directory");
        for name in ["home", "tmp", "cwd"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        Self {
            program: real_program(variable),
            dir,
            server: ModelServer::start(),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &Value) {
        harness::write(&self.path(name), &text.to_string());
    }

    /// A command with nothing of this machine but its search path.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.path("cwd"))
            .stdin(Stdio::null());
        command
    }

    /// Checks the result of the model's tool, and the output of the program.
    fn check(&self, output: &Output, tool_says: &str, result: &str) {
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{errors}");
        assert!(said.contains(result), "{said}\n{errors}");
        let scripted = self.server.scripted();
        let heard = scripted
            .last()
            .expect("a request")
            .conversation
            .last(Role::Tool)
            .to_owned();
        assert!(heard.contains(tool_says), "{heard}");
        assert!(scripted.iter().all(|request| !request.tools.is_empty()));
    }
}

fn home_of_tests() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A script of two steps: a command, and a text.
fn steps(tool: &str, input: Value) -> Vec<Step> {
    vec![
        Step::tool(tool, input).and_text("first").usage(1000, 10),
        Step::text("well done").usage(1100, 20),
    ]
}

fn claude(real: &Real, prompt: &str) -> Command {
    let mut command = real.command(&[
        "-p",
        prompt,
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "bypassPermissions",
    ]);
    command
        .env("CLAUDE_CONFIG_DIR", real.path("home/.claude"))
        .env("ANTHROPIC_BASE_URL", real.server.url())
        .env("ANTHROPIC_API_KEY", "not-a-key")
        .env("IS_SANDBOX", "1");
    for off in [
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    ] {
        command.env(off, "1");
    }
    command
}

pub(crate) fn claude_follows_a_script() {
    let real = Real::new("CCB_TEST_CLAUDE");
    let steps = steps("Bash", json!({ "command": "echo $((6*7))" }));
    let output = claude(&real, &prompt("Go.", &steps))
        .output()
        .expect("it starts");
    real.check(&output, "42", "well done");
    let text = String::from_utf8_lossy(&output.stdout);
    let result: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(result["usage"]["input_tokens"], 2100, "{result}");
    assert_eq!(result["usage"]["output_tokens"], 30, "{result}");
}

pub(crate) fn claude_tries_again() {
    let real = Real::new("CCB_TEST_CLAUDE");
    let steps = [
        Step::tool("Bash", json!({ "command": "echo a" })).http_first(529, 1),
        Step::text("half").drop_stream().times(1),
    ];
    let output = claude(&real, &prompt("Go.", &steps))
        .output()
        .expect("it starts");
    real.check(&output, "a", "half");
    let outcomes: Vec<_> = real
        .server
        .settled()
        .iter()
        .map(|request| request.outcome)
        .collect();
    assert!(
        outcomes.contains(&Some(Outcome::Refused(529))),
        "{outcomes:?}"
    );
    assert!(outcomes.contains(&Some(Outcome::Cut)), "{outcomes:?}");
}

pub(crate) fn codex_follows_a_script() {
    let real = Real::new("CCB_TEST_CODEX");
    let provider = real.server.url();
    let config = format!(
        "model = \"fake\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\n\
         base_url = \"{provider}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n"
    );
    harness::write(&real.path("codex/config.toml"), &config);
    let steps = steps("exec_command", json!({ "cmd": "echo $((6*7))" }));
    let output = real
        .command(&[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--disable",
            "plugins",
            "-s",
            "danger-full-access",
            &prompt("Go.", &steps),
        ])
        .env("CODEX_HOME", real.path("codex"))
        .env("FAKE_KEY", "x")
        .output()
        .expect("it starts");
    real.check(&output, "42", "well done");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"input_tokens\":2100"));
}

pub(crate) fn opencode_follows_a_script() {
    let real = Real::new("CCB_TEST_OPENCODE");
    let base = format!("{}/v1", real.server.url());
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": { "baseURL": base, "apiKey": "x" },
        "models": { "m": { "name": "m" } },
    });
    real.write(
        "opencode.json",
        &json!({
            "provider": { "fake": provider },
            "model": "fake/m",
            "small_model": "fake/m",
            "permission": "allow",
        }),
    );
    let input = json!({ "command": "echo $((6*7))", "description": "Sums" });
    harness::write(&real.path("prompt"), &prompt("Go.", &steps("bash", input)));
    let mut command = real.command(&["run", "--format", "json"]);
    for off in [
        "AUTOUPDATE",
        "MODELS_FETCH",
        "DEFAULT_PLUGINS",
        "LSP_DOWNLOAD",
    ] {
        command.env(format!("OPENCODE_DISABLE_{off}"), "1");
    }
    let stdin = std::fs::File::open(real.path("prompt")).expect("a file");
    let output = command
        .env("OPENCODE_CONFIG", real.path("opencode.json"))
        .stdin(stdin)
        .output()
        .expect("it starts");
    real.check(&output, "42", "well done");
}

pub(crate) fn gemini_follows_a_script() {
    let real = Real::new("CCB_TEST_GEMINI");
    real.write(
        "home/.gemini/settings.json",
        &json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "privacy": { "usageStatisticsEnabled": false },
            "telemetry": { "enabled": false },
            "general": { "disableAutoUpdate": true },
        }),
    );
    let steps = steps("run_shell_command", json!({ "command": "expr 6 '*' 7" }));
    let output = real
        .command(&[
            "-p",
            &prompt("Go.", &steps),
            "--output-format",
            "stream-json",
            "--approval-mode",
            "yolo",
            "-m",
            "gemini-2.5-pro",
        ])
        .env("GEMINI_API_KEY", "x")
        .env("GOOGLE_GEMINI_BASE_URL", real.server.url())
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
        .env("GEMINI_CLI_NO_RELAUNCH", "true")
        .output()
        .expect("it starts");
    real.check(&output, "42", "well done");
}

pub(crate) fn an_answer_that_hangs_is_left_when_claude_is_killed() {
    let real = Real::new("CCB_TEST_CLAUDE");
    let steps = [Step::text("never").hang()];
    let mut command = claude(&real, &prompt("Go.", &steps));
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    let limit = Duration::from_secs(60);
    real.server.wait_for(limit, "a request", |requests| {
        requests.iter().any(harness::model::Recorded::is_scripted)
    });
    child.kill().expect("it is there");
    child.wait().expect("its end");
    real.server
        .wait_for(limit, "its leaving to be seen", |requests| {
            let mut scripted = requests.iter().filter(|request| request.is_scripted());
            scripted.any(|request| request.outcome == Some(Outcome::AskerGone))
        });
}
