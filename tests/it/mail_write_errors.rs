//! A disk that is full, broken or read-only, at every single write of every mail operation.
//!
//! The command's answer must be true in each case: after an error everything is as it was, or,
//! where the error can only come after the change, as the change made it; after a success it is
//! changed. And the error must leave nothing that stops the next command.

use std::collections::BTreeMap;
use std::sync::Mutex;

use harness::{Answer, MailScenario, TestHome, mail_command, mail_state};

use crate::mail_crash::SCENARIOS;
use crate::{CCB, MAIL_WORKER};

const ERRORS: [&str; 3] = ["enospc", "eio", "erofs"];

#[test]
fn every_write_error_is_survived() {
    let queue: Mutex<Vec<&MailScenario>> = Mutex::new(SCENARIOS.iter().collect());
    let errors = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(scenario) = { queue.lock().unwrap().pop() } {
                    let count = sweep(scenario);
                    *errors.lock().unwrap() += count;
                }
            });
        }
    });
    println!("{} write errors", errors.into_inner().unwrap());
}

fn sweep(scenario: &MailScenario) -> usize {
    let template = TestHome::in_memory(CCB);
    (scenario.setup)(&template);
    let before = mail_state(&template);
    let whole = template.copy();
    let passes = passes(&whole, scenario.command);
    let after = mail_state(&whole);
    let mut count = 0;
    for (point, nth) in passes {
        for error in ERRORS {
            count += 1;
            let home = template.copy();
            let fault = format!("{error}:{point}:{nth}");
            let answer = run(&home, scenario.command, Some(&fault));
            let at = format!("{} with {fault}: {answer:?}", scenario.name);
            let found = mail_state(&home);
            let done = match claims(scenario, &answer) {
                Some(true) => {
                    assert_eq!(found, after, "{at}");
                    true
                }
                Some(false) => {
                    assert_eq!(found, before, "{at}");
                    false
                }
                // A worker prints less.
                None => {
                    assert!(found == before || found == after, "{at}: {found:#}");
                    found == after
                }
            };
            let next = run(&home, &["worker", "recover"], None);
            assert_eq!(next.code, Some(0), "{at}: {next:?}");
            assert_eq!(mail_state(&home), found, "{at}: it changed its mind");
            if !done || scenario.once {
                let again = run(&home, scenario.command, None);
                assert_eq!(again.code, Some(0), "{at}: {again:?}");
            }
            // A repetition after the probe has other acknowledgements at most.
            if done || !scenario.name.contains("archive") {
                assert_eq!(mail_state(&home), after, "{at}: the second try");
            }
        }
    }
    count
}

/// True if the answer says that the change was made; `None` if it does not say.
fn claims(scenario: &MailScenario, answer: &Answer) -> Option<bool> {
    match answer.code {
        Some(0) => Some(true),
        Some(1) if scenario.command[0] == "worker" => None,
        Some(1) => {
            // An answer may have been printed before.
            let last = answer.json_lines().pop().unwrap();
            match last["error"]["kind"].as_str() {
                Some("not_durable") => Some(true),
                Some("io") => Some(false),
                other => panic!("{other:?}: {answer:?}"),
            }
        }
        other => panic!("{other:?}: {answer:?}"),
    }
}

fn run(home: &TestHome, args: &[&str], fault: Option<&str>) -> Answer {
    let mut all = args.to_vec();
    if args[0] != "worker" {
        all.insert(0, "--json");
    }
    let mut command = mail_command(home, MAIL_WORKER, &all);
    command.envs(fault.map(|fault| ("CCB_FAULT", fault)));
    Answer::of(command.output().unwrap())
}

/// The points the command passes, each with the number of the pass.
fn passes(home: &TestHome, args: &[&str]) -> Vec<(String, u32)> {
    let trace = home.path().join("trace");
    let output = mail_command(home, MAIL_WORKER, args)
        .env("CCB_FAULT_TRACE", &trace)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let names = std::fs::read_to_string(trace).unwrap_or_default();
    names
        .lines()
        .map(|name| {
            let count = counts.entry(name).or_default();
            *count += 1;
            (name.to_owned(), *count)
        })
        .collect()
}
