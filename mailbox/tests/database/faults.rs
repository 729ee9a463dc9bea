//! Links that break at every statement, servers that restart, readers that are taken for dead.

use std::time::{Duration, Instant};

use database::throw_away::Server;
use database::{COMMON, Database, Secrets, Settings, migrate};
use mailbox::{
    DEFAULT_DEADLINE, Draft, IdleNotification, IdleReason, MIGRATIONS, MailOptions, Mailbox,
    Question, RequestState, RunStatus, Shutdown, TaskNotification, Usage,
};
use store::Explain;

use crate::mail_suite::{kept, name, send, text};
use crate::proxy::{Cut, Proxy};
use crate::{Schema, open, server};

/// Mail that is reached through a proxy, and the same mail reached directly.
struct Scene {
    schema: Schema,
    proxy: Proxy,
    through: Database,
}

impl Scene {
    fn new(server: &Server) -> Self {
        let schema = Schema::new(server);
        let proxy = Proxy::start(server.port());
        let url = server.url_at(proxy.port(), &schema.name);
        let settings = Settings::parse(&url, &Secrets::default()).unwrap();
        Self {
            through: Database::new(settings.with_patience(Duration::from_secs(20))),
            schema,
            proxy,
        }
    }

    fn through(&self) -> Mailbox {
        open(&self.through, MailOptions::default())
    }

    fn direct(&self) -> Mailbox {
        open(&self.schema.database, MailOptions::default())
    }
}

/// Runs an operation with the link cut at every statement in turn, before it and after it, until
/// the operation is done without reaching the cut. `prepare` and `check` use a link of their own.
fn with_every_cut<T>(
    prepare: impl Fn(&Scene) -> T,
    act: impl Fn(&Mailbox, T) -> T,
    check: impl Fn(&Scene, T, &str),
) {
    let Some(server) = server() else { return };
    for how in [Cut::Before, Cut::After] {
        let mut statements = 0;
        for nth in 1.. {
            let scene = Scene::new(&server);
            let prepared = prepare(&scene);
            scene.proxy.cut_at(nth, how);
            let acted = act(&scene.through(), prepared);
            let untouched = scene.proxy.is_waiting();
            check(&scene, acted, &format!("cut {how:?} statement {nth}"));
            if untouched {
                break;
            }
            statements = nth;
            assert!(nth < 60, "it never ends");
        }
        // The question for the schema's version, and what is done.
        assert!(statements >= 2, "only {statements} statements were cut");
    }
}

#[test]
fn a_message_is_sent_once_wherever_the_link_breaks() {
    with_every_cut(
        |_| 0,
        |mailbox, _| send(mailbox, "one").seq,
        |scene, seq, at| {
            assert_eq!(seq, 1, "{at}");
            assert_eq!(kept(&scene.direct(), "bob"), [(1, "one".into())], "{at}");
            assert_eq!(send(&scene.direct(), "two").seq, 2, "{at}");
        },
    );
}

#[test]
fn a_notification_is_posted_once_and_not_taken_for_a_repeat() {
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
    with_every_cut(
        |_| None,
        |mailbox, _| {
            let posted = mailbox.notify(name("w"), name("bob"), "r1", &notification);
            Some(posted.unwrap())
        },
        |scene, posted, at| {
            let posted = posted.unwrap();
            assert_eq!((posted.seq, posted.already), (1, false), "{at}");
            let inbox = scene.direct().inbox(&name("bob")).unwrap();
            assert_eq!(inbox.list(true).unwrap().messages.len(), 1, "{at}");
        },
    );
}

#[test]
fn a_broadcast_reaches_all_once_or_nobody() {
    let everyone = ["bob", "carol", "dan"];
    with_every_cut(
        |_| 0,
        |mailbox, _| {
            let draft = text("a", "a", "to all");
            mailbox
                .broadcast(&draft, &everyone.map(name))
                .unwrap()
                .number
        },
        |scene, number, at| {
            assert_eq!(number, 1, "{at}");
            for agent in everyone {
                let all = kept(&scene.direct(), agent);
                assert_eq!(all, [(1, "to all".to_owned())], "{at}, {agent}");
            }
        },
    );
}

fn shutdown() -> Question {
    Question::Shutdown(Shutdown::default())
}

