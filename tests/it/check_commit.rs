//! A passed check holds for the commit: no file that is only in the agent's worktree, or in the
//! repository's own configuration, makes a check pass.

use harness::team_session::SessionScene;
use harness::{Fan, kinds};
use serde_json::json;

use crate::CCB;

/// A way to make a check pass in a worktree although it does not pass on the commit.
#[derive(Clone, Copy)]
struct Trick {
    /// The agent's commands.
    run: &'static str,
    /// The check, which is red on every commit the agent leaves.
    verify: &'static str,
}

/// Red as committed.
const FILES: &[(&str, &str)] = &[("value", "broken\n"), (".gitignore", "*.ignored\n")];
const FIXED: &str = "grep -qx fixed value";

const IGNORED: Trick = Trick {
    run: "echo fixed > a.ignored; echo x > changed",
    verify: "test -e a.ignored",
};
const ASSUME_UNCHANGED: Trick = Trick {
    run: "git update-index --assume-unchanged value && echo fixed > value; echo x > changed",
    verify: FIXED,
};
const SKIP_WORKTREE: Trick = Trick {
    run: "git update-index --skip-worktree value && echo fixed > value; echo x > changed",
    verify: FIXED,
};
const EXCLUDES_FILE: Trick = Trick {
    run: "common=$(git rev-parse --git-common-dir); echo hidden > \"$common/list\"
        git config core.excludesFile \"$common/list\"; echo 1 > hidden; echo x > changed",
    verify: "test -e hidden",
};
const INFO_EXCLUDE: Trick = Trick {
    run: "echo hidden >> \"$(git rev-parse --git-common-dir)/info/exclude\"
        echo 1 > hidden; echo x > changed",
    verify: "test -e hidden",
};
const INFO_ATTRIBUTES: Trick = Trick {
    run: "echo 'value filter=fix' > \"$(git rev-parse --git-common-dir)/info/attributes\"
        git config filter.fix.clean 'sed s/fixed/broken/'
        git config filter.fix.smudge 'sed s/broken/fixed/'
        echo fixed > value; echo x > changed",
    verify: FIXED,
};
const HOOK: Trick = Trick {
    run: "hook=\"$(git rev-parse --git-common-dir)/hooks/post-checkout\"
        mkdir -p \"${hook%/*}\"; printf '#!/bin/sh\\necho fixed > value\\n' > \"$hook\"
        chmod +x \"$hook\"
        git update-index --assume-unchanged value && echo fixed > value; echo x > changed",
    verify: FIXED,
};
const FSMONITOR: Trick = Trick {
    run: "monitor=\"$(git rev-parse --git-common-dir)/monitor\"
        printf '#!/bin/sh\\necho fixed > value\\n' > \"$monitor\"; chmod +x \"$monitor\"
        git update-index --assume-unchanged value && echo fixed > value; echo x > changed
        git config core.fsmonitor \"$monitor\"",
    verify: FIXED,
};
const REPLACED: Trick = Trick {
    run: "git update-index --assume-unchanged value && echo fixed > value; echo x > changed
        git replace -f \"$(git rev-parse HEAD:value)\" \"$(git hash-object -w value)\"",
    verify: FIXED,
};
const TEMPORARY: Trick = Trick {
    run: "echo fixed > \"$TMPDIR/found\"; mkdir -p \"$TMPDIR/check\"
        echo fixed > \"$TMPDIR/check/found\"; echo x > changed",
    verify: "test -e \"$TMPDIR/found\"",
};

/// In the repository's own `.git`, where a trick is more than in an agent's.
const SHARED_GIT: &str = r#"{"agents":{"stopGraceMs":300},"worktree":{"privateGit":false}}"#;

