//! The other end of a connection, as a process of its own.
//!
//! ```text
//! peer-probe http ADDRESS REQUEST ANSWER   sends the content of one file, and writes the answer to another
//! peer-probe knock SOCKET                  prints if a Unix socket (SEQPACKET) is closed to it
//! peer-probe type TERMINAL TEXT            types into another user's terminal, as root can
//! ```
//!
//! With `PEER_PROBE_HIDES` only root can see which files it has open.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::ioctl::Setter;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketType};
use rustix::process::DumpableBehavior;

/// Time limit, longer than any step takes unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> io::Result<()> {
    if std::env::var_os("PEER_PROBE_HIDES").is_some() {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["http", address, request, answer] => {
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.write_all(&std::fs::read(request)?)?;
            let mut text = Vec::new();
            stream.read_to_end(&mut text)?;
            stream.shutdown(Shutdown::Both).ok();
            std::fs::write(answer, text)
        }
        ["knock", socket] => {
            let said = knock(Path::new(socket))?;
            writeln!(io::stdout(), "{said}")
        }
        ["type", terminal, text] => {
            let terminal = File::options().read(true).write(true).open(terminal)?;
            text.bytes().try_for_each(|key| type_key(&terminal, key))
        }
        _ => Err(io::Error::other(format!("what is {args:?}?"))),
    }
}

/// `TIOCSTI`: the terminal gets a key as if a person had pressed it.
#[expect(unsafe_code, reason = "no library has a safe call for this")]
fn type_key(terminal: &File, key: u8) -> io::Result<()> {
    const TIOCSTI: rustix::ioctl::Opcode = 0x5412;
    // SAFETY: the kernel reads one byte and writes nothing.
    let typed = unsafe { rustix::ioctl::ioctl(terminal, Setter::<TIOCSTI, u8>::new(key)) };
    Ok(typed?)
}

/// `closed` if the other side hangs up, `open` if it waits for our message for a second.
fn knock(path: &Path) -> io::Result<&'static str> {
    let socket: OwnedFd = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    // Paths of sockets are short.
    std::env::set_current_dir(path.parent().unwrap_or(path))?;
    let name = path.file_name().unwrap_or_default();
    rustix::net::connect(&socket, &SocketAddrUnix::new(Path::new(name))?)?;
    let mut fds = [PollFd::new(&socket, PollFlags::IN)];
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    if rustix::event::poll(&mut fds, Some(&second))? == 0 {
        return Ok("open");
    }
    let mut bytes = [0; 16];
    match rustix::net::recv(&socket, &mut bytes[..], RecvFlags::empty()) {
        Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => Ok("closed"),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}
