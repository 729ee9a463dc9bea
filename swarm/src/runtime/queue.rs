//! Events on their way to the host, few and small enough not to fill the memory.

use tokio::sync::mpsc;

use super::{Agent, AgentPort, Event};

/// Maximum events that wait for the host; then the program waits, too.
const QUEUE: usize = 64;
/// An event counts as one for each of these bytes it holds.
const SHARE: usize = 16 * 1024;

/// The two sides of a new agent.
pub fn agent() -> (Agent, AgentPort) {
    let (event_sender, events) = mpsc::channel(QUEUE);
    let (orders, order_receiver) = mpsc::channel(QUEUE);
    let port = AgentPort {
        events: event_sender,
        orders: order_receiver,
    };
    let agent = Agent {
        events,
        orders,
        pulse: None,
    };
    (agent, port)
}

/// Sends an event that holds about this many bytes, when there is room for it: of events over a
/// megabyte only one is on its way. False if the host has closed the channel.
pub async fn post(events: &mpsc::Sender<Event>, event: Event, bytes: usize) -> bool {
    let places = bytes.div_ceil(SHARE).clamp(1, QUEUE);
    let Ok(mut room) = events.reserve_many(places).await else {
        return false;
    };
    if let Some(place) = room.next() {
        place.send(event);
    }
    true
}