/// A session with this trick: the task fails, and the branch is as it was.
fn session(trick: Trick) {
    let scene = SessionScene::new(CCB);
    scene.home.settings(SHARED_GIT);
    for (path, text) in FILES {
        scene.repo.write(path, text);
    }
    scene.repo.git(&["add", "."]);
    scene.repo.git(&["commit", "-qm", "red"]);
    let before = scene.repo.git(&["rev-parse", "main"]);
    let id = scene.task("trick", &["--run", trick.run, "--verify", trick.verify]);
    let honest = scene.task(
        "honest",
        &["--run", "echo 1 > one", "--verify", "test -e one"],
    );
    let answer = scene.session(&["--attempts", "1", "--mates", "1"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let task = scene.file(id);
    assert_ne!(task["status"], "completed", "{task}");
    let why = task["metadata"]["ccb"]["parked"]["reason"].to_string();
    assert!(why.contains("the check"), "{why}");
    // The honest work lands, and nothing else does.
    assert_eq!(scene.status(honest), "completed");
    let changed = scene
        .repo
        .git(&["diff", "--name-only", before.trim(), "main"]);
    assert_eq!(changed, "one\n");
}

/// A plan in which the first task uses the trick: it fails, the others land.
fn fanout(trick: Trick) {
    let fan = Fan::new(CCB);
    fan.0.home.settings(SHARED_GIT);
    for (path, text) in FILES {
        fan.write(path, text);
    }
    fan.commit();
    fan.plan(&json!({ "tasks": [
        { "id": "trick", "run": trick.run, "verify": trick.verify },
        { "id": "one", "run": "echo 1 > one", "verify": "test -e one" },
        { "id": "two", "run": "echo 2 > two", "verify": "test -e two" },
    ]}));
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(1), "{report}");
    let expected = [
        ("trick", "verify_failed"),
        ("one", "proven"),
        ("two", "proven"),
    ];
    let expected = expected.map(|(id, kind)| (id.to_owned(), kind.to_owned()));
    assert_eq!(kinds(&report), expected, "{report}");
    let branch = report["landed"]["branch"].as_str().unwrap();
    let changed = fan.git(&["diff", "--name-only", "main", branch]);
    assert_eq!(changed, "one\ntwo", "{report}");
    let left = std::fs::read_dir(fan.0.repo.tree("")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("ccb-check")),
        "{left:?}"
    );
}

macro_rules! tricks {
    ($($name:ident: $trick:expr;)*) => {
        mod in_a_session {
            $(#[test] fn $name() { super::session($trick); })*
        }
        mod in_a_plan {
            $(#[test] fn $name() { super::fanout($trick); })*
        }
    };
}

tricks! {
    an_ignored_file: super::IGNORED;
    an_edit_git_is_told_to_assume_away: super::ASSUME_UNCHANGED;
    an_edit_git_is_told_to_skip: super::SKIP_WORKTREE;
    a_file_hidden_by_excludes_file: super::EXCLUDES_FILE;
    a_file_hidden_by_info_exclude: super::INFO_EXCLUDE;
    a_filter_of_info_attributes: super::INFO_ATTRIBUTES;
    a_hook_of_the_repository: super::HOOK;
    a_file_system_monitor: super::FSMONITOR;
    an_object_that_is_replaced: super::REPLACED;
    a_file_in_the_agents_temporary_directory: super::TEMPORARY;
}

#[test]
fn in_a_git_of_its_own_an_agent_hides_nothing() {
    for trick in [
        ASSUME_UNCHANGED,
        SKIP_WORKTREE,
        INFO_ATTRIBUTES,
        HOOK,
        REPLACED,
    ] {
        let fan = Fan::new(CCB);
        for (path, text) in FILES {
            fan.write(path, text);
        }
        fan.commit();
        let task = json!({ "id": "trick", "run": trick.run, "verify": trick.verify });
        fan.plan(&json!({ "tasks": [task] }));
        let (code, report) = fan.run(&["--land", "merge"]);
        assert_eq!(code, Some(0), "{report}");
        let branch = report["landed"]["branch"].as_str().unwrap();
        let value = fan.git(&["show", &format!("{branch}:value")]);
        assert_eq!(
            value, "fixed",
            "what the check saw is what landed: {}",
            trick.run
        );
    }
}

#[test]
fn a_check_that_fails_only_when_it_lands_is_blamed_on_its_own_task() {
    let fan = Fan::new(CCB);
    fan.plan(&json!({ "tasks": [
        { "id": "here", "run": "echo 0 > zero", "verify": "test -n \"$CCB_RUN_ID\"" },
        { "id": "one", "run": "echo 1 > one", "verify": "test -e one" },
        { "id": "two", "run": "echo 2 > two", "verify": "test -e two" },
    ]}));
    let (code, report) = fan.run(&["--land", "merge"]);
    assert_eq!(code, Some(1), "{report}");
    let expected = [
        ("here", "verify_failed"),
        ("one", "proven"),
        ("two", "proven"),
    ];
    let expected = expected.map(|(id, kind)| (id.to_owned(), kind.to_owned()));
    assert_eq!(kinds(&report), expected, "{report}");
}
