//! Messages between processes of ours that carry descriptors.
//!
//! The sockets keep the bounds of messages, so one message is one order. Long parts (an
//! environment, a command line) go into a file in memory whose descriptor is sent.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Maximum descriptors of one message.
const MOST: usize = 6;
/// The longest message: a path and a few words.
const LONGEST: usize = 16 * 1024;

/// A message and what came with it.
#[derive(Debug)]
pub struct Received {
    /// The text.
    pub bytes: Vec<u8>,
    /// The descriptors, in order.
    pub descriptors: Vec<OwnedFd>,
}

/// Two ends that are connected; no program inherits them by accident.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// The stream behind standard input, for this process alone: programs it starts find nothing there.
pub fn take_stdin() -> io::Result<OwnedFd> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(stdin)
}

/// Sends one message. The sender keeps its own descriptors.
pub fn send(to: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let parts = [IoSlice::new(bytes)];
    loop {
        match rustix::net::sendmsg(&to, &parts, &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for one message; `None` if no sender is left.
pub fn receive(from: impl AsFd) -> io::Result<Option<Received>> {
    let mut buffer = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(&from, &mut parts, &mut control, flags) {
            Ok(received) => break received.bytes,
            Err(Errno::INTR) => {}
            // A peer that is gone without a word has ended.
            Err(Errno::CONNRESET) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    if length == 0 {
        return Ok(None);
    }
    buffer.truncate(length);
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = message {
            descriptors.extend(came);
        }
    }
    Ok(Some(Received {
        bytes: buffer,
        descriptors,
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn messages_keep_their_bounds_and_their_descriptors() {
        let (ours, theirs) = pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&ours, b"one", &[writer.as_fd()]).unwrap();
        send(&ours, b"two", &[]).unwrap();
        drop(writer);
        let first = receive(&theirs).unwrap().unwrap();
        assert_eq!(first.bytes, b"one");
        for came in first.descriptors {
            std::fs::File::from(came).write_all(b"through").unwrap();
        }
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through", "and no copy is left open");
        let second = receive(&theirs).unwrap().unwrap();
        assert_eq!(
            (second.bytes.as_slice(), second.descriptors.len()),
            (&b"two"[..], 0)
        );
        drop(ours);
        assert!(receive(&theirs).unwrap().is_none());
    }
}
