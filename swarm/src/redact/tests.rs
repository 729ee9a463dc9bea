use proptest::prelude::*;
use proptest::sample::Index;

use super::secrets::{PEM_MOST, VALUE_SURE};
use super::*;

fn secrets(values: &[&str]) -> Arc<Secrets> {
    Arc::new(Secrets::new(values))
}

/// The stream in pieces that end at `cuts`, and the most that was held back.
fn in_pieces(secrets: &Arc<Secrets>, data: &[u8], cuts: &[usize]) -> (Vec<u8>, usize) {
    let mut redactor = Redactor::new(Arc::clone(secrets));
    let (mut out, mut most, mut from) = (Vec::new(), 0, 0);
    for cut in cuts.iter().copied().chain([data.len()]) {
        redactor.push(&data[from..cut], &mut out);
        most = most.max(redactor.held());
        from = cut;
    }
    redactor.finish(&mut out);
    assert_eq!(redactor.held(), 0);
    (out, most)
}

fn redacted(values: &[&str], text: &str) -> String {
    secrets(values).redact(text)
}

/// One of each shape.
const KEYS: &[&str] = &[
    "sk-ant-api03-abcDEF_123-xyz",
    "sk-ant-fake-000",
    "sk-proj-abcdefghijklmnop1234",
    "sk-abcdefghijklmnopqrstuvwxyz0123456789",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "gho_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv",
    "glpat-abcdefghij0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefgh",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc+/=\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA\\n-----END PRIVATE KEY-----",
];

/// Like a secret, but none.
const HARMLESS: &[&str] = &[
    "task-management-of-2026-and-later-years",
    "risk-3f2a9c7e-1b2c-4d5e-8f90-abcdef012345",
    "sk-short",
    "sk-folding-cube-container-wrapper",
    "ghp_short",
    "AKIA",
    "AKIAshouldnotmatch",
    "eyJhbGciOiJIUzI1NiJ9",
    "eyJ.eyJ.x",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "-----BEGIN ",
    "Authorization: none",
    "authorization is required before anything else 1",
    "the bearer of bad news",
    "Bearer authentication-of-everything",
    "xox",
    "glpat-",
    "Grüße, 世界",
    "\u{1b}[31mred\u{1b}[0m",
    "{\"a\": [1, 2], \"b\\n\": null}",
    "s",
    "sk",
    "-",
    "--",
    "-----",
    "A",
    "e",
    "eyJ",
    "B",
];

#[test]
fn every_shape_is_taken_out() {
    for key in KEYS {
        for (before, after) in [("", ""), ("a ", " z"), ("x=\"", "\"\n"), ("\\n", "\\n")] {
            let expected = format!("{before}{MARK}{after}");
            assert_eq!(redacted(&[], &format!("{before}{key}{after}")), expected);
        }
    }
}

#[test]
fn headers_keep_their_names() {
    for (text, expected) in [
        (
            "Authorization: Bearer abcdef",
            "Authorization: Bearer [redacted]",
        ),
        (
            "authorization: basic dXNlcjpwYXNz\r\n",
            "authorization: basic [redacted]\r\n",
        ),
        (
            "\"Authorization\": \"token 0123456\"",
            "\"Authorization\": \"token [redacted]\"",
        ),
        (
            "AUTHORIZATION=Bearer x.y~z+/=",
            "AUTHORIZATION=Bearer [redacted]",
        ),
        (
            "Authorization: 0123456789abcdef0",
            "Authorization: [redacted]",
        ),
        (
            "curl -H 'Bearer abcdefghij012345'",
            "curl -H 'Bearer [redacted]'",
        ),
        (
            "Authorization: Bearer sk-ant-abcdefgh x",
            "Authorization: Bearer [redacted] x",
        ),
    ] {
        assert_eq!(redacted(&[], text), expected);
    }
}

