//! One connection, and which program is at its other end.

use std::io;
use std::net::SocketAddr;

use runs::peer::Peer;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

/// A connection. Its program is looked up when a request needs that, and once: the processes of the whole
/// machine are looked at.
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

    /// Who asks.
    pub(super) async fn peer(&self) -> &Peer {
        let (peer, own) = (self.peer, self.own);
        let find = || async move {
            let found = tokio::task::spawn_blocking(move || Peer::of_tcp(peer, own)).await;
            found.unwrap_or(Peer::Unseen)
        };
        self.found.get_or_init(find).await
    }
}
