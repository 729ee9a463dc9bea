//! As much of HTTP/1.1 as the programs need that talk to a model.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 256 * 1024 * 1024;

/// A request.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A header's value; names are in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    reader: BufReader<TcpStream>,
    out: TcpStream,
    /// True if a streamed answer has begun.
    streaming: bool,
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            out: stream.try_clone()?,
            reader: BufReader::new(stream),
            streaming: false,
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// The next request; `None` if the other side has closed.
    pub(super) fn request(&mut self) -> io::Result<Option<Request>> {
        self.streaming = false;
        if self.reader.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let first = self.line()?;
        let mut words = first.split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(bad("not a request"));
        };
        let path = target.split('?').next().unwrap_or_default();
        let mut request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            ..Request::default()
        };
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad("not a header"))?;
            let name = name.trim().to_ascii_lowercase();
            request.headers.push((name, value.trim().to_owned()));
        }
        if request.header("expect").is_some() {
            self.out.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.body = self.body(&request)?;
        Ok(Some(request))
    }

    fn body(&mut self, request: &Request) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        let chunked = request.header("transfer-encoding");
        if chunked.is_none_or(|how| !how.eq_ignore_ascii_case("chunked")) {
            let length = request.header("content-length").unwrap_or("0");
            let length: usize = length.parse().map_err(|_| bad("not a length"))?;
            self.take(length, &mut body)?;
            return Ok(body);
        }
        loop {
            let line = self.line()?;
            let length = line.split(';').next().unwrap_or_default();
            let length = usize::from_str_radix(length, 16).map_err(|_| bad("not a length"))?;
            self.take(length, &mut body)?;
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
        let start = body.len();
        if start.saturating_add(length) > MAX_BODY {
            return Err(bad("too long a body"));
        }
        body.resize(start + length, 0);
        self.reader.read_exact(&mut body[start..])
    }

    /// Answers in one piece.
    pub(super) fn answer(
        &mut self,
        status: u16,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {status} as scripted\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.out.write_all(head.as_bytes())?;
        self.out.write_all(body)
    }

    /// Begins an answer that comes in pieces.
    pub(super) fn begin_stream(&mut self) -> io::Result<()> {
        self.streaming = true;
        self.out.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
              cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
        )
    }

    pub(super) fn piece(&mut self, text: &str) -> io::Result<()> {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.out.write_all(chunk.as_bytes())
    }

    pub(super) fn end_stream(&mut self) -> io::Result<()> {
        self.out.write_all(b"0\r\n\r\n")
    }

    /// Breaks the connection.
    pub(super) fn cut(&mut self) {
        self.out.shutdown(Shutdown::Both).ok();
    }

    /// True if the other side has closed.
    pub(super) fn is_gone(&mut self) -> bool {
        if self.out.set_nonblocking(true).is_err() {
            return true;
        }
        let gone = match self.out.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        self.out.set_nonblocking(false).is_err() || gone
    }
}
