//! Messages with an id of their own are there once, whatever happens to the first.

use mailbox::{
    Body, Draft, IdleNotification, IdleReason, Limits, Mailbox, RunStatus, TaskNotification, Usage,
    notification_id,
};
use store::Explain;

use super::{Team, name, send};

fn notify(mailbox: &Mailbox, run: &str) -> (u64, bool) {
    let notification = TaskNotification {
        task_id: "a1".into(),
        tool_use_id: None,
        output_file: "output.log".into(),
        status: RunStatus::Completed,
        description: "x".into(),
        result: None,
        usage: Usage::default(),
        worktree: None,
    };
    let posted = mailbox.notify(name("w"), name("bob"), run, &notification);
    let posted = posted.unwrap();
    assert_eq!(posted.id, notification_id(run));
    (posted.seq, posted.already)
}

pub(crate) fn a_repeat_is_dropped_by_every_process(team: &mut Team) {
    let (one, two) = (team.open(), team.open());
    assert_eq!(notify(&one, "r1"), (1, false));
    assert_eq!(notify(&one, "r1"), (1, true));
    send(&one, "between");
    assert_eq!(notify(&two, "r2"), (3, false));
    assert_eq!(notify(&two, "r1"), (1, true));
    assert_eq!(notify(&one, "r2"), (3, true));
    assert_eq!(notify(&team.open(), "r2"), (3, true));
    // Only a given id counts: the same words twice are two messages.
    assert_eq!(send(&one, "between").seq, 4);
}

pub(crate) fn a_repeat_is_dropped_after_the_first_is_gone(team: &mut Team) {
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
    let inbox = mailbox.inbox(&name("bob")).unwrap();
    assert!(inbox.list(true).unwrap().messages.len() < 6, "r0 is gone");
    for mailbox in [&mailbox, &team.open()] {
        for round in 0..5 {
            assert!(notify(mailbox, &format!("r{round}")).1, "r{round}");
        }
    }
}

pub(crate) fn the_oldest_ids_are_forgotten_in_the_end(team: &mut Team) {
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
    for mailbox in [&mailbox, &team.open()] {
        assert!((36..40).all(|n| notify(mailbox, &format!("r{n}")).1));
    }
    assert!(!notify(&mailbox, "r0").1, "long forgotten");
}

pub(crate) fn becoming_idle_is_told_once_per_edge(team: &mut Team) {
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
    assert!(!idle(&team.open()));
    let lead = team.open().inbox(&name("team-lead")).unwrap();
    assert_eq!(lead.list(true).unwrap().messages.len(), 2);
}

pub(crate) fn unknown_kinds_are_not_sent(team: &mut Team) {
    let unknown = Body::Unknown {
        kind: "plan_aproval_request".into(),
        body: serde_json::Value::Null,
    };
    let error = team
        .open()
        .send(&Draft::new(name("a"), name("bob"), unknown))
        .unwrap_err();
    assert_eq!(error.kind(), "unknown_kind");
    assert!(error.hint().unwrap().contains("plan_approval_request"));
}
