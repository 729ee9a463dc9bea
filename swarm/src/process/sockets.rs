//! The processes that have a socket open.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::Pid;

use super::family::all_processes;

/// One end of a TCP connection, as the kernel lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocket {
    /// The user who opened it.
    pub uid: u32,
    /// Its number; 0 if no process has it any more.
    pub inode: u64,
}

/// The processes that have a socket open.
#[derive(Debug, Default)]
pub struct SocketOwners {
    /// Processes that have it open.
    pub owners: Vec<Pid>,
    /// Processes of the same user that do not show what they have open.
    pub closed: Vec<Pid>,
}

/// The socket at `local` of the connection to `remote`, if this machine has it and its network
/// namespace is ours.
pub fn tcp_socket(local: SocketAddr, remote: SocketAddr) -> Option<TcpSocket> {
    let (local, remote) = (plain(local), plain(remote));
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .into_iter()
        .find_map(|table| {
            let text = fs::read_to_string(table).ok()?;
            text.lines().find_map(|line| entry(line, local, remote))
        })
}

/// The processes that have `socket` open.
pub fn owners_of(socket: TcpSocket) -> SocketOwners {
    let wanted = format!("socket:[{}]", socket.inode);
    let mut found = SocketOwners::default();
    for pid in all_processes() {
        let dir = format!("/proc/{}/fd", pid.as_raw_nonzero());
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() == ErrorKind::PermissionDenied && user_of(pid) == Some(socket.uid) {
                    found.closed.push(pid);
                }
                continue;
            }
        };
        let links = entries
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok());
        if links
            .into_iter()
            .any(|link| link.as_os_str() == wanted.as_str())
        {
            found.owners.push(pid);
        }
    }
    found
}

/// An IPv4 address that IPv6 wraps is that IPv4 address.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The effective user. `/proc/PID` itself belongs to root where a process hides what it has open.
fn user_of(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The socket that a line of the table is about, if it is this one.
fn entry(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<TcpSocket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (at, to) = (address(fields.next()?)?, address(fields.next()?)?);
    if (at, to) != (local, remote) {
        return None;
    }
    // State, queues, timer and retransmits come before the user; its timeouts before the number.
    let uid = fields.nth(4)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some(TcpSocket { uid, inode })
}

/// An address as the kernel writes it: words of memory in hexadecimal.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some(plain(SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    use super::*;

    /// Both ends of a connection over `at`.
    fn connected(at: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(at).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (served, _) = listener.accept().unwrap();
        (client, served)
    }

    fn other_end(served: &TcpStream) -> Option<TcpSocket> {
        tcp_socket(served.peer_addr().unwrap(), served.local_addr().unwrap())
    }

    #[test]
    fn a_connection_leads_to_the_process_at_its_other_end() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            // Some machines have no IPv6.
            if TcpListener::bind(at).is_err() {
                continue;
            }
            let (client, served) = connected(at);
            let socket = other_end(&served).expect("it is listed");
            assert_eq!(socket.uid, rustix::process::geteuid().as_raw());
            // A process that another test starts right now may have it for a moment, too.
            let has_it = |pid: Pid| owners_of(socket).owners.contains(&pid);
            assert!(has_it(rustix::process::getpid()), "{at}");
            // A process that inherits it has it, too.
            let inherited = client.try_clone().unwrap();
            let mut child = Command::new("sleep")
                .arg("60")
                .stdin(Stdio::from(std::os::fd::OwnedFd::from(inherited)))
                .spawn()
                .unwrap();
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            let found = has_it(pid);
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(found && !has_it(pid), "{at}");
            drop(client);
            let gone = other_end(&served);
            assert!(gone.is_none_or(|socket| socket.inode == 0), "{gone:?}");
        }
    }

    #[test]
    fn an_ipv4_client_of_an_ipv6_listener_is_found() {
        let Ok(listener) = TcpListener::bind("[::]:0") else {
            return;
        };
        let port = listener.local_addr().unwrap().port();
        let Ok(_client) = TcpStream::connect(("127.0.0.1", port)) else {
            return;
        };
        let (served, _) = listener.accept().unwrap();
        let socket = other_end(&served).expect("it is listed");
        let owners = owners_of(socket).owners;
        assert!(owners.contains(&rustix::process::getpid()), "{owners:?}");
    }

    #[test]
    fn lines_that_are_no_entries_are_passed_over() {
        let at: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        for line in [
            "",
            "  sl  local_address",
            "0: 0100007F:1F90",
            "0: x:y z:w 01",
        ] {
            assert_eq!(entry(line, at, at), None, "{line}");
        }
        assert_eq!(address("0100007F:1F90").map(|it| it.port()), Some(8080));
        for text in ["", ":", "0100007F", "0100007F:", "01:1F90", "é100007F:1F90"] {
            assert_eq!(address(text), None, "{text}");
        }
    }
}
