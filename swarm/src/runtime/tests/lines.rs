use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use crate::process::{Ending, Processes};
use crate::runtime::{
    Agent, Event, Launch, LinesRuntime, Message, Order, Runtime, Stream, TurnEnd, TurnStatus,
};

const LIMIT: Duration = Duration::from_secs(30);

/// Starts a shell script that speaks for itself.
fn start(dir: &Path, script: &str) -> Agent {
    let command = ["/bin/sh", "-c", script].map(str::to_owned);
    let launch = Launch {
        prompt: "hello".into(),
        cwd: dir.to_owned(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        scratch: dir.to_owned(),
        ..Launch::default()
    };
    let processes = Processes::own().expect("signals");
    let runtime = LinesRuntime::new(command.to_vec());
    runtime.launch(launch, &processes).expect("it starts")
}

async fn next(agent: &mut Agent) -> Option<Event> {
    let next = tokio::time::timeout(LIMIT, agent.events.recv());
    next.await.expect("something happens")
}

/// All events of a life without orders.
async fn life(script: &str) -> Vec<Event> {
    let dir = tempfile::tempdir().expect("a directory");
    let mut agent = start(dir.path(), script);
    let mut events = Vec::new();
    while let Some(event) = next(&mut agent).await {
        events.push(event);
    }
    events
}

fn output(text: &str) -> Event {
    Event::Output {
        stream: Stream::Stdout,
        bytes: text.as_bytes().to_vec(),
    }
}

fn started() -> Event {
    Event::Started {
        session: None,
        model: None,
    }
}

fn turn(status: TurnStatus, text: &str, error: Option<&str>) -> Event {
    Event::TurnEnded(TurnEnd {
        status,
        text: text.into(),
        error: error.map(str::to_owned),
    })
}

#[tokio::test]
async fn who_works_without_a_greeting_is_up() {
    let events = life(r#"echo '{"type":"text","text":"hi"}'; echo '{"type":"ready"}'"#).await;
    let hi = Event::Text("hi".into());
    assert_eq!(
        events,
        [started(), hi, started(), Event::Ended(Ending::Exited(0))]
    );
}

#[tokio::test]
async fn what_is_not_understood_is_output() {
    let script = r#"
        echo 'plain words'
        printf 'dos\r\n'
        echo '{"type":"text"}'
        echo '{"type":"unheard of","text":"x"}'
        echo '["text"]'
        echo '{"type":"usage","inputTokens":-1}'
        printf '\377\n'
    "#;
    let events = life(script).await;
    let expected = [
        output("plain words\n"),
        output("dos\r\n"),
        output("{\"type\":\"text\"}\n"),
        output("{\"type\":\"unheard of\",\"text\":\"x\"}\n"),
        output("[\"text\"]\n"),
        output("{\"type\":\"usage\",\"inputTokens\":-1}\n"),
        Event::Output {
            stream: Stream::Stdout,
            bytes: b"\xff\n".to_vec(),
        },
        Event::Ended(Ending::Exited(0)),
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn every_status_has_its_meaning() {
    let script = r#"
        for status in completed failed interrupted limit quota splendid; do
            echo '{"type":"result","text":"t","status":"'$status'"}'
        done
        printf '{"type":"result","status":"failed","error":"no line end"}'
    "#;
    let events = life(script).await;
    let unknown = Some("it reported the unknown status \"splendid\"");
    let expected = [
        started(),
        turn(TurnStatus::Completed, "t", None),
        turn(TurnStatus::Failed, "t", None),
        turn(TurnStatus::Interrupted, "t", None),
        turn(TurnStatus::LimitReached, "t", None),
        turn(TurnStatus::Quota, "t", None),
        turn(TurnStatus::Failed, "t", unknown),
        turn(TurnStatus::Failed, "", Some("no line end")),
        Event::Ended(Ending::Exited(0)),
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_message_is_confirmed_once_and_only_if_it_was_sent() {
    let dir = tempfile::tempdir().expect("a directory");
    let id = Uuid::new_v4();
    let script = format!(
        r#"read prompt
        echo '{{"type":"accepted","id":"{id}"}}'
        echo '{{"type":"ready"}}'
        read message
        echo '{{"type":"accepted","id":"{id}"}}'
        echo '{{"type":"accepted","id":"{id}"}}'
        printf '%s\n' "$message""#
    );
    let mut agent = start(dir.path(), &script);
    let accepted = format!("{{\"type\":\"accepted\",\"id\":\"{id}\"}}\n");
    assert_eq!(next(&mut agent).await, Some(output(&accepted)));
    assert_eq!(next(&mut agent).await, Some(started()));
    let message = Message {
        id,
        text: "now!".into(),
        now: true,
    };
    agent
        .orders
        .send(Order::Send(message))
        .await
        .expect("it listens");
    assert_eq!(
        next(&mut agent).await,
        Some(Event::Accepted { message: id })
    );
    assert_eq!(next(&mut agent).await, Some(output(&accepted)));
    let echo = format!("{{\"type\":\"message\",\"id\":\"{id}\",\"text\":\"now!\",\"now\":true}}\n");
    assert_eq!(next(&mut agent).await, Some(output(&echo)));
    assert_eq!(
        next(&mut agent).await,
        Some(Event::Ended(Ending::Exited(0)))
    );
    assert_eq!(next(&mut agent).await, None);
}

#[tokio::test]
async fn orders_do_not_wait_for_a_pipe_that_nobody_reads() {
    let dir = tempfile::tempdir().expect("a directory");
    // A process that it leaves behind keeps its input open, too.
    let mut agent = start(dir.path(), "read prompt; sleep 600 <&0 & echo $!");
    let Some(Event::Output { bytes, .. }) = next(&mut agent).await else {
        panic!("no process id");
    };
    while next(&mut agent).await.is_some() {}
    for _ in 0..200 {
        let message = Message {
            id: Uuid::new_v4(),
            text: "x".repeat(10_000),
            now: false,
        };
        let sent = tokio::time::timeout(LIMIT, agent.orders.send(Order::Send(message)));
        drop(sent.await.expect("it does not block"));
    }
    let pid = String::from_utf8_lossy(&bytes).trim().parse().ok();
    let pid = pid
        .and_then(rustix::process::Pid::from_raw)
        .expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was there");
}
