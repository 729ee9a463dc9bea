//! The shapes of secrets.

use super::{ScanState, Verdict};

/// Bytes of which a secret consists after its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Letters, digits, `_`.
    Word,
    /// The same and `-`.
    Dashed,
    /// The same and `.`.
    Dotted,
    /// Capitals and digits.
    Capitals,
    /// The bytes of a token in a header.
    Header,
    /// The bytes between the begin and the end of a private key, also inside quotes.
    Pem,
}

impl Class {
    pub(super) fn has(self, byte: u8) -> bool {
        let word = byte.is_ascii_alphanumeric() || byte == b'_';
        match self {
            Self::Word => word,
            Self::Dashed => word || byte == b'-',
            Self::Dotted => word || matches!(byte, b'-' | b'.'),
            Self::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Header => word || b"-._~+/=".contains(&byte),
            Self::Pem => byte.is_ascii_alphanumeric() || b"+/=-\\\r\n\t :,.\"'".contains(&byte),
        }
    }

    /// The number of bytes at the start of `data` that are of this class, counted up to `most`.
    fn run(self, data: &[u8], most: usize) -> usize {
        let most = most.min(data.len());
        let end = data[..most].iter().position(|byte| !self.has(*byte));
        end.unwrap_or(most)
    }
}

/// The part that has to follow a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// At least this number of bytes of a class.
    Run(Class, usize),
    /// The same, not only small letters and dashes: words are joined that way too.
    Mixed(Class, usize),
    /// A JSON web token: two parts with a dot between.
    WebToken,
    /// The label of a private key.
    Pem,
    /// `: Bearer TOKEN` and the like.
    Authorization,
}

/// The form of a kind of secret.
#[derive(Debug)]
pub(super) struct Shape {
    /// Its first bytes.
    pub(super) start: &'static str,
    body: Body,
    /// True if it must not be the end of a longer word: `sk-` is in `task-`.
    alone: bool,
    /// True if the start itself may be shown.
    keep: bool,
}

const fn key(start: &'static str, class: Class, least: usize) -> Shape {
    Shape::new(start, Body::Run(class, least))
}

/// The more telling ones first.
pub(super) const SHAPES: &[Shape] = &[
    // Anthropic, OpenAI, OpenRouter.
    key("sk-ant-", Class::Dashed, 6),
    key("sk-proj-", Class::Dashed, 16),
    key("sk-svcacct-", Class::Dashed, 16),
    key("sk-admin-", Class::Dashed, 16),
    key("sk-or-v1-", Class::Dashed, 16),
    Shape::new("sk-", Body::Mixed(Class::Dashed, 20)).alone(),
    // GitHub.
    key("ghp_", Class::Word, 20),
    key("gho_", Class::Word, 20),
    key("ghu_", Class::Word, 20),
    key("ghs_", Class::Word, 20),
    key("ghr_", Class::Word, 20),
    key("github_pat_", Class::Word, 20),
    // GitLab.
    key("glpat-", Class::Dotted, 16),
    key("gldt-", Class::Dotted, 16),
    key("glrt-", Class::Dotted, 16),
    key("glptt-", Class::Dotted, 16),
    // AWS: the id of a key. The key itself has no shape and must be named.
    key("AKIA", Class::Capitals, 16).alone(),
    key("ASIA", Class::Capitals, 16).alone(),
    // Slack.
    key("xoxa-", Class::Dashed, 10),
    key("xoxb-", Class::Dashed, 10),
    key("xoxe-", Class::Dashed, 10),
    key("xoxo-", Class::Dashed, 10),
    key("xoxp-", Class::Dashed, 10),
    key("xoxr-", Class::Dashed, 10),
    key("xoxs-", Class::Dashed, 10),
    key("xapp-", Class::Dashed, 10),
    // Google.
    key("AIza", Class::Dashed, 30),
    key("GOCSPX-", Class::Dashed, 20),
    key("ya29.", Class::Dashed, 20),
    // npm, PyPI, Hugging Face, Stripe.
    key("npm_", Class::Word, 30),
    key("pypi-AgE", Class::Dashed, 30),
    key("hf_", Class::Word, 30),
    key("sk_live_", Class::Word, 16),
    key("rk_live_", Class::Word, 16),
    Shape::new("eyJ", Body::WebToken),
    Shape::new("-----BEGIN ", Body::Pem),
    // With a small or a capital letter before.
    Shape::new("uthorization", Body::Authorization).kept(),
    Shape::new("UTHORIZATION", Body::Authorization).kept(),
    Shape::new("Bearer ", Body::Mixed(Class::Header, 16)).kept(),
    Shape::new("bearer ", Body::Mixed(Class::Header, 16)).kept(),
];

