//! Decides which requests are answered: those of a browser that came in with a one-time code or a
//! token, and of our own pages only.
//!
//! A page of another origin can send requests here, and its owner can make a name it owns resolve
//! to this machine. So every request must name us by an address, not by a name that another party
//! owns; the origin that a browser reports must be this page; and no request is answered without a
//! secret.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING};
use hyper::{HeaderMap, Uri};

use super::entrance::{Entrance, Entry};
use super::refused::Refused;
use super::secret::TokenProof;
use super::tls::Names;

/// The header in which a browser reports the origin of a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Decides which requests are answered.
#[derive(Debug)]
pub(super) struct Guard {
    entrance: Entrance,
    /// The proof of the token for programs and for browsers on other machines; `None` without a
    /// token file.
    token: Option<TokenProof>,
    /// The address of the server.
    at: SocketAddr,
    /// The names of the certificate; `None` over plain HTTP.
    names: Option<Names>,
}

impl Guard {
    pub(super) fn new(token: Option<TokenProof>, at: SocketAddr, names: Option<Names>) -> Self {
        Self {
            entrance: Entrance::default(),
            token,
            at,
            names,
        }
    }

    fn scheme(&self) -> &'static str {
        match self.names {
            Some(_) => "https",
            None => "http",
        }
    }

    /// A new address, which lets in one browser within a minute.
    pub(super) fn url(&self) -> String {
        let ip = match self.at.ip() {
            ip if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            ip => ip,
        };
        let (scheme, code) = (self.scheme(), self.entrance.new_code(Instant::now()));
        let port = self.at.port();
        // A browser compares the certificate with the address.
        let name = self
            .names
            .as_ref()
            .filter(|names| !names.hold(&ip.to_string()));
        match name.and_then(Names::first) {
            Some(name) => format!("{scheme}://{name}:{port}/?code={code}"),
            None => format!("{scheme}://{}/?code={code}", SocketAddr::new(ip, port)),
        }
    }

    /// True if ccb has made this code, used or not.
    pub(super) fn has_made(&self, code: &str) -> bool {
        self.entrance.has_made(code)
    }

    /// Lets in the browser `by`, which comes with `code`. Returns the header with its cookie;
    /// `None` if it already has the cookie.
    pub(super) fn enter(
        &self,
        code: &str,
        by: &str,
        headers: &HeaderMap,
    ) -> Result<Option<String>, Refused> {
        let cookies: Vec<&str> = self.cookies(headers).collect();
        match self.entrance.enter(code, by, &cookies, Instant::now()) {
            Entry::In(cookie) => Ok(Some(self.set_cookie(&cookie))),
            Entry::Again => Ok(None),
            Entry::Old => Err(Refused::Old),
            Entry::Taken(by) => Err(Refused::Taken(by)),
        }
    }

    /// Lets in a browser that has sent the token; returns the header with its cookie.
    pub(super) fn enter_with_token(&self) -> String {
        self.set_cookie(&self.entrance.new_cookie())
    }

    /// True if ccb can ask a browser for a token.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The name of the cookie. Servers on other ports of this address use other names: cookies do
    /// not distinguish ports.
    fn name(&self) -> String {
        format!("ccb-{}", self.at.port())
    }

    /// The header that sets the cookie.
    fn set_cookie(&self, value: &str) -> String {
        let name = self.name();
        let secure = if self.names.is_some() { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")
    }

    /// True if the token fits the proof in the file.
    pub(super) fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_some_and(|token| token.proves(given))
    }

    /// Refuses a request that is not for us or comes from another page.
    pub(super) fn is_ours(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refused::Ambiguous);
        };
        // Browsers know the length of what they send. hyper refuses two lengths, and drops one
        // beside an encoding.
        if headers.contains_key(TRANSFER_ENCODING) {
            return Err(Refused::Ambiguous);
        }
        let host = host.to_str().ok();
        let host = host
            .filter(|host| self.names_us(host))
            .ok_or(Refused::Host)?;
        // The first line can name a host, too, and takes precedence over the header.
        if uri.authority().is_some_and(|named| named.as_str() != host) {
            return Err(Refused::Ambiguous);
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let ours = format!("{}://{host}", self.scheme());
            if origin.as_bytes() != ours.as_bytes() {
                return Err(Refused::Origin);
            }
        }
        Ok(())
    }

    /// Refuses a request without a secret. A request that changes something must come from our
    /// page, or bear the token, which no other page can add.
    pub(super) fn may(&self, headers: &HeaderMap, changes: bool) -> Result<(), Refused> {
        if self.bears_token(headers) {
            return Ok(());
        }
        let site = headers.get(FETCH_SITE).and_then(|site| site.to_str().ok());
        if matches!(site, Some("cross-site" | "same-site")) {
            return Err(Refused::Origin);
        }
        let mut cookies = self.cookies(headers);
        if !cookies.any(|cookie| self.entrance.knows(cookie)) {
            return Err(Refused::Secret);
        }
        match changes && !headers.contains_key(ORIGIN) {
            true => Err(Refused::Origin),
            false => Ok(()),
        }
    }

    /// True for an address, the one name that always means this machine, or a name of our
    /// certificate, with our port. A browser leaves out the usual port.
    fn names_us(&self, host: &str) -> bool {
        if let Ok(at) = host.parse::<SocketAddr>() {
            return at.port() == self.at.port();
        }
        let usual = if self.names.is_some() { 443 } else { 80 };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (host, Some(usual)),
        };
        let certified = |names: &Names| names.hold(name);
        port == Some(self.at.port())
            && (name.eq_ignore_ascii_case("localhost")
                || name.parse::<IpAddr>().is_ok()
                || self.names.as_ref().is_some_and(certified))
    }

    fn bears_token(&self, headers: &HeaderMap) -> bool {
        let given = headers
            .get(AUTHORIZATION)
            .and_then(|given| given.to_str().ok());
        let given = given.and_then(|given| given.strip_prefix("Bearer "));
        given.is_some_and(|given| self.is_token(given))
    }

    /// The values of our cookie in a request.
    fn cookies<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let name = self.name();
        let given = headers.get_all(COOKIE).iter();
        let pairs = given
            .filter_map(|all| all.to_str().ok())
            .flat_map(|all| all.split(';'));
        pairs.filter_map(move |pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name).then_some(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::make_token;

    fn guard() -> Guard {
        Guard::new(None, SocketAddr::from(([127, 0, 0, 1], 7317)), None)
    }

    fn is_ours(guard: &Guard, headers: &HeaderMap) -> Result<(), Refused> {
        guard.is_ours(headers, &Uri::from_static("/"))
    }

    /// The cookie of a browser that came in with a new address.
    fn cookie(guard: &Guard) -> String {
        let url = guard.url();
        let (_, code) = url.split_once("?code=").unwrap();
        let header = guard.enter(code, "firefox", &headers(&[])).unwrap();
        let header = header.expect("a cookie");
        header.split(';').next().unwrap().to_owned()
    }

    fn headers(of: &[(&str, &str)]) -> HeaderMap {
        let one = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        };
        of.iter().map(one).collect()
    }

    #[test]
    fn a_name_that_somebody_else_owns_is_refused() {
        let guard = guard();
        for host in [
            "127.0.0.1:7317",
            "localhost:7317",
            "LOCALHOST:7317",
            "[::1]:7317",
        ] {
            assert_eq!(
                is_ours(&guard, &headers(&[("host", host)])),
                Ok(()),
                "{host}"
            );
        }
        for host in [
            "evil.example:7317",
            "127.0.0.1.evil.example:7317",
            "localhost.evil.example:7317",
            "127.0.0.1:80",
            "127.0.0.1",
            "localhost",
            "",
            "127.0.0.1:7317@evil.example",
        ] {
            let said = is_ours(&guard, &headers(&[("host", host)]));
            assert_eq!(said, Err(Refused::Host), "{host}");
        }
    }

    #[test]
    fn a_request_that_can_be_understood_in_two_ways_is_refused() {
        let guard = guard();
        let (host, other) = (("host", "127.0.0.1:7317"), ("host", "evil.example:7317"));
        assert_eq!(is_ours(&guard, &headers(&[host])), Ok(()));
        for given in [
            vec![],
            vec![host, host],
            vec![host, other],
            vec![other, host],
            vec![host, ("transfer-encoding", "chunked")],
        ] {
            let mut all = HeaderMap::new();
            for (name, value) in &given {
                all.append(*name, value.parse().unwrap());
            }
            let said = is_ours(&guard, &all);
            assert_eq!(said, Err(Refused::Ambiguous), "{given:?}");
        }
        let named = |uri| guard.is_ours(&headers(&[host]), &Uri::from_static(uri));
        assert_eq!(named("http://127.0.0.1:7317/"), Ok(()));
        assert_eq!(named("http://evil.example:7317/"), Err(Refused::Ambiguous));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let guard = guard();
        let from = |origin| headers(&[("host", "127.0.0.1:7317"), ("origin", origin)]);
        assert_eq!(is_ours(&guard, &from("http://127.0.0.1:7317")), Ok(()));
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost:7317",
            "http://127.0.0.1:7318",
            "https://127.0.0.1:7317",
            "http://127.0.0.1:7317.evil.example",
        ] {
            let said = is_ours(&guard, &from(origin));
            assert_eq!(said, Err(Refused::Origin), "{origin}");
        }
    }

    #[test]
    fn without_a_secret_nothing_is_answered() {
        let guard = guard();
        let cookie = cookie(&guard);
        let ours = ("origin", "http://127.0.0.1:7317");
        assert_eq!(guard.may(&headers(&[]), false), Err(Refused::Secret));
        assert_eq!(
            guard.may(&headers(&[("cookie", "ccb-7317=x")]), false),
            Err(Refused::Secret)
        );
        let good = format!("other=1; {cookie}");
        assert_eq!(guard.may(&headers(&[("cookie", &good)]), false), Ok(()));
        // A request that changes something has to come from our page.
        let said = guard.may(&headers(&[("cookie", &good)]), true);
        assert_eq!(said, Err(Refused::Origin));
        assert_eq!(
            guard.may(&headers(&[("cookie", &good), ours]), true),
            Ok(())
        );
        let elsewhere = headers(&[("cookie", &good), ("sec-fetch-site", "cross-site")]);
        assert_eq!(guard.may(&elsewhere, false), Err(Refused::Origin));
    }

    #[test]
    fn a_token_counts_where_a_file_proves_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let token = make_token(&path).unwrap();
        let mut guard = guard();
        let bearer = format!("Bearer {token}");
        let good = headers(&[("authorization", &bearer)]);
        assert_eq!(guard.may(&good, true), Err(Refused::Secret));
        assert!(!guard.has_token() && !guard.is_token(&token));
        guard.token = Some(TokenProof::read(&path).unwrap());
        assert_eq!(guard.may(&good, true), Ok(()));
        let wrong = headers(&[("authorization", "Bearer 0123")]);
        assert_eq!(guard.may(&wrong, true), Err(Refused::Secret));
        assert!(guard.is_token(&token) && !guard.is_token(""));
        let header = guard.enter_with_token();
        assert!(!header.contains(&token), "{header}");
        let signed_in = headers(&[("cookie", header.split(';').next().unwrap())]);
        assert_eq!(guard.may(&signed_in, false), Ok(()));
    }
}
