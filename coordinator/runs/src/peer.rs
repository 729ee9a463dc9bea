//! The process at the other end of a connection on this machine: an agent's, or another one.
//!
//! An agent reads what its user reads, so a secret alone does not prove that a person asks. The
//! kernel says which process has the other end, and [`identity`](crate::identity) says whether an
//! agent started it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use rustix::process::Pid;
use swarm::process::{SocketOwners, TcpSocket, all_processes, owners_of, tcp_socket};

use crate::identity::{OfAgent, of_process};

/// A process, as messages to people show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The process id.
    pub pid: i32,
    /// The process's own name, on one line.
    pub name: String,
}

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Another machine, or a part of this one that has a network of its own.
    Elsewhere,
    /// No agent's process, of this user or of root; `None` if it does not show itself.
    Outside(Option<Program>),
    /// Another user's process.
    Stranger(u32),
    /// A process that an agent has started; its name, if that is known.
    Agent(Option<String>, Program),
    /// The connection is closed already, or an agent may hide that it is its own.
    Unseen,
}

impl Peer {
    /// The other end of a TCP connection from `peer` to `own`.
    pub fn of_tcp(peer: SocketAddr, own: SocketAddr) -> Self {
        let Some(socket) = tcp_socket(peer, own) else {
            return match is_here(peer) {
                true => Self::Unseen,
                false => Self::Elsewhere,
            };
        };
        let user = rustix::process::geteuid().as_raw();
        if socket.inode == 0 {
            return Self::Unseen;
        }
        match socket.uid == user || socket.uid == 0 {
            true => of_owners(socket),
            false => Self::Stranger(socket.uid),
        }
    }

    /// The other end of a connected Unix socket: the process that called `connect`.
    pub fn of_unix(socket: impl AsFd) -> Self {
        let Ok(caller) = rustix::net::sockopt::socket_peercred(socket) else {
            return Self::Unseen;
        };
        let user = rustix::process::geteuid();
        if caller.uid != user && !caller.uid.is_root() {
            return Self::Stranger(caller.uid.as_raw());
        }
        let found = of_process(caller.pid);
        // Read last: a process that has ended has lost its signs.
        match program(caller.pid) {
            Some(program) => of_program(program, found),
            None => Self::Unseen,
        }
    }

    /// True unless an agent's process is, or may be, at the other end.
    pub fn may_decide(&self) -> bool {
        !matches!(self, Self::Agent(..) | Self::Unseen)
    }

    /// The peer in words that fit into a sentence.
    pub fn in_words(&self) -> String {
        let named = |program: &Program| format!("{} (process {})", program.name, program.pid);
        match self {
            Self::Elsewhere => "a program on another machine".into(),
            Self::Outside(Some(program)) => named(program),
            Self::Outside(None) | Self::Unseen => "a program that does not show itself".into(),
            Self::Stranger(user) => format!("a program of user {user}"),
            Self::Agent(Some(agent), program) => format!("{} of agent {agent}", named(program)),
            Self::Agent(None, program) => format!("{} of an agent", named(program)),
        }
    }
}

fn of_program(program: Program, found: Option<OfAgent>) -> Peer {
    match found {
        Some(of) => Peer::Agent(of.agent, program),
        None => Peer::Outside(Some(program)),
    }
}

/// Number of times that all processes are searched for the owner of a socket. What `/proc` says of
/// a process that starts or ends right now is not of one moment.
const LOOKS: usize = 3;

/// The process that has the socket open; an agent's process before any other.
fn of_owners(socket: TcpSocket) -> Peer {
    let mut closed = Vec::new();
    for _ in 0..LOOKS {
        let found = owners_of(socket);
        if let Some(peer) = of_readable(&found) {
            return peer;
        }
        closed = found.closed;
    }
    of_nobody(&closed)
}

/// The peer if a readable process has the socket open.
fn of_readable(found: &SocketOwners) -> Option<Peer> {
    let mut outside = None;
    for pid in &found.owners {
        match (of_process(*pid), program(*pid)) {
            (Some(of), Some(program)) => return Some(Peer::Agent(of.agent, program)),
            (Some(_), None) => return Some(Peer::Unseen),
            (None, program) => outside = outside.or(program),
        }
    }
    outside.map(|program| Peer::Outside(Some(program)))
}

