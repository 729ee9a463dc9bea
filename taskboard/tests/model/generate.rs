//! Random operations: mostly sensible, now and then wrong in every way there is.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use taskboard::{LeaseTerm, Status};

use crate::ops::{Actor, Change, Draft, ForeignEdit, Hook, Op, Ref, Shows, Terms};

/// A sequence that begins with a few tasks, so that the rest has something to work on.
pub(crate) fn sequence() -> impl Strategy<Value = Vec<Op>> {
    let to_the_end = prop::bool::weighted(0.3);
    (first_batch(), vec(op(), 1..40), to_the_end).prop_map(|(first, rest, to_the_end)| {
        let tail = if to_the_end { finish_all() } else { Vec::new() };
        [vec![first], rest, tail].concat()
    })
}

/// Completes every task, to reach the answers that only a finished list gives.
fn finish_all() -> Vec<Op> {
    let by = Actor {
        agent: "ann",
        force: true,
        shows: Shows::Nothing,
        token: None,
    };
    // See `Situation::settle_id`: the nth task, whatever its id.
    let nth = |n: u64| Op::Complete {
        id: 20 * n + 2,
        by: by.clone(),
        hook: Hook::Absent,
    };
    (0..12).map(nth).collect()
}

/// Tasks that may wait for earlier ones of the batch, so that nothing is wrong with it.
fn first_batch() -> impl Strategy<Value = Op> {
    let one = (
        option::weighted(0.4, 0..8_usize),
        option::weighted(0.2, 1..4_i64),
    );
    vec(one, 3..8).prop_map(|rows| {
        let draft = |(n, (waits_for, priority)): (usize, (Option<usize>, Option<i64>))| Draft {
            key: Some(KEYS[n]),
            subject: "build",
            blocked_by: waits_for
                .filter(|_| n > 0)
                .map(|earlier| Ref::Key(KEYS[earlier % n]))
                .into_iter()
                .collect(),
            blocks: Vec::new(),
            metadata: priority
                .and_then(|priority| json!({"ccb": {"priority": priority}}).as_object().cloned())
                .unwrap_or_default(),
        };
        let batch = rows.into_iter().enumerate().map(draft).collect();
        Op::Create {
            batch,
            hook: Hook::Absent,
        }
    })
}

fn op() -> impl Strategy<Value = Op> {
    let id = 0..1000_u64;
    let pair = || (0..1000_u64, 0..1000_u64);
    prop_oneof![
        8 => create(),
        14 => (id.clone(), terms()).prop_map(|(id, terms)| Op::Claim { id, terms }),
        10 => terms().prop_map(|terms| Op::Next { terms }),
        6 => (id.clone(), actor()).prop_map(|(id, by)| Op::Release { id, by }),
        12 => (id.clone(), actor(), hook()).prop_map(|(id, by, hook)| Op::Complete { id, by, hook }),
        3 => (id.clone(), actor()).prop_map(|(id, by)| Op::Delete { id, by }),
        8 => pair().prop_map(|(blocker, dependent)| Op::Block { blocker, dependent }),
        3 => pair().prop_map(|(blocker, dependent)| Op::Unblock { blocker, dependent }),
        16 => (id.clone(), actor(), change(), hook())
            .prop_map(|(id, by, change, hook)| Op::Update { id, by, change, hook }),
        1 => prop::bool::weighted(0.2).prop_map(|force| Op::Reset { force }),
        2 => agent().prop_map(|agent| Op::Unassign { agent }),
        1 => run().prop_map(|run| Op::UnassignRun { run }),
        6 => prop_oneof![4 => 1..6_i64, 2 => -6..0_i64, 1 => Just(-1_600_000_000)]
            .prop_map(|steps| Op::Clock { by_ms: steps * STEP_MS }),
        5 => (id, foreign_edit()).prop_map(|(id, edit)| Op::Foreign { id, edit }),
    ]
}

fn create() -> impl Strategy<Value = Op> {
    // Only a batch has keys to refer to.
    let one = (draft(0), hook()).prop_map(|(draft, hook)| Op::Create {
        batch: vec![draft],
        hook,
    });
    let many = (vec(draft(1), 0..4), hook()).prop_map(|(batch, hook)| Op::Create { batch, hook });
    prop_oneof![2 => one, 1 => many]
}

/// A task that refers to others by id, and `key_weight` times as often by key.
fn draft(key_weight: u32) -> impl Strategy<Value = Draft> {
    let references = move || {
        let reference = prop_oneof![
            1 => (0..1000_u64).prop_map(Ref::Id),
            key_weight => key().prop_map(Ref::Key),
        ];
        prop_oneof![3 => Just(Vec::new()), 1 => vec(reference, 1..3)]
    };
    (
        option::weighted(0.7, key()),
        subject(),
        references(),
        references(),
        metadata().prop_map(without_nulls),
    )
        .prop_map(|(key, subject, blocked_by, blocks, metadata)| Draft {
            key,
            subject,
            blocked_by,
            blocks,
            metadata,
        })
}

