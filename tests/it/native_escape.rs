//! Attempts of an agent to leave its worktree: its file tools and its commands write and run
//! nothing outside, and no file it leaves behind runs when ccb calls git later.

use std::path::{Path, PathBuf};
use std::process::Command;

use harness::NativeTeam;
use harness::model::Step;
use serde_json::{Value, json};

use crate::CCB;

/// A team with files outside that must not change.
struct Scene {
    team: NativeTeam,
    outside: PathBuf,
    secret: String,
}

impl Scene {
    fn new() -> Self {
        let team = NativeTeam::new(CCB);
        let outside = team.home.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "secret\n").unwrap();
        let secret = outside.join("secret").display().to_string();
        Self {
            team,
            outside,
            secret,
        }
    }

    /// Runs a native agent in a worktree of its own; its answers to each call.
    fn agent(&self, steps: &[Step]) -> Value {
        self.team.ask(&["--isolation", "worktree"], steps)
    }

    /// Runs an agent that may fail; its worktree, in which it must have left `new.txt`.
    fn wild(&self, runtime: &str, order: &str) -> PathBuf {
        let how = [
            "agent",
            "spawn",
            "--runtime",
            runtime,
            "--wait",
            "--isolation",
            "worktree",
        ];
        let answer = self.team.run(&[&how[..], &[order]].concat());
        let trees = self.team.repo.main().join(".claude/worktrees");
        let mut all = store::tree::list(&trees).unwrap().into_iter();
        let tree = all.find(|tree| tree.join("new.txt").exists());
        tree.unwrap_or_else(|| panic!("it did not get so far: {answer:?}"))
    }

    /// Nothing outside has changed.
    fn unharmed(&self) {
        let names = store::tree::names_in(&self.outside).unwrap();
        assert_eq!(names, ["secret"]);
        let text = std::fs::read_to_string(&self.secret).unwrap();
        assert_eq!(text, "secret\n");
    }

    /// The results of the model's calls: true for an error.
    fn results(&self) -> Vec<(String, bool)> {
        let requests = self.team.requests();
        let last = requests.last().expect("a request");
        let messages = last.body["messages"].as_array().unwrap();
        let blocks = messages.iter().flat_map(|message| {
            let blocks = message["content"].as_array().cloned();
            blocks.unwrap_or_default()
        });
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let results = results.map(|block| {
            let text = match &block["content"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (text, block["is_error"] == true)
        });
        results.collect()
    }
}

fn bash(line: &str) -> Step {
    // The agent's own path has git and a shell alone.
    let line = format!("export PATH=/usr/sbin:/usr/bin:/bin\n{line}");
    Step::tool("Bash", json!({ "command": line }))
}

/// True if commands can be confined on this machine; prints the reason if not.
fn can_confine() -> bool {
    match swarm::sandbox::support() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("not tested here: {why}");
            false
        }
    }
}

#[test]
fn file_tools_stay_in_the_worktree() {
    let scene = Scene::new();
    let (outside, secret) = (scene.outside.display().to_string(), &scene.secret);
    let mut steps = vec![bash(&format!(
        "ln -s {outside} link; ln -s {secret} file; ln -s /proc/self/root root; ln {secret} hard; true"
    ))];
    let up = "../".repeat(20);
    for path in [
        secret.clone(),
        format!("{outside}/new"),
        format!("{up}{}", &secret[1..]),
        "link/secret".into(),
        "link/new".into(),
        "file".into(),
        format!("root{secret}"),
        format!("/proc/self/root{secret}"),
        format!("/proc/self/cwd/{up}{}", &secret[1..]),
        ".git".into(),
    ] {
        steps.push(Step::tool(
            "Write",
            json!({ "file_path": path, "content": "gone" }),
        ));
        let edit = json!({ "file_path": path, "old_string": "secret", "new_string": "gone" });
        steps.push(Step::tool("Edit", edit));
        if path != ".git" {
            steps.push(Step::tool("Read", json!({ "file_path": path })));
        }
    }
    steps.push(Step::text("I give up."));
    scene.agent(&steps);
    let results = scene.results();
    assert_eq!(results.len(), steps.len() - 1);
    for (text, is_error) in &results[1..] {
        assert!(is_error, "{text}");
    }
    scene.unharmed();
}

