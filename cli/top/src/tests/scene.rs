//! A team in the middle of its work.

use std::sync::Arc;

use observe::live::*;
use swarm::run::RunState;
use taskboard::TaskId;

use super::NOW;
use crate::model::transcript::TranscriptNews;

pub(super) fn id(number: u64) -> TaskId {
    TaskId::new(number).unwrap()
}

pub(super) fn agent(name: &str, task: Option<u64>, doing: &str) -> AgentScene {
    AgentScene {
        id: format!("id-{name}"),
        name: name.into(),
        agent_type: "general-purpose".into(),
        runtime: "claude".into(),
        model: Some("sonnet".into()),
        machine: None,
        state: RunState::Running,
        alive: true,
        leads: false,
        teammate: true,
        reads_mail: true,
        task: task.map(id),
        doing: doing.into(),
        since_ms: NOW - 125_000,
        ended_ms: None,
        outcome: None,
        tokens: 12_340,
        cost_usd: 0.42,
        tool_uses: 17,
        last: Some("uses Edit src/parser.rs".into()),
        last_ms: Some(NOW - 2000),
        silent_ms: None,
        stalled: None,
        marks: Vec::new(),
        color: None,
        parent: "team-lead".into(),
        fork: false,
        order: None,
        worktree: Some("agent-3".into()),
        branch: Some("ccb/agent-3".into()),
    }
}

pub(super) fn task(number: u64, subject: &str, state: TaskState) -> TaskScene {
    TaskScene {
        id: id(number),
        subject: subject.into(),
        description: String::new(),
        active_form: subject.into(),
        state,
        owner: None,
        blocked_by: Vec::new(),
        why: None,
        priority: 0,
        command: None,
        check: Some("make test".into()),
        check_state: CheckState::NotRun,
        unchecked: None,
        attempts: Vec::new(),
        stuck: None,
        landing: LandState::NotDone,
        worktree: None,
        done_ms: None,
    }
}

fn attempt(why: &str, difference: Difference) -> AttemptScene {
    AttemptScene {
        run: "a1".into(),
        status: "failed".into(),
        why: why.into(),
        printed: vec!["parser.c:12: error: expected ;".into()],
        at_ms: NOW - 60_000,
        counts: true,
        check_failed: true,
        difference,
        size: Some(DiffSize {
            files: 2,
            added: 10,
            deleted: 3,
        }),
    }
}

fn tasks() -> Vec<TaskScene> {
    let done = |number, subject, landing| TaskScene {
        owner: Some("mate-1".into()),
        check_state: CheckState::Green(0),
        landing,
        ..task(number, subject, TaskState::Completed)
    };
    vec![
        done(1, "Read the grammar", LandState::Landed),
        done(2, "Write the lexer", LandState::Waiting),
        TaskScene {
            owner: Some("mate-1".into()),
            description: "The parser drops the last line.\nKeep the public functions.".into(),
            attempts: vec![attempt(
                "the check `make test` failed: exit code 2",
                Difference::First,
            )],
            check_state: CheckState::Red(1),
            ..task(3, "Fix the parser", TaskState::InProgress)
        },
        TaskScene {
            owner: Some("mate-2".into()),
            ..task(4, "Fix the writer", TaskState::InProgress)
        },
        TaskScene {
            why: Some("no progress: failed 2 times the same way".into()),
            attempts: vec![
                attempt(
                    "the check `make test` failed: exit code 2",
                    Difference::First,
                ),
                attempt(
                    "the check `make test` failed: exit code 2",
                    Difference::Nothing,
                ),
            ],
            check_state: CheckState::Red(2),
            stuck: Some(2),
            ..task(5, "Port the tests", TaskState::Parked)
        },
        task(6, "Update the changelog", TaskState::Ready),
        TaskScene {
            blocked_by: vec![id(3), id(4)],
            ..task(7, "Release notes", TaskState::Blocked)
        },
    ]
}

