//! A plan that real Claude Codes carry out, on a scripted model.

use harness::model::{Step, prompt};
use harness::sample_project::{DEFECTS, all_is_well, project, repaired};
use harness::{Fan, RealTeam, Workplace, shell};
use serde_json::{Value, json};

use crate::CCB;

pub(crate) fn twelve_defects_go_from_red_to_green_with_claude() {
    let team = RealTeam::claude(CCB, &json!({ "agents": { "stopGraceMs": 2000 } }));
    let RealTeam { world, home, repo } = team;
    let fan = Fan(Workplace { repo, home });
    project(&fan);
    let task = |(name, _, _, repair): &(&str, &str, &str, &str)| -> Value {
        let steps = [
            Step::tool("Bash", shell(&repaired(name, repair))).usage(10, 5),
            Step::text("repaired").usage(10, 5),
        ];
        json!({
            "id": name, "prompt": prompt("Repair it.", &steps), "runtime": "claude",
            "agent": "free", "verify": format!("sh checks/{name}.sh"),
        })
    };
    let tasks: Vec<Value> = DEFECTS.iter().map(task).collect();
    fan.plan(&json!({ "tasks": tasks }));
    let (code, report) = fan.run(&["--land", "merge", "--check", "sh check.sh"]);
    assert_eq!(code, Some(0), "{report}");
    all_is_well(&fan, &report);
    drop(world);
}
