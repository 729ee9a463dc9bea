//! Ringing for a waiting reader, by every way of waiting.

use std::time::Duration;

use super::{Team, name, send, text};

#[test]
fn whoever_sends_rings() {
    let team = Team::new();
    let mailbox = team.open();
    send(&mailbox, "nobody listens yet");
    let bell = store::fifo::Bell::new(&team.inbox_dir("bob").join("wake")).unwrap();
    // A waiter may hear a ring from before it listened, but only once.
    bell.wait(Duration::ZERO);
    assert!(!bell.wait(Duration::ZERO));
    send(&mailbox, "m2");
    assert!(bell.wait(Duration::ZERO), "rung before the sender goes on");
    let draft = text("a", "a", "to all");
    team.open().broadcast(&draft, &[name("bob")]).unwrap();
    assert!(bell.wait(Duration::ZERO), "for a broadcast as well");
    assert!(!bell.wait(Duration::ZERO));
}
