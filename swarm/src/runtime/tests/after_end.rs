use std::future::{pending, ready};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, advance};

use crate::process::Ending;
use crate::runtime::EndWatch;

/// A watch of a program that ended at this moment.
async fn ended() -> EndWatch {
    let (sender, receiver) = oneshot::channel();
    let mut watch = EndWatch::new(receiver);
    sender.send(Ending::Exited(3)).expect("somebody waits");
    assert_eq!(watch.ending().await, Ending::Exited(3));
    watch
}

#[tokio::test(start_paused = true)]
async fn while_it_runs_reading_waits() {
    let (sender, receiver) = oneshot::channel();
    let mut watch = EndWatch::new(receiver);
    let begun = Instant::now();
    let reading = tokio::spawn(async move { watch.read(pending::<()>()).await });
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(!reading.is_finished());
    sender.send(Ending::Exited(0)).expect("somebody waits");
    assert_eq!(reading.await.expect("it ends"), None);
    assert!(begun.elapsed() < Duration::from_secs(1001));
}

#[tokio::test(start_paused = true)]
async fn after_the_end_what_comes_is_read_for_a_while() {
    let mut watch = ended().await;
    let slow = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        1
    };
    assert_eq!(watch.read(slow).await, Some(1));
    let too_slow = tokio::time::sleep(Duration::from_secs(60));
    assert_eq!(watch.read(too_slow).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_the_program_printed_is_read_however_late() {
    let mut watch = ended().await;
    // The reader of the output was away.
    advance(Duration::from_secs(3600)).await;
    for n in 0..5000 {
        assert_eq!(watch.read(ready(n)).await, Some(n));
    }
    assert_eq!(watch.read(pending::<()>()).await, None);
}

#[tokio::test(start_paused = true)]
async fn noise_does_not_go_on_for_ever() {
    let mut watch = ended().await;
    advance(Duration::from_secs(3)).await;
    let mut read = 0;
    while watch.read(ready(())).await.is_some() {
        read += 1;
        assert!(read < 100_000);
    }
}

#[tokio::test]
async fn somebody_who_waits_for_nobody_learns_nothing() {
    let (sender, receiver) = oneshot::channel();
    drop::<oneshot::Sender<Ending>>(sender);
    assert_eq!(EndWatch::new(receiver).ending().await, Ending::Unknown);
}
