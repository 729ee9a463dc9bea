//! Many real processes on one team.

use std::collections::BTreeSet;

use harness::{Answer, TestHome};
use team::COLORS;

use crate::CCB;

/// Runs all of these at once and returns their answers.
fn at_once(home: &TestHome, commands: &[Vec<String>]) -> Vec<Answer> {
    let children: Vec<_> = commands
        .iter()
        .map(|args| {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let mut command = home.command(&["--json"]);
            command.args(args);
            command.stdout(std::process::Stdio::piped());
            command.stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let answer = |child: std::process::Child| Answer::of(child.wait_with_output().unwrap());
    children.into_iter().map(answer).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn of_32_that_join_at_once_nobody_is_lost() {
    let home = TestHome::new(CCB);
    home.ok(&["team", "create", "fixers"]);
    let joins: Vec<_> = (0..32)
        .map(|n| words(&format!("team join fixers --as a{n}")))
        .collect();
    let mut told = BTreeSet::new();
    for answer in at_once(&home, &joins) {
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let member = &answer.json()["member"];
        told.insert((
            member["name"].as_str().unwrap().to_owned(),
            member["color"].as_str().unwrap().to_owned(),
        ));
    }
    let roster = home.roster("fixers");
    let members = &roster["members"].as_array().unwrap()[1..];
    assert_eq!(members.len(), 32);
    for (n, member) in members.iter().enumerate() {
        assert_eq!(member["color"], COLORS[n % 8], "in the order of joining");
        let pair = (
            member["name"].as_str().unwrap().to_owned(),
            member["color"].as_str().unwrap().to_owned(),
        );
        assert!(told.remove(&pair), "{pair:?} was told something else");
    }
    assert!(told.is_empty());

    // Half of them leave while others come.
    let mixed: Vec<_> = (0..16)
        .flat_map(|n| {
            [
                words(&format!("team leave fixers --as a{n}")),
                words(&format!("team join fixers --as b{n}")),
            ]
        })
        .collect();
    for answer in at_once(&home, &mixed) {
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    let found: BTreeSet<String> = home.members("fixers").into_iter().collect();
    let mut expected: BTreeSet<String> = (16..32).map(|n| format!("a{n}")).collect();
    expected.extend((0..16).map(|n| format!("b{n}")));
    expected.insert("team-lead".into());
    assert_eq!(found, expected);
}

#[test]
fn one_of_many_gets_a_name() {
    let home = TestHome::new(CCB);
    let creates: Vec<_> = ["fixers", "Fixers", "FIXERS", "fixerS"]
        .iter()
        .cycle()
        .take(16)
        .map(|name| words(&format!("team create {name}")))
        .collect();
    let answers = at_once(&home, &creates);
    let won = answers.iter().filter(|answer| answer.code == Some(0));
    assert_eq!(won.count(), 1, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.code != Some(0)) {
        let kind = &answer.json()["error"]["kind"];
        let expected = [(Some(4), "team_exists"), (Some(2), "bad_name")];
        assert!(
            expected.iter().any(|e| e.0 == answer.code && kind == e.1),
            "{answer:?}"
        );
    }
    let team = home.ok(&["team", "list"])["teams"][0]["name"].clone();
    let team = team.as_str().unwrap();
    let joins: Vec<_> = ["alice", "Alice"]
        .iter()
        .cycle()
        .take(16)
        .map(|name| words(&format!("team join {team} --as {name}")))
        .collect();
    let answers = at_once(&home, &joins);
    let won = answers.iter().filter(|answer| answer.code == Some(0));
    assert_eq!(won.count(), 1, "{answers:?}");
    assert_eq!(home.members(team).len(), 2);
}

/// A member that joined successfully was in the team that was deleted, or in no other.
#[test]
fn joining_and_deleting_do_not_mix() {
    let home = TestHome::new(CCB).with_list("fixers");
    for round in 0..6 {
        home.ok(&["team", "create", "fixers"]);
        home.ok(&["task", "create", "x"]);
        let mut commands: Vec<_> = (0..6)
            .map(|n| words(&format!("team join fixers --as a{n}")))
            .collect();
        commands.insert(3, words("team delete fixers --force"));
        commands.push(words("team delete fixers --force"));
        let answers = at_once(&home, &commands);
        let expected = [Some(0), Some(3), Some(4)];
        assert!(
            answers.iter().all(|answer| expected.contains(&answer.code)),
            "round {round}: {answers:?}"
        );
        // One of the two may have come too late for any effect.
        assert!(
            [3, 7].iter().any(|n| answers[*n].code == Some(0)),
            "{answers:?}"
        );
        assert!(home.roster_if_there("fixers").is_none(), "{answers:?}");
    }
}
