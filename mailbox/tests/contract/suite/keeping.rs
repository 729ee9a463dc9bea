//! Kept messages and refused messages.

use mailbox::{Draft, MAX_SUMMARY, MAX_TEXT, MailOptions};
use store::Explain;
use store::secret_filter::SecretFilter;

use super::{Team, kept, name, send, text};

pub(crate) fn old_messages_go_once_they_are_acknowledged(team: &mut Team) {
    team.limits.rotate_bytes = 1000;
    team.limits.archives = 2;
    let (mailbox, other) = (team.open(), team.open());
    let mut consumer = mailbox.consumer(&name("bob")).unwrap();
    for n in 1..=100 {
        let sender = if n % 3 == 0 { &other } else { &mailbox };
        assert_eq!(send(sender, &format!("m{n}")).seq, n);
        let messages = consumer.take(9).unwrap().messages;
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].seq, n);
        // A few are always left.
        if n % 5 == 0 {
            consumer.ack_up_to(n - 2).unwrap();
        }
    }
    let kept = kept(&team.open(), "bob");
    assert_eq!(kept.last().unwrap(), &(100, "m100".to_owned()));
    assert!(kept.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
    // Of about 180 bytes each: what fills the archives and what is on its way there.
    assert!((8..40).contains(&kept.len()), "{}", kept.len());
    let waiting = mailbox.inbox(&name("bob")).unwrap().list(false).unwrap();
    assert_eq!((waiting.acked, waiting.messages.len()), (98, 2));
}

pub(crate) fn too_much_unread_is_refused_and_reading_makes_room(team: &mut Team) {
    team.limits.unread = 10;
    let mailbox = team.open();
    for n in 1..=10 {
        send(&mailbox, &format!("m{n}"));
    }
    for sender in [&mailbox, &team.open()] {
        let error = sender.send(&text("a", "bob", "one more")).unwrap_err();
        assert_eq!(error.kind(), "inbox_full", "{error}");
        assert!(error.to_string().contains("10"), "{error}");
    }
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    consumer.ack_up_to(5).unwrap();
    assert_eq!(send(&mailbox, "m11").seq, 11);
    let texts = kept(&mailbox, "bob");
    assert_eq!(texts.len(), 11, "nothing is lost: {texts:?}");
}

pub(crate) fn too_many_bytes_are_refused(team: &mut Team) {
    team.limits.log_bytes = 3000;
    let mailbox = team.open();
    let many = (0..100)
        .take_while(|_| mailbox.send(&text("a", "bob", &"x".repeat(200))).is_ok())
        .count();
    assert!((4..10).contains(&many), "{many}");
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    consumer.ack_up_to(many as u64).unwrap();
    send(&mailbox, "room again");
}

pub(crate) fn what_is_too_long_is_refused_with_a_hint(team: &mut Team) {
    let mailbox = team.open();
    let longest = "é".repeat(MAX_TEXT / 2);
    mailbox.send(&text("a", "bob", &longest)).unwrap();
    let error = mailbox
        .send(&text("a", "bob", &format!("{longest}x")))
        .unwrap_err();
    assert_eq!(error.kind(), "too_long");
    assert!(error.hint().unwrap().contains("file"));
    let draft = Draft {
        summary: Some("x".repeat(MAX_SUMMARY + 1)),
        ..text("a", "bob", "x")
    };
    assert_eq!(mailbox.send(&draft).unwrap_err().kind(), "too_long");
    assert_eq!(kept(&mailbox, "bob").len(), 1);
}

/// Also what JSON or a database could stumble over.
pub(crate) fn any_text_survives(team: &mut Team) {
    let mailbox = team.open();
    let texts = [
        "\0 and \u{1}\u{1f}",
        "'; drop table mail_messages; --",
        "\\ \" \n\r\n\t",
        "\u{fffe}\u{ffff}\u{202e}👩‍👩‍👧‍👦 é世界",
        "",
    ];
    for text in texts {
        send(&mailbox, text);
    }
    let mut consumer = team.open().consumer(&name("bob")).unwrap();
    let messages = consumer.take(9).unwrap().messages;
    let read: Vec<&str> = messages.iter().map(|m| m.text().unwrap()).collect();
    assert_eq!(read, texts);
}

/// The filter belongs to who writes, so this is about the text that is passed on, not about
/// where it is kept.
pub(crate) fn secrets_are_not_kept(team: &mut Team) {
    let filter = SecretFilter::new(|text| Some(text.replace("hunter2", "***")));
    let options = MailOptions {
        secret_filter: filter,
        ..MailOptions::default()
    };
    let mailbox = (team.open_with)(options);
    let draft = Draft {
        summary: Some("about hunter2".into()),
        ..text("a", "bob", "it is hunter2")
    };
    mailbox.send(&draft).unwrap();
    let everyone = [name("bob")];
    let to_all = text("a", "a", "hunter2 for all");
    mailbox.broadcast(&to_all, &everyone).unwrap();
    let listing = team.open().inbox(&name("bob")).unwrap().list(true).unwrap();
    let messages: Vec<_> = listing.messages.iter().map(|(m, _)| m).collect();
    assert_eq!(messages[0].text(), Some("it is ***"));
    assert_eq!(messages[0].summary.as_deref(), Some("about ***"));
    assert_eq!(messages[1].text(), Some("*** for all"));
}
