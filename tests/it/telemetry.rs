//! OpenTelemetry against a collector on loopback, which reads its requests with the types that
//! OpenTelemetry publishes.

use std::collections::{BTreeMap, HashSet};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use harness::collector::{Collector, Mood};
use harness::script::Script;
use harness::team_session::SessionScene;
use harness::{Answer, wait_until};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::{CCB, FAKE_AGENT};

/// Time limit, longer than any step takes unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The requests to a collector, as OpenTelemetry reads them.
trait Read {
    fn spans(&self) -> Vec<Span>;
    /// The metrics of the last report.
    fn metrics(&self) -> BTreeMap<String, Metric>;
}

impl Read for Collector {
    fn spans(&self) -> Vec<Span> {
        let traces = self
            .got()
            .into_iter()
            .filter(|got| got.path == "/v1/traces");
        let requests =
            traces.map(|got| ExportTraceServiceRequest::decode(got.body.as_slice()).expect("OTLP"));
        let scopes = requests
            .flat_map(|request| request.resource_spans)
            .flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    fn metrics(&self) -> BTreeMap<String, Metric> {
        let last = self
            .got()
            .into_iter()
            .rfind(|got| got.path == "/v1/metrics");
        let last = last.expect("metrics were sent");
        let request = ExportMetricsServiceRequest::decode(last.body.as_slice()).expect("OTLP");
        let scopes = request
            .resource_metrics
            .into_iter()
            .flat_map(|one| one.scope_metrics);
        let all = scopes.flat_map(|scope| scope.metrics);
        all.map(|metric| (metric.name.clone(), metric)).collect()
    }
}

fn told(mut command: Command, address: &str) -> Command {
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .env("OTEL_BSP_SCHEDULE_DELAY", "50");
    command
}

fn run(command: &mut Command) -> Answer {
    Answer::of(command.output().expect("ccb starts"))
}

fn session(scene: &SessionScene, collector: &Collector, more: &[&str]) -> Answer {
    let args = [&["--json", "--runtime", "shell"], more].concat();
    run(&mut told(scene.command(&args), &collector.address))
}

/// All spans of this name.
fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found = named(spans, name);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(found.len(), 1, "{name} in {names:?}");
    found[0]
}

fn text(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|pair| pair.key == key);
    let value = found.and_then(|pair| pair.value.clone());
    match value {
        Some(AnyValue {
            value: Some(Any::StringValue(text)),
        }) => text,
        Some(AnyValue {
            value: Some(Any::IntValue(number)),
        }) => number.to_string(),
        Some(AnyValue {
            value: Some(Any::BoolValue(yes)),
        }) => yes.to_string(),
        Some(AnyValue {
            value: Some(Any::DoubleValue(number)),
        }) => number.to_string(),
        other => panic!("{key}: {other:?} in {attributes:?}"),
    }
}

fn checked_task(scene: &SessionScene) {
    scene.task(
        "write one",
        &["--run", "echo 1 > one", "--verify", "test -s one"],
    );
}

