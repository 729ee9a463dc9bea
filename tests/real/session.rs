//! A team session of real Claude Codes on a scripted model: the lead and its teammates.

use harness::RealTeam;
use harness::model::{Step, prompt};
use serde_json::json;

use crate::CCB;

/// A teammate's work on one task: writes a file, and ends its turn.
fn work(file: &str, text: &str) -> String {
    let steps = [
        Step::tool("Write", json!({ "file_path": file, "content": text })),
        Step::text("done"),
    ];
    prompt("Write the file.", &steps)
}

pub(crate) fn a_lead_and_its_mates_take_a_board_to_green() {
    let team = RealTeam::claude(CCB, &json!({ "agents": { "stopGraceMs": 2000 } }));
    let create = |subject: &str, description: &str, verify: &str| {
        let input = json!({
            "subject": subject, "description": description,
            "metadata": { "ccb": { "verify": verify } },
        });
        Step::tool("mcp__ccb__TaskCreate", input)
    };
    let steps = [
        create("one", &work("one.txt", "1\n"), "grep -qx 1 one.txt"),
        create(
            "two",
            &work("two.txt", "2\n"),
            "grep -qx 1 one.txt && grep -qx 2 two.txt",
        ),
        Step::tool(
            "mcp__ccb__TaskUpdate",
            json!({ "taskId": "2", "addBlockedBy": ["1"] }),
        ),
        Step::text("handed out"),
        Step::text("I have heard."),
        Step::text("I have heard."),
        Step::text("I have heard."),
        Step::text("I have heard."),
        Step::text("I have heard."),
        Step::text("I have heard."),
    ];
    let order = prompt("Lead.", &steps);
    let main = team.repo.main().to_str().unwrap();
    let args = [
        "-C",
        main,
        "--json",
        "--runtime",
        "claude",
        "--mates",
        "2",
        "--attempts",
        "2",
        order.as_str(),
    ];
    let answer = team.home.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for (file, text) in [("one.txt", "1\n"), ("two.txt", "2\n")] {
        assert_eq!(team.repo.git(&["show", &format!("main:{file}")]), text);
    }
    let end = answer.json_lines().pop().unwrap();
    assert_eq!(end["tasks"], json!({ "total": 2, "completed": 2 }), "{end}");
    assert_eq!(team.repo.git(&["status", "--porcelain"]), "");
}
