//! As small an HTTP client as tests of the server need.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// The answer of the server.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// True if the connection broke before the end.
    pub broken: bool,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The data of its server-sent events that are JSON.
    pub fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok())
            .collect()
    }
}

/// Posts JSON to `url` and reads the answer to its end.
pub fn post(url: &str, body: &Value) -> io::Result<Reply> {
    exchange(url, "POST", body.to_string().as_bytes())
}

/// Gets `url`.
pub fn get(url: &str) -> io::Result<Reply> {
    exchange(url, "GET", b"")
}

fn exchange(url: &str, method: &str, body: &[u8]) -> io::Result<Reply> {
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, url.to_owned());
    let rest = url.strip_prefix("http://").ok_or_else(bad)?;
    let (host, path) = rest.split_once('/').ok_or_else(bad)?;
    let mut stream = TcpStream::connect(host)?;
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut reader = BufReader::new(stream);
    let mut reply = Reply::default();
    let status = line(&mut reader)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    reply.status = status.ok_or(io::ErrorKind::InvalidData)?;
    loop {
        let line = line(&mut reader)?;
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        let header = (name.to_ascii_lowercase(), value.to_owned());
        reply.headers.push(header);
    }
    let length = reply
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let mut bytes = Vec::new();
    reply.broken = match length {
        Some(length) => {
            reader.take(length).read_to_end(&mut bytes)?;
            bytes.len() as u64 != length
        }
        None => chunks(&mut reader, &mut bytes).is_err(),
    };
    reply.body = String::from_utf8_lossy(&bytes).into_owned();
    Ok(reply)
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn chunks(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let length = u64::from_str_radix(&line(reader)?, 16);
        let length = length.map_err(|_| io::ErrorKind::InvalidData)?;
        reader.by_ref().take(length).read_to_end(bytes)?;
        line(reader)?;
        if length == 0 {
            return Ok(());
        }
    }
}
