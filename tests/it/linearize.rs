//! The checker itself: a check that accepts everything would prove nothing.

use std::collections::BTreeMap;

use harness::Random;
use harness::history::{Action, BoardAnswer, BoardCall, BoardSpec, TaskState, in_parts};
use harness::linearize::{Call, Spec, check};

type History = Vec<Call<BoardCall, BoardAnswer>>;

/// Task 2 waits for task 1; task 3 is free.
fn spec() -> BoardSpec {
    let edges = [(1, vec![]), (2, vec![1]), (3, vec![])];
    BoardSpec {
        blocked_by: BTreeMap::from(edges),
    }
}

fn call(
    agent: &str,
    action: Action,
    (invoked, returned): (u64, u64),
    answer: impl Into<Option<BoardAnswer>>,
) -> Call<BoardCall, BoardAnswer> {
    let agent = agent.into();
    Call {
        op: BoardCall { agent, action },
        invoked,
        returned,
        answer: answer.into(),
    }
}

fn took(id: u64) -> BoardAnswer {
    BoardAnswer::Took(id)
}

fn refused(kind: &str, named: &[&str]) -> BoardAnswer {
    let named = named.iter().map(ToString::to_string).collect();
    BoardAnswer::Refused(kind.into(), named)
}

fn claimed_by(owner: &str) -> BoardAnswer {
    refused("already_claimed", &[owner])
}

fn shown(status: &str, owner: Option<&str>) -> BoardAnswer {
    let (status, owner) = (status.into(), owner.map(str::to_owned));
    BoardAnswer::Shown(TaskState { status, owner })
}

fn accepts(history: &History) -> bool {
    // The order in which calls are listed must not matter.
    let backwards: History = history.iter().rev().cloned().collect();
    let verdict = check(&spec(), history).is_linearizable();
    assert_eq!(verdict, check(&spec(), &backwards).is_linearizable());
    verdict
}

#[test]
fn a_valid_concurrent_history_is_accepted() {
    assert!(accepts(&vec![]));
    // b's claim began first, but only succeeds after a's release, which overlaps it.
    assert!(accepts(&vec![
        call("b", Action::Claim(1), (0, 100), took(1)),
        call("a", Action::Next, (1, 10), took(1)),
        call("c", Action::Claim(1), (5, 20), claimed_by("a")),
        call("a", Action::Release(1), (30, 90), BoardAnswer::Done),
        call("b", Action::Complete(1), (110, 120), BoardAnswer::Done),
        call("a", Action::Claim(2), (105, 130), took(2)),
        call("c", Action::Claim(1), (140, 150), claimed_by("b")),
        call(
            "c",
            Action::Show(1),
            (151, 160),
            shown("completed", Some("b"))
        ),
        call("c", Action::Reopen(1), (170, 180), BoardAnswer::Done),
        call(
            "a",
            Action::Complete(2),
            (190, 200),
            refused("blocked", &["1"])
        ),
        call("c", Action::Next, (210, 220), took(1)),
        call("c", Action::Next, (230, 240), took(3)),
        call("b", Action::Next, (250, 260), refused("nothing_ready", &[])),
    ]));
}

#[test]
fn two_owners_at_once_are_rejected() {
    assert!(!accepts(&vec![
        call("a", Action::Claim(1), (0, 50), took(1)),
        call("b", Action::Claim(1), (10, 60), took(1)),
    ]));
    assert!(!accepts(&vec![
        call("a", Action::Next, (0, 50), took(1)),
        call("b", Action::Next, (10, 60), took(1)),
    ]));
    // With a release in between it is fine, but only in between.
    let release = |times| call("a", Action::Release(1), times, BoardAnswer::Done);
    let history = |times| {
        vec![
            call("a", Action::Claim(1), (0, 50), took(1)),
            release(times),
            call("b", Action::Claim(1), (10, 60), took(1)),
        ]
    };
    assert!(accepts(&history((40, 55))));
    assert!(!accepts(&history((61, 70))));
}

#[test]
fn stale_answers_are_rejected() {
    let claim_and_release = || {
        vec![
            call("a", Action::Claim(1), (0, 10), took(1)),
            call("a", Action::Release(1), (20, 30), BoardAnswer::Done),
        ]
    };
    let with = |last| [claim_and_release(), vec![last]].concat();
    let claim = |times| with(call("b", Action::Claim(1), times, claimed_by("a")));
    assert!(accepts(&claim((25, 40))));
    assert!(!accepts(&claim((31, 40))));
    let show = |times| {
        with(call(
            "b",
            Action::Show(1),
            times,
            shown("in_progress", Some("a")),
        ))
    };
    assert!(accepts(&show((5, 40))));
    assert!(!accepts(&show((31, 40))));
    // The refusal names an agent that never owned it.
    let wrong_name = call("b", Action::Claim(1), (25, 40), claimed_by("c"));
    assert!(!accepts(&with(wrong_name)));
}

#[test]
fn what_depends_on_other_tasks_is_checked() {
    assert!(!accepts(&vec![call(
        "a",
        Action::Claim(2),
        (0, 10),
        took(2)
    )]));
    assert!(!accepts(&vec![
        call("a", Action::Complete(1), (0, 10), BoardAnswer::Done),
        call("b", Action::Claim(2), (20, 30), refused("blocked", &["1"])),
    ]));
    // 1 goes first: another task waits for it.
    assert!(!accepts(&vec![call("a", Action::Next, (0, 10), took(3))]));
    assert!(!accepts(&vec![call(
        "a",
        Action::Next,
        (0, 10),
        refused("nothing_ready", &[])
    )]));
}