/// Maximum bytes that are read to decide about a mixed run.
const MIXED_WITHIN: usize = 64;
/// The longest first part of a web token.
const TOKEN_HEAD_MOST: usize = 1024;
const TOKEN_PART_LEAST: usize = 10;
/// The longest label, as in `-----BEGIN RSA PRIVATE KEY-----`.
const LABEL_MOST: usize = 48;
const PEM_END: &[u8] = b"-----END ";

impl Shape {
    const fn new(start: &'static str, body: Body) -> Self {
        Self {
            start,
            body,
            alone: false,
            keep: false,
        }
    }

    const fn alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    const fn kept(self) -> Self {
        Self { keep: true, ..self }
    }

    pub(super) fn is_token(&self) -> bool {
        self.body == Body::WebToken
    }

    /// True if `data`, which begins with the start, is a secret, and how many bytes that took to
    /// see. `last` means that no more will come.
    pub(super) fn judge(&self, data: &[u8], behind: [u8; 2], last: bool) -> (Verdict, usize) {
        if self.alone && !is_alone(behind) {
            return (Verdict::No, 0);
        }
        let start = self.start.len();
        let body = &data[start..];
        let secret =
            |keep: usize, drop: usize, then: ScanState| Verdict::Secret { keep, drop, then };
        let found = |least: usize, class: Class| match self.keep {
            true => secret(start, least, ScanState::Run(class)),
            false => secret(0, start + least, ScanState::Run(class)),
        };
        match self.body {
            Body::Run(class, least) => {
                let is_secret = enough(body, class, least, last);
                (verdict(is_secret, found(least, class)), 0)
            }
            Body::Mixed(class, least) => {
                let is_secret = mixed(body, class, least, last);
                (verdict(is_secret, found(least, class)), 0)
            }
            Body::WebToken => web_token(data, last),
            Body::Pem => (pem(data, start, last), 0),
            Body::Authorization => (authorization(data, start, last), 0),
        }
    }
}

/// `secret` if it is one; `None` while that is open.
fn verdict(is_secret: Option<bool>, secret: Verdict) -> Verdict {
    match is_secret {
        Some(true) => secret,
        Some(false) => Verdict::No,
        None => Verdict::Open,
    }
}

/// True if a word can begin after these two bytes. `\n` in a JSON string and the end of a
/// terminal's colour code are letters, but end nothing.
fn is_alone([a, b]: [u8; 2]) -> bool {
    let escape = a == b'\\' && b"nrtbf".contains(&b);
    let color = b == b'm' && (a.is_ascii_digit() || matches!(a, b'[' | b';'));
    !b.is_ascii_alphanumeric() || escape || color
}

/// True if at least so many bytes of a class follow; `None` while that is open.
fn enough(data: &[u8], class: Class, least: usize, last: bool) -> Option<bool> {
    match class.run(data, least) {
        run if run == least => Some(true),
        run if run < data.len() || last => Some(false),
        _ => None,
    }
}

fn mixed(data: &[u8], class: Class, least: usize, last: bool) -> Option<bool> {
    match enough(data, class, least, last) {
        Some(true) => {}
        other => return other,
    }
    let run = class.run(data, MIXED_WITHIN);
    let telling = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    if data[..run].iter().any(telling) {
        return Some(true);
    }
    let ended = run < data.len() || run == MIXED_WITHIN || last;
    ended.then_some(false)
}

