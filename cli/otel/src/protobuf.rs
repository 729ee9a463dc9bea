//! OTLP as bytes: the messages of `opentelemetry/proto` (1.x), written field by field.
//!
//! The format is four kinds of fields and a dozen messages that never change; a generator and its
//! runtime would be a hundred times as much code ([ADR 18](../../../docs/adr/0018-own-otlp.md)). A
//! test reads the bytes with the types that OpenTelemetry publishes.

use coordinator::telemetry::{Attribute, Data, Histogram, Metric, Point, Span, SpanKind, Value};

/// A message in the course of being written.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap_or(0));
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.number(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.number(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn attribute(&mut self, field: u32, key: &str, write: impl FnOnce(&mut Self)) {
        self.message(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.message(2, write);
        });
    }

    fn attributes(&mut self, field: u32, all: &[Attribute]) {
        for (key, value) in all {
            self.attribute(field, key, |any| match value {
                Value::Text(text) => any.bytes(1, text.as_bytes()),
                Value::Yes(yes) => any.varint(2, u64::from(*yes)),
                Value::Whole(number) => any.varint(3, number.cast_unsigned()),
                Value::Real(number) => any.double(4, *number),
            });
        }
    }

    /// Adds the resource that identifies us; `rest` writes the spans or metrics, as field 2 of
    /// their scope.
    fn said_by_us(&mut self, resource: &[(String, String)], rest: impl FnOnce(&mut Self)) {
        self.message(1, |of_resource| {
            of_resource.message(1, |about| {
                for (key, value) in resource {
                    about.attribute(1, key, |any| any.bytes(1, value.as_bytes()));
                }
            });
            of_resource.message(2, |of_scope| {
                of_scope.message(1, |scope| {
                    scope.bytes(1, b"ccb");
                    scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
                });
                rest(of_scope);
            });
        });
    }
}

/// An `ExportTraceServiceRequest`.
pub(super) fn spans(all: &[Span], resource: &[(String, String)]) -> Vec<u8> {
    let mut request = Message::default();
    request.said_by_us(resource, |scope| {
        for span in all {
            scope.message(2, |to| write_span(span, to));
        }
    });
    request.0
}

fn write_span(span: &Span, to: &mut Message) {
    to.bytes(1, &span.trace.0);
    to.bytes(2, &span.id.0);
    if let Some(parent) = span.parent {
        to.bytes(4, &parent.0);
    }
    to.bytes(5, span.name.as_bytes());
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Client => 3,
    };
    to.varint(6, kind);
    to.fixed64(7, nanoseconds(span.from_ms));
    to.fixed64(8, nanoseconds(span.to_ms));
    to.attributes(9, &span.attributes);
    if let Some(error) = &span.error {
        to.message(15, |status| {
            status.bytes(2, error.as_bytes());
            status.varint(3, 2);
        });
    }
}

/// An `ExportMetricsServiceRequest`, with the values at `now_ms`.
pub(super) fn metrics(all: &[Metric], resource: &[(String, String)], now_ms: i64) -> Vec<u8> {
    let mut request = Message::default();
    request.said_by_us(resource, |scope| {
        for metric in all.iter().filter(|metric| !is_empty(&metric.data)) {
            scope.message(2, |to| write_metric(metric, now_ms, to));
        }
    });
    request.0
}

fn is_empty(data: &Data) -> bool {
    match data {
        Data::Gauge(points) | Data::Sum(points) => points.is_empty(),
        Data::Histogram(all) => all.is_empty(),
    }
}

fn write_metric(metric: &Metric, now_ms: i64, to: &mut Message) {
    /// Temporality: the values count from the beginning on, not from the last report.
    const CUMULATIVE: u64 = 2;
    to.bytes(1, metric.name.as_bytes());
    to.bytes(2, metric.about.as_bytes());
    to.bytes(3, metric.unit.as_bytes());
    let since = nanoseconds(metric.since_ms);
    let now = nanoseconds(now_ms);
    match &metric.data {
        Data::Gauge(points) => to.message(5, |gauge| {
            for point in points {
                gauge.message(1, |to| write_point(point, (None, now), to));
            }
        }),
        Data::Sum(points) => to.message(7, |sum| {
            for point in points {
                sum.message(1, |to| write_point(point, (Some(since), now), to));
            }
            sum.varint(2, CUMULATIVE);
            sum.varint(3, 1);
        }),
        Data::Histogram(all) => to.message(9, |histogram| {
            for one in all {
                histogram.message(1, |to| write_histogram(one, (since, now), to));
            }
            histogram.varint(2, CUMULATIVE);
        }),
    }
}

fn write_point(point: &Point, (since, now): (Option<u64>, u64), to: &mut Message) {
    if let Some(since) = since {
        to.fixed64(2, since);
    }
    to.fixed64(3, now);
    to.double(4, point.value);
    to.attributes(7, &point.attributes);
}

fn write_histogram(one: &Histogram, (since, now): (u64, u64), to: &mut Message) {
    to.fixed64(2, since);
    to.fixed64(3, now);
    to.fixed64(4, one.count());
    to.double(5, one.sum);
    let counts: Vec<u8> = one
        .counts
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .collect();
    to.bytes(6, &counts);
    let bounds: Vec<u8> = one
        .bounds
        .iter()
        .flat_map(|bound| bound.to_le_bytes())
        .collect();
    to.bytes(7, &bounds);
    to.attributes(9, &one.attributes);
}

fn nanoseconds(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_seven_bits_at_a_time() {
        for (number, bytes) in [
            (0, vec![0]),
            (127, vec![0x7f]),
            (300, vec![0xac, 0x02]),
            (
                u64::MAX,
                vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            ),
        ] {
            let mut message = Message::default();
            message.number(number);
            assert_eq!(message.0, bytes, "{number}");
        }
    }

    #[test]
    fn a_message_knows_its_length_and_nonsense_times_are_zero() {
        let mut message = Message::default();
        message.message(2, |inner| inner.bytes(1, b"ab"));
        assert_eq!(message.0, [0x12, 4, 0x0a, 2, b'a', b'b']);
        assert_eq!(nanoseconds(-5), 0);
        assert_eq!(nanoseconds(i64::MAX), u64::MAX);
    }
}
