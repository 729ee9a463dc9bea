//! The variables of OpenTelemetry. Their names and meanings are the specification's.

use std::time::Duration;

/// The targets of spans and metrics, and the intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// Target of spans; `None` if spans are not sent.
    pub(super) traces: Option<Target>,
    /// Target of metrics; `None` if metrics are not sent.
    pub(super) metrics: Option<Target>,
    /// Maximum time for a request.
    pub(super) timeout: Duration,
    /// Interval between sending spans.
    pub(super) span_delay: Duration,
    /// Interval between sending metrics.
    pub(super) metric_interval: Duration,
    /// Attributes of this program.
    pub(super) resource: Vec<(String, String)>,
}

/// The target of one signal.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) url: String,
    /// The headers, which may hold keys.
    pub(super) headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// `None` if nothing is sent; an error is the reason why the requested target cannot be used.
    pub(super) fn read(var: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let yes = |name: &str| var(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if yes("OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let traces = target("TRACES", "v1/traces", &var)?;
        let metrics = target("METRICS", "v1/metrics", &var)?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let ms = |name: &str, usual: u64| {
            let given = var(name).and_then(|value| value.trim().parse().ok());
            Duration::from_millis(given.filter(|ms| *ms > 0).unwrap_or(usual))
        };
        Ok(Some(Self {
            traces,
            metrics,
            timeout: ms("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000),
            span_delay: ms("OTEL_BSP_SCHEDULE_DELAY", 5_000),
            metric_interval: ms("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
            resource: resource(&var),
        }))
    }
}

fn target(
    signal: &str,
    path: &str,
    var: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Target>, String> {
    let exporter = var(&format!("OTEL_{signal}_EXPORTER"));
    if exporter.is_some_and(|name| name.trim() == "none") {
        return Ok(None);
    }
    let own = |what: &str| var(&format!("OTEL_EXPORTER_OTLP_{signal}_{what}"));
    let general = |what: &str| var(&format!("OTEL_EXPORTER_OTLP_{what}"));
    let url = match (own("ENDPOINT"), general("ENDPOINT")) {
        (Some(own), _) => own.trim().to_owned(),
        (None, Some(base)) => format!("{}/{path}", base.trim().trim_end_matches('/')),
        (None, None) => return Ok(None),
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(format!(
            "the address of the collector begins with http:// or https://, not {url:?}"
        ));
    }
    let protocol = own("PROTOCOL").or_else(|| general("PROTOCOL"));
    if let Some(other) = protocol.filter(|name| name.trim() != "http/protobuf") {
        return Err(format!(
            "ccb sends http/protobuf, not {other:?}; set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and the \
             collector's port for it (usually 4318)"
        ));
    }
    let headers = own("HEADERS").or_else(|| general("HEADERS"));
    let headers = pairs(headers.as_deref().unwrap_or_default());
    Ok(Some(Target { url, headers }))
}

fn resource(var: &impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let mut all = vec![
        ("service.name".to_owned(), "ccb".to_owned()),
        (
            "service.version".to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        ),
    ];
    let given = pairs(
        var("OTEL_RESOURCE_ATTRIBUTES")
            .as_deref()
            .unwrap_or_default(),
    );
    let name = var("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name));
    for (key, value) in given.into_iter().chain(name) {
        all.retain(|(known, _)| *known != key);
        all.push((key, value));
    }
    all
}

/// Parses `a=1,b=2`, with `%2C` and the like in values.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let (key, value) = (key.trim(), decoded(value.trim()));
        (!key.is_empty()).then(|| (key.to_owned(), value))
    };
    text.split(',').filter_map(pair).collect()
}

/// Decodes percent signs; an invalid sequence is kept.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte {
            Some(byte) => (bytes.push(byte), rest = &after[2..]).0,
            None => (bytes.push(*first), rest = after).0,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(of: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::read(|name| {
            let found = of.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_an_endpoint_nothing_is_sent() {
        assert_eq!(read(&[]), Ok(None));
        let disabled = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
            ("OTEL_SDK_DISABLED", "true"),
        ];
        assert_eq!(read(&disabled), Ok(None));
    }

    #[test]
    fn a_signal_has_its_own_address_or_a_path_below_the_common_one() {
        let both = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")])
            .unwrap()
            .unwrap();
        assert_eq!(both.traces.unwrap().url, "http://c:4318/v1/traces");
        assert_eq!(both.metrics.unwrap().url, "http://c:4318/v1/metrics");
        let one = read(&[
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/in"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%2Cb, x=1"),
            ("OTEL_SERVICE_NAME", "mine"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "deployment.environment.name=ci,service.name=other",
            ),
        ]);
        let one = one.unwrap().unwrap();
        assert_eq!(one.metrics, None);
        let traces = one.traces.unwrap();
        assert_eq!(traces.url, "https://c/in");
        assert!(!format!("{traces:?}").contains("api-key"));
        let expected = [("api-key", "a,b"), ("x", "1")];
        assert_eq!(
            traces.headers,
            expected.map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        let names: Vec<_> = one
            .resource
            .iter()
            .filter(|(key, _)| key == "service.name")
            .collect();
        assert_eq!(names[0].1, "mine");
        assert_eq!(names.len(), 1);
        let quiet = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_METRICS_EXPORTER", "none"),
        ]);
        assert_eq!(quiet.unwrap().unwrap().metrics, None);
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let grpc = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ];
        assert!(read(&grpc).unwrap_err().contains("http/protobuf"));
        assert!(
            read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318")])
                .unwrap_err()
                .contains("http://")
        );
    }
}
