//! Workers on several machines that share a board.

use std::path::Path;

use harness::scene_processes::of_home;
use harness::{Random, git, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::site::{
    LIMIT, Link, Machine, SOON, Site, Way, all_done, check_branch, create, row, tasks,
};

#[test]
fn a_worker_does_what_it_can_lands_it_and_ends_when_nothing_is_left() {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    create(&lead, &[row(1, None), row(2, Some(1)), row(3, None)]);
    lead.json(&[
        "task", "create", "on a GPU", "--run", "true", "--needs", "gpu",
    ]);
    let mut worker = site.machine("one", site.server.port());
    worker.start(&["--until-done"]);
    // A task that no agent here can do is reported, and is a failure.
    assert_eq!(worker.ended(), Some(1), "{}", worker.log());
    check_branch(&site, 3);
    assert_eq!(worker.trees(), [""; 0], "{}", worker.log());
    let open: Vec<Value> = tasks(&lead)
        .into_iter()
        .filter(|task| task["status"] != "completed")
        .collect();
    assert_eq!(open.len(), 1, "{open:?}");
    worker.start(&["--until-done", "--label", "gpu", "--slots", "1"]);
    assert_eq!(worker.ended(), Some(0), "{}", worker.log());
    // The results are at the remote, each under the name of its run.
    let kept = git(
        &site.remote(),
        &["for-each-ref", "--format=%(refname)", "refs/ccb/"],
    );
    assert_eq!(kept.lines().count(), 3, "{kept}");
    assert!(of_home(&worker.home).is_empty());
}

#[test]
fn a_worker_that_is_told_to_end_finishes_what_it_does_and_begins_nothing() {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    let go = site.dir.path().join("go");
    let wait = format!(
        "until test -e {}; do sleep 0.05; done; echo x > slow",
        go.display()
    );
    lead.json(&["task", "create", "slow", "--run", &wait]);
    let mut worker = site.machine("one", site.server.port());
    worker.start(&["--slots", "1"]);
    let in_progress = || tasks(&lead)[0]["status"] == "in_progress";
    wait_until(LIMIT, "the task to begin", in_progress);
    wait_until(LIMIT, "its agent", || worker.log().contains("\"started\""));
    lead.json(&["task", "create", "later", "--run", "echo y > later"]);
    worker.signal(Signal::TERM);
    wait_until(LIMIT, "the worker to hear it", || {
        worker.log().contains("may finish")
    });
    std::fs::write(&go, "").unwrap();
    assert_eq!(worker.ended(), Some(0), "{}", worker.log());
    let status = |task: &Value| (task["subject"].clone(), task["status"].clone());
    let all: Vec<_> = tasks(&lead).iter().map(status).collect();
    assert_eq!(
        all,
        [
            (json!("slow"), json!("completed")),
            (json!("later"), json!("pending"))
        ]
    );
}

#[test]
fn what_a_machine_had_that_is_cut_off_is_done_by_another_and_only_that_counts() {
    a_machine_loses_its_task(Link::cut);
}

#[test]
fn a_link_that_works_one_way_is_a_link_that_is_cut() {
    a_machine_loses_its_task(|link| link.lose(Way::Asked));
    a_machine_loses_its_task(|link| link.lose(Way::Answered));
}

fn a_machine_loses_its_task(lose: fn(&Link)) {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    let link = Link::to(site.server.port());
    let mut cut_off = site.machine("cut-off", link.port);
    // The first to begin waits for ever, the next one does it.
    let first = site.dir.path().join("first");
    let run = format!(
        "if mkdir {0} 2>/dev/null; then echo $$ > {0}/pid; sleep 300; fi; echo $CCB_AGENT > by",
        first.display()
    );
    lead.json(&["task", "create", "one", "--run", &run]);
    cut_off.start(&["--slots", "1"]);
    let pid = || std::fs::read_to_string(first.join("pid")).unwrap_or_default();
    wait_until(LIMIT, "the first to begin", || pid().ends_with('\n'));
    lose(&link);
    // Its agent ends, although no message can reach it that another one has the task.
    let working = || Path::new("/proc").join(pid().trim()).exists();
    let mut other = site.machine("other", site.server.port());
    other.start(&["--slots", "1"]);
    wait_until(LIMIT, "the other to do it", || all_done(&lead));
    wait_until(LIMIT, "the first to stop", || !working());
    link.mend();
    let task = &tasks(&lead)[0];
    assert_eq!(task["owner"], "other-1", "{task}");
    let by = git(&site.remote(), &["show", "main:by"]);
    assert_eq!(by.trim(), "other-1");
}

/// While the remote cannot be reached a result is not at the remote, so its task is not done.
#[test]
fn a_remote_that_is_gone_for_a_while_costs_time_and_no_result() {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    let go = site.dir.path().join("go");
    let run = format!(
        "until test -e {}; do sleep 0.05; done; mkdir -p done && echo x >> done/1",
        go.display()
    );
    let check = "test -f done/1";
    lead.json(&["task", "create", "one", "--run", &run, "--verify", check]);
    let mut worker = site.machine("one", site.server.port());
    worker.start(&["--slots", "1"]);
    wait_until(LIMIT, "its agent", || worker.log().contains("\"started\""));
    let away = site.dir.path().join("away.git");
    std::fs::rename(site.remote(), &away).unwrap();
    std::fs::write(&go, "").unwrap();
    // It was done, could not be sent for as long as its lease, and is open again or begun again.
    wait_until(LIMIT, "an attempt in vain", || {
        tasks(&lead)[0]["metadata"]["ccb"]["attempts"].is_array()
    });
    assert_ne!(tasks(&lead)[0]["status"], "completed");
    std::fs::rename(&away, site.remote()).unwrap();
    wait_until(LIMIT, "it to be on the branch", || all_done(&lead));
    check_branch(&site, 1);
}

#[test]
fn two_workers_of_one_name_are_refused_and_one_that_was_killed_takes_its_place_again() {
    let Some(site) = Site::new() else { return };
    let mut one = site.machine("one", site.server.port());
    one.start(&[]);
    wait_until(LIMIT, "the first", || one.log().contains("\"begin\""));
    let two = site.machine("two", site.server.port());
    let remote = site.remote();
    let worker = [
        "worker",
        "--repo",
        remote.to_str().unwrap(),
        "--name",
        "ONE",
        "--runtime",
        "shell",
    ];
    let refused = || {
        two.command(&[&["--json"], &worker[..]].concat())
            .output()
            .unwrap()
    };
    wait_until(LIMIT, "the refusal", || {
        let output = refused();
        String::from_utf8_lossy(&output.stdout).contains("worker_exists")
    });
    assert_eq!(refused().status.code(), Some(4));
    one.lose_power();
    one.start(&["--until-done"]);
    assert_eq!(one.ended(), Some(0), "{}", one.log());
}

#[test]
fn what_cannot_work_is_said_before_anything_begins() {
    let Some(site) = Site::new() else { return };
    let machine = site.machine("one", site.server.port());
    let remote = site.remote();
    let remote = remote.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (
            &["--board", "files", "worker", "--repo", remote],
            2,
            "board_in_files",
        ),
        (
            &["worker", "--repo", "/nowhere/at/all.git"],
            1,
            "remote_unreachable",
        ),
        (&["worker", "--repo", remote, "--branch", "nope"], 2, "nope"),
        (&["worker", "--repo", remote, "--into", "nope"], 2, "nope"),
        (
            &["worker", "--repo", remote, "--runtime", "nope"],
            2,
            "nope",
        ),
    ];
    for (args, code, words) in cases {
        let output = machine
            .command(&[&["--json"], args].concat())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn a_remote_that_refuses_results_leaves_the_task_open_with_its_words() {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    let hook = site.remote().join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho no results today >&2\nexit 1\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    create(&lead, &[row(1, None)]);
    let mut worker = site.machine("one", site.server.port());
    worker.start(&["--until-done", "--attempts", "2"]);
    assert_eq!(worker.ended(), Some(1), "{}", worker.log());
    let task = &tasks(&lead)[0];
    assert_eq!(task["status"], "pending");
    let why = task["metadata"]["ccb"]["attempts"][0]["why"].to_string();
    assert!(why.contains("refuses") && why.contains("declined"), "{why}");
    check_branch(&site, 0);
}

/// A worker that dies once the branch has moved, or while one of its agents has just ended, lands
/// everything when it is started again: the others leave its results to it as long as it is there.
#[test]
fn what_a_worker_was_landing_or_finishing_when_it_died_is_settled_when_it_is_back() {
    for fault in [
        "crash:land.moved:1",
        "crash:merge.moved:1",
        "crash:merge.noted:1",
        "crash:finish.state:1",
    ] {
        let Some(site) = Site::new() else { return };
        let lead = site.machine("lead", site.server.port());
        create(&lead, &[row(1, None), row(2, Some(1)), row(3, None)]);
        let mut worker = site.machine("one", site.server.port());
        let mut other = site.machine("other", site.server.port());
        worker.start_with_fault(Some(fault), &["--slots", "1"]);
        let dies_itself = !fault.contains("finish");
        match dies_itself {
            true => assert_eq!(worker.ended(), None, "{fault}: {}", worker.log()),
            // Its agents die.
            false => wait_until(LIMIT, "a task to begin", || {
                worker.log().contains("\"started\"")
            }),
        }
        if dies_itself {
            worker.start(&["--slots", "1"]);
        }
        other.start(&["--slots", "1"]);
        wait_until(SOON, &format!("{fault}: everything on the branch"), || {
            all_done(&lead)
        });
        check_branch(&site, 3);
    }
}

/// Eight machines, tasks that build on each other and have checks; workers and whole machines are
/// killed, links are cut, the server is killed. `CCB_FLEET_TASKS` says how many tasks (default 64).
#[test]
fn every_task_is_on_the_branch_once_whatever_happens_to_workers_links_and_server() {
    let Some(mut site) = Site::new() else { return };
    let number: usize = std::env::var("CCB_FLEET_TASKS").map_or(64, |n| n.parse().unwrap());
    let lead = site.machine("lead", site.server.port());
    // Chains of four.
    let rows: Vec<Value> = (0..number)
        .map(|n| row(n, (n % 4 > 0).then(|| n - 1)))
        .collect();
    create(&lead, &rows);
    let links: Vec<Link> = (0..8).map(|_| Link::to(site.server.port())).collect();
    let mut machines: Vec<Machine> = links
        .iter()
        .enumerate()
        .map(|(n, link)| site.machine(&format!("m{n}"), link.port))
        .collect();
    for machine in &mut machines {
        machine.start(&["--slots", "4"]);
    }
    let seed = std::env::var("CCB_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("CCB_SEED={seed}");
    let mut random = Random::new(seed);
    let done = |machine: &Machine| {
        let output = machine
            .command(&["--json", "task", "list"])
            .output()
            .unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let all = listed["tasks"].as_array().cloned().unwrap_or_default();
        all.iter()
            .filter(|task| task["status"] == "completed")
            .count()
    };
    // Something happens after every tenth of the work.
    for round in 1..=8_usize {
        let target = number * round / 10;
        wait_until(LIMIT, &format!("{target} tasks"), || done(&lead) >= target);
        let which = usize::try_from(random.below(7)).unwrap();
        match round % 4 {
            0 => machines[which].kill_worker(),
            1 => machines[which].lose_power(),
            2 => links[which].cut(),
            _ => {
                site.server.kill();
                site.server.launch();
            }
        }
        // The last one is never started again; the others come back when something else breaks.
        for (machine, link) in machines.iter_mut().zip(&links).take(7) {
            if round % 2 == 0 {
                link.mend();
                let ended = match &mut machine.worker {
                    Some(worker) => worker.try_wait().unwrap().is_some(),
                    None => true,
                };
                if ended {
                    machine.start(&["--slots", "4"]);
                }
            }
        }
        if round == 5 {
            machines[7].lose_power();
        }
    }
    wait_until(LIMIT, "everything to be on the branch", || all_done(&lead));
    check_branch(&site, number);
    for machine in &mut machines {
        if machine.worker.is_some() {
            machine.signal(Signal::TERM);
            machine.ended();
        }
        wait_until(LIMIT, "agents that go on", || {
            of_home(&machine.home).is_empty()
        });
    }
}
