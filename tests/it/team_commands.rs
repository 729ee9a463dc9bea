//! `ccb team`: answers, exit codes, and the files on disk afterwards.

use harness::{Answer, TestHome};
use mailbox::Draft;
use serde_json::json;
use store::name::Name;

use crate::CCB;

#[test]
fn a_team_from_beginning_to_end() {
    let home = TestHome::new(CCB);
    let answer = home.ok(&["team", "create", "fixers", "--description", "make it pass"]);
    assert_eq!(answer["team"], home.roster("fixers"));
    assert_eq!(answer["team"]["description"], "make it pass");
    assert_eq!(answer["team"]["leadAgentId"], "team-lead@fixers");
    assert!(answer["team"]["createdAt"].as_i64().unwrap() > 1_700_000_000_000);
    assert_eq!(home.members("fixers"), ["team-lead"]);

    let join = [
        "team", "join", "fixers", "--as", "alice", "--type", "Explore", "--model", "m",
    ];
    let answer = home.ok(&join);
    let member = &answer["member"];
    assert_eq!(answer["team"], home.roster("fixers"));
    assert_eq!(member, &answer["team"]["members"][1]);
    assert_eq!(member["agentId"], "alice@fixers");
    assert_eq!(
        [&member["agentType"], &member["model"], &member["color"]],
        ["Explore", "m", "red"]
    );
    assert_eq!(member["cwd"], home.path().to_str().unwrap());
    assert_eq!(member["isActive"], true);

    let shown = home.ok(&["team", "show", "fixers"]);
    assert_eq!(shown["team"]["members"][0]["state"], "away");
    assert_eq!(shown["team"]["members"][1]["state"], "joined");
    home.ok(&["team", "create", "others"]);
    let listed = home.ok(&["team", "list"]);
    let names: Vec<&str> = listed["teams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|team| team["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fixers", "others"]);
    assert!(listed.get("unreadable").is_none());

    let left = home.ok(&["team", "leave", "fixers", "--as", "alice"]);
    assert_eq!(left["member"]["name"], "alice");
    assert_eq!(home.members("fixers"), ["team-lead"]);
    let deleted = home.ok(&["team", "delete", "fixers"]);
    assert_eq!(deleted["team"]["name"], "fixers");
    assert_eq!(deleted["deleted"], true);
    assert_eq!(deleted["alive"], json!([]));
    let error = home.fails(3, &["team", "show", "fixers"]);
    assert_eq!(error["error"]["kind"], "team_not_found");
}

#[test]
fn what_people_read() {
    let home = TestHome::new(CCB);
    let text = |args: &[&str]| {
        let answer = home.run(args);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.stdout
    };
    assert!(text(&["team", "list"]).contains("no teams"));
    let created = text(&["team", "create", "fixers"]);
    assert!(created.contains("created team fixers"), "{created}");
    assert!(text(&["team", "join", "fixers", "--as", "bob"]).contains("bob (red) joined"));
    let shown = text(&["team", "show", "fixers"]);
    let row = shown.lines().find(|line| line.starts_with("bob"));
    assert!(
        row.is_some_and(|row| row.contains("joined") && row.contains("red")),
        "{shown}"
    );
    assert!(
        text(&["team", "list"])
            .lines()
            .any(|line| line.starts_with("fixers  2"))
    );
    assert!(text(&["team", "leave", "fixers", "--as", "bob"]).contains("left team fixers"));
    assert!(text(&["team", "delete", "fixers"]).contains("with 0 tasks"));
    assert!(text(&["team", "--help"]).contains("Delete a team with its tasks"));
}

#[test]
fn the_nearest_names_are_told() {
    let home = TestHome::new(CCB);
    home.ok(&["team", "create", "fixers"]);
    home.ok(&["team", "join", "fixers", "--as", "alice"]);
    for command in ["show", "leave", "join", "delete"] {
        let error = home.fails(3, &["team", command, "fixer", "--as", "bob"]);
        assert_eq!(error["error"]["nearest"], json!(["fixers"]), "{command}");
        let hint = error["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("did you mean \"fixers\""), "{hint}");
    }
    let error = home.fails(3, &["team", "leave", "fixers", "--as", "alic"]);
    assert_eq!(error["error"]["kind"], "member_not_found");
    assert_eq!(error["error"]["nearest"], json!(["alice"]));
}

#[test]
fn what_is_there_is_not_made_twice() {
    let home = TestHome::new(CCB);
    home.ok(&["team", "create", "fixers"]);
    home.ok(&["team", "join", "fixers", "--as", "alice"]);
    let before = home.everything();
    let kind = |code, args: &[&str]| home.fails(code, args)["error"]["kind"].clone();
    assert_eq!(kind(4, &["team", "create", "fixers"]), "team_exists");
    assert_eq!(kind(2, &["team", "create", "Fixers"]), "bad_name");
    let join = |name| ["team", "join", "fixers", "--as", name];
    assert_eq!(kind(4, &join("alice")), "already_member");
    assert_eq!(kind(2, &join("ALICE")), "bad_name");
    assert_eq!(
        kind(4, &["team", "leave", "fixers", "--as", "team-lead"]),
        "lead_stays"
    );
    assert_eq!(home.everything(), before);
}

#[test]
fn an_agent_does_not_choose_its_team() {
    let home = TestHome::new(CCB);
    home.ok(&["team", "create", "fixers"]);
    let inside = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("CCB_AGENT", "alice").env("CCB_RUN_ID", "a1");
        Answer::of(command.output().unwrap()).code
    };
    assert_eq!(inside(&["team", "join", "fixers", "--as", "bob"]), Some(4));
    assert_eq!(inside(&["team", "join", "fixers"]), Some(4));
    assert_eq!(inside(&["team", "create", "others"]), Some(4));
    assert_eq!(home.members("fixers"), ["team-lead"]);
}

#[test]
fn unread_messages_are_counted_where_there_is_an_inbox() {
    let home = TestHome::new(CCB);
    home.ok(&["team", "create", "fixers"]);
    for name in ["alice", "bob"] {
        home.ok(&["team", "join", "fixers", "--as", name]);
    }
    let name = |name| Name::new("agent", name).unwrap();
    let mailbox = home.mailbox_of("fixers");
    for text in ["one", "two"] {
        let draft = Draft::text(name("bob"), name("alice"), text);
        mailbox.send(&draft).unwrap();
    }
    let shown = home.ok(&["team", "show", "fixers"])["team"]["members"].clone();
    assert_eq!(shown[1]["unread"], 2);
    assert_eq!(shown[2].get("unread"), None, "no inbox, no number");
    // Listing took nothing out, and a deletion removes the mail as well.
    assert_eq!(
        home.ok(&["team", "show", "fixers"])["team"]["members"],
        shown
    );
    home.ok(&["team", "delete", "fixers", "--force"]);
    assert!(!home.dir_of_team("fixers").join("inboxes").exists());
    home.ok(&["team", "create", "fixers"]);
    home.ok(&["team", "join", "fixers", "--as", "alice"]);
    let shown = home.ok(&["team", "show", "fixers"]);
    assert_eq!(shown["team"]["members"][1].get("unread"), None);
}
