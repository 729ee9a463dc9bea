//! `ccb web` over HTTPS, with a certificate made for the test.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::team_session::SessionScene;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::CCB;
use crate::web::{LIMIT, Page, cookie_of};

/// A certificate that tests know, and its key, as files of the user's.
struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    client: Arc<ClientConfig>,
}

impl Certificate {
    /// `loopback` (127.0.0.1 and localhost) or `elsewhere` (elsewhere.example).
    fn new(dir: &Path, name: &str) -> Self {
        let authority = harness::tls::authority();
        let copy = |kind: &str| {
            let from = authority.with_file_name(format!("{name}.{kind}"));
            let to = dir.join(format!("{name}.{kind}"));
            harness::write(&to, &std::fs::read_to_string(from).expect("a file"));
            allow(&to, 0o600);
            to
        };
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(&authority).expect("a certificate");
        roots.add(root).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            chain: copy("pem"),
            key: copy("key"),
            client: Arc::new(client),
        }
    }

    fn args(&self) -> [&str; 4] {
        let text = |path: &'static str| path;
        [
            text("--tls-cert"),
            self.chain.to_str().expect("text"),
            text("--tls-key"),
            self.key.to_str().expect("text"),
        ]
    }
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// The answer to a request over TLS; the error if the certificate is not for `name`.
fn ask(
    page: &Page,
    certificate: &Certificate,
    name: &str,
    lines: &[String],
) -> std::io::Result<String> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let connection = ClientConnection::new(Arc::clone(&certificate.client), name).expect("TLS");
    let stream = TcpStream::connect(&page.address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut stream = StreamOwned::new(connection, stream);
    let head = lines.join("\r\n");
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn the_page_is_served_over_tls_under_the_names_of_its_certificate() {
    let scene = SessionScene::new(CCB);
    for (name, own, host) in [
        ("loopback", "127.0.0.1", "localhost"),
        ("elsewhere", "elsewhere.example", "elsewhere.example"),
    ] {
        let certificate = Certificate::new(scene.home.path(), name);
        let page = Page::of(&scene, &certificate.args());
        assert!(
            page.url.starts_with(&format!("https://{own}:")),
            "{}",
            page.url
        );
        let port = page.address.rsplit(':').next().unwrap();
        // The cookie never goes over a line without TLS.
        let first = format!("GET /?code={} HTTP/1.1", page.code);
        let entered = [first, format!("Host: {own}:{port}")];
        let answer = ask(&page, &certificate, host, &entered).expect("an answer");
        assert!(answer.to_ascii_lowercase().contains("; secure"), "{answer}");
        let cookie = cookie_of(&answer);
        let get = |path: &str, at: &str, more: &[String]| {
            let first = format!("GET {path} HTTP/1.1");
            let lines = [&[first, format!("Host: {at}:{port}"), cookie.clone()], more].concat();
            ask(&page, &certificate, host, &lines).expect("an answer")
        };
        for at in ["127.0.0.1", "localhost", host] {
            assert_eq!(status(&get("/api/runs", at, &[])), "200", "{at}");
        }
        // The name of another host, or a page over plain HTTP, is refused as before.
        for at in ["evil.example", "elsewhere.example.evil.example"] {
            assert_eq!(status(&get("/api/runs", at, &[])), "403", "{at}");
        }
        let ours = [format!("Origin: https://{host}:{port}")];
        assert_eq!(status(&get("/api/runs", host, &ours)), "200");
        let plain = [format!("Origin: http://{host}:{port}")];
        assert_eq!(status(&get("/api/runs", host, &plain)), "403");
        // A browser that expects another name is not served, and neither is plain HTTP.
        assert!(ask(&page, &certificate, "evil.example", &[]).is_err());
        let mut plain = TcpStream::connect(&page.address).unwrap();
        plain.set_read_timeout(Some(LIMIT)).unwrap();
        plain
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        plain.read_to_end(&mut answer).ok();
        assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
        // And after all that it still answers.
        assert_eq!(status(&get("/", host, &[])), "200");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_said_before_anything_listens() {
    let scene = SessionScene::new(CCB);
    let dir = scene.home.path();
    let good = Certificate::new(dir, "loopback");
    let [_, chain, _, key] = good.args();
    let (chain, key) = (chain.to_owned(), key.to_owned());
    let web = |cert: &str, key: &str| {
        let args = [
            "--json",
            "web",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ];
        scene.run(&args)
    };
    let refused = |answer: &harness::Answer, word: &str| {
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stdout.contains(word), "{word}: {answer:?}");
    };
    refused(&web("none.pem", &key), "none.pem");
    refused(&web(&key, &key), "no certificate");
    refused(&web(&chain, &chain), "loopback.pem");
    allow(Path::new(&key), 0o644);
    refused(&web(&chain, &key), "chmod 600");
    let alone = scene.run(&["--json", "web", "--tls-cert", &chain]);
    refused(&alone, "--tls-key");
    // Over TLS there is nothing to warn of; without, ccb names the risk.
    allow(Path::new(&key), 0o600);
    let token = dir.join("token");
    let token = token.to_str().unwrap();
    scene.ok(&["web", "--token-file", token, "--new-token"]);
    let wide = ["--listen", "0.0.0.0:0", "--token-file", token];
    let plain = Page::heard(&scene, &wide);
    assert!(plain.1.contains("plain HTTP"), "{}", plain.1);
    let safe = Page::heard(&scene, &[&wide[..], &good.args()].concat());
    assert!(!safe.1.contains("plain HTTP"), "{}", safe.1);
    assert!(
        safe.0.url.starts_with("https://127.0.0.1:"),
        "{}",
        safe.0.url
    );
}
