//! HTTP, as far as a model needs it: one request, its answer as it comes.

use std::ffi::OsString;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;

use super::error::{Complaint, ModelError, of_status, place};
use super::provider::{url, variable};
use super::retry::asked;
use super::sse::Events;
use super::tls::{deepest, distrust, extra_authorities, no_client, proxy_trouble};
use super::wire::{Format, Reader};
use super::{Answer, Provider, Wire};
use crate::shared::Clients;

/// Longer than that no connection takes to be made.
const CONNECT: Duration = Duration::from_secs(15);
/// Longer than that nothing is silent that still works. A model in a small machine may think for
/// minutes before its first word.
const IDLE: Duration = Duration::from_secs(300);
/// Maximum bytes of an answer, whatever is sent.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// Maximum bytes of an error that are read.
const MAX_ERROR: usize = 64 * 1024;

/// A connection to one service, kept open between requests.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
}

impl Http {
    /// Prepares requests to `provider`, with keys from `env`, over one of `clients` if others use
    /// them, too. Nothing is sent.
    pub(super) fn new(
        provider: &Provider,
        env: &[(OsString, OsString)],
        clients: Option<&Clients>,
    ) -> Result<Self, String> {
        let url = url(provider);
        let secure = url.starts_with("https:");
        // Only the first one counts, which is the same.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let idle = provider.idle_timeout_ms.map(Duration::from_millis);
        let idle = idle.unwrap_or(IDLE);
        let client = match clients {
            Some(clients) => clients.get((secure, idle), || client(secure, idle, env))?,
            None => client(secure, idle, env)?,
        };
        Ok(Self {
            client,
            url,
            headers: headers(provider, env)?,
        })
    }

    /// Makes one request. Dropping this closes the connection.
    pub(super) async fn post(
        &self,
        body: Bytes,
        provider: &Provider,
    ) -> Result<Answer, ModelError> {
        let broken = |error: reqwest::Error| failure(&error, provider);
        let request = self.client.post(&self.url).headers(self.headers.clone());
        let mut response = request.body(body).send().await.map_err(broken)?;
        let status = response.status().as_u16();
        if status != 200 {
            let header = |name: &str| {
                let value = response.headers().get(name);
                value.and_then(|value| value.to_str().ok())
            };
            let wait = asked(header("retry-after"), header("retry-after-ms"));
            let mut text = Vec::new();
            while text.len() < MAX_ERROR
                && let Ok(Some(more)) = response.chunk().await
            {
                text.extend_from_slice(&more);
            }
            return Err(of_status(status, &Complaint::read(&text), wait, provider));
        }
        let mut events = Events::default();
        let mut reader: Reader = Format(provider.wire).reader();
        let mut length = 0;
        while let Some(bytes) = response.chunk().await.map_err(broken)? {
            length += bytes.len();
            if length > MAX_ANSWER {
                return Err(ModelError::Refused {
                    words: format!("{} sent an answer without end", provider.name),
                });
            }
            events.push(&bytes);
            loop {
                let too_long = |_| ModelError::Refused {
                    words: format!("{} sent an event without end", provider.name),
                };
                let Some(event) = events.next().map_err(too_long)? else {
                    break;
                };
                reader.event(&event, provider)?;
            }
        }
        let cut = || {
            let words = format!("the answer of {} ended early", provider.name);
            ModelError::passing(words)
        };
        reader.answer().ok_or_else(cut)
    }
}

/// Makes connections.
fn client(
    secure: bool,
    idle: Duration,
    env: &[(OsString, OsString)],
) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .http1_only()
        .user_agent(concat!("ccb/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .read_timeout(idle)
        // A key is for this address alone.
        .redirect(Policy::none())
        .referer(false);
    builder = match secure {
        true => builder.tls_certs_merge(extra_authorities(env)),
        // Reading the system's certificates takes longer than all the rest.
        false => builder.tls_certs_only([]),
    };
    builder.build().map_err(|error| no_client(&error, env))
}

/// The headers of every request.
fn headers(provider: &Provider, env: &[(OsString, OsString)]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut add = |name: &str, value: &str, from: &str| {
        let name = HeaderName::try_from(name);
        let value = HeaderValue::try_from(value);
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err(format!("{from} cannot be sent as a header. Correct it."));
        };
        // Never printed.
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    };
    if provider.wire == Wire::Anthropic {
        add("anthropic-version", "2023-06-01", "the version")?;
    }
    if let Some(name) = &provider.key_env {
        let Some(key) = variable(env, name) else {
            return Err(format!(
                "{} needs a key, and {name} is not set. Set it and resume the agent. Check with: ccb \
                 doctor --probe",
                provider.name
            ));
        };
        let from = format!("the key in {name}");
        if provider.bearer || provider.wire != Wire::Anthropic {
            add("authorization", &format!("Bearer {key}"), &from)?;
        } else {
            add("x-api-key", &key, &from)?;
        }
    }
    for (name, value) in &provider.headers {
        add(name, value, &format!("the header {name} of the settings"))?;
    }
    for (name, from) in &provider.header_env {
        if let Some(value) = variable(env, from) {
            add(name, &value, &format!("what is in {from}"))?;
        }
    }
    Ok(headers)
}

/// The reason why a request failed. The library's text is left out, as addresses can hold
/// passwords.
fn failure(error: &reqwest::Error, provider: &Provider) -> ModelError {
    let at = place(&url(provider));
    let name = &provider.name;
    if let Some(words) = distrust(error, name, &at) {
        return ModelError::Refused { words };
    }
    if let Some((words, may_pass)) = proxy_trouble(error, name) {
        return match may_pass {
            true => ModelError::passing(words),
            false => ModelError::Refused { words },
        };
    }
    let why = match () {
        () if error.is_timeout() && error.is_connect() => {
            format!("{name} cannot be reached at {at}: it did not answer in time")
        }
        () if error.is_timeout() => format!("{name} at {at} sent nothing for too long"),
        () if error.is_connect() => {
            format!("{name} cannot be reached at {at}: {}", deepest(error))
        }
        () => format!("the connection to {name} at {at} broke: {}", deepest(error)),
    };
    ModelError::passing(why)
}
