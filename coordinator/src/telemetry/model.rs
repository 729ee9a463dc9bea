//! Spans and metrics as values.

use uuid::Uuid;

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// The trace with this name: the same in every process, at any time.
    pub fn of(name: &str) -> Self {
        Self(
            Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("ccb trace {name}").as_bytes()).into_bytes(),
        )
    }

    /// The span of this trace with this name.
    pub fn span(self, name: &str) -> SpanId {
        let bytes = Uuid::new_v5(&Uuid::from_bytes(self.0), name.as_bytes()).into_bytes();
        let mut id = [0; 8];
        id.copy_from_slice(&bytes[..8]);
        SpanId(id)
    }
}

impl std::fmt::Display for SpanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl std::str::FromStr for SpanId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(|id| Self(id.to_be_bytes()))
    }
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Yes(bool),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// An attribute of a span or of a point of a metric.
pub type Attribute = (&'static str, Value);

/// The kind of a span: ccb's own work, or a call to a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpanKind {
    /// ccb's own work.
    #[default]
    Internal,
    /// A request to another service.
    Client,
}

/// A finished operation with a duration.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The trace it belongs to.
    pub trace: TraceId,
    /// Unique in its trace.
    pub id: SpanId,
    /// The span it was part of.
    pub parent: Option<SpanId>,
    /// One of a small set of names.
    pub name: String,
    /// The kind.
    pub kind: SpanKind,
    /// The start, ms since the epoch.
    pub from_ms: i64,
    /// The end.
    pub to_ms: i64,
    /// Further attributes.
    pub attributes: Vec<Attribute>,
    /// The error, if there was one.
    pub error: Option<String>,
}

/// A figure at this moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name of the measured value.
    pub name: &'static str,
    /// A description.
    pub about: &'static str,
    /// The unit in UCUM notation.
    pub unit: &'static str,
    /// The start of sums and histograms, ms since the epoch.
    pub since_ms: i64,
    /// The figures.
    pub data: Data,
}

/// The figures of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Present values.
    Gauge(Vec<Point>),
    /// Totals, which only grow.
    Sum(Vec<Point>),
    /// Distributions of values.
    Histogram(Vec<Histogram>),
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The attributes of the value.
    pub attributes: Vec<Attribute>,
    /// The value.
    pub value: f64,
}

/// A distribution of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The attributes of the distribution.
    pub attributes: Vec<Attribute>,
    /// The upper ends of all buckets but the last.
    pub bounds: &'static [f64],
    /// Number of values in each bucket.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl Histogram {
    /// A histogram without values.
    pub(super) fn new(bounds: &'static [f64], attributes: Vec<Attribute>) -> Self {
        Self {
            attributes,
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    /// Counts a value.
    pub(super) fn take(&mut self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum += value;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_names_and_nothing_else() {
        let trace = TraceId::of("session 1");
        assert_eq!(trace, TraceId::of("session 1"));
        assert_ne!(trace, TraceId::of("session 2"));
        let span = trace.span("run a#1");
        assert_eq!(span, TraceId::of("session 1").span("run a#1"));
        assert_ne!(span, trace.span("run a#2"));
        assert_ne!(span, TraceId::of("session 2").span("run a#1"));
        assert_eq!(span.to_string().parse(), Ok(span));
        assert!("x".parse::<SpanId>().is_err());
    }

    #[test]
    fn a_value_is_counted_in_the_first_bucket_it_fits() {
        let mut spread = Histogram::new(&[1.0, 4.0], Vec::new());
        for value in [0.0, 1.0, 1.5, 4.0, 5.0] {
            spread.take(value);
        }
        assert_eq!(spread.counts, [2, 2, 1]);
        assert_eq!((spread.count(), spread.sum), (5, 11.5));
    }
}
