//! Task files another tool left half written or broken; and ccb's, which it must understand.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use harness::{Answer, ForeignTool, TestHome, make_stale, set_mtime};
use serde_json::{Map, Value, json};

use crate::CCB;
use crate::interop::foreign_at;
use crate::interop_edges::{ids, set};

/// A reader that comes while the other tool is writing waits and sees the whole task.
#[test]
fn a_half_written_file_is_waited_for() {
    for (command, answer_key) in [
        (["--json", "task", "list"].as_slice(), "/tasks/0/subject"),
        (&["--json", "task", "show", "1"], "/task/subject"),
        (&["--json", "task", "claim", "1"], "/task/subject"),
        (&["--json", "task", "next"], "/task/subject"),
    ] {
        let home = TestHome::new(CCB);
        home.create("before");
        let writer = foreign_at(&home, &["half", "1"], "half");
        let half = std::fs::read(home.task_file(1)).unwrap();
        assert!(
            serde_json::from_slice::<Value>(&half).is_err(),
            "it must not be whole"
        );
        let reads = reads::Reads::of(&home.task_file(1));
        let reader = home
            .command(command)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The second read shows that the first one met half a file.
        reads.wait_for(2);
        let answer = finish(writer, reader);
        assert_eq!(answer.code, Some(0), "{command:?}: {answer:?}");
        let json = answer.json();
        let subject = json.pointer(answer_key);
        assert_eq!(
            subject,
            Some(&json!("written in two goes")),
            "{command:?}: {answer:?}"
        );
        assert_eq!(json.get("unreadable"), None);
        assert_eq!(home.lock_dirs(), Vec::<String>::new());
    }
}

fn finish(mut writer: Child, reader: Child) -> Answer {
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    Answer::of(reader.wait_with_output().unwrap())
}

/// Counts the reads of a file, by the kernel's events.
mod reads {
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::time::Duration;

    use harness::wait_until;
    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

    pub(super) struct Reads(OwnedFd);

    impl Reads {
        pub(super) fn of(path: &Path) -> Self {
            let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
            inotify::add_watch(&watch, path, WatchFlags::OPEN).unwrap();
            Self(watch)
        }

        pub(super) fn wait_for(&self, count: u32) {
            let mut seen = 0;
            wait_until(Duration::from_secs(5), "a process to read the file", || {
                // One event at a time: the kernel merges equal ones that wait in the queue.
                let mut buffer = [MaybeUninit::uninit(); 512];
                seen += u32::from(Reader::new(&self.0, &mut buffer).next().is_ok());
                seen >= count
            });
        }
    }
}

const BROKEN: &[u8] = b"{\"id\":\"1\",\"subject\":\"bro";

/// A board where 2 waits for 1, and the file of 1 has been broken for a while.
fn broken_board() -> TestHome {
    let home = TestHome::new(CCB);
    home.create("one");
    home.ok(&["task", "create", "two", "--blocked-by", "1"]);
    home.create("three");
    std::fs::write(home.task_file(1), BROKEN).unwrap();
    make_stale(&home.task_file(1));
    home
}