fn ask(mailbox: &Mailbox) -> String {
    let (bob, lead) = (name("bob"), name("team-lead"));
    let asked = mailbox.ask(&bob, &lead, shutdown(), DEFAULT_DEADLINE);
    asked.unwrap().id
}

fn messages(scene: &Scene, agent: &str) -> usize {
    let inbox = scene.direct().inbox(&name(agent)).unwrap();
    inbox.list(true).unwrap().messages.len()
}

#[test]
fn a_request_is_made_once_with_its_message() {
    with_every_cut(
        |_| String::new(),
        |mailbox, _| ask(mailbox),
        |scene, id, at| {
            let all = scene.direct().requests().unwrap().requests;
            let ids: Vec<&str> = all.iter().map(|request| request.id.as_str()).collect();
            assert_eq!(ids, [id.as_str()], "{at}");
            assert_eq!(messages(scene, "team-lead"), 1, "{at}");
        },
    );
}

/// The process that answered is not refused because of its own answer.
#[test]
fn an_answer_counts_once_and_is_its_own() {
    with_every_cut(
        |scene| ask(&scene.direct()),
        |mailbox, id| {
            let answered = mailbox.answer(&id, &name("team-lead"), true, None);
            assert_eq!(answered.unwrap().state, RequestState::Approved);
            id
        },
        |scene, id, at| {
            assert_eq!(messages(scene, "bob"), 1, "{at}");
            let second = scene.direct().answer(&id, &name("team-lead"), false, None);
            assert_eq!(second.unwrap_err().kind(), "already_answered", "{at}");
        },
    );
}

#[test]
fn a_late_answer_is_refused_and_the_asker_told_once() {
    with_every_cut(
        |scene| {
            let id = ask(&scene.direct());
            scene.schema.pass(600_000);
            id
        },
        |mailbox, id| {
            let late = mailbox.answer(&id, &name("team-lead"), true, None);
            assert_eq!(late.unwrap_err().kind(), "request_expired");
            id
        },
        |scene, id, at| {
            assert_eq!(messages(scene, "bob"), 1, "{at}");
            let request = scene.direct().request(&id).unwrap();
            assert_eq!(request.state, RequestState::Expired, "{at}");
            assert_eq!(messages(scene, "bob"), 1, "{at}");
        },
    );
}

#[test]
fn becoming_idle_is_told_once() {
    with_every_cut(
        |_| true,
        |mailbox, _| {
            let notification = IdleNotification {
                idle_reason: IdleReason::Available,
                finished_tasks: vec![],
                failure_reason: None,
            };
            let told = mailbox.note_idle(&name("bob"), &name("team-lead"), notification);
            told.unwrap().is_some()
        },
        |scene, told, at| {
            assert!(told, "{at}");
            assert_eq!(messages(scene, "team-lead"), 1, "{at}");
        },
    );
}

/// Reading, passing on and acknowledging: also where the answer to the acknowledgement is lost.
#[test]
fn what_is_read_is_acknowledged_once() {
    with_every_cut(
        |scene| {
            send(&scene.direct(), "one");
            send(&scene.direct(), "two");
            Vec::new()
        },
        |mailbox, _| {
            let mut reader = mailbox.inbox(&name("bob")).unwrap().consumer().unwrap();
            let batch = reader.take(9).unwrap();
            let first = batch.messages.iter().all(|message| !message.redelivered);
            assert!(first, "nobody has seen them before");
            let seqs: Vec<u64> = batch.messages.iter().map(|m| m.seq).collect();
            reader.delivered(&seqs).unwrap();
            assert!(reader.take(9).unwrap().messages.is_empty());
            let acked = reader.ack(&seqs).unwrap();
            assert_eq!((acked.acked, acked.unread.len()), (2, 0));
            acked.new
        },
        |scene, new, at| {
            assert_eq!(new, [1, 2], "{at}");
            let listing = scene
                .direct()
                .inbox(&name("bob"))
                .unwrap()
                .list(false)
                .unwrap();
            assert_eq!((listing.acked, listing.messages.len()), (2, 0), "{at}");
            let mut next = scene.direct().consumer(&name("bob")).unwrap();
            assert!(next.take(9).unwrap().messages.is_empty(), "{at}");
        },
    );
}

