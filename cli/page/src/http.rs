//! Small parts of HTTP: bodies, headers, queries.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use store::{Category, Failure};
use tokio::sync::mpsc;

/// The policy: a page may load its own files and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An answer: all at once, or piece by piece.
#[derive(Debug)]
pub(super) enum Out {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Out {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(from) => {
                let next = from.poll_recv(context);
                next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                let len = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(len as u64)
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// An answer with the headers every answer has.
pub(super) fn response(status: StatusCode, kind: &'static str, body: Out) -> Response<Out> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    response
}

pub(super) fn text(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Response<Out> {
    response(status, kind, Out::Whole(Some(text.into())))
}

pub(super) fn json(status: StatusCode, value: &Value) -> Response<Out> {
    text(status, "application/json", value.to_string())
}

/// The answer to a failed request: the JSON of the failure.
pub(super) fn failure(error: &Failure) -> Response<Out> {
    let status = match error.category() {
        Category::NotFound => StatusCode::NOT_FOUND,
        Category::Invalid => StatusCode::BAD_REQUEST,
        Category::Refused => StatusCode::CONFLICT,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    json(status, &error.to_json())
}

/// An answer that streams events.
pub(super) fn events(from: mpsc::Receiver<Bytes>) -> Response<Out> {
    response(StatusCode::OK, "text/event-stream", Out::Stream(from))
}

/// One event. The data has no line ends: it is JSON.
pub(super) fn event(id: Option<&str>, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}data: {data}\n\n").into()
}

/// The value of a parameter in a query, decoded.
pub(super) fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    decoded(value)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let number = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
                u8::try_from(number).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_nonsense_is_none() {
        let query = Some("team=a%20b&id=3&x=%e2%9c%94+y");
        assert_eq!(parameter(query, "team").as_deref(), Some("a b"));
        assert_eq!(parameter(query, "x").as_deref(), Some("✔ y"));
        assert_eq!(parameter(query, "none"), None);
        assert_eq!(parameter(None, "team"), None);
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert_eq!(parameter(Some(bad), "a"), None, "{bad}");
        }
    }

    #[test]
    fn an_event_is_two_lines() {
        assert_eq!(event(Some("e.1"), "{}"), "id: e.1\ndata: {}\n\n");
        assert_eq!(event(None, "1"), "data: 1\n\n");
    }
}