#[test]
fn a_call_without_answer_may_have_happened_until_its_caller_was_gone() {
    let dying = || call("a", Action::Claim(1), (0, 50), None);
    let show = |times, answer| call("b", Action::Show(1), times, answer);
    let taken = || shown("in_progress", Some("a"));
    let free = || shown("pending", None);
    assert!(accepts(&vec![dying(), show((60, 70), free())]));
    assert!(accepts(&vec![dying(), show((60, 70), taken())]));
    assert!(accepts(&vec![
        dying(),
        show((10, 20), free()),
        show((30, 70), taken())
    ]));
    assert!(!accepts(&vec![
        dying(),
        show((10, 20), taken()),
        show((30, 40), free())
    ]));
    // Reading another object after the caller's death says nothing about it.
    let elsewhere = call("b", Action::Show(3), (60, 70), free());
    assert!(accepts(&vec![dying(), elsewhere, show((80, 90), taken())]));
    // It cannot happen once another caller saw the board after the caller's death.
    assert!(!accepts(&vec![
        dying(),
        show((60, 70), free()),
        show((80, 90), taken())
    ]));
}

/// Claims in a database choose tasks that no other claim has chosen, and are seen a moment later.
#[test]
fn a_claim_in_parts_may_be_passed_by_another_and_by_nothing_else() {
    let parts = |history: &History| accepts(&in_parts(history.clone()));
    let slow = |returned| call("a", Action::Next, (0, returned), took(1));
    let quick = || call("b", Action::Next, (10, 20), took(3));
    let free = |times| call("b", Action::Show(1), times, shown("pending", None));
    let passed = vec![slow(50), quick(), free((30, 40))];
    assert!(parts(&passed));
    assert!(!accepts(&passed), "files do one after the other");
    // It is taken once its claim has returned, and not chosen before it was asked for.
    assert!(!parts(&vec![slow(25), quick(), free((30, 40))]));
    let before = call("b", Action::Next, (0, 10), took(3));
    let after = call("a", Action::Next, (20, 30), took(1));
    assert!(!parts(&vec![before, after]));
    // No task is ready if others have chosen all of them; every other change waits for them.
    let third = call("c", Action::Next, (25, 50), refused("nothing_ready", &[]));
    let free_later = free((55, 60));
    assert!(parts(&vec![
        slow(70),
        quick(),
        third.clone(),
        free_later.clone()
    ]));
    assert!(!parts(&vec![slow(70), third.clone(), free_later]));
    assert!(!parts(&vec![slow(25), third]));
    let release = call("b", Action::Release(3), (22, 28), BoardAnswer::Done);
    assert!(!parts(&vec![slow(50), quick(), release, free((30, 40))]));
    // A killed one may have released its choice, until its caller was gone.
    let killed = || call("a", Action::Next, (0, 50), None);
    assert!(parts(&vec![killed(), quick(), free((60, 70))]));
    let again = call("c", Action::Next, (60, 70), took(3));
    let claim = call("d", Action::Claim(1), (80, 90), took(1));
    assert!(!parts(&vec![killed(), again, claim]));
}

/// Tries every order of every subset that holds all answered calls.
fn has_an_order(
    history: &History,
    done: &mut Vec<usize>,
    state: &<BoardSpec as Spec>::State,
) -> bool {
    let left: Vec<usize> = (0..history.len()).filter(|n| !done.contains(n)).collect();
    if left.iter().all(|n| history[*n].answer.is_none()) {
        return true;
    }
    left.into_iter().any(|n| {
        let call = &history[n];
        let (after, answer) = spec().step(state, &call.op);
        let too_late = done.iter().any(|m| history[*m].invoked > call.returned);
        if too_late || call.answer.as_ref().is_some_and(|given| *given != answer) {
            return false;
        }
        done.push(n);
        let found = has_an_order(history, done, &after);
        done.pop();
        found
    })
}

/// Six calls with the answers of some order, at times that may or may not allow that order.
fn small_history(random: &mut Random) -> History {
    let mut state = spec().start();
    let one = |n: u64| {
        let id = *random.pick(&[1, 1, 2]);
        let action = *random.pick(&[
            Action::Claim(id),
            Action::Claim(id),
            Action::Next,
            Action::Release(id),
            Action::Complete(id),
            Action::Reopen(id),
            Action::Show(id),
        ]);
        let agent = (*random.pick(&["a", "b"])).to_owned();
        let op = BoardCall { agent, action };
        let (after, answer) = spec().step(&state, &op);
        let dies = random.below(4) == 0;
        if !dies || random.below(2) == 0 {
            state = after;
        }
        let invoked = (10 * n + random.below(20)).saturating_sub(random.below(60));
        Call {
            op,
            invoked,
            returned: invoked + random.below(20),
            answer: (!dies).then_some(answer),
        }
    };
    (0..6).map(one).collect()
}

#[test]
fn the_search_agrees_with_trying_everything() {
    let mut accepted = 0;
    for seed in 0..3000 {
        let history = small_history(&mut Random::new(seed));
        let expected = has_an_order(&history, &mut Vec::new(), &spec().start());
        assert_eq!(accepts(&history), expected, "seed {seed}: {history:#?}");
        accepted += usize::from(expected);
    }
    assert!(
        (300..2700).contains(&accepted),
        "{accepted} of 3000 accepted: too one-sided"
    );
}
