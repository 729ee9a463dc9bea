//! Messages with an id of their own are there once, whatever happens to the first.

use super::{Team, name, send};
use crate::notification::notification_id;
use crate::{IdleNotification, IdleReason, Limits, Mailbox, RunStatus, TaskNotification, Usage};

fn notification() -> TaskNotification {
    TaskNotification {
        task_id: "a1".into(),
        tool_use_id: None,
        output_file: "output.log".into(),
        status: RunStatus::Completed,
        description: "x".into(),
        result: None,
        usage: Usage::default(),
        worktree: None,
    }
}

fn notify(mailbox: &Mailbox, run: &str) -> (u64, bool) {
    let posted = mailbox.notify(name("w"), name("bob"), run, &notification());
    let posted = posted.unwrap();
    assert_eq!(posted.id, notification_id(run));
    (posted.seq, posted.already)
}

#[test]
fn a_repeat_is_dropped_after_the_first_was_archived() {
    let mut team = Team::new();
    team.limits.rotate_bytes = 1;
    team.limits.archives = 1;
    let mailbox = team.open();
    for round in 0..5 {
        assert!(!notify(&mailbox, &format!("r{round}")).1);
        send(&mailbox, "filler");
        let mut consumer = team.open().consumer(&name("bob")).unwrap();
        let last = consumer.take(9).unwrap().messages.pop().unwrap().seq;
        consumer.ack_up_to(last).unwrap();
    }
    let log = std::fs::read_to_string(team.inbox_dir("bob").join("log.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 1, "only the last message is left");
    for mailbox in [&mailbox, &team.open()] {
        for round in 0..5 {
            assert!(notify(mailbox, &format!("r{round}")).1, "r{round}");
        }
    }
}

#[test]
fn marks_that_were_lost_are_found_again_in_the_log() {
    let team = Team::new();
    notify(&team.open(), "r1");
    notify(&team.open(), "r2");
    let marks = team.inbox_dir("bob").join("marks.jsonl");
    assert!(marks.metadata().unwrap().len() > 0);
    std::fs::remove_file(&marks).unwrap();
    assert_eq!(notify(&team.open(), "r1"), (1, true));
    assert_eq!(notify(&team.open(), "r2"), (2, true));
}

#[test]
fn a_log_that_was_deleted_takes_no_id_with_it() {
    let team = Team::new();
    notify(&team.open(), "r1");
    notify(&team.open(), "r2");
    std::fs::remove_file(team.inbox_dir("bob").join("log.jsonl")).unwrap();
    assert!(notify(&team.open(), "r1").1, "it was listed when r2 came");
    // An id that was not listed is lost with the log, and the message comes again under a new
    // number.
    assert_eq!(notify(&team.open(), "r2"), (2, false));
    assert_eq!(notify(&team.open(), "r2"), (2, true));
}

#[test]
fn the_oldest_ids_are_forgotten_in_the_end() {
    let mut team = Team::new();
    team.limits = Limits {
        remembered_ids: 4,
        rotate_bytes: 1,
        ..Limits::default()
    };
    let mailbox = team.open();
    for n in 0..40 {
        assert!(!notify(&mailbox, &format!("r{n}")).1);
        let mut consumer = team.open().consumer(&name("bob")).unwrap();
        consumer.ack_up_to(n + 1).unwrap();
    }
    let marks = std::fs::read_to_string(team.inbox_dir("bob").join("marks.jsonl")).unwrap();
    assert!(marks.lines().count() <= 10, "{marks}");
    for mailbox in [&mailbox, &team.open()] {
        assert!((36..40).all(|n| notify(mailbox, &format!("r{n}")).1));
    }
    assert!(!notify(&mailbox, "r0").1, "long forgotten");
}

#[test]
fn becoming_idle_is_told_once_per_edge() {
    let team = Team::new();
    let idle = |mailbox: &Mailbox| {
        let notification = IdleNotification {
            idle_reason: IdleReason::Available,
            finished_tasks: vec!["1".into()],
            failure_reason: None,
        };
        mailbox
            .note_idle(&name("bob"), &name("team-lead"), notification)
            .unwrap()
            .is_some()
    };
    assert!(idle(&team.open()));
    assert!(!idle(&team.open()), "also by another process");
    team.open().note_busy(&name("bob")).unwrap();
    team.open().note_busy(&name("bob")).unwrap();
    assert!(idle(&team.open()));
    // Sent by a process that died before it could record it: sent again, and present once.
    let activity = team.inbox_dir("bob").join("activity.json");
    let noted = std::fs::read_to_string(&activity).unwrap();
    let noted = noted.replace("false", "true");
    store::atomic::replace(
        team.dir.path(),
        &activity,
        noted.as_bytes(),
        store::atomic::Durability::Relaxed,
    )
    .unwrap();
    assert!(!idle(&team.open()));
    let lead = team.open().inbox(&name("team-lead")).unwrap();
    assert_eq!(lead.list(true).unwrap().messages.len(), 2);
}