/// The peer if no readable process has the socket open. It is one of those that hide their sockets,
/// such as sshd's; an agent's process can be among them, or hide the socket in the kernel.
fn of_nobody(closed: &[Pid]) -> Peer {
    let hides = |pid: &Pid| of_process(*pid).is_some_and(|of| !of.is_loop);
    let hidden = match closed {
        [] => all_processes().iter().any(hides),
        closed => closed.iter().any(hides),
    };
    match hidden {
        true => Peer::Unseen,
        false => Peer::Outside(None),
    }
}

/// None if it has ended.
fn program(pid: Pid) -> Option<Program> {
    let pid = pid.as_raw_nonzero().get();
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    let name = store::text::clean_line(String::from_utf8_lossy(&name).trim_end());
    Some(Program { pid, name })
}

/// True if this machine has the address: only then a socket can be bound to it.
fn is_here(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process with the other end of a connection as its standard input, and this end.
    fn connected(mut command: Command) -> (Child, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (served, _) = listener.accept().unwrap();
        let client = std::os::fd::OwnedFd::from(client);
        let child = command.arg("60").stdin(Stdio::from(client)).spawn();
        drop(command);
        (child.unwrap(), served)
    }

    fn other_end(served: &TcpStream) -> Peer {
        Peer::of_tcp(served.peer_addr().unwrap(), served.local_addr().unwrap())
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_agent_s_process_is_told_from_any_other() {
        let (child, served) = connected(Command::new("sleep"));
        let peer = other_end(&served);
        assert!(peer.may_decide(), "{peer:?}");
        assert!(matches!(peer, Peer::Outside(Some(_))), "{peer:?}");
        end(child);
        let mut marked = Command::new("sleep");
        marked.env(swarm::process::MARKER, "a0123456789abcdef");
        let (child, served) = connected(marked);
        let peer = other_end(&served);
        end(child);
        assert!(matches!(peer, Peer::Agent(None, _)), "{peer:?}");
        assert!(!peer.may_decide());
        // A process that has ended does not decide.
        assert_eq!(other_end(&served), Peer::Unseen);
    }

    #[test]
    fn a_socket_of_an_agent_s_process_that_is_shared_is_the_agent_s() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (served, _) = listener.accept().unwrap();
        assert!(other_end(&served).may_decide(), "it is this test");
        let theirs = std::os::fd::OwnedFd::from(client.try_clone().unwrap());
        let child = Command::new("sleep")
            .arg("60")
            .env(swarm::process::MARKER, "a0123456789abcdef")
            .stdin(Stdio::from(theirs))
            .spawn()
            .unwrap();
        let peer = other_end(&served);
        end(child);
        assert!(matches!(peer, Peer::Agent(..)), "{peer:?}");
    }

    #[test]
    fn a_socket_that_nobody_shows_is_nobody_s_while_agents_run() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (served, _) = listener.accept().unwrap();
        // On its way from this process to this process.
        let (from, to) = swarm::process::pair().unwrap();
        swarm::process::send(&from, b"x", &[client.as_fd()]).unwrap();
        drop(client);
        let child = Command::new("sleep")
            .arg("60")
            .env(swarm::process::MARKER, "a0123456789abcdef")
            .spawn()
            .unwrap();
        let peer = other_end(&served);
        let (own, other) = (served.local_addr().unwrap(), served.peer_addr().unwrap());
        let found = owners_of(tcp_socket(other, own).unwrap());
        end(child);
        drop((from, to));
        // Elsewhere something that shows nothing can have it.
        if found.owners.is_empty() && found.closed.is_empty() {
            assert_eq!(peer, Peer::Unseen);
        }
    }

    #[test]
    fn whoever_connected_a_unix_socket_is_known() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of_unix(&ours);
        let Peer::Outside(Some(program)) = &peer else {
            panic!("{peer:?}");
        };
        assert_eq!(program.pid, std::process::id().cast_signed());
    }

    #[test]
    fn an_address_of_another_machine_is_elsewhere() {
        let own: SocketAddr = "127.0.0.1:7317".parse().unwrap();
        // Reserved for documentation (RFC 5737): no machine has it.
        let other = "192.0.2.1:40000".parse().unwrap();
        assert_eq!(Peer::of_tcp(other, own), Peer::Elsewhere);
        let nobody = "127.0.0.1:1".parse().unwrap();
        assert_eq!(Peer::of_tcp(nobody, own), Peer::Unseen);
    }
}
