//! Ringing for whoever waits, however it waits.

use std::time::Duration;

use super::{Team, name, send, text};

#[test]
fn whoever_sends_rings() {
    let team = Team::new();
    let mailbox = team.open();
    send(&mailbox, "nobody listens yet");
    let bell = store::fifo::Bell::new(&team.inbox_dir("bob").join("wake")).unwrap();
    // What was rung for before somebody listened may be heard now, but only once.
    bell.wait(Duration::ZERO);
    assert!(!bell.wait(Duration::ZERO));
    send(&mailbox, "m2");
    assert!(bell.wait(Duration::ZERO), "rung before the sender goes on");
    let draft = text("a", "a", "to all");
    team.open().broadcast(&draft, &[name("bob")]).unwrap();
    assert!(bell.wait(Duration::ZERO), "for a broadcast as well");
    assert!(!bell.wait(Duration::ZERO));
}