#[test]
fn a_session_is_a_trace_with_its_tasks_attempts_runs_checks_and_landings() {
    let scene = SessionScene::new(CCB);
    checked_task(&scene);
    let collector = Collector::new(Mood::Takes);
    let answer = session(&scene, &collector, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let spans = collector.spans();
    let root = one(&spans, "ccb.session");
    assert_eq!(root.parent_span_id, Vec::<u8>::new());
    assert_eq!(text(&root.attributes, "ccb.team"), "board");
    assert_eq!(text(&root.attributes, "ccb.session.verdict"), "done");
    let task = one(&spans, "ccb.task");
    assert_eq!(text(&task.attributes, "ccb.task.subject"), "write one");
    let attempt = one(&spans, "ccb.attempt");
    let check = one(&spans, "ccb.check");
    assert_eq!(text(&check.attributes, "ccb.check.passed"), "true");
    let landing = one(&spans, "ccb.landing");
    let of_agent = |span: &&Span| span.name.starts_with("invoke_agent ");
    let run = spans.iter().find(of_agent).expect("a run");
    assert_eq!(
        text(&run.attributes, "gen_ai.operation.name"),
        "invoke_agent"
    );
    for (span, parent) in [
        (task, root),
        (attempt, task),
        (run, attempt),
        (check, attempt),
        (landing, task),
    ] {
        assert_eq!(
            span.parent_span_id, parent.span_id,
            "{} in {}",
            span.name, parent.name
        );
    }
    for span in &spans {
        assert_eq!(span.trace_id, root.trace_id, "{}", span.name);
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        let (from, to) = (span.start_time_unix_nano, span.end_time_unix_nano);
        assert!(
            root.start_time_unix_nano <= from && from <= to && to <= root.end_time_unix_nano,
            "{span:?}"
        );
        assert_eq!(span.status, None, "{span:?}");
    }
    let metrics = collector.metrics();
    let Some(Data::Gauge(tasks)) = &metrics["ccb.tasks"].data else {
        panic!("{metrics:?}");
    };
    let completed = tasks
        .data_points
        .iter()
        .find(|point| text(&point.attributes, "ccb.task.state") == "completed");
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
    assert_eq!(
        completed.expect("a point").value,
        Some(Value::AsDouble(1.0))
    );
    assert!(
        metrics.contains_key("ccb.agents") && metrics.contains_key("ccb.cost"),
        "{metrics:?}"
    );
    // The next session of the team is a trace of its own.
    checked_task(&scene);
    assert_eq!(session(&scene, &collector, &[]).code, Some(0));
    let spans = collector.spans();
    let roots = named(&spans, "ccb.session");
    assert_eq!(roots.len(), 2);
    assert_ne!(roots[0].trace_id, roots[1].trace_id);
    assert_eq!(
        named(&spans, "ccb.task").len(),
        2,
        "what was told is not told again"
    );
}

#[test]
fn model_calls_say_model_and_tokens_and_failures_say_what_failed() {
    let scene = SessionScene::new(CCB);
    let runtime =
        format!(r#"{{"runtimes":{{"fake":{{"kind":"lines","command":["{FAKE_AGENT}"]}}}}}}"#);
    scene.home.settings(&runtime);
    let script = Script::new()
        .say("hm")
        .usage(120, 7, 0.25)
        .say("so")
        .usage(130, 9, 0.5)
        .done("ok");
    scene.task(
        "think",
        &[
            "--description",
            &script.to_prompt(),
            "--verify",
            "echo no; exit 3",
        ],
    );
    let collector = Collector::new(Mood::Takes);
    let args = [
        "--json",
        "--runtime",
        "fake",
        "--lead",
        "me",
        "--model",
        "m-1",
        "--attempts",
        "1",
        "--mates",
        "1",
    ];
    let answer = run(&mut told(scene.command(&args), &collector.address));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let spans = collector.spans();
    let calls = named(&spans, "chat fake");
    assert_eq!(calls.len(), 2, "{answer:?}");
    let run = spans
        .iter()
        .find(|span| span.name.starts_with("invoke_agent "))
        .expect("a run");
    let tokens: Vec<(String, String)> = calls
        .iter()
        .map(|call| {
            assert_eq!(call.parent_span_id, run.span_id);
            assert_eq!(text(&call.attributes, "gen_ai.operation.name"), "chat");
            assert_eq!(text(&call.attributes, "gen_ai.request.model"), "fake");
            (
                text(&call.attributes, "gen_ai.usage.input_tokens"),
                text(&call.attributes, "gen_ai.usage.output_tokens"),
            )
        })
        .collect();
    assert_eq!(
        tokens,
        [("120".into(), "7".into()), ("130".into(), "9".into())]
    );
    let check = one(&spans, "ccb.check");
    assert_eq!(text(&check.attributes, "process.exit.code"), "3");
    assert_eq!(text(&check.attributes, "error.type"), "check_failed");
    assert_eq!(check.status.as_ref().map(|status| status.code), Some(2));
    assert_eq!(
        text(&one(&spans, "ccb.task").attributes, "error.type"),
        "parked"
    );
    let metrics = collector.metrics();
    let Some(Data::Histogram(tokens)) = &metrics["gen_ai.client.token.usage"].data else {
        panic!("{metrics:?}");
    };
    let input = tokens
        .data_points
        .iter()
        .find(|point| text(&point.attributes, "gen_ai.token.type") == "input");
    let input = input.expect("a point");
    assert_eq!((input.count, input.sum), (2, Some(250.0)));
    assert_eq!(input.bucket_counts.len(), input.explicit_bounds.len() + 1);
    let Some(Data::Sum(cost)) = &metrics["ccb.cost"].data else {
        panic!("{metrics:?}");
    };
    assert!(cost.is_monotonic);
    let point = &cost.data_points[0];
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
    assert_eq!(point.value, Some(Value::AsDouble(0.75)));
}

#[test]
fn a_director_that_is_killed_and_resumed_goes_on_with_its_trace() {
    let scene = SessionScene::new(CCB);
    checked_task(&scene);
    let gate = scene.home.path().join("go");
    let wait = format!(
        "while ! test -e {}; do sleep 0.05; done; echo 2 > two",
        gate.display()
    );
    let second = scene.task("write two", &["--run", &wait, "--blocked-by", "1"]);
    let collector = Collector::new(Mood::Takes);
    let start = || {
        let mut command = told(
            scene.command(&["--json", "--runtime", "shell"]),
            &collector.address,
        );
        command
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("ccb starts")
    };
    let mut first = start();
    scene.await_status(second, "in_progress");
    wait_until(LIMIT, "the first task to be told", || {
        !named(&collector.spans(), "ccb.task").is_empty()
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let before = collector.spans();
    assert!(named(&before, "ccb.session").is_empty());
    harness::write(&gate, "");
    let mut again = start();
    assert_eq!(scene.await_end(&mut again), Some(0));
    let spans = collector.spans();
    let root = one(&spans, "ccb.session");
    assert!(spans.iter().all(|span| span.trace_id == root.trace_id));
    let tasks = named(&spans, "ccb.task").into_iter();
    let tasks: HashSet<&[u8]> = tasks.map(|span| span.span_id.as_slice()).collect();
    assert_eq!(tasks.len(), 2);
    let ids: HashSet<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    for span in &spans {
        let parent = span.parent_span_id.as_slice();
        assert!(parent.is_empty() || ids.contains(parent), "{span:?}");
    }
    // Spans that were delivered before the kill may be sent once more, with the same ids.
    let told: HashSet<&[u8]> = before.iter().map(|span| span.span_id.as_slice()).collect();
    assert!(told.is_subset(&ids));
    assert!(spans.len() <= ids.len() + told.len());
}

#[test]
fn a_collector_that_is_gone_refuses_or_hangs_costs_the_session_nothing() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refuses = Collector::new(Mood::Refuses);
    let hangs = Collector::new(Mood::Hangs);
    for address in [
        free.to_string(),
        refuses.address.clone(),
        hangs.address.clone(),
    ] {
        let scene = SessionScene::new(CCB);
        checked_task(&scene);
        let args = ["--json", "--runtime", "shell"];
        let answer = run(&mut told(scene.command(&args), &address));
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(answer.stdout.contains("telemetry: "), "{answer:?}");
        assert!(scene.repo.main().join("one").exists(), "it landed");
        let last = answer.stdout.lines().last().unwrap_or_default();
        assert!(last.contains("\"event\":\"end\""), "{answer:?}");
    }
    assert!(!hangs.got().is_empty());
}

#[test]
fn nothing_secret_is_sent_and_keys_go_to_the_collector_alone() {
    let scene = SessionScene::new(CCB);
    scene.task(
        "use s3cr3t-0f-0urs now",
        &["--run", "echo s3cr3t-0f-0urs c0llect0r-k3y; exit 1"],
    );
    let collector = Collector::new(Mood::Takes);
    let mut command = told(
        scene.command(&["--json", "--runtime", "shell", "--attempts", "1"]),
        &collector.address,
    );
    command.env("MY_TOKEN", "s3cr3t-0f-0urs");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=c0llect0r-k3y");
    command.env("OTEL_SERVICE_NAME", "fixers");
    let answer = run(&mut command);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let got = collector.got();
    assert!(!got.is_empty());
    for got in &got {
        assert!(
            got.headers.contains("api-key: c0llect0r-k3y"),
            "{}",
            got.headers
        );
        assert!(
            got.headers.contains("content-type: application/x-protobuf"),
            "{}",
            got.headers
        );
        let body = String::from_utf8_lossy(&got.body);
        for secret in ["s3cr3t-0f-0urs", "c0llect0r-k3y"] {
            assert!(!body.contains(secret), "{}: {body}", got.path);
        }
        assert!(body.contains("fixers"), "the resource is named");
    }
    // Output of agents is kept without the key, too.
    let log = scene.run(&["agent", "list", "--all"]);
    assert!(!log.stdout.contains("c0llect0r-k3y"), "{log:?}");
}

#[test]
fn a_plan_is_a_trace_and_what_cannot_be_done_is_said_once() {
    let scene = SessionScene::new(CCB);
    let plan = scene.home.path().join("plan.yaml");
    harness::write(
        &plan,
        "name: small\ntasks:\n  - id: a\n    run: echo 1 > a\n    verify: test -s a\n  - id: b\n    run: exit 1\n",
    );
    let plan = plan.to_str().unwrap();
    let collector = Collector::new(Mood::Takes);
    let answer = run(&mut told(
        scene.unnamed(&["--json", "fanout", plan, "--ci"]),
        &collector.address,
    ));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let spans = collector.spans();
    let root = one(&spans, "ccb.session");
    assert_eq!(text(&root.attributes, "ccb.session.kind"), "fanout");
    assert_eq!(text(&root.attributes, "ccb.session.verdict"), "failed");
    assert_eq!(named(&spans, "ccb.task").len(), 2);
    let mut grpc = told(scene.unnamed(&["fanout", plan, "--ci"]), &collector.address);
    let answer = run(grpc.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"));
    assert_eq!(
        answer.stderr.matches("http/protobuf").count(),
        1 + 1,
        "{answer:?}"
    );
}
