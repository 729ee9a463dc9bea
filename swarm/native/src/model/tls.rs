//! The way to a service: whose certificates are believed, and what is said of a proxy.
//!
//! The authorities are the system's, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`, as with every
//! program that uses OpenSSL. Companies whose proxy reads along tell Node's programs of its
//! authority with `NODE_EXTRA_CA_CERTS`; agents on Claude Code work with that, so ours do, too.

use std::error::Error;
use std::ffi::OsString;
use std::io;

use reqwest::Certificate;
use rustls::CertificateError;

use super::provider::variable;

const EXTRA: &str = "NODE_EXTRA_CA_CERTS";
const FILE: &str = "SSL_CERT_FILE";
const CHECK: &str = "Check with: ccb doctor --probe";

/// The certificates of `NODE_EXTRA_CA_CERTS`. As with Node, a file that cannot be read is mentioned
/// and changes nothing.
pub(super) fn extra_authorities(env: &[(OsString, OsString)]) -> Vec<Certificate> {
    let Some(file) = variable(env, EXTRA) else {
        return Vec::new();
    };
    let read = std::fs::read(&file).map_err(|error| error.to_string());
    let certificates = read.and_then(|bytes| {
        Certificate::from_pem_bundle(&bytes).map_err(|_| "it holds no certificates".to_owned())
    });
    certificates.unwrap_or_else(|why| {
        tracing::warn!("{EXTRA} is ignored: {file}: {why}");
        Vec::new()
    })
}

/// The reason why no client can be made.
pub(super) fn no_client(error: &reqwest::Error, env: &[(OsString, OsString)]) -> String {
    let why = deepest(error);
    if !why.contains("No CA certificates") {
        return format!("HTTP cannot be used: {why}");
    }
    match variable(env, FILE) {
        Some(file) => format!(
            "HTTPS cannot be used: {FILE} names {file}, and there are no certificates in it. Name \
             another file, or unset it to use the system's. {CHECK}"
        ),
        None => format!(
            "HTTPS cannot be used: the system has no certificates of authorities. Install the package \
             ca-certificates, or set {FILE} to a file that has them. {CHECK}"
        ),
    }
}

/// The reason why the certificate of `at` is not trusted, if that caused the error. A retry would
/// not help.
pub(super) fn distrust(error: &reqwest::Error, name: &str, at: &str) -> Option<String> {
    let rustls::Error::InvalidCertificate(why) = tls_error(error)? else {
        return None;
    };
    let what = match why {
        CertificateError::UnknownIssuer => {
            return Some(format!(
                "{name} at {at}: its certificate is not trusted, because nobody known here has signed \
                 it. If a proxy of your company reads along, set {FILE} (instead of the system's \
                 authorities) or {EXTRA} (besides them) to the file with its certificate. {CHECK}"
            ));
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet. Is the clock of this machine right?".to_owned()
        }
        other => other.to_string(),
    };
    Some(format!(
        "{name} at {at}: its certificate is not trusted: {what}. {CHECK}"
    ))
}

/// The error of a proxy, if it caused the failure, and true if a retry may help. Its address may
/// hold a password, so it is named by its variable.
pub(super) fn proxy_trouble(error: &reqwest::Error, name: &str) -> Option<(String, bool)> {
    // The library's type for this is not public.
    let words = reasons(error);
    let why = words
        .iter()
        .find_map(|words| words.strip_prefix("tunnel error: "))?;
    let proxy = format!("{name} cannot be reached through the proxy in HTTPS_PROXY");
    match why {
        "proxy authorization required" => Some((
            format!(
                "{proxy}: the proxy wants a name and a password, or rejects those it got. Set \
                 HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT, or add the address to NO_PROXY. {CHECK}"
            ),
            false,
        )),
        "unsuccessful" => Some((format!("{proxy}: the proxy refused to connect"), true)),
        why => {
            let innermost = words.last().map_or(why, String::as_str);
            Some((format!("{proxy}: {innermost}"), true))
        }
    }
}

/// All reasons, the first one first. Some hide theirs inside an error of input and output.
fn reasons(error: &reqwest::Error) -> Vec<String> {
    let mut words = Vec::new();
    visit(error, &mut |reason| words.push(reason.to_string()));
    words
}

/// The last reason, which is the system's own.
pub(super) fn deepest(error: &reqwest::Error) -> String {
    let last = reasons(error).pop();
    last.unwrap_or_else(|| "no reason is known".to_owned())
}

fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut found = None;
    visit(error, &mut |reason| {
        found = found.or(reason.downcast_ref::<rustls::Error>());
    });
    found
}

/// Shows every reason below `error`.
fn visit<'a>(error: &'a reqwest::Error, show: &mut dyn FnMut(&'a (dyn Error + 'static))) {
    let mut next = error.source();
    while let Some(reason) = next {
        show(reason);
        let hidden = reason
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match hidden {
            Some(hidden) => Some(hidden),
            None => reason.source(),
        };
    }
}
