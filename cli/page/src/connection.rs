//! One connection, and the program at its other end.

use std::io;
use std::net::SocketAddr;

use runs::peer::Peer;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

/// A connection. It looks up its program only when a request needs that, and once: the lookup reads
/// all processes of the machine.
#[derive(Debug)]
pub(super) struct Connection {
    peer: SocketAddr,
    own: SocketAddr,
    found: OnceCell<Peer>,
}

impl Connection {
    pub(super) fn of(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self {
            peer: stream.peer_addr()?,
            own: stream.local_addr()?,
            found: OnceCell::new(),
        })
    }

    /// The program that sends the requests.
    pub(super) async fn peer(&self) -> &Peer {
        let (peer, own) = (self.peer, self.own);
        let find = || async move {
            let found = tokio::task::spawn_blocking(move || Peer::of_tcp(peer, own)).await;
            found.unwrap_or(Peer::Unseen)
        };
        self.found.get_or_init(find).await
    }
}