#[test]
fn a_reader_that_was_taken_for_dead_changes_nothing_any_more() {
    let Some(server) = server() else { return };
    let scene = Scene::new(&server);
    let direct = scene.direct();
    for n in 1..=3 {
        send(&direct, &format!("m{n}"));
    }
    let mut first = scene.through().consumer(&name("bob")).unwrap();
    assert_eq!(first.take(2).unwrap().messages.len(), 2);
    let refused = direct.consumer(&name("bob")).unwrap_err();
    assert_eq!(refused.kind(), "being_read");
    // The machine is cut off, and the server has noticed.
    scene.proxy.close();
    let begun = Instant::now();
    let mut second = loop {
        match direct.consumer(&name("bob")) {
            Ok(reader) => break reader,
            Err(error) => {
                assert_eq!(error.kind(), "being_read");
                assert!(begun.elapsed() < Duration::from_secs(10), "{error}");
            }
        }
    };
    let marks: Vec<bool> = second
        .take(9)
        .unwrap()
        .messages
        .iter()
        .map(|message| message.redelivered)
        .collect();
    assert_eq!(marks, [true, true, false]);
    assert_eq!(second.ack(&[1]).unwrap().acked, 1);
    // The machine is connected again, and its reader continues.
    scene.proxy.open();
    let late = first.ack(&[1, 2]).unwrap_err();
    assert_eq!(late.kind(), "being_read", "{late}");
    drop(first);
    assert!(direct.inbox(&name("bob")).unwrap().has_reader().unwrap());
    assert_eq!(second.ack(&[2, 3]).unwrap().acked, 3);
}

#[test]
fn a_reader_that_is_silent_loses_its_lease_when_its_time_is_over() {
    let Some(server) = server() else { return };
    let scene = Scene::new(&server);
    let direct = scene.direct();
    send(&direct, "m1");
    let first = scene.through().consumer(&name("bob")).unwrap();
    // The server gets no sign of it, and its connections stay open.
    scene.proxy.silence(true);
    let refused = direct.consumer(&name("bob")).unwrap_err();
    assert_eq!(refused.kind(), "being_read");
    scene.schema.pass(20_000);
    let mut second = direct.consumer(&name("bob")).unwrap();
    assert_eq!(second.take(9).unwrap().messages.len(), 1);
    scene.proxy.close();
    drop(first);
    assert_eq!(second.ack(&[1]).unwrap().acked, 1);
}

/// A server of its own, because the test stops it.
#[test]
fn a_server_that_restarts_loses_nothing_and_nobody() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let database = Database::new(server.settings("ccb"));
    migrate(&database, &[&COMMON, &MIGRATIONS], false).unwrap();
    let mailbox = open(&database, MailOptions::default());
    send(&mailbox, "before");
    let mut reader = mailbox.consumer(&name("bob")).unwrap();
    assert_eq!(reader.take(9).unwrap().messages.len(), 1);
    server.stop();
    // Sent while the server is stopped.
    let sender = std::thread::spawn({
        let mailbox = open(&database, MailOptions::default());
        move || send(&mailbox, "meanwhile").seq
    });
    std::thread::sleep(Duration::from_millis(300));
    server.launch();
    assert_eq!(sender.join().unwrap(), 2);
    assert!(reader.wait(Duration::from_secs(30)).unwrap());
    let batch = reader.take(9).unwrap();
    assert_eq!(batch.messages.len(), 1);
    assert_eq!(batch.messages[0].text(), Some("meanwhile"));
    assert_eq!(reader.ack(&[1, 2]).unwrap().acked, 2);
    // The listener is connected again.
    std::thread::scope(|scope| {
        scope.spawn(|| send(&mailbox, "after"));
        assert!(reader.wait(Duration::from_secs(30)).unwrap());
    });
    let refused = mailbox.consumer(&name("bob")).unwrap_err();
    assert_eq!(refused.kind(), "being_read", "it still has its lease");
}

#[test]
fn a_schema_without_tables_says_what_to_do() {
    let Some(server) = server() else { return };
    let database = Database::new(server.settings("never_made"));
    let mailbox = open(&database, MailOptions::default());
    let draft = Draft::text(name("a"), name("bob"), "x");
    for error in [
        mailbox.send(&draft).map(drop).unwrap_err(),
        mailbox.requests().map(drop).unwrap_err(),
        mailbox.consumer(&name("bob")).map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), "old_schema", "{error}");
        assert!(error.hint().unwrap().contains("ccb board migrate"));
    }
}
