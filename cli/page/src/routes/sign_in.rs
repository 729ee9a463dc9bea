//! Signs a browser in: with the code of an address, or with the token.

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderValue, ORIGIN, REFERRER_POLICY, SET_COOKIE,
};
use hyper::{Request, Response, StatusCode};
use runs::peer::Peer;

use super::Server;
use crate::connection::Connection;
use crate::console::Notice;
use crate::http::{self, Out, parameter};
use crate::refused::{Refused, refuse};

const HTML: &str = "text/html; charset=utf-8";
/// Maximum bytes of a form with a token.
const LARGEST: usize = 4096;
/// Redirects to the page. A browser does not send strict cookies after another site's link, so our
/// own page leads to the next one.
const NEXT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>ccb</title>\
                    <meta http-equiv=\"refresh\" content=\"0;url=/\"><a href=\"/\">Go on</a></html>";
const FORM: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>ccb</title>\
                    <form method=\"post\" action=\"/sign-in\"><p>Not signed in. Open a new address of \
                    <code>ccb web</code>, or give the token:</p>\
                    <label>Token <input name=\"token\" type=\"password\" autocomplete=\"off\" required autofocus></label> \
                    <button>Sign in</button></form></html>";

impl Server {
    /// Signs in a browser with the code of an address, and removes the code from the address. An
    /// agent's program is refused, and the code remains valid for the person.
    pub(super) async fn enter_with_code(
        &self,
        code: &str,
        headers: &HeaderMap,
        connection: &Connection,
    ) -> Response<Out> {
        // A client without a secret must not make ccb look up all processes.
        if !self.guard.has_made(code) {
            return refuse(&Refused::Old);
        }
        let peer = connection.peer().await;
        if let Peer::Stranger(_) = peer {
            return refuse(&Refused::Stranger(peer.in_words()));
        }
        if let Err(refused) = self.may_decide(peer) {
            return refuse(&refused);
        }
        let who = peer.in_words();
        match self.guard.enter(code, &who, headers) {
            Ok(cookie) => {
                if cookie.is_some() {
                    self.notice(format!("Signed in: {who}"), false);
                }
                go_on(cookie.as_deref())
            }
            Err(refused) => {
                if let Refused::Taken(first) = &refused {
                    self.notice(
                        format!(
                            "Two programs came with the same address: first {first}, then {who}. Both are \
                             signed out. Press Enter for a new address"
                        ),
                        true,
                    );
                }
                refuse(&refused)
            }
        }
    }

    /// Signs in a browser that sends the form with the token.
    pub(super) async fn enter_with_token(
        &self,
        request: Request<Incoming>,
        connection: &Connection,
    ) -> Response<Out> {
        if !request.headers().contains_key(ORIGIN) {
            return refuse(&Refused::Origin);
        }
        let body = Limited::new(request.into_body(), LARGEST).collect().await;
        let body = body.map(|body| body.to_bytes().to_vec());
        let form = body.ok().and_then(|body| String::from_utf8(body).ok());
        let token = parameter(form.as_deref(), "token").unwrap_or_default();
        if !self.guard.is_token(token.trim()) {
            return ask_for_token();
        }
        let peer = connection.peer().await;
        if let Err(refused) = self.may_decide(peer) {
            return refuse(&refused);
        }
        let who = peer.in_words();
        self.notice(format!("Signed in with the token: {who}"), false);
        go_on(Some(&self.guard.enter_with_token()))
    }

    /// Refuses agents, even if they have found a secret.
    pub(super) fn may_decide(&self, peer: &Peer) -> Result<(), Refused> {
        if peer.may_decide() {
            return Ok(());
        }
        let who = peer.in_words();
        let about = match peer {
            Peer::Agent(agent, _) => format!("agent {}", agent.as_deref().unwrap_or_default()),
            _ => who.clone(),
        };
        let text = format!("Refused a request to the page of {who}");
        let bad = true;
        self.tell(Notice { about, text, bad });
        Err(Refused::Agent(who))
    }

    fn notice(&self, text: String, bad: bool) {
        let about = text.clone();
        self.tell(Notice { about, text, bad });
    }
}

/// Asks for the token. The page's own policy forbids its forms to send anything, so this one has
/// its own; without a referrer a browser would not report that the form is ours.
pub(super) fn ask_for_token() -> Response<Out> {
    let mut response = http::text(StatusCode::UNAUTHORIZED, HTML, FORM);
    let headers = response.headers_mut();
    let policy = "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn go_on(cookie: Option<&str>) -> Response<Out> {
    let mut response = http::text(StatusCode::OK, HTML, NEXT);
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