#[test]
fn harmless_text_stays() {
    let all = HARMLESS.join(" ");
    assert_eq!(redacted(&["some-secret-value"], &all), all);
}

#[test]
fn values_are_taken_out_wherever_they_are() {
    let values = [
        "hunter22",
        "hunter22-and-more",
        "a\"b\\c\nsecond line of it",
        "abc",
        "日本語の鍵",
    ];
    for (text, expected) in [
        ("xhunter22y", "x[redacted]y"),
        ("hunter22-and-more", "[redacted]"),
        ("hunter22-and-mor", "[redacted]-and-mor"),
        ("hunter22hunter22", "[redacted][redacted]"),
        (
            r#"{"x":"a\"b\\c\nsecond line of it"}"#,
            r#"{"x":"[redacted]"}"#,
        ),
        ("grep: second line of it", "grep: [redacted]"),
        ("abc is too short", "abc is too short"),
        ("日本語の鍵!", "[redacted]!"),
    ] {
        assert_eq!(redacted(&values, text), expected);
    }
    // Two that overlap: nothing of either is left.
    assert_eq!(
        redacted(&["abcdefgh", "efghijkl"], "-abcdefghijkl-"),
        "-[redacted]-"
    );
}

#[test]
fn a_value_longer_than_anything_held_back_is_taken_out() {
    let long: String = (0..20_000).map(|n| format!("{n},")).collect();
    let secrets = secrets(&[&long]);
    let text = format!("before {long} after");
    assert_eq!(secrets.redact(&text), "before [redacted] after");
    let cuts: Vec<usize> = (0..text.len()).step_by(1000).collect();
    let (out, most) = in_pieces(&secrets, text.as_bytes(), &cuts);
    assert_eq!(out, b"before [redacted] after");
    assert!(most <= 2 * VALUE_SURE, "{most}");
}

#[test]
fn a_key_without_an_end_does_not_take_everything() {
    let text = "-----BEGIN PRIVATE KEY----- } and then more";
    assert_eq!(redacted(&[], text), "[redacted]} and then more");
    let endless = format!("-----BEGIN PRIVATE KEY-----{}", "A".repeat(PEM_MOST + 100));
    let out = redacted(&[], &endless);
    assert_eq!(out, format!("[redacted]{}", "A".repeat(100)));
}

#[test]
fn a_line_of_any_length_is_not_collected() {
    for start in ["", "sk-ant-", "eyJ", "-----BEGIN ", "Authorization: "] {
        let mut redactor = Redactor::new(secrets(&["some-secret-value"]));
        let mut out = Vec::new();
        redactor.push(start.as_bytes(), &mut out);
        let chunk = "eyJsk-".repeat(10_000);
        for _ in 0..32 {
            redactor.push(chunk.as_bytes(), &mut out);
            assert!(redactor.held() < 5_000);
            out.clear();
        }
        redactor.finish(&mut out);
        assert!(redactor.held.capacity() < 256 * 1024);
    }
}

#[test]
fn names_say_what_is_secret() {
    let environment = [
        ("GITHUB_TOKEN", "0123456789"),
        ("aws_secret_access_key", "wJalrXUtnFEMI"),
        ("DB_PASSWORD", "short"),
        ("MY_THING", "abc"),
        ("PATH", "/usr/bin:/bin"),
        ("PASSWORD", "correct horse\n"),
        ("PGPASSWORD", "of-the-database"),
        ("CACHE_KEY", "linux-release"),
        ("PWD", "/home/somebody/work"),
        ("GH_PAT", "abc1234567"),
        ("X_KEY", "1"),
        ("FEATURE_TOKEN", "true"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20c0llect0r,x-team=platform,api-key=k3y-of-us",
        ),
    ];
    let values = secret_values(environment, &["MY_THING".into()]);
    let values: Vec<&str> = values
        .iter()
        .map(|v| std::str::from_utf8(v).unwrap())
        .collect();
    assert_eq!(
        values,
        [
            "0123456789",
            "wJalrXUtnFEMI",
            "abc",
            "correct horse",
            "of-the-database",
            "abc1234567",
            "c0llect0r",
            "k3y-of-us"
        ]
    );
}

