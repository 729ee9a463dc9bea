//! A collector of OpenTelemetry on loopback: keeps its requests; tests read them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The behaviour of a collector.
#[derive(Clone, Copy)]
pub enum Mood {
    Takes,
    Refuses,
    /// Reads, and never answers.
    Hangs,
}

/// A request as it came.
#[derive(Clone)]
pub struct Got {
    pub path: String,
    pub headers: String,
    pub body: Vec<u8>,
}

/// Keeps its requests, until the test ends.
pub struct Collector {
    pub address: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Collector {
    pub fn new(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, mood, &kept));
            }
        });
        Self { address, got }
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().expect("no thread panicked").clone()
    }
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, mood: Mood, kept: &Mutex<Vec<Got>>) {
    let mut out = stream.try_clone().expect("a second handle");
    let mut lines = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if lines.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let headers = head.to_ascii_lowercase();
        let length = headers
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next());
        let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        if lines.read_exact(&mut body).is_err() {
            return;
        }
        kept.lock().expect("no thread panicked").push(Got {
            path,
            headers,
            body,
        });
        let answer: &[u8] = match mood {
            Mood::Takes => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            Mood::Refuses => b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
            Mood::Hangs => continue,
        };
        if out.write_all(answer).is_err() {
            return;
        }
    }
}
