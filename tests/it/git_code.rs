//! `ccb trust --show` lists exactly the programs that git runs when ccb calls git.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use harness::team_session::SessionScene;
use serde_json::{Value, json};

use crate::CCB;

/// A repository whose own configuration names programs that leave traces.
struct Traps {
    scene: SessionScene,
    traces: PathBuf,
}

impl Traps {
    fn new() -> Self {
        let scene = SessionScene::new(CCB);
        scene.repo.write("file", "text\n");
        scene.repo.git(&["add", "file"]);
        scene.repo.git(&["commit", "--quiet", "-m", "file"]);
        let traces = scene.home.path().join("traces");
        std::fs::create_dir(&traces).unwrap();
        let traps = Self { scene, traces };
        let common = traps.scene.repo.main().join(".git");
        std::fs::write(common.join("info/attributes"), "* filter=evil merge=mine\n").unwrap();
        let hooks = [
            "post-checkout",
            "pre-commit",
            "post-commit",
            "reference-transaction",
            "post-merge",
            "post-index-change",
            "pre-merge-commit",
        ];
        for hook in hooks {
            let file = common.join("hooks").join(hook);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, format!("#!/bin/sh\n{}\n", traps.touch("hook"))).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let watch = traps.scene.home.path().join("watch");
        std::fs::write(
            &watch,
            format!("#!/bin/sh\n{}\nexit 1\n", traps.touch("fsmonitor")),
        )
        .unwrap();
        std::fs::set_permissions(&watch, std::fs::Permissions::from_mode(0o755)).unwrap();
        let filter = |name: &str| format!("sh -c '{}; cat'", traps.touch(name));
        for (key, value) in [
            ("filter.evil.clean", filter("clean")),
            ("filter.evil.smudge", filter("smudge")),
            (
                "merge.mine.driver",
                format!("sh -c '{}; exit 1'", traps.touch("driver")),
            ),
            ("core.fsmonitor", watch.to_string_lossy().into_owned()),
            ("protocol.ext.allow", "always".into()),
            (
                "remote.origin.url",
                format!("ext::sh -c {}", traps.touch("ext").replace(' ', "% ")),
            ),
        ] {
            traps.scene.repo.git(&["config", key, &value]);
        }
        traps
    }

    fn touch(&self, name: &str) -> String {
        format!("touch {}", self.traces.join(name).display())
    }

    /// The traces since the last call.
    fn sprung(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.traces).unwrap().flatten() {
            found.push(entry.file_name().into_string().unwrap());
            std::fs::remove_file(entry.path()).unwrap();
        }
        found.sort();
        found
    }

    fn shown(&self) -> Value {
        self.scene.ok(&["trust", "--show"])["git"].clone()
    }
}

#[test]
fn what_git_runs_for_ccb_is_what_trust_says() {
    let traps = Traps::new();
    traps.sprung();
    let scene = &traps.scene;
    // The traps work: the user's own git runs all of them.
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(scene.repo.main())
            .args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        git.args(args).output().unwrap()
    };
    scene.repo.write("more", "1\n");
    git(&["add", "more"]);
    git(&["commit", "-m", "more"]);
    git(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    scene.repo.write("file", "other\n");
    git(&["commit", "-qam", "other"]);
    git(&["checkout", "-q", "main"]);
    scene.repo.write("file", "main\n");
    git(&["commit", "-qam", "main"]);
    git(&["merge", "other"]);
    git(&["merge", "--abort"]);
    git(&["fetch", "origin"]);
    let all = ["clean", "driver", "ext", "fsmonitor", "hook", "smudge"];
    assert_eq!(traps.sprung(), all);

    // ccb: a worktree from the remote, then work on both sides that lands.
    scene.home.settings(
        &json!({"worktree": {"baseRef": "fresh"}, "agents": {"stopGraceMs": 300}}).to_string(),
    );
    let refused = scene.run(&["worktree", "create", "one"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    scene.home.settings(r#"{"agents":{"stopGraceMs":300}}"#);
    scene.task("work", &["--run", "echo work > file; echo 1 > new"]);
    let session = scene.session(&["--merge", "never"]);
    assert_eq!(session.code, Some(0), "{session:?}");
    scene.repo.write("file", "meanwhile\n");
    scene.repo.git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "commit",
        "-qam",
        "meanwhile",
    ]);
    scene.run(&["land", "1"]);
    scene.run(&["diff", "1"]);
    let sprung = traps.sprung();
    for said in traps.shown().as_array().unwrap() {
        let key = said["key"].as_str().unwrap();
        let trace = match key {
            "core.fsmonitor" => "fsmonitor",
            "filter.evil.clean" => "clean",
            "filter.evil.smudge" => "smudge",
            "merge.mine.driver" => "driver",
            "remote.origin.url" => "ext",
            hook if hook.starts_with("hook ") => "hook",
            other => panic!("{other} is not set"),
        };
        let ran = sprung.iter().any(|one| one == trace);
        assert_eq!(said["runsForCcb"], ran, "{said}: {sprung:?}");
        let file = said["file"].as_str().unwrap();
        assert!(std::path::Path::new(file).is_file(), "{said}");
    }
}
