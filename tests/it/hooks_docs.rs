//! The examples in `docs/hooks.md` work as described.

use std::path::Path;

use harness::script::Script;
use harness::{Workplace, write};
use serde_json::Value;

use crate::{CCB, FAKE_AGENT};

/// The settings in the page, in order.
fn examples() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/hooks.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```json\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_examples_work() {
    let place = Workplace::new(CCB);
    place.home.with_fake_runtime(FAKE_AGENT, "");
    let examples = examples();
    assert_eq!(examples.len(), 3);
    let settle = |text: &str| write(&place.home.path().join("settings.json"), text);

    settle(&examples[0]);
    let error = place.fails(4, "vetoed", &["task", "create", "x"]);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("describe the task")
    );
    place.ok(&["task", "create", "x", "--description", "y"]);

    settle(&examples[1]);
    let told = place.home.path().join("told");
    let spawn = |script: Script| {
        let prompt = script.to_prompt();
        place.ok(&["agent", "spawn", "--runtime", "fake", &prompt])
    };
    spawn(Script::new().describe(&told).done("ok"));
    let told: Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
    assert!(
        told["prompt"].as_str().unwrap().contains("make lint"),
        "{told}"
    );

    settle(&examples[2]);
    let commit = Script::new().commit("done");
    let work = Script::new()
        .write(place.repo.main().join("new.txt"), "x")
        .done("first");
    // It answers the hook with a turn in which it commits.
    let work = work.then(harness::script::Do::WaitMessage { echo: true });
    let answer = spawn(work.then(commit.steps[0].clone()).done("second").serve());
    assert_eq!(answer["agent"]["content"], "second", "{answer}");
}
