//! Lines from a pipe, however long.

use std::io;

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Maximum bytes of one read.
const CHUNK: usize = 64 * 1024;

/// A line, or a piece of one that is too long to be a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its end; the last one need not have had any.
    Whole(Vec<u8>),
    /// Part of a line that is over the limit; the last part has the line's end, if there is one.
    Piece(Vec<u8>),
}

/// Reads lines, keeping at most one line of the allowed length in memory.
#[derive(Debug)]
pub struct LineReader {
    pipe: pipe::Receiver,
    buffer: BytesMut,
    /// The offset up to which the buffer has no line end.
    searched: usize,
    limit: usize,
    /// True in the middle of a line that is too long.
    in_long: bool,
    ended: bool,
}

impl LineReader {
    /// Reads lines of at most `limit` bytes from `pipe`.
    pub fn new(pipe: pipe::Receiver, limit: usize) -> Self {
        Self {
            pipe,
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            in_long: false,
            ended: false,
        }
    }

    /// The next line; none at the end.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.cut() {
                return Ok(Some(line));
            }
            if self.ended {
                let rest = self.buffer.split().to_vec();
                self.searched = 0;
                return Ok((!rest.is_empty()).then_some(Line::Whole(rest)));
            }
            if self.buffer.is_empty() {
                // A reader that waits for long needs no memory for it.
                self.buffer = BytesMut::new();
                self.pipe.readable().await?;
            }
            self.buffer.reserve(CHUNK);
            // A limit below the buffer's capacity, so that one read cannot pass it by much.
            let mut piece = (&mut self.pipe).take(CHUNK as u64);
            self.ended = piece.read_buf(&mut self.buffer).await? == 0;
        }
    }

    /// True if everything that was read has been returned.
    pub fn is_between_lines(&self) -> bool {
        self.buffer.is_empty() && !self.in_long && !self.ended
    }

    /// Gives the pipe back. Bytes that were read and not returned are lost.
    pub fn into_pipe(self) -> pipe::Receiver {
        self.pipe
    }

    /// The first line of the buffer, or a piece of it.
    fn cut(&mut self) -> Option<Line> {
        let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
        let Some(end) = found.map(|at| self.searched + at) else {
            self.searched = self.buffer.len();
            let too_long = self.buffer.len() > self.limit || self.in_long;
            if too_long && !self.buffer.is_empty() {
                self.in_long = true;
                self.searched = 0;
                return Some(Line::Piece(self.buffer.split().to_vec()));
            }
            return None;
        };
        let mut line = self.buffer.split_to(end + 1).to_vec();
        self.searched = 0;
        if std::mem::take(&mut self.in_long) || line.len() > self.limit + 1 {
            return Some(Line::Piece(line));
        }
        line.pop();
        Some(Line::Whole(line))
    }
}
