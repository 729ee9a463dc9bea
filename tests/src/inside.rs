//! Commands from inside an agent that the engine runs.

use std::path::PathBuf;

use crate::{Answer, TestHome};

/// A home whose agents follow shell scripts.
#[derive(Debug)]
pub struct Inside {
    pub home: TestHome,
    binary: String,
}

impl Inside {
    /// An empty team `board`.
    pub fn new(binary: &str) -> Self {
        let home = TestHome::in_memory(binary);
        home.ok(&["team", "create", "board"]);
        Self {
            home,
            binary: binary.to_owned(),
        }
    }

    /// The directory for files of agents.
    pub fn dir(&self) -> PathBuf {
        let dir = self.home.path().join("inside");
        std::fs::create_dir_all(&dir).expect("a directory");
        dir
    }

    /// Runs these command lines one after the other in a new agent, which `more` (arguments of
    /// `agent spawn`) describes; returns the output of each. In them `ccb` is the program under
    /// test.
    pub fn agent(&self, more: &[&str], lines: &[&str]) -> Vec<Answer> {
        let script = self.script(lines);
        let mut args = vec!["agent", "spawn", "--runtime", "shell", "--background"];
        args.extend_from_slice(more);
        args.push(&script);
        let answer = self.home.ok(&args);
        let id = answer["agent"]["agentId"].as_str().expect("an id");
        self.home.await_settled(id);
        self.answers(lines.len())
    }

    /// The same as a command for a shell, for agents that the test does not start itself.
    pub fn script(&self, lines: &[&str]) -> String {
        let dir = self.dir();
        let mut text = format!(
            "cd {0}\nccb() {{ {1} \"$@\"; }}\nCCB={1}\n",
            dir.display(),
            self.binary
        );
        for (n, line) in lines.iter().enumerate() {
            std::fs::remove_file(dir.join(format!("{n}.code"))).ok();
            text.push_str(&format!(
                "( {line}\n) >{n}.out 2>{n}.err </dev/null; echo $? >{n}.code\n"
            ));
        }
        let path = dir.join("script.sh");
        std::fs::write(&path, text).expect("a script");
        format!("sh {}", path.display())
    }

    /// The output of each line of the last script.
    pub fn answers(&self, count: usize) -> Vec<Answer> {
        let dir = self.dir();
        let read = |n: usize, what: &str| {
            std::fs::read_to_string(dir.join(format!("{n}.{what}"))).unwrap_or_default()
        };
        let answer = |n| Answer {
            code: read(n, "code").trim().parse().ok(),
            stdout: read(n, "out"),
            stderr: read(n, "err"),
        };
        (0..count).map(answer).collect()
    }
}
