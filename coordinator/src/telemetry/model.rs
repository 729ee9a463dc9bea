//! Spans and metrics as values.

use uuid::Uuid;

/// Which trace a span belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

/// Which span it is, in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// The trace of what is known by this name: the same whoever asks, and whenever.
    pub fn of(name: &str) -> Self {
        Self(
            Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("ccb trace {name}").as_bytes()).into_bytes(),
        )
    }

    /// The span of this trace that is known by this name.
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

/// Something about a span or a point of a metric.
pub type Attribute = (&'static str, Value);

/// Whether a span is a call to somebody else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SpanKind {
    /// It is our own work.
    #[default]
    Internal,
    /// It is a request to another service.
    Client,
}

/// Something that took some time and is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Where it belongs.
    pub trace: TraceId,
    /// Unique there.
    pub id: SpanId,
    /// What it was part of.
    pub parent: Option<SpanId>,
    /// One of few.
    pub name: String,
    /// Who did it.
    pub kind: SpanKind,
    /// When it began, ms since the epoch.
    pub from_ms: i64,
    /// When it ended.
    pub to_ms: i64,
    /// What else is known.
    pub attributes: Vec<Attribute>,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

/// A figure at this moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// What is measured.
    pub name: &'static str,
    /// In words.
    pub about: &'static str,
    /// As UCUM writes it.
    pub unit: &'static str,
    /// Since when sums and histograms count, ms since the epoch.
    pub since_ms: i64,
    /// The figures.
    pub data: Data,
}

/// The figures of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// How many there are now.
    Gauge(Vec<Point>),
    /// How much it was in all; only grows.
    Sum(Vec<Point>),
    /// How the values are spread.
    Histogram(Vec<Histogram>),
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Of what.
    pub attributes: Vec<Attribute>,
    /// How much.
    pub value: f64,
}

/// How values are spread.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Of what.
    pub attributes: Vec<Attribute>,
    /// The upper ends of all buckets but the last.
    pub bounds: &'static [f64],
    /// How many values each bucket has.
    pub counts: Vec<u64>,
    /// All values together.
    pub sum: f64,
}

impl Histogram {
    /// Without a value yet.
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

    /// How many values there are.
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
