use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use store::atomic::{self, Durability};
use swarm::definitions::PermissionMode;
use swarm::tools::{Reach, ToolFilter};

use super::*;

struct Bench {
    dir: tempfile::TempDir,
    toolbox: Arc<Toolbox>,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// `tree/` is the agent's working directory, `tmp/` is its temporary directory, `outside/` is
    /// neither.
    fn with(change: impl FnOnce(&mut ToolboxOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["tree/.git", "tmp", "outside"] {
            std::fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        let path = std::env::var_os("PATH").unwrap();
        let mut options = ToolboxOptions {
            cwd: dir.path().join("tree"),
            tmp: dir.path().join("tmp"),
            env: vec![("PATH".into(), path)],
            ..ToolboxOptions::default()
        };
        change(&mut options);
        let toolbox = Arc::new(Toolbox::new(&options, Vec::new()));
        Self { dir, toolbox }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.dir.path().join(name);
        let dir = path.parent().unwrap();
        std::fs::create_dir_all(dir).unwrap();
        atomic::replace(dir, &path, bytes.as_ref(), Durability::Relaxed).unwrap();
    }

    fn text(&self, name: &str) -> String {
        let bytes = std::fs::read(self.dir.path().join(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    async fn call(&self, tool: &str, input: Value) -> ToolOutput {
        self.toolbox.call(tool, input, &Call::new("1")).await
    }

    async fn ok(&self, tool: &str, input: Value) -> String {
        let output = self.call(tool, input.clone()).await;
        assert!(!output.is_error, "{tool} {input}: {}", output.text);
        output.text
    }

    async fn refused(&self, tool: &str, input: Value) -> String {
        let output = self.call(tool, input.clone()).await;
        assert!(output.is_error, "{tool} {input}: {}", output.text);
        output.text
    }
}

#[tokio::test]
async fn whatever_a_model_sends_gets_an_answer() {
    let bench = Bench::new();
    let said = bench.refused("Raed", json!({})).await;
    assert!(said.contains("\"Read\""), "{said}");
    for input in [json!(null), json!("x"), json!([1])] {
        let said = bench.refused("Read", input).await;
        assert!(said.contains("JSON object"), "{said}");
    }
    let said = bench.refused("Read", json!({})).await;
    assert!(said.contains("file_path is missing"), "{said}");
    let said = bench.refused("Read", json!({"file_paht": "x"})).await;
    assert!(said.contains("did you mean \"file_path\""), "{said}");
    for bad in [json!(-1), json!("x"), json!(1.5), json!({})] {
        let said = bench
            .refused("Read", json!({"file_path": "x", "offset": bad}))
            .await;
        assert!(said.contains("offset must be"), "{said}");
    }
    for path in ["", "a\0b"] {
        bench.refused("Read", json!({"file_path": path})).await;
    }
}

#[tokio::test]
async fn a_file_is_read_in_pages_with_line_numbers() {
    let bench = Bench::new();
    bench.put("tree/a.txt", "one\ntwo\r\nthree");
    let text = bench.ok("Read", json!({"file_path": "a.txt"})).await;
    assert_eq!(text, "     1\tone\n     2\ttwo\n     3\tthree\n");
    let absolute = bench.path("tree/a.txt");
    let page = json!({"file_path": absolute, "offset": 2, "limit": "1"});
    let text = bench.ok("Read", page).await;
    assert_eq!(
        text,
        "     2\ttwo\n[The file goes on. Read with offset 3 for more.]\n"
    );
    let said = bench
        .refused("Read", json!({"file_path": "a.txt", "offset": 9}))
        .await;
    assert!(said.contains("only 3 lines"), "{said}");
    bench.put("tree/empty", "");
    let text = bench.ok("Read", json!({"file_path": "empty"})).await;
    assert!(text.contains("empty"), "{text}");
}

#[tokio::test]
async fn files_that_are_no_text_are_named_and_odd_text_is_read() {
    let bench = Bench::new();
    bench.put("tree/x.png", b"\x89PNG\r\n\x1a\n123");
    bench.put("tree/x.bin", b"ab\0cd");
    bench.put("tree/utf16", b"\xff\xfea\0b\0");
    bench.put("tree/latin", b"caf\xe9\n");
    for (file, says) in [
        ("x.png", "PNG image"),
        ("x.bin", "binary"),
        ("utf16", "iconv"),
        (".", "directory"),
        ("nothing", "does not exist"),
    ] {
        let said = bench.refused("Read", json!({"file_path": file})).await;
        assert!(said.contains(says), "{file}: {said}");
    }
    let text = bench.ok("Read", json!({"file_path": "latin"})).await;
    assert_eq!(text, "     1\tcaf\u{fffd}\n");
    let fifo = bench.dir.path().join("tree/fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let said = bench.refused("Read", json!({"file_path": "fifo"})).await;
    assert!(said.contains("neither"), "{said}");
}

#[tokio::test]
async fn a_result_is_bounded_whatever_the_file_is_like() {
    let bench = Bench::new();
    // One line of 50 MB, sparse: nothing of it is kept.
    let long = std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .open(bench.dir.path().join("tree/long"))
        .unwrap();
    drop(long);
    bench.put("tree/long", "x".repeat(50 * 1024 * 1024));
    let text = bench.ok("Read", json!({"file_path": "long"})).await;
    assert!(text.len() < 4096, "{}", text.len());
    assert!(text.contains("more bytes in this line"));
    bench.put("tree/many", "0123456789\n".repeat(500_000));
    let text = bench
        .ok("Read", json!({"file_path": "many", "limit": 400_000}))
        .await;
    assert!(text.len() <= MAX_RESULT + 100, "{}", text.len());
    assert!(text.ends_with("for more.]\n"), "{text}");
    let input = json!({"pattern": "0", "output_mode": "content", "head_limit": 0});
    let text = bench.ok("Grep", input).await;
    assert!(text.len() <= MAX_RESULT + 100, "{}", text.len());
    let text = bench.ok("Bash", json!({"command": "cat long"})).await;
    assert!(text.len() < 40_000 && text.contains("bytes left out"));
}

#[tokio::test]
async fn nothing_is_changed_unseen() {
    let bench = Bench::new();
    bench.put("tree/a", "one two one\n");
    let edit =
        |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
    let said = bench.refused("Edit", edit("two", "2")).await;
    assert!(said.contains("not read"), "{said}");
    let said = bench
        .refused("Write", json!({"file_path": "a", "content": "x"}))
        .await;
    assert!(said.contains("Read it first"), "{said}");
    bench.ok("Read", json!({"file_path": "a"})).await;
    bench.ok("Edit", edit("two", "2")).await;
    assert_eq!(bench.text("tree/a"), "one 2 one\n");
    // The own change is known.
    bench.ok("Edit", edit("2", "two")).await;
    for (edit, says) in [
        (edit("one", "1"), "2 times"),
        (edit("three", "3"), "not found"),
        (edit("x", "x"), "same"),
        (edit("", "x"), "empty"),
    ] {
        let said = bench.refused("Edit", edit).await;
        assert!(said.contains(says), "{said}");
    }
    let mut every = edit("one", "1");
    every["replace_all"] = true.into();
    bench.ok("Edit", every).await;
    assert_eq!(bench.text("tree/a"), "1 two 1\n");
    bench.put("tree/a", "somebody else\n");
    let said = bench.refused("Edit", edit("else", "new")).await;
    assert!(said.contains("changed on disk"), "{said}");
    let write = json!({"file_path": "a", "content": "x"});
    let said = bench.refused("Write", write.clone()).await;
    assert!(said.contains("changed on disk"), "{said}");
    bench.ok("Read", json!({"file_path": "a"})).await;
    bench.ok("Write", write).await;
    assert_eq!(bench.text("tree/a"), "x");
}

#[tokio::test]
async fn files_are_made_with_their_directories_and_keep_their_mode() {
    let bench = Bench::new();
    bench
        .ok(
            "Write",
            json!({"file_path": "a/b/c.sh", "content": "#!/bin/sh\n"}),
        )
        .await;
    let path = bench.dir.path().join("tree/a/b/c.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.ok("Read", json!({"file_path": "a/b/c.sh"})).await;
    let edit = json!({"file_path": "a/b/c.sh", "old_string": "/bin/sh", "new_string": "/bin/bash"});
    bench.ok("Edit", edit).await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(bench.text("tree/a/b/c.sh"), "#!/bin/bash\n");
    let new = json!({"file_path": "made", "old_string": "", "new_string": "text"});
    bench.ok("Edit", new).await;
    assert_eq!(bench.text("tree/made"), "text");
}

#[tokio::test]
async fn file_tools_do_not_leave_the_tree() {
    let bench = Bench::new();
    bench.put("outside/secret", "secret\n");
    let tree = bench.dir.path().join("tree");
    symlink(bench.dir.path().join("outside"), tree.join("link")).unwrap();
    symlink("../outside/secret", tree.join("file")).unwrap();
    symlink("/proc/self/root", tree.join("root")).unwrap();
    let absolute = bench.path("outside/secret");
    let through_root = format!("root{absolute}");
    for path in [
        absolute.as_str(),
        "../outside/secret",
        "link/secret",
        "file",
        "link/new",
        "../outside/new",
        &through_root,
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/etc/passwd",
    ] {
        bench.refused("Read", json!({"file_path": path})).await;
        let write = json!({"file_path": path, "content": "gone"});
        bench.refused("Write", write).await;
        let edit = json!({"file_path": path, "old_string": "secret", "new_string": "gone"});
        bench.refused("Edit", edit).await;
        bench
            .refused("Grep", json!({"pattern": "secret", "path": path}))
            .await;
    }
    bench
        .refused(
            "Glob",
            json!({"pattern": "*", "path": bench.path("outside")}),
        )
        .await;
    bench.refused("Glob", json!({"pattern": "/etc/*"})).await;
    let found = bench.ok("Grep", json!({"pattern": "secret"})).await;
    assert_eq!(found, "No matches.");
    assert_eq!(bench.text("outside/secret"), "secret\n");
    assert!(!bench.dir.path().join("outside/new").exists());
    // A hard link's other name keeps its content.
    std::fs::hard_link(bench.path("outside/secret"), tree.join("hard")).unwrap();
    bench.ok("Read", json!({"file_path": "hard"})).await;
    bench
        .ok("Write", json!({"file_path": "hard", "content": "mine"}))
        .await;
    assert_eq!(bench.text("outside/secret"), "secret\n");
    assert_eq!(bench.text("tree/hard"), "mine");
}

#[tokio::test]
async fn git_s_own_files_are_git_s() {
    let bench = Bench::new();
    bench.put("tree/.git/config", "[core]\n");
    let tree = bench.dir.path().join("tree");
    symlink(".git", tree.join("g")).unwrap();
    bench.ok("Read", json!({"file_path": ".git/config"})).await;
    for path in [
        ".git/config",
        ".git/hooks/x",
        "sub/.GIT/x",
        "g/config",
        "g/new/x",
        ".git",
    ] {
        let write = json!({"file_path": path, "content": "x"});
        let said = bench.refused("Write", write).await;
        assert!(said.contains("belongs to git"), "{path}: {said}");
    }
    assert_eq!(bench.text("tree/.git/config"), "[core]\n");
    assert!(!tree.join(".git/new").exists());
    bench
        .ok("Write", json!({"file_path": ".gitignore", "content": "x"}))
        .await;
}

#[tokio::test]
async fn the_temporary_directory_and_what_may_be_read_are_reached() {
    let bench = Bench::with(|options| {
        let outside = options.cwd.with_file_name("outside");
        options.also_read.push(outside);
    });
    bench.put("outside/notes", "n\n");
    let notes = bench.path("outside/notes");
    bench.ok("Read", json!({"file_path": notes})).await;
    let said = bench
        .refused("Write", json!({"file_path": notes, "content": "x"}))
        .await;
    assert!(said.contains("only be read"), "{said}");
    let tmp = bench.path("tmp/x");
    bench
        .ok("Write", json!({"file_path": tmp, "content": "x"}))
        .await;
}

#[tokio::test]
async fn names_and_text_are_found_without_ignored_files() {
    let bench = Bench::new();
    bench.put("tree/.gitignore", "target/\n*.log\n");
    bench.put("tree/src/main.rs", "fn main() {\n    needle();\n}\n");
    bench.put("tree/src/deep/lib.rs", "fn needle() {}\n");
    bench.put("tree/target/out.rs", "needle\n");
    bench.put("tree/x.log", "needle\n");
    bench.put("tree/.github/ci.yml", "needle: 1\n");
    bench.put("tree/blob", b"needle\0\n");
    let names = |text: String| {
        let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
        names.sort();
        names
    };
    for (pattern, expected) in [
        ("**/*.rs", &["src/deep/lib.rs", "src/main.rs"][..]),
        ("*.rs", &["src/deep/lib.rs", "src/main.rs"]),
        ("src/*.rs", &["src/main.rs"]),
        ("src/**/*.rs", &["src/deep/lib.rs", "src/main.rs"]),
        ("*.{yml,log}", &[".github/ci.yml"]),
        ("*.none", &["No files match."]),
    ] {
        let found = bench.ok("Glob", json!({"pattern": pattern})).await;
        assert_eq!(names(found), expected, "{pattern}");
    }
    let absolute = bench.path("tree/src/*.rs");
    let found = bench.ok("Glob", json!({"pattern": absolute})).await;
    assert_eq!(found, "src/main.rs");
    bench
        .refused("Glob", json!({"pattern": "a[", "path": "."}))
        .await;
    let grep = async |input| names(bench.ok("Grep", input).await);
    assert_eq!(
        grep(json!({"pattern": "needle"})).await,
        [".github/ci.yml", "src/deep/lib.rs", "src/main.rs"]
    );
    assert_eq!(
        grep(json!({"pattern": "NEEDLE", "-i": true, "type": "rust", "output_mode": "count"}))
            .await,
        ["src/deep/lib.rs:1", "src/main.rs:1"]
    );
    let content = json!({"pattern": "needle\\(\\);", "output_mode": "content", "-C": 1});
    assert_eq!(
        bench.ok("Grep", content).await,
        "src/main.rs-1-fn main() {\nsrc/main.rs:2:    needle();\nsrc/main.rs-3-}"
    );
    let lines = json!({"pattern": "main\\(\\) \\{.*needle", "multiline": true, "glob": "*.rs"});
    assert_eq!(grep(lines).await, ["src/main.rs"]);
    let one = json!({"pattern": "needle", "path": "x.log", "output_mode": "content", "-n": false});
    assert_eq!(grep(one).await, ["x.log:needle"]);
    let first = json!({"pattern": "needle", "head_limit": 1});
    let text = bench.ok("Grep", first).await;
    assert!(text.contains("Only the first 1"), "{text}");
    let said = bench.refused("Grep", json!({"pattern": "("})).await;
    assert!(said.contains("regular expression"), "{said}");
    let said = bench
        .refused("Grep", json!({"pattern": "x", "type": "nonsense"}))
        .await;
    assert!(said.contains("no type"), "{said}");
}

#[tokio::test]
async fn a_command_s_output_and_end_come_back() {
    let bench = Bench::new();
    let text = bench
        .ok("Bash", json!({"command": "echo out; echo err >&2; pwd"}))
        .await;
    assert_eq!(text, format!("out\nerr\n{}", bench.path("tree")));
    let said = bench
        .refused("Bash", json!({"command": "echo no; exit 3"}))
        .await;
    assert_eq!(said, "no\n[Exit code 3.]");
    let said = bench
        .refused("Bash", json!({"command": "kill -9 $$"}))
        .await;
    assert_eq!(said, "[Ended by signal 9.]");
    let text = bench.ok("Bash", json!({"command": "true"})).await;
    assert_eq!(text, "[It printed nothing.]");
    let text = bench
        .ok("Bash", json!({"command": "cat; echo $TMPDIR"}))
        .await;
    assert_eq!(text, bench.path("tmp"));
    let text = bench
        .ok(
            "Bash",
            json!({"command": "test -t 0 || test -t 1 || echo no terminal"}),
        )
        .await;
    assert_eq!(text, "no terminal");
    // A process that stays behind does not hold the answer back.
    let text = bench
        .ok("Bash", json!({"command": "sleep 1000 & echo $!"}))
        .await;
    let left: i32 = text.trim().parse().unwrap();
    let left = rustix::process::Pid::from_raw(left).unwrap();
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    bench.refused("Bash", json!({"command": "  "})).await;
    bench
        .refused("Bash", json!({"command": "x".repeat(200_000)}))
        .await;
}

/// Waits until no process with this id is there.
async fn gone(pid: &str) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let dead = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    };
    while !dead() {
        assert!(tokio::time::Instant::now() < deadline, "{pid} still runs");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn line_of(path: &Path) -> String {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(text) = std::fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return text.trim().to_owned();
        }
        assert!(tokio::time::Instant::now() < deadline, "no {path:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_command_ends_with_its_children_when_its_time_is_up_or_nobody_wants_it() {
    let bench = Bench::new();
    let command = "sleep 1000 & echo $! > pid; wait";
    let said = bench
        .refused("Bash", json!({"command": command, "timeout": 300}))
        .await;
    assert!(said.contains("ended after 300 ms"), "{said}");
    let pid = bench.dir.path().join("tree/pid");
    gone(&line_of(&pid).await).await;
    std::fs::remove_file(&pid).unwrap();
    let call = Call::new("2");
    let (toolbox, cancel) = (Arc::clone(&bench.toolbox), call.cancel.clone());
    let running = tokio::spawn(async move {
        let input = json!({"command": command});
        toolbox.call("Bash", input, &call).await
    });
    let child = line_of(&pid).await;
    cancel.cancel();
    let output = running.await.unwrap();
    assert!(
        output.is_error && output.text.contains("cancelled"),
        "{output:?}"
    );
    gone(&child).await;
}

#[tokio::test]
async fn background_commands_are_followed_and_ended() {
    let bench = Bench::new();
    let command = "echo started; sleep 1000 & echo $! > pid; wait";
    let input = json!({"command": command, "run_in_background": true});
    let text = bench.ok("Bash", input.clone()).await;
    assert!(text.contains("bash_1"), "{text}");
    let pid = bench.dir.path().join("tree/pid");
    let child = line_of(&pid).await;
    let printed = async |expected: &str| {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let text = bench.ok("BashOutput", json!({"bash_id": "bash_1"})).await;
            if text == expected {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{text}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    printed("started\n[It still runs.]").await;
    bench.ok("KillShell", json!({"shell_id": "bash_1"})).await;
    gone(&child).await;
    printed("[no new output]\n[Ended by KillShell.]").await;
    let said = bench
        .refused("BashOutput", json!({"bash_id": "bash_7"}))
        .await;
    assert!(said.contains("bash_1"), "{said}");
    // They go with the agent.
    std::fs::remove_file(&pid).unwrap();
    bench.ok("Bash", input).await;
    let child = line_of(&pid).await;
    drop(bench);
    gone(&child).await;
}

fn names(toolbox: &Toolbox) -> Vec<String> {
    let specs = toolbox.specs().into_iter();
    specs.map(|spec| spec.name).collect()
}

#[tokio::test]
async fn the_filter_and_the_reach_choose_the_tools() {
    let of = |tools: Option<&[&str]>, not: &[&str]| {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let filter = ToolFilter::new(tools.map(list), list(not));
        let reach = filter.reach();
        let bench = Bench::with(|options| {
            options.filter = filter;
            options.reach = reach;
        });
        names(&bench.toolbox)
    };
    let all = [
        "Bash",
        "BashOutput",
        "KillShell",
        "Edit",
        "Glob",
        "Grep",
        "Read",
        "Write",
    ];
    assert_eq!(of(None, &[]), all);
    let explore = ["Agent", "ExitPlanMode", "Edit", "Write", "NotebookEdit"];
    assert_eq!(
        of(None, &explore),
        ["Bash", "BashOutput", "KillShell", "Glob", "Grep", "Read"]
    );
    assert_eq!(of(Some(&["Read", "Grep"]), &[]), ["Grep", "Read"]);
    assert_eq!(of(Some(&[]), &[]), [""; 0]);
    // Whatever the filter says, an agent that only reads gets no editor.
    let bench = Bench::with(|options| options.reach = Reach::Reads);
    assert!(!names(&bench.toolbox).contains(&"Write".to_owned()));
}

#[tokio::test]
async fn the_tools_of_a_general_agent_are_short_and_the_same_each_time() {
    let bench = Bench::new();
    bench.toolbox.set_mode(PermissionMode::Plan);
    let bytes = |toolbox: &Toolbox| {
        let specs = toolbox.specs();
        let each = specs.iter().map(|spec| {
            json!({
                "name": spec.name,
                "description": spec.description,
                "input_schema": spec.input_schema,
            })
        });
        serde_json::to_string(&each.collect::<Vec<_>>()).unwrap()
    };
    let first = bytes(&bench.toolbox);
    assert_eq!(first, bytes(&Bench::new().toolbox));
    // The board's and mail's come on top, within 4,000 together.
    assert!(first.len() / 4 < 1500, "{} tokens", first.len() / 4);
}