/// Leases and clocks move in these steps, so that a lease often ends exactly now.
const STEP_MS: i64 = 500;
const KEYS: &[&str] = &["p", "q", "r", "s", "t", "u", "v", "w"];

fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(KEYS)
}

fn agent() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["ann", "bob", "cyd"])
}

/// A name as a user gives it; now and then a forbidden one.
fn given_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![24 => agent(), 1 => Just("")]
}

fn run() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["run-1", "run-2"])
}

fn subject() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        20 => prop::sample::select(vec!["build", "test", "ship"]),
        2 => Just("Verify the build"),
        1 => prop::sample::select(vec!["", "two\nlines"]),
    ]
}

fn terms() -> impl Strategy<Value = Terms> {
    let term = prop_oneof![
        4 => (0..5_i64).prop_map(|n| LeaseTerm::Milliseconds(n * STEP_MS)),
        1 => run().prop_map(|run| LeaseTerm::Run(run.into())),
    ];
    let check_busy = prop::bool::weighted(0.3);
    (given_name(), check_busy, option::weighted(0.4, term)).prop_map(
        |(agent, check_busy, lease)| Terms {
            agent,
            check_busy,
            lease,
        },
    )
}

fn actor() -> impl Strategy<Value = Actor> {
    let shows = prop_oneof![
        8 => Just(Shows::Nothing),
        2 => Just(Shows::Latest),
        1 => Just(Shows::Stale),
    ];
    (agent(), prop::bool::weighted(0.25), shows).prop_map(|(agent, force, shows)| Actor {
        agent,
        force,
        shows,
        token: None,
    })
}

fn hook() -> impl Strategy<Value = Hook> {
    prop_oneof![
        8 => Just(Hook::Absent),
        1 => Just(Hook::Allows),
        1 => Just(Hook::Proves),
        1 => Just(Hook::Vetoes),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let owner = prop_oneof![3 => given_name().prop_map(Some), 1 => Just(None)];
    let status = prop::sample::select(vec![Status::Pending, Status::InProgress, Status::Completed]);
    (
        option::weighted(0.2, subject()),
        option::weighted(0.4, owner),
        option::weighted(0.6, status),
        metadata(),
    )
        .prop_map(|(subject, owner, status, metadata)| Change {
            subject,
            owner,
            status,
            metadata,
        })
}

fn metadata() -> impl Strategy<Value = Map<String, Value>> {
    let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    let allowed = vec![
        json!({"a": 1}),
        json!({"a": {"deep": null}, "b": "x"}),
        json!({"a": null}),
        json!({"b": null, "c": [1]}),
        json!({"_internal": true}),
        json!({"_internal": null}),
        json!({"ccb": {"priority": 1}}),
        json!({"ccb": {"priority": 5}, "a": 2}),
        json!({"ccb": {"priority": null}}),
        json!({"ccb": {"verify": "true"}}),
        json!({"ccb": {"verify": null}}),
    ];
    let refused = vec![
        json!({"a": 3, "ccb": {"priority": "high"}}),
        json!({"a": 3, "ccb": {"lease": {"token": 9}}}),
        json!({"a": 3, "ccb": null}),
    ];
    prop_oneof![
        12 => Just(Map::new()),
        8 => prop::sample::select(allowed).prop_map(object),
        1 => prop::sample::select(refused).prop_map(object),
    ]
}

/// A `null` says "remove", and there is nothing to remove from a task to be created.
fn without_nulls(metadata: Map<String, Value>) -> Map<String, Value> {
    let entry = |(key, value): (String, Value)| match value {
        Value::Null if key != "ccb" => None,
        Value::Object(ours) if key == "ccb" => Some((key, without_nulls(ours).into())),
        value => Some((key, value)),
    };
    metadata.into_iter().filter_map(entry).collect()
}

fn foreign_edit() -> impl Strategy<Value = ForeignEdit> {
    let parked = vec![
        json!(true),
        json!("gave up"),
        json!({"reason": "failed 3 times"}),
        json!(false),
        Value::Null,
    ];
    prop_oneof![
        3 => prop::sample::select(parked).prop_map(ForeignEdit::Park),
        1 => (0..1000_u64).prop_map(ForeignEdit::BlockedBy),
        1 => (0..1000_u64).prop_map(ForeignEdit::Blocks),
        2 => agent().prop_map(ForeignEdit::TakeOver),
        1 => Just(ForeignEdit::Complete),
    ]
}
