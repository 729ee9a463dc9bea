//! The fuzz targets of this crate; see [`store::fuzz`].

use store::fuzz::{Target, assert_steers_no_terminal};

use crate::activity::Activity;
use crate::cursor::Cursor;
use crate::files::marks::Mark;
use crate::line::{self, MAX_SEQ, Parsed, Scan, Scanned};
use crate::message::{Body, Message};
use crate::protocol::Protocol;
use crate::render::{CLOSE, OPEN, render, render_parts};
use crate::request::Request;
use crate::xml::{write_attribute, write_part, write_words};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("mail_log", mail_log),
    ("mail_cursor", mail_cursor),
    ("mail_request", mail_request),
    ("mail_words", mail_words),
];

/// The log of an inbox.
fn mail_log(data: &[u8]) {
    let mut last = 0;
    for scanned in Scan::new(data, 0) {
        let Scanned::Good(bytes, parsed) = scanned else {
            continue;
        };
        let seq = parsed.message.seq;
        assert!(last < seq && seq <= MAX_SEQ);
        last = seq;
        let head = line::head(bytes).map(|head| (head.v, head.seq));
        assert_eq!(head, Some((parsed.v, seq)), "two readers disagree");
        copy(&parsed);
        show(&parsed.message);
    }
}

/// A copy of a message parses as the message itself.
fn copy(parsed: &Parsed) {
    let original = &parsed.message;
    let Ok(sealed) = line::seal_copy(original, "bob") else {
        return;
    };
    let mut bytes = Vec::new();
    sealed.write(1, &mut bytes);
    assert_eq!(bytes.pop(), Some(b'\n'));
    assert!(!bytes.contains(&b'\n'), "a message is one line");
    let expected = Message {
        seq: 1,
        to: "bob".to_owned(),
        broadcast: Some(original.seq),
        once: false,
        ..original.clone()
    };
    let read = line::parse(&bytes).map(|copy| copy.message);
    assert_eq!(read, Ok(expected));
}

/// A model can tell the author of every text, and no agent's words end the element they are in.
fn show(message: &Message) {
    let told = matches!(&message.body, Body::Protocol(Protocol::TaskNotification(_)));
    let (open, close) = if told {
        ("<task-notification>", "</task-notification>")
    } else {
        (OPEN, CLOSE.trim_start())
    };
    let mut shown = render_parts(message, Some("blue"), 200);
    assert!(told || shown.iter().all(|part| part.starts_with(open)));
    shown = vec![render([message], |_| None)];
    for part in shown {
        assert!(part.starts_with(open) && part.ends_with(close));
        assert_eq!(part.matches(open).count(), 1, "{part}");
        assert_eq!(part.matches(close).count(), 1, "{part}");
        assert_steers_no_terminal(&part);
    }
    assert_eq!(message.to_json()["seq"], message.seq);
}

/// The cursor of an inbox, and the marks beside it.
fn mail_cursor(data: &[u8]) {
    if let Ok(activity) = serde_json::from_slice::<Activity>(data) {
        assert!(
            activity
                .started()
                .is_none_or(|next| next.times >= activity.times)
        );
    }
    drop(serde_json::from_slice::<Mark>(data));
    let Some(mut cursor) = Cursor::parse(data) else {
        return;
    };
    assert!(cursor.highest() <= MAX_SEQ);
    let text = cursor.to_text().unwrap_or_default();
    assert_eq!(Cursor::parse(text.as_bytes()).as_ref(), Some(&cursor));
    assert!(cursor.acked == 0 || cursor.is_acked(cursor.acked));
    let next = cursor.acked.saturating_add(1);
    let all_below = cursor.is_acked(next);
    cursor.advance(next);
    assert!(cursor.is_acked(next) || !all_below && cursor.acked >= next);
    let again = cursor.to_text().unwrap_or_default();
    assert_eq!(Cursor::parse(again.as_bytes()), Some(cursor));
}

/// A question with its answer.
fn mail_request(data: &[u8]) {
    let Ok(mut request) = serde_json::from_slice::<Request>(data) else {
        return;
    };
    let bytes = request.to_bytes().unwrap_or_default();
    let again = serde_json::from_slice::<Request>(&bytes).ok();
    assert_eq!(again.map(|again| again.to_json()), Some(request.to_json()));
    assert_eq!(request.waits(), request.check_waits().is_ok());
    if let Ok(Some(draft)) = request.untold() {
        assert!(draft.id.is_some());
    }
    request.expire(i64::MAX);
    assert!(!request.waits());
}

/// Words on their way to a model.
fn mail_words(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (mut words, mut part, mut attribute) = <(String, String, String)>::default();
    write_words(&mut words, &text);
    write_part(&mut part, "result", &text);
    write_attribute(&mut attribute, &text);
    for out in [&words, &part, &attribute] {
        assert_steers_no_terminal(out);
        assert!(out.len() <= 8 * text.len() + 32, "{} bytes", out.len());
    }
    assert!(!attribute.contains(['"', '<', '>', '\n', '\t']));
    let inside = part
        .strip_prefix("<result>")
        .and_then(|rest| rest.strip_suffix("</result>\n"));
    assert!(inside.is_some_and(|inside| !seen_by_model(inside).contains("</result")));
    for tag in [
        "<teammatemessage",
        "</teammatemessage",
        "<tasknotification",
        "<systemreminder",
    ] {
        assert!(!seen_by_model(&words).contains(tag), "{words:?}");
    }
}

/// Text without what makes no difference to a model.
fn seen_by_model(text: &str) -> String {
    let mut seen = String::new();
    for c in text.chars().filter(|c| !matches!(c, '-' | '_')) {
        if !(c.is_whitespace() && seen.ends_with(['<', '/'])) {
            seen.extend(c.to_lowercase());
        }
    }
    seen
}