fn agents() -> Vec<AgentScene> {
    vec![
        AgentScene {
            leads: true,
            agent_type: "team-lead".into(),
            state: RunState::Idle,
            last: Some("I have split the work into seven tasks.".into()),
            ..agent("team-lead", None, "leads the team")
        },
        agent("mate-1", Some(3), "Fixing the parser"),
        AgentScene {
            color: Some("blue".into()),
            cost_usd: 1.2,
            tokens: 250_900,
            marks: vec![Mark {
                kind: MarkKind::Repeats,
                why: "made the same call 6 times: Bash make test".into(),
            }],
            ..agent("mate-2", Some(4), "Fixing the writer")
        },
        AgentScene {
            fork: true,
            order: Some("Look only at the unit tests.".into()),
            parent: "mate-2".into(),
            agent_type: "fork".into(),
            ..agent("mate-2-fork", None, "Looking at the unit tests")
        },
        AgentScene {
            alive: false,
            state: RunState::Completed,
            ended_ms: Some(NOW - 10_000),
            outcome: Some("The lexer is written.".into()),
            ..agent("mate-3", Some(2), "Writing the lexer")
        },
        AgentScene {
            id: "id-old".into(),
            alive: false,
            state: RunState::Failed,
            ended_ms: Some(NOW - 90_000),
            outcome: Some("exit code 1".into()),
            ..agent("mate-3", Some(5), "Porting the tests")
        },
    ]
}

pub(super) fn permission() -> Attention {
    Attention {
        need: Need::Permission,
        team: "fixers".into(),
        task: None,
        agent: Some("mate-1".into()),
        request: Some("0123456789ab".into()),
        what: "mate-1 asks to use Bash: npm publish".into(),
        command: "ccb --team fixers --as team-lead mail approve 01234567".into(),
        detail: "Bash: publish the package\n{\n  \"command\": \"npm publish\"\n}".into(),
        answers: vec![
            Act::Approve {
                request: "0123456789ab".into(),
                comment: None,
            },
            Act::Deny {
                request: "0123456789ab".into(),
                why: String::new(),
            },
        ],
        until_ms: Some(NOW + 300_000),
    }
}

fn needs() -> Vec<Attention> {
    let plan = Attention {
        need: Need::Plan,
        agent: Some("mate-2".into()),
        request: Some("plan-1".into()),
        what: "mate-2 asks to approve its plan: Rewrite the writer".into(),
        detail: "1. Split the writer in two.\n2. Test each half.".into(),
        answers: vec![
            Act::Approve {
                request: "plan-1".into(),
                comment: None,
            },
            Act::Deny {
                request: "plan-1".into(),
                why: String::new(),
            },
        ],
        ..permission()
    };
    let parked = Attention {
        need: Need::Check,
        task: Some(id(5)),
        agent: None,
        request: None,
        what: "#5 Port the tests is parked after 2 attempts: the check failed".into(),
        command: "ccb --team fixers task show 5".into(),
        detail: "parser.c:12: error: expected ;".into(),
        answers: vec![
            Act::Retry { task: id(5) },
            Act::Reject {
                task: id(5),
                feedback: String::new(),
            },
        ],
        until_ms: None,
        ..permission()
    };
    let unlanded = Attention {
        need: Need::Unlanded,
        task: None,
        agent: None,
        request: None,
        what: "#2 is finished and not landed".into(),
        command: "ccb --team fixers land --all".into(),
        detail: String::new(),
        answers: vec![Act::Land { tasks: Vec::new() }],
        until_ms: None,
        ..permission()
    };
    vec![permission(), plan, parked, unlanded]
}

fn mail() -> Vec<MailScene> {
    let mail = |number: i64, from: &str, to: &str, kind: &str, text: &str| MailScene {
        id: format!("m{number}"),
        from: from.into(),
        to: to.into(),
        kind: kind.into(),
        sent_ms: NOW - 100_000 + number * 1000,
        summary: text.lines().next().unwrap_or_default().into(),
        text: text.into(),
    };
    vec![
        mail(
            1,
            "team-lead",
            "mate-1",
            "message",
            "Keep the public functions.\nThey are documented.",
        ),
        mail(
            2,
            "mate-1",
            "team-lead",
            "message",
            "The grammar has two start symbols.",
        ),
        mail(
            3,
            "mate-1",
            "team-lead",
            "permission_request",
            "may I use Bash: npm publish",
        ),
    ]
}