#[test]
fn a_race_of_renames_leads_no_file_tool_outside() {
    let scene = Scene::new();
    let outside = scene.outside.display();
    let swap = format!(
        "mkdir real; echo inside > real/secret; \
         while :; do ln -sfn {outside} d; rm -f d; mv -T real d; mv -T d real; done"
    );
    let swap = format!("export PATH=/usr/bin:/bin\n{swap}");
    let mut steps = vec![Step::tool(
        "Bash",
        json!({ "command": swap, "run_in_background": true }),
    )];
    for n in 0..40 {
        let path = format!("d/n{n}");
        steps.push(Step::tool(
            "Write",
            json!({ "file_path": path, "content": "gone" }),
        ));
        // Not the same call each time: a model that repeats itself is ended.
        let read = json!({ "file_path": "d/secret", "limit": n + 1 });
        steps.push(Step::tool("Read", read));
    }
    steps.push(Step::text("I give up."));
    scene.agent(&steps);
    scene.unharmed();
    for (text, is_error) in scene.results() {
        assert!(is_error || !text.contains("\tsecret"), "{text}");
    }
}

#[test]
fn commands_write_nothing_outside_and_commit_inside() {
    if !can_confine() {
        return;
    }
    let scene = Scene::new();
    let (outside, secret) = (scene.outside.display(), &scene.secret);
    let main = scene.team.repo.main().display();
    let up = "../".repeat(20);
    let before = git_state(scene.team.repo.main());
    let attacks = [
        format!("echo gone > {secret}"),
        format!("echo gone > {up}{}", &secret[1..]),
        format!("echo gone > /proc/self/root{secret}"),
        format!("ln -s {outside} link && echo gone > link/secret"),
        format!("ln {secret} hard && echo gone > hard"),
        format!("touch x && mv x {outside}/x"),
        format!("mv {secret} stolen"),
        format!("rm -f {secret} && test ! -e {secret}"),
        format!("truncate -s 0 {secret}"),
        format!("mkdir {outside}/dir"),
        format!("mkfifo {outside}/fifo"),
        format!("git init -q {outside}/repo"),
        format!("git -C {main} commit -q --allow-empty -m gone"),
        format!("git -C {main} config core.fsmonitor 'touch {outside}/ran'"),
        format!("echo '#!/bin/sh' > {main}/.git/hooks/post-commit"),
        format!("git update-ref refs/heads/main HEAD~0 && echo x > {main}/.git/refs/heads/main"),
        format!("echo gone > {main}/gone"),
        format!("unshare -Urm sh -c 'mount --bind {outside} . && echo gone > secret'"),
        "env | grep sk-ant".to_owned(),
    ];
    let mut steps: Vec<Step> = attacks.iter().map(|line| bash(line)).collect();
    // Its proper use still works.
    let works = [
        "git branch gone && git tag gone && git config core.fsmonitor false",
        "echo work > work.txt && git add -A work.txt && git -c user.name=x -c user.email=x@x commit -q -m Work && git log -1 --format=%s",
        "echo t > $TMPDIR/t && cat $TMPDIR/t && echo x > /dev/null && echo err > /dev/stderr",
        "mkdir -p a/b && mv work.txt a/b/ && mv a c && ls c/b",
    ];
    steps.extend(works.iter().map(|line| bash(line)));
    steps.push(Step::text("I give up."));
    scene.agent(&steps);
    let results = scene.results();
    assert_eq!(results.len(), steps.len() - 1);
    let (tried, worked) = results.split_at(attacks.len());
    for ((text, is_error), attack) in tried.iter().zip(&attacks) {
        assert!(is_error, "{attack}: {text}");
    }
    for ((text, is_error), line) in worked.iter().zip(works) {
        assert!(!is_error, "{line}: {text}");
    }
    scene.unharmed();
    assert_eq!(git_state(scene.team.repo.main()), before);
}

/// The parts of a repository that must not change: its branches, its configuration, its hooks.
fn git_state(main: &Path) -> String {
    let run = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(main).output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    let hooks = store::tree::names_in(&main.join(".git/hooks")).unwrap();
    format!(
        "{} {} {} {hooks:?}",
        run(&["rev-parse", "main"]),
        run(&[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/heads/main",
            "refs/heads/gone"
        ]),
        run(&["config", "--local", "--list"])
    )
}

/// A repository that runs a program whenever git so much as reads a file.
fn trap(at: &str, outside: &Path) -> String {
    let ran = outside.join("ran");
    let ran = ran.display();
    format!(
        "git init -q {at} && git -C {at} -c user.name=x -c user.email=x commit -q --allow-empty -m x && \
         git -C {at} config core.fsmonitor 'touch {ran}; false' && \
         git -C {at} config filter.t.clean 'touch {ran}; cat' && \
         git -C {at} config filter.t.smudge 'touch {ran}; cat' && \
         git -C {at} config core.sshCommand 'touch {ran}' && \
         echo '* filter=t diff=t' > .gitattributes && git -C {at} config diff.t.textconv 'touch {ran}; cat' && \
         echo changed > README.md && echo new > new.txt"
    )
}

