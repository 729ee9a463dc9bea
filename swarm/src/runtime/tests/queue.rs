use std::time::Duration;

use crate::runtime::{Event, agent, post};

const MEGABYTE: usize = 1 << 20;

/// The number of events of this size that wait when no receiver takes any.
async fn waiting(bytes: usize) -> usize {
    let (agent, port) = agent();
    let mut sent = 0;
    let send = async {
        while sent < 1000 && post(&port.events, Event::Text(String::new()), bytes).await {
            sent += 1;
        }
    };
    tokio::time::timeout(Duration::from_secs(1), send)
        .await
        .expect_err("it waits");
    assert_eq!(agent.events.len(), sent);
    sent
}

#[tokio::test(start_paused = true)]
async fn large_events_wait_for_each_other() {
    assert_eq!(waiting(0).await, 64);
    assert_eq!(waiting(100).await, 64);
    assert_eq!(waiting(MEGABYTE).await, 1);
    assert_eq!(waiting(100 * MEGABYTE).await, 1);
    for kilobytes in [20, 64, 128, 256, 512, 900] {
        let all = waiting(kilobytes * 1024).await * kilobytes;
        assert!(all < 20 * 1024, "{kilobytes} KiB at a time: {all} KiB wait");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_event_goes_when_there_is_room() {
    let (mut agent, port) = agent();
    assert!(post(&port.events, Event::Text("small".into()), 5).await);
    let large =
        tokio::spawn(
            async move { post(&port.events, Event::Text("large".into()), 9 * MEGABYTE).await },
        );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!large.is_finished());
    assert_eq!(agent.events.recv().await, Some(Event::Text("small".into())));
    assert_eq!(agent.events.recv().await, Some(Event::Text("large".into())));
    assert!(large.await.expect("it is sent"));
    assert_eq!(agent.events.recv().await, None);
}

#[tokio::test]
async fn nobody_to_send_to_is_no_error() {
    let (agent, port) = agent();
    drop(agent);
    assert!(!post(&port.events, Event::Text(String::new()), 1).await);
}