#[test]
fn a_broken_file_is_reported_and_left_alone() {
    let home = broken_board();
    let list = home.ok(&["task", "list"]);
    assert_eq!(ids(&list["tasks"]), ["2", "3"]);
    assert_eq!(list["unreadable"][0]["id"], "1");
    assert!(
        list["unreadable"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with("1.json")
    );
    let graph = home.ok(&["task", "graph"]);
    assert!(
        graph["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|n| n["status"] == "unreadable")
    );

    let claim = home.fails(4, &["task", "claim", "1"]);
    assert_eq!(
        (&claim["claimed"], &claim["reason"]),
        (&json!(false), &json!("corrupt"))
    );
    assert_eq!(
        home.fails(4, &["task", "show", "1"])["error"]["kind"],
        "corrupt"
    );
    let blocked = home.fails(4, &["task", "claim", "2"]);
    assert_eq!(blocked["reason"], "blocked");
    assert_eq!(blocked["blockedBy"], json!(["1"]));
    for refused in [
        ["task", "done", "1"].as_slice(),
        &["task", "update", "1", "--subject", "x"],
        &["task", "release", "1"],
        &["task", "rm", "1"],
        &["task", "block", "1", "3"],
        &["task", "reset"],
    ] {
        assert_eq!(
            home.fails(4, refused)["error"]["kind"],
            "corrupt",
            "{refused:?}"
        );
    }
    // The rest of the board works, and the id is not used again.
    assert_eq!(home.ok(&["task", "next"])["task"]["id"], "3");
    assert_eq!(home.fails(3, &["task", "next"])["reason"], "nothing_ready");
    assert_eq!(home.create("four"), 4);

    let doctor = home.fails(1, &["doctor"]);
    assert_eq!(doctor["findings"][0]["kind"], "unreadable");
    assert_eq!(doctor["left"], 1);
    assert_eq!(std::fs::read(home.task_file(1)).unwrap(), BROKEN);
}

#[test]
fn the_doctor_sets_a_broken_file_aside_and_its_place_still_blocks() {
    let home = broken_board();
    let doctor = home.ok(&["doctor", "--fix"]);
    assert_eq!(doctor["left"], 0);
    assert!(doctor["findings"][0]["fixed"].is_string(), "{doctor}");
    let kept: Vec<_> = std::fs::read_dir(home.list_dir().join(".ccb/corrupt"))
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(kept, [BROKEN]);

    home.check_task_files("after doctor --fix");
    let tombstone = home.ok(&["task", "show", "1"])["task"].clone();
    assert_eq!(tombstone["status"], "pending");
    assert_eq!(tombstone["subject"], "one", "the history knows it");
    assert_eq!(home.fails(4, &["task", "claim", "1"])["reason"], "parked");
    assert_eq!(
        home.fails(4, &["task", "claim", "2"])["blockedBy"],
        json!(["1"])
    );
    assert_eq!(home.ok(&["doctor"])["findings"], json!([]));
    // A person has repaired it and reopens it.
    home.ok(&["task", "update", "1", "--status", "pending"]);
    home.ok(&["task", "claim", "1"]);
}

/// A failed reset has not unblocked the tasks that wait for the broken one.
#[test]
fn a_forced_reset_sets_broken_files_aside_last() {
    let home = broken_board();
    let reset = ["--json", "task", "reset", "--force"];
    for point in ["stage.opened:1", "dir.sync:1"] {
        let mut command = home.command(&reset);
        let output = command.env("CCB_FAULT", format!("enospc:{point}")).output();
        assert_eq!(Answer::of(output.unwrap()).code, Some(1), "{point}");
        assert_eq!(std::fs::read(home.task_file(1)).unwrap(), BROKEN, "{point}");
        let claim = home.fails(4, &["task", "claim", "2"]);
        assert_eq!(claim["reason"], "blocked", "{point}");
    }
    home.ok(&["task", "reset", "--force"]);
    assert_eq!(
        home.board_bytes().keys().collect::<Vec<_>>(),
        [".highwatermark"]
    );
    let kept = std::fs::read_dir(home.list_dir().join(".ccb/corrupt")).unwrap();
    assert_eq!(kept.count(), 1);
    assert_eq!(home.create("four"), 4);
}

/// The id of a file that never was readable is not used again either.
#[test]
fn a_reset_of_nothing_but_a_broken_file_keeps_its_id() {
    let home = TestHome::new(CCB);
    std::fs::create_dir_all(home.list_dir()).unwrap();
    std::fs::write(home.task_file(5), BROKEN).unwrap();
    make_stale(&home.task_file(5));
    home.ok(&["task", "reset", "--force"]);
    assert_eq!(home.create("six"), 6);
}

/// A file broken by a killed writer is waited for only as long as the writer may be alive.
#[test]
fn a_stale_lock_beside_a_broken_file_delays_nobody() {
    let home = broken_board();
    for name in ["1.json.lock", ".lock.lock"] {
        let lock = home.list_dir().join(name);
        std::fs::create_dir(&lock).unwrap();
        make_stale(&lock);
    }
    let quickest = (0..3)
        .map(|_| {
            let started = Instant::now();
            home.ok(&["task", "list"]);
            started.elapsed()
        })
        .min();
    assert!(quickest < Some(Duration::from_millis(900)), "{quickest:?}");
}

/// Every kind of command leaves files the other tool accepts, with its keys untouched.
#[test]
fn our_files_satisfy_the_other_tools_schema() {
    let home = TestHome::new(CCB);
    let rows = "{\"key\":\"a\",\"subject\":\"a\",\"activeForm\":\"Doing a\",\"priority\":2}\n\
                {\"subject\":\"b\",\"blockedBy\":[\"a\"],\"verify\":\"true\",\"paths\":[\"src\"]}\n";
    let answer = home.run_with_input(&["task", "create", "--from", "-"], rows.as_bytes());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    home.check_task_files("create --from");
    let theirs = json!({"deep": [null, 1e-7, {"k": 12345678901234567_u64}]});
    let tool = ForeignTool::new(home.list_dir());
    for id in [1, 2] {
        set(&tool, id, "theirKey", theirs.clone());
        let add = |task: &mut Map<String, Value>| {
            let metadata = task.entry("metadata").or_insert_with(|| json!({}));
            metadata["their meta"] = theirs.clone();
        };
        assert!(tool.update(id, add).unwrap());
    }
    for command in [
        [
            "task",
            "create",
            "c",
            "-d",
            "d",
            "--active-form",
            "Doing c",
            "--run",
            "true",
        ]
        .as_slice(),
        &[
            "task",
            "create",
            "e",
            "--blocked-by",
            "1",
            "--blocks",
            "3",
            "--meta",
            "x=null",
        ],
        &["task", "claim", "1", "--as", "a", "--lease", "600"],
        &[
            "task",
            "update",
            "1",
            "--as",
            "a",
            "--active-form",
            "",
            "--priority",
            "-3",
        ],
        &["task", "release", "1", "--as", "a"],
        &["task", "update", "1", "--owner", "b"],
        &[
            "task",
            "update",
            "1",
            "--owner",
            "",
            "--as",
            "b",
            "--meta",
            "list=[1,\"a\"]",
        ],
        &["task", "next", "--as", "a", "--check-busy"],
        &["task", "done", "1", "--as", "a"],
        &["task", "update", "1", "--status", "pending"],
        &[
            "task",
            "update",
            "2",
            "--status",
            "in_progress",
            "--as",
            "b",
            "--force",
        ],
        &["task", "block", "1", "3"],
        &["task", "unblock", "1", "3"],
        &["task", "done", "2", "--as", "b", "--force", "--verify"],
        &["task", "rm", "3"],
        &["doctor", "--fix"],
    ] {
        home.ok(command);
        home.check_task_files(&format!("{command:?}"));
        for task in &home.tasks_on_disk()[..2] {
            assert_eq!(task["theirKey"], theirs, "{command:?}");
            assert_eq!(task["metadata"]["their meta"], theirs, "{command:?}");
        }
    }
    std::fs::write(home.task_file(2), "").unwrap();
    set_mtime(&home.task_file(2), 0).unwrap();
    home.ok(&["doctor", "--fix"]);
    home.check_task_files("a tombstone");
    home.ok(&["task", "reset"]);
    assert!(home.tasks_on_disk().is_empty());
}
