//! The examples do what they say.

#[path = "../examples/mail.rs"]
mod mail;

#[test]
fn a_message_is_shown_once_and_is_gone_when_it_is_acknowledged() {
    mail::main().unwrap();
    let (shown, left) = mail::exchange().unwrap();
    let expected = "<teammate-message teammate_id=\"ann\">\nThe build is green & <fast>.\n\
                    </teammate-message>";
    assert_eq!((shown.as_str(), left), (expected, 0));
}