pub(super) fn team() -> TeamScene {
    let tasks = tasks();
    let edge = |a, b| (id(a), id(b));
    TeamScene {
        name: "fixers".into(),
        kind: Kind::Session,
        life: TeamLife::Running,
        director: Some(DirectorScene {
            who: "pid 4242 (ccb)".into(),
            newer: None,
        }),
        lead: LeadScene::Agent(Some("id-team-lead".into())),
        prompt: Some("make the test suite pass".into()),
        into: Some("main".into()),
        merge: "ask".into(),
        since_ms: Some(NOW - 724_000),
        ended_ms: None,
        agents: agents(),
        earlier_agents: 2,
        tasks: tasks.into(),
        counts: Counts {
            pending: 3,
            ready: 1,
            parked: 1,
            in_progress: 2,
            completed: 2,
            unchecked: 0,
            unreadable: 0,
        },
        graph: Arc::new(GraphScene {
            edges: vec![edge(1, 2), edge(2, 3), edge(1, 4), edge(3, 7), edge(4, 7)],
            levels: vec![
                vec![id(1), id(5), id(6)],
                vec![id(2), id(4)],
                vec![id(3)],
                vec![id(7)],
            ],
            critical_path: vec![id(3), id(7)],
            cycles: Vec::new(),
        }),
        mail: mail(),
        progress: RunProgress {
            done: 2,
            total: 7,
            series: vec![(NOW - 700_000, 0), (NOW - 400_000, 1), (NOW - 100_000, 2)],
            left_ms: Some(480_000),
            measured: 2,
            cost_usd: 2.04,
            cost_at_end_usd: Some(5.1),
            failures: 3,
            stuck: vec![id(5)],
        },
        totals: Totals {
            tokens: 312_000,
            cost_usd: 2.04,
            tool_uses: 80,
            token_limit: None,
            cost_limit_usd: Some(10.0),
            spent: None,
            paused: None,
        },
        attention: needs(),
        troubles: Vec::new(),
    }
}

pub(super) fn scene() -> Scene {
    Scene {
        at_ms: NOW,
        teams: vec![team()],
        attention: needs(),
        troubles: Vec::new(),
    }
}

pub(super) fn transcript() -> TranscriptNews {
    let what = vec![
        Happened::Told {
            text: "Fix the parser. It drops the last line.".into(),
            fork: false,
        },
        Happened::Said {
            text: "I look at the parser first.".into(),
        },
        tool(
            "Read",
            "src/parser.rs",
            Some((
                true,
                "fn parse(text: &str) {\n    let mut lines = text.lines();\n}",
            )),
        ),
        tool("Edit", "src/parser.rs", Some((true, "done"))),
        tool(
            "Bash",
            "make test",
            Some((
                false,
                "parser.c:12: error: expected ;\nmake: *** [test] Error 1",
            )),
        ),
        Happened::Received {
            text: "Keep the public functions.".into(),
        },
        Happened::Asked {
            tool: "Bash".into(),
            input: "npm publish".into(),
        },
        Happened::Answered {
            allow: false,
            why: Some("not today".into()),
        },
        Happened::Said {
            text: "one\ntwo\nthree\nfour\nfive\nsix".into(),
        },
        tool("Bash", "make test", None),
    ];
    let entries = (1..).zip(what).map(|(number, what)| TranscriptEntry {
        number,
        at_ms: NOW,
        what,
    });
    TranscriptNews {
        first: 1,
        entries: entries.collect(),
        earlier: false,
        trouble: None,
    }
}

pub(super) fn tool(name: &str, input: &str, result: Option<(bool, &str)>) -> Happened {
    Happened::Tool {
        id: "t".into(),
        name: name.into(),
        input: input.into(),
        result: result.map(|(ok, text)| ToolResult {
            ok,
            first: text.lines().next().unwrap_or_default().into(),
            text: text.into(),
            lines: text.lines().count(),
            bytes: text.len(),
        }),
    }
}

pub(super) fn changes() -> Changes {
    let diff = "diff --git a/src/parser.rs b/src/parser.rs\nindex 1..2 100644\n--- a/src/parser.rs\n+++ b/src/parser.rs\n@@ -1,3 +1,3 @@\n fn parse() {\n-    old();\n+    new();\n }";
    Changes {
        worktree: Some("agent-3".into()),
        uncommitted: true,
        files: vec![worktrees::patch::FileStat {
            path: "src/parser.rs".into(),
            added: Some(1),
            deleted: Some(1),
        }],
        diff: diff.lines().map(str::to_owned).collect(),
        cut: false,
    }
}