/// Ways to lead the next git elsewhere, from inside a worktree.
fn detours(outside: &Path) -> Vec<(&'static str, String)> {
    let inside = trap("trap", outside);
    let admin = "$(git rev-parse --absolute-git-dir)";
    vec![
        (
            "a rewritten .git",
            format!("{inside} && echo \"gitdir: $PWD/trap/.git\" > .git"),
        ),
        (
            "a directory as .git",
            format!("{inside} && rm .git && mv trap/.git .git"),
        ),
        (
            "a rewritten commondir",
            format!("A={admin} && {inside} && echo \"$PWD/trap/.git\" > $A/commondir"),
        ),
        (
            "a whole linked repository",
            format!(
                "{inside} && mkdir -p trap/.git/worktrees/w && cp trap/.git/HEAD trap/.git/worktrees/w/ && \
                 echo ../.. > trap/.git/worktrees/w/commondir && echo \"$PWD/.git\" > trap/.git/worktrees/w/gitdir && \
                 echo \"gitdir: $PWD/trap/.git/worktrees/w\" > .git"
            ),
        ),
    ]
}

/// Everything of ccb that reads the worktree afterwards runs nothing. Where the agent had the
/// worktree's ordinary `.git`, git by itself does, so the trap works; where it had one of its own,
/// that is gone with the agent.
fn look_at_it(scene: &Scene, tree: &Path, what: &str, private: bool) {
    let ran = scene.outside.join("ran");
    let name = tree.file_name().unwrap().to_str().unwrap();
    for command in [
        &["worktree", "list"][..],
        &["worktree", "show", name],
        &["status"],
        &["diff", name],
        &["doctor"],
        &["clean", "--dry-run"],
        &["worktree", "remove", name],
    ] {
        // Some of them fail here; only the programs they run count.
        scene.team.run(command);
        assert!(!ran.exists(), "{what}: {command:?}");
    }
    let status = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(tree)
        .output()
        .unwrap();
    assert_eq!(ran.exists(), !private, "{what}: {status:?}");
}

#[test]
fn git_that_is_led_elsewhere_runs_nothing_for_us_on_native() {
    for n in 0..detours(Path::new("/")).len() {
        let scene = Scene::new();
        let (what, line) = detours(&scene.outside).swap_remove(n);
        let steps = [bash(&line), Step::text("done")];
        let order = harness::model::prompt("Do it.", &steps);
        let tree = scene.wild("native", &order);
        look_at_it(&scene, &tree, what, true);
    }
}

#[test]
fn git_that_is_led_elsewhere_runs_nothing_for_us_on_other_runtimes() {
    for n in 0..detours(Path::new("/")).len() {
        for (settings, private) in [
            ("{}", true),
            (r#"{"worktree":{"privateGit":false}}"#, false),
            (r#"{"agents":{"sandbox":"tree"}}"#, true),
        ] {
            if settings.contains("sandbox") && !can_confine() {
                continue;
            }
            let scene = Scene::new();
            std::fs::write(scene.team.home.path().join("ccb.json"), settings).unwrap();
            let (what, line) = detours(&scene.outside).swap_remove(n);
            let line = format!("export PATH=/usr/bin:/bin; {line}");
            let tree = scene.wild("shell", &line);
            look_at_it(&scene, &tree, &format!("{what} with {settings}"), private);
        }
    }
}

#[test]
fn a_confined_shell_writes_only_in_its_worktree() {
    if !can_confine() {
        return;
    }
    let scene = Scene::new();
    let settings = r#"{"agents":{"sandbox":"tree","sandboxNetwork":true}}"#;
    std::fs::write(scene.team.home.path().join("ccb.json"), settings).unwrap();
    let line = format!(
        "export PATH=/usr/bin:/bin; echo gone > {}; echo in > new.txt; git add -A; git -c user.name=x -c user.email=x@x commit -q -m In",
        scene.secret
    );
    let tree = scene.wild("shell", &line);
    scene.unharmed();
    let said = Command::new("git")
        .args(["log", "-1", "--format=%s"])
        .current_dir(&tree)
        .output();
    assert_eq!(String::from_utf8_lossy(&said.unwrap().stdout), "In\n");
}
