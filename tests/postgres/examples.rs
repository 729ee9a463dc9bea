//! The commands in `examples/many-machines` work: the test runs them as they are written.

use std::path::Path;
use std::process::{Output, Stdio};

use harness::git;
use rustix::process::Signal;

use crate::site::{LIMIT, Machine, Site, all_done, check_branch, create, row};

fn example(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/many-machines");
    std::fs::read_to_string(dir.join(name)).unwrap()
}

/// The text after `before` in the first line that has it.
fn after<'a>(text: &'a str, before: &str) -> &'a str {
    let mut lines = text.lines();
    lines
        .find_map(|line| line.trim().strip_prefix(before))
        .unwrap()
}

/// Starts a worker with these arguments, waits until it has landed a task, and drains it.
fn works_and_drains(args: &[&str], address: &str) {
    let Some(site) = Site::new() else { return };
    let lead = site.machine("lead", site.server.port());
    create(&lead, &[row(1, None)]);
    let mut worker = site.machine("one", site.server.port());
    let remote = site.remote();
    let here = |arg: &&str| match *arg == address {
        true => remote.to_str().unwrap().to_owned(),
        false => (*arg).to_owned(),
    };
    let args: Vec<String> = args.iter().map(here).collect();
    assert!(args.iter().any(|arg| *arg == remote.to_str().unwrap()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = worker.command(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    worker.worker = Some(command.spawn().unwrap());
    harness::wait_until(LIMIT, "the task to land", || all_done(&lead));
    check_branch(&site, 1);
    worker.signal(Signal::TERM);
    assert_eq!(worker.ended(), Some(0));
}

#[test]
fn the_unit_of_systemd_starts_a_worker_that_lands_and_drains() {
    let unit = example("ccb-worker.service");
    let command = after(&unit, "ExecStart=/usr/local/bin/ccb ");
    let args: Vec<&str> = command.split_whitespace().collect();
    works_and_drains(&args, "${REPO}");
}

#[test]
fn the_deployment_starts_workers_that_land_and_drain() {
    let deployment = example("kubernetes.yaml");
    let args = after(&deployment, "args: [").trim_end_matches(']');
    let args: Vec<&str> = args.split(", ").map(|arg| arg.trim_matches('"')).collect();
    works_and_drains(&args, "https://git.example.com/project.git");
}

/// Runs a step of the workflow in the clone.
fn step(machine: &Machine, command: &str) -> Output {
    let args: Vec<&str> = command.split_whitespace().collect();
    let mut step = machine.command(&args);
    let step = step.current_dir(machine.home.join("clone"));
    step.stdout(Stdio::piped()).output().unwrap()
}

#[test]
fn the_steps_of_the_workflow_do_what_is_on_the_board_and_in_the_plan() {
    let Some(site) = Site::new() else { return };
    let workflow = example("github.yml");
    let job = site.machine("job", site.server.port());
    let clone = job.clone();
    create(&job, &[row(1, None), row(2, Some(1))]);
    let plan = "v: 1\nname: fixes\ntasks:\n  - {id: a, subject: a, run: echo a > a}\n";
    std::fs::write(clone.join("plan.yaml"), plan).unwrap();
    let steps = workflow.lines();
    let steps = steps.filter_map(|line| line.trim().strip_prefix("- run: ccb "));
    let steps: Vec<&str> = steps.collect();
    assert_eq!(steps.len(), 4, "{steps:?}");
    for command in steps {
        let output = step(&job, command);
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
    }
    let kept = git(&site.remote(), &["for-each-ref", "refs/ccb/results"]);
    assert_eq!(kept.lines().count(), 3, "{kept}");
}
