//! The program that serves the page: its options, and its terminal.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;
use store::Failure;

/// Where the page is served, and to whom.
#[derive(Debug)]
pub struct Options {
    /// The address; other than loopback needs `token_file`.
    pub listen: SocketAddr,
    /// A certificate chain (PEM), for HTTPS; needs `tls_key`.
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM).
    pub tls_key: Option<PathBuf>,
    /// The file that proves a token; see [`make_token`](super::make_token).
    pub token_file: Option<PathBuf>,
    /// True if a browser is opened when a person sees the address.
    pub opens_browser: bool,
}

/// The program's output, and the signal to end.
pub trait Host {
    /// True if answers are JSON.
    fn is_json(&self) -> bool;
    /// Prints an answer: `json`, or `text` for people.
    fn answer(&mut self, json: &Value, text: &str) -> Result<(), Failure>;
    /// Prints a note for people beside the answer.
    fn note(&mut self, text: &str);
    /// True after a signal asked the program to end.
    fn should_end(&self) -> bool;
}
