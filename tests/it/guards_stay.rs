//! A guard and a host supervise one run after another, and every run is as if they were its own.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use harness::scene_processes::{Part, of_home};
use harness::{Fan, kinds, wait_until};
use serde_json::{Value, json};

use crate::CCB;

const LIMIT: Duration = Duration::from_secs(60);

/// The record of a task in a file of its own.
fn told(dir: &Path, what: &str, task: &str) -> String {
    let path = dir.join(format!("{what}-{task}"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.trim().to_owned()
}

/// Whether a task has written that file: the shell makes it before `echo` writes the line.
fn is_written(dir: &Path, what: &str, task: &str) -> bool {
    let text = std::fs::read_to_string(dir.join(format!("{what}-{task}")));
    text.is_ok_and(|text| text.ends_with('\n'))
}

/// Runs the plan with this many tasks at once.
fn done(fan: &Fan, jobs: &str) -> Value {
    let answer = fan.0.run(&["fanout", "plan.json", "-j", jobs, "--ci"]);
    let report = answer.json_lines().last().unwrap()["report"].clone();
    assert_eq!(answer.code, Some(0), "{report}");
    report
}

fn all_proven(report: &Value, tasks: usize) {
    let proven = kinds(report)
        .into_iter()
        .filter(|(_, kind)| kind == "proven");
    assert_eq!(proven.count(), tasks, "{report}");
}

fn supervisors(fan: &Fan) -> usize {
    let all = of_home(fan.0.home.path()).into_iter();
    all.filter(|(part, _)| matches!(part, Part::Guard | Part::Host))
        .count()
}

/// Each task records its identity without any variable of the run, its host, and its marker.
#[test]
fn each_run_is_itself_although_its_host_has_seen_to_others() {
    let fan = Fan::new(CCB);
    let dir = tempfile::tempdir().unwrap();
    let (out, home) = (dir.path().display(), fan.0.home.path().display());
    let run = format!(
        "echo $PPID > {out}/host-{{{{line}}}}; echo $CCB_RUN_ID > {out}/run-{{{{line}}}}; \
         grep 'realtime timeout' /proc/self/limits > {out}/mark-{{{{line}}}}; \
         env -i PATH=\"$PATH\" CCB_HOME={home} {CCB} --json mail send team-lead hello > {out}/mail-{{{{line}}}}; \
         echo 1 > made-{{{{line}}}}"
    );
    fan.write("list", "a\nb\nc\nd\n");
    fan.commit();
    fan.plan(&json!({"foreach": [{"lines": "list", "task": {
        "id": "{{line}}", "run": run, "verify": "test -f made-{{line}}",
    }}]}));
    let report = done(&fan, "1");
    all_proven(&report, 4);
    let tasks = ["a", "b", "c", "d"];
    let each = |what: &str| -> Vec<String> {
        let each = tasks.iter().map(|task| told(dir.path(), what, task));
        each.collect()
    };
    let differ = |values: &[String]| values.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(differ(&each("host")), 1, "{:?}", each("host"));
    assert_eq!(differ(&each("run")), 4);
    assert_eq!(differ(&each("mark")), 4, "{:?}", each("mark"));
    for (mail, run) in each("mail").iter().zip(each("run")) {
        let mail: Value = serde_json::from_str(mail).unwrap();
        assert_eq!(mail["message"]["from"], json!(run));
    }
    // They were the director's, and end with it.
    wait_until(LIMIT, "no supervisor to be left", || supervisors(&fan) == 0);
}

#[test]
fn nothing_of_a_run_is_left_when_its_host_has_the_next_one() {
    let fan = Fan::new(CCB);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display();
    let daemon = format!(
        "echo $PPID > {out}/host-first; \
         (env -i setsid sh -c 'echo $$ > {out}/daemon; exec sleep 600' > /dev/null 2>&1 &); \
         while ! test -s {out}/daemon; do sleep 0.01; done; echo 1 > first"
    );
    let next = format!(
        "echo $PPID > {out}/host-next; kill -0 $(cat {out}/daemon) 2> {out}/gone-next; echo 1 > next"
    );
    fan.plan(&json!({"defaults": {"verify": "true"}, "tasks": [
        {"id": "first", "run": daemon},
        {"id": "next", "run": next, "dependsOn": ["first"]},
    ]}));
    let report = done(&fan, "1");
    all_proven(&report, 2);
    let host = |task: &str| told(dir.path(), "host", task);
    assert_eq!(host("first"), host("next"));
    assert!(told(dir.path(), "gone", "next").contains("No such process"));
}

/// Kills its own host, and then its own guard, and succeeds when it is tried again.
#[test]
fn a_run_that_kills_its_supervisors_costs_the_others_nothing() {
    let fan = Fan::new(CCB);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display();
    let kills = |whom: &str| {
        format!(
            "test -e {out}/tried-{{{{line}}}} || {{ touch {out}/tried-{{{{line}}}}; kill -9 {whom}; sleep 60; }}; \
             echo $PPID > {out}/host-{{{{line}}}}; echo 1 > made-{{{{line}}}}"
        )
    };
    let guard = "$(sed 's/.*) //' /proc/$PPID/stat | cut -d' ' -f2)";
    fan.write("hosts", "a\nb\n");
    fan.write("guards", "c\nd\n");
    fan.write("calm", "e\nf\ng\n");
    fan.commit();
    let task =
        |run: String| json!({"id": "{{line}}", "run": run, "verify": "test -f made-{{line}}"});
    let calm = format!("echo $PPID > {out}/host-{{{{line}}}}; echo 1 > made-{{{{line}}}}");
    fan.plan(&json!({"foreach": [
        {"lines": "hosts", "task": task(kills("$PPID"))},
        {"lines": "guards", "task": task(kills(guard))},
        {"lines": "calm", "task": task(calm)},
    ]}));
    let report = done(&fan, "2");
    all_proven(&report, 7);
    wait_until(LIMIT, "no supervisor to be left", || supervisors(&fan) == 0);
}

/// A host and a guard that are killed while they are idle are replaced.
#[test]
fn supervisors_that_die_between_two_runs_are_replaced() {
    for of_guard in [false, true] {
        let fan = Fan::new(CCB);
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().display();
        let go = dir.path().join("go");
        fan.plan(&json!({"defaults": {"verify": "true"}, "tasks": [
            // Keeps the director busy, with a host of its own.
            {"id": "long", "run": format!("echo $PPID > {out}/host-long; while ! test -e {out}/go; do sleep 0.02; done; echo 1 > long")},
            {"id": "short", "run": format!("echo $PPID > {out}/host-short; echo 1 > short"), "priority": 1},
            {"id": "after", "run": format!("echo $PPID > {out}/host-after; echo 1 > after"), "dependsOn": ["long"]},
        ]}));
        let mut director = fan.start(&[]);
        wait_until(LIMIT, "both tasks to have written down their hosts", || {
            ["long", "short"]
                .iter()
                .all(|task| is_written(dir.path(), "host", task))
        });
        let short: i32 = told(dir.path(), "host", "short").parse().unwrap();
        let team = fan.0.home.path().join("teams");
        wait_until(LIMIT, "the short one is over", || {
            let active = std::process::Command::new("find")
                .arg(&team)
                .args(["-path", "*/.active/*"])
                .output()
                .unwrap();
            String::from_utf8_lossy(&active.stdout).lines().count() == 1
        });
        let stat = std::fs::read_to_string(format!("/proc/{short}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        let victim = match of_guard {
            true => parent.and_then(|pid| pid.parse().ok()),
            false => Some(short),
        };
        if let Some(victim) = victim.and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(victim, rustix::process::Signal::KILL).ok();
        }
        std::fs::write(&go, "").unwrap();
        assert!(director.wait().unwrap().success());
        assert_ne!(told(dir.path(), "host", "after"), short.to_string());
        wait_until(LIMIT, "no supervisor to be left", || supervisors(&fan) == 0);
    }
}