/// `eyJ…` `.` `…`: both parts at least ten bytes long.
fn web_token(data: &[u8], last: bool) -> (Verdict, usize) {
    let head = Class::Dashed.run(data, TOKEN_HEAD_MOST);
    let Some(next) = data.get(head) else {
        // The maximum has arrived, or nothing more will.
        let no = last || head >= TOKEN_HEAD_MOST;
        return (if no { Verdict::No } else { Verdict::Open }, head);
    };
    if *next != b'.' || head < TOKEN_PART_LEAST {
        // Another token may begin right behind this run, but none inside of it. A run that
        // ends in a dot may still hold the start of one that is long enough: no.
        return (Verdict::No, head);
    }
    let is_secret = enough(&data[head + 1..], Class::Dashed, TOKEN_PART_LEAST, last);
    let secret = Verdict::Secret {
        keep: 0,
        drop: head + 1 + TOKEN_PART_LEAST,
        then: ScanState::Run(Class::Dotted),
    };
    (verdict(is_secret, secret), head)
}

fn pem(data: &[u8], start: usize, last: bool) -> Verdict {
    let label = &data[start..];
    let is_label = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let most = label.len().min(LABEL_MOST);
    let end = label[..most].iter().position(|byte| !is_label(byte));
    let Some(end) = end else {
        let no = last || most == LABEL_MOST;
        return if no { Verdict::No } else { Verdict::Open };
    };
    let (words, dashes) = label.split_at(end);
    if !words.windows(11).any(|part| part == b"PRIVATE KEY") {
        return Verdict::No;
    }
    let expected = &PEM_END[..5];
    if dashes.starts_with(expected) {
        let then = ScanState::Pem {
            seen: 0,
            matched: 0,
            dashes: None,
        };
        let drop = start + end + expected.len();
        return Verdict::Secret {
            keep: 0,
            drop,
            then,
        };
    }
    let open = !last && expected.starts_with(dashes);
    if open { Verdict::Open } else { Verdict::No }
}

/// One byte further towards `-----END `.
pub(super) fn pem_end(matched: usize, byte: u8) -> (usize, Option<usize>) {
    let matched = match (matched, byte) {
        // One dash too many is still five dashes.
        (5, b'-') => 5,
        (matched, byte) if PEM_END.get(matched) == Some(&byte) => matched + 1,
        (_, b'-') => 1,
        _ => 0,
    };
    (matched, (matched == PEM_END.len()).then_some(0))
}

/// The bytes that may stand between `Authorization` and its value.
const BETWEEN: &[u8] = b" \t\"':=\\";
const BETWEEN_MOST: usize = 8;
const SCHEMES: [&[u8]; 4] = [b"bearer", b"basic", b"token", b"apikey"];

fn authorization(data: &[u8], start: usize, last: bool) -> Verdict {
    let open = |open: bool| {
        if open && !last {
            Verdict::Open
        } else {
            Verdict::No
        }
    };
    let rest = &data[start..];
    let most = rest.len().min(BETWEEN_MOST);
    let end = rest[..most].iter().position(|byte| !BETWEEN.contains(byte));
    let Some(end) = end else {
        return open(most < BETWEEN_MOST);
    };
    let (between, value) = rest.split_at(end);
    if !between.iter().any(|byte| matches!(byte, b':' | b'=')) {
        return Verdict::No;
    }
    let secret = |keep: usize, drop: usize| Verdict::Secret {
        keep,
        drop,
        then: ScanState::Run(Class::Header),
    };
    let same = |a: &[u8], b: &[u8]| a.eq_ignore_ascii_case(b);
    for scheme in SCHEMES {
        let length = scheme.len().min(value.len());
        if !same(&value[..length], &scheme[..length]) {
            continue;
        }
        // The scheme, a space, and at least six bytes.
        match value.get(scheme.len()) {
            None => return open(true),
            Some(b' ') => {}
            Some(_) => continue,
        }
        let keep = scheme.len() + 1;
        let is_secret = enough(&value[keep..], Class::Header, 6, last);
        return verdict(is_secret, secret(start + end + keep, 6));
    }
    let is_secret = mixed(value, Class::Header, 16, last);
    verdict(is_secret, secret(start + end, 16))
}
