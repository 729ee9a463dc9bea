//! HTTPS on loopback: TLS in front of another server, with certificates of an authority that only
//! these tests know (`tls/make.sh`), and a proxy that connects to the requested address.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// The certificate of the authority.
pub fn authority() -> PathBuf {
    file("authority.pem")
}

fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls");
    dir.join(name)
}

/// A server on a thread of its own; it and its connections end when this is dropped.
#[derive(Debug)]
struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                let accept = async {
                    loop {
                        if let Ok((stream, _)) = listener.accept().await {
                            tokio::spawn(serve(stream));
                        }
                    }
                };
                tokio::select! {
                    () = accept => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// TLS in front of another server of loopback.
#[derive(Debug)]
pub struct TlsFront(Served);

impl TlsFront {
    /// In front of `port`, with a certificate for 127.0.0.1.
    pub fn start(port: u16) -> Self {
        Self::with(port, "loopback")
    }

    /// The same with a certificate for another name.
    pub fn for_another_name(port: u16) -> Self {
        Self::with(port, "elsewhere")
    }

    fn with(port: u16, name: &str) -> Self {
        let certificate = CertificateDer::from_pem_file(file(&format!("{name}.pem")));
        let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key")));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.expect("a certificate")],
                key.expect("a key"),
            )
            .expect("a configuration");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self(Served::start(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                // A client that rejects the certificate goes away.
                let Ok(mut inside) = acceptor.accept(stream).await else {
                    return;
                };
                if let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
                    copy_bidirectional(&mut inside, &mut server).await.ok();
                }
            }
        }))
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("https://{}", self.0.address)
    }

    /// The address it listens on, in the form a proxy gets.
    pub fn place(&self) -> String {
        self.0.address.to_string()
    }
}

/// A proxy with CONNECT.
#[derive(Debug)]
pub struct Proxy {
    served: Served,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// A proxy that connects to any requested address.
    pub fn start() -> Self {
        Self::answering("200 Connected")
    }

    /// A proxy that answers with this status, and connects only if that is a 200.
    pub fn answering(status: &'static str) -> Self {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        let served = Served::start(move |stream| {
            let seen = Arc::clone(&seen);
            async move {
                relay(stream, status, &seen).await.ok();
            }
        });
        Self { served, heads }
    }

    /// Its address, with a name and a password.
    pub fn url(&self) -> String {
        format!("http://somebody:hidden-word@{}", self.served.address)
    }

    /// The heads of all requests: everything that it sees unencrypted.
    pub fn heads(&self) -> Vec<String> {
        let heads = self.heads.lock();
        heads.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn relay(stream: TcpStream, status: &str, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(head);
    let answer = format!("HTTP/1.1 {status}\r\n\r\n");
    if !status.starts_with("200") {
        return stream.write_all(answer.as_bytes()).await;
    }
    let mut server = TcpStream::connect(target).await?;
    stream.write_all(answer.as_bytes()).await?;
    copy_bidirectional(&mut stream, &mut server).await?;
    Ok(())
}