const VALUES: [&str; 3] = ["s3cr3t-value", "s3cr3t-value-2", "multi\nline value of 2"];

/// Text with secrets in it, and what is left of it.
fn stream() -> impl Strategy<Value = (String, String)> {
    let harmless = prop_oneof![
        proptest::sample::select(HARMLESS).prop_map(str::to_owned),
        "[a-z0-9 .,;(){}]{0,40}",
        "\\PC{0,20}",
    ];
    let secret = prop_oneof![
        proptest::sample::select(KEYS).prop_map(str::to_owned),
        proptest::sample::select(&VALUES[..]).prop_map(str::to_owned),
        "sk-ant-[a-zA-Z0-9_-]{6,200}",
        "ghp_[a-zA-Z0-9]{36}",
        "eyJ[a-zA-Z0-9_-]{20,600}\\.eyJ[a-zA-Z0-9_-]{20,900}\\.[a-zA-Z0-9_-]{20,90}",
    ];
    let piece = prop_oneof![
        3 => harmless.prop_map(|text| (text.clone(), text)),
        1 => secret.prop_map(|text| (text, MARK.to_owned())),
    ];
    // A line end that no secret goes over.
    prop::collection::vec(piece, 0..12).prop_map(|pieces| {
        let join = |texts: Vec<&str>| texts.join(" ;\n");
        let input = pieces.iter().map(|piece| piece.0.as_str()).collect();
        let output = pieces.iter().map(|piece| piece.1.as_str()).collect();
        (join(input), join(output))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn only_the_secrets_go_however_the_stream_is_cut(
        (input, expected) in stream(),
        cuts in prop::collection::vec(any::<Index>(), 0..20),
    ) {
        let secrets = secrets(&VALUES);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.sort_unstable();
        let (out, most) = in_pieces(&secrets, input.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        prop_assert!(most < 5_000, "{} held", most);
    }

    /// Without separators between them secrets may merge, but the cuts still do not matter.
    #[test]
    fn cuts_never_matter(
        pieces in prop::collection::vec(
            prop_oneof![
                proptest::sample::select(KEYS).prop_map(str::as_bytes),
                proptest::sample::select(HARMLESS).prop_map(str::as_bytes),
                proptest::sample::select(&VALUES[..]).prop_map(str::as_bytes),
                proptest::sample::select(&["\0", "\\", " ", "\"", "Authorization", ": ", "Bearer ", "s3cr3t-"][..])
                    .prop_map(str::as_bytes),
                Just(&b"\xff\xfe"[..]),
            ],
            0..20,
        ),
        step in 1_usize..40,
    ) {
        let secrets = secrets(&VALUES);
        let data = pieces.concat();
        let (whole, _) = in_pieces(&secrets, &data, &[]);
        let cuts: Vec<usize> = (step..data.len()).step_by(step).collect();
        let (cut, _) = in_pieces(&secrets, &data, &cuts);
        prop_assert_eq!(&cut, &whole);
        let one_by_one: Vec<usize> = (1..data.len()).collect();
        let (cut, _) = in_pieces(&secrets, &data, &one_by_one);
        prop_assert_eq!(&cut, &whole);
        for value in &VALUES[..2] {
            let value = value.as_bytes();
            prop_assert!(!whole.windows(value.len()).any(|part| part == value));
        }
    }

    #[test]
    fn bytes_without_secrets_pass(data in prop::collection::vec(any::<u8>(), 0..2000), cut in any::<Index>()) {
        let secrets = secrets(&VALUES);
        let cut = cut.index(data.len() + 1);
        let (out, _) = in_pieces(&secrets, &data, &[cut]);
        prop_assert_eq!(out, data);
    }
}
