//! Fuzz target: bytes that any program sends to the page's address; see [`store::fuzz`].

use std::cell::Cell;
use std::net::SocketAddr;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use store::fuzz::Target;
use tokio::io::AsyncWriteExt;

use super::guard::Guard;
use super::http::{self, parameter};
use super::routes::Wish;
use super::secret::TokenProof;
use super::state::Seen;

/// A token that no input has, unless a person wrote it there.
const TOKEN: &str = "never-in-any-input-0123456789abcdef";

/// The targets of the page.
pub const TARGETS: &[Target] = &[("page_request", page_request)];

/// A connection's bytes: without the secret, no request passes.
fn page_request(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(seen) = Seen::parse(&text) {
        assert_eq!(Seen::parse(&seen.to_string()), Some(seen));
    }
    drop(parameter(Some(&text), "token"));
    drop(serde_json::from_slice::<Wish>(data));
    let clean: String = text.chars().filter(|c| !c.is_control()).collect();
    let event: Bytes = http::event(Some("e.1"), &clean);
    assert_eq!(event.iter().filter(|byte| **byte == b'\n').count(), 3);
    let at = SocketAddr::from(([127, 0, 0, 1], 7317));
    let guard = Guard::new(Some(TokenProof::of(TOKEN)), at, None);
    if memchr_free(data) {
        assert!(!lets_through(&guard, data), "{text:?}");
    }
}

/// True if the input does not have the token.
fn memchr_free(data: &[u8]) -> bool {
    !data
        .windows(TOKEN.len())
        .any(|part| part == TOKEN.as_bytes())
}

/// True if a request of this connection would be answered.
fn lets_through(guard: &Guard, data: &[u8]) -> bool {
    let through = Cell::new(false);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else { return false };
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(data.len() + 1);
        if client.write_all(data).await.is_err() || client.shutdown().await.is_err() {
            return;
        }
        let answer = service_fn(|request: Request<Incoming>| {
            let headers = request.headers();
            let ours = guard.is_ours(headers, request.uri()).is_ok();
            let may = guard.may(headers, request.method() != hyper::Method::GET);
            let query = |name| parameter(request.uri().query(), name);
            let token = query("token").is_some_and(|token| guard.is_token(&token));
            let code = query("code").is_some_and(|code| guard.enter(&code, "who", headers).is_ok());
            through.set(through.get() || ours && (may.is_ok() || token || code));
            async move {
                drop(request.into_body().collect().await);
                let refused = http::text(StatusCode::FORBIDDEN, "text/plain", "no");
                Ok::<_, std::convert::Infallible>(refused)
            }
        });
        // The buffer for answers is small; without a reader the server would wait forever.
        let reading = async {
            let mut answers = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut client, &mut answers)
                .await
                .ok();
        };
        let serving = http1::Builder::new().serve_connection(TokioIo::new(server), answer);
        tokio::join!(async { serving.await.ok() }, reading);
    });
    through.get()
}
