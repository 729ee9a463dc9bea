//! WebFetch: a page of the web as text, for agents that are allowed to.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::{Value, json};

use super::input::Input;
use super::{BoxFuture, Call, Tool, ToolOutput, ToolSpec};

/// The tool's name.
pub(super) const NAME: &str = "WebFetch";
/// The most bytes of a page that are read.
const MOST: usize = 1024 * 1024;
/// The longest time a page takes.
const TIME: Duration = Duration::from_secs(30);

/// Fetches pages.
pub(super) struct WebFetch {
    spec: ToolSpec,
    /// Made when the first page is asked for.
    client: OnceLock<Result<Client, String>>,
}

impl WebFetch {
    pub(super) fn new() -> Self {
        Self {
            spec: ToolSpec {
                name: NAME.into(),
                description: "Fetches a page of the web and returns its text.".into(),
                input_schema: json!({
                    "type": "object",
                    "properties": { "url": { "type": "string" } },
                    "required": ["url"],
                }),
                reads_only: true,
            },
            client: OnceLock::new(),
        }
    }

    fn client(&self) -> Result<&Client, String> {
        let made = self.client.get_or_init(|| {
            // Only the first one counts, which is the same.
            rustls::crypto::ring::default_provider()
                .install_default()
                .ok();
            Client::builder()
                .timeout(TIME)
                .user_agent(concat!("ccb/", env!("CARGO_PKG_VERSION")))
                // Another host needs a permission of its own.
                .redirect(Policy::none())
                .build()
                .map_err(|error| format!("HTTP cannot be used: {}.", error.without_url()))
        });
        made.as_ref().map_err(Clone::clone)
    }

    async fn fetch(&self, input: Value) -> Result<ToolOutput, String> {
        // Claude Code's tool also takes these; the model reads the page itself here.
        let input = Input::new(input, &["url", "prompt"])?;
        let url = Url::parse(input.needed("url")?)
            .map_err(|error| format!("url is not an address: {error}."))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("url must begin with http:// or https://.".into());
        }
        let failed = |error: reqwest::Error| format!("{}.", error.without_url());
        let sent = self.client()?.get(url.clone()).send().await;
        let mut response = sent.map_err(failed)?;
        let status = response.status();
        if let Some(to) = redirect(&response, &url) {
            return Ok(ToolOutput::ok(format!(
                "The page has moved. Fetch this address instead: {to}"
            )));
        }
        let kind = header(response.headers(), CONTENT_TYPE);
        if !is_text(&kind) {
            return Err(format!("This is not text, but {kind}."));
        }
        let mut bytes = Vec::new();
        while bytes.len() <= MOST
            && let Some(more) = response.chunk().await.map_err(failed)?
        {
            bytes.extend_from_slice(&more);
        }
        let cut = bytes.len() > MOST;
        bytes.truncate(MOST);
        let page = String::from_utf8_lossy(&bytes);
        let mut text = match kind.contains("html") {
            true => plain_text(&page),
            false => page.into_owned(),
        };
        if cut {
            text.push_str("\n[The page is longer; the rest was not read.]");
        }
        match status.is_success() {
            true => Ok(ToolOutput::ok(text)),
            false => Err(format!("The server answers {status}.\n{text}")),
        }
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, _call: &'a Call) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async { self.fetch(input).await.unwrap_or_else(ToolOutput::error) })
    }
}

fn header(headers: &HeaderMap, name: HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_lowercase()
}

/// The target of a redirect; `None` if the answer is a page.
fn redirect(response: &Response, from: &Url) -> Option<Url> {
    if !response.status().is_redirection() {
        return None;
    }
    let to = response.headers().get(LOCATION)?.to_str().ok()?;
    from.join(to).ok()
}

/// True if the content is text. No type means text: small servers send none.
fn is_text(kind: &str) -> bool {
    let words = ["text/", "json", "xml", "javascript", "html"];
    kind.is_empty() || words.iter().any(|word| kind.contains(word))
}

/// The words of a page, without scripts, styles and tags.
pub(crate) fn plain_text(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        let name: String = after
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '!' | '-'))
            .collect::<String>()
            .to_ascii_lowercase();
        let end = match name.as_str() {
            "script" => "</script",
            "style" => "</style",
            comment if comment.starts_with("!--") => "-->",
            _ => ">",
        };
        rest = skip_past(after, end);
        if end.starts_with("</") {
            rest = skip_past(rest, ">");
        }
        let inline = [
            "a", "b", "i", "em", "strong", "code", "span", "u", "sup", "sub",
        ];
        if !inline.contains(&name.trim_start_matches('/')) {
            text.push('\n');
        }
    }
    text.push_str(rest);
    tidy(&text)
}

/// The text after `end`, in whatever case; empty if `end` never comes.
fn skip_past<'a>(text: &'a str, end: &str) -> &'a str {
    let at = text
        .as_bytes()
        .windows(end.len())
        .position(|window| window.eq_ignore_ascii_case(end.as_bytes()));
    at.map_or("", |at| &text[at + end.len()..])
}

/// The usual entities as characters, one blank between words, one empty line between parts.
fn tidy(text: &str) -> String {
    let entities = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let mut lines = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut line = words.join(" ");
        for (entity, character) in entities {
            line = line.replace(entity, character);
        }
        let again_empty = line.is_empty() && lines.last().is_none_or(String::is_empty);
        if !again_empty {
            lines.push(line);
        }
    }
    lines.join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with `answer` and returns what the tool makes of it.
    fn fetched(answer: &str) -> ToolOutput {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a/page", server.local_addr().unwrap());
        let answer = answer.to_owned();
        let thread = std::thread::spawn(move || {
            let (mut client, _) = server.accept().unwrap();
            let mut request = [0; 4096];
            let _ = client.read(&mut request).unwrap();
            // The client hangs up when it has read enough.
            client.write_all(answer.as_bytes()).ok();
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let tool = WebFetch::new();
        let output = runtime.block_on(tool.call(json!({ "url": url }), &Call::default()));
        thread.join().unwrap();
        output
    }

    fn answer(head: &str, body: &str) -> String {
        format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}")
    }

    #[test]
    fn a_page_is_its_words() {
        let page = "<html><head><title>T</title><STYLE>p { }</STYLE><script>if (a<b) x()</script></head>\
                    <body><!-- no --><p>One <b>bold</b> word &amp; &lt;more&gt;</p><p>Two</p></body></html>";
        let output = fetched(&answer("200 OK\r\nContent-Type: text/html", page));
        assert_eq!(output, ToolOutput::ok("T\n\nOne bold word & <more>\n\nTwo"));
        assert_eq!(plain_text("a <b"), "a");
        assert_eq!(plain_text("<script>never closed"), "");
    }

    #[test]
    fn what_is_no_page_is_said() {
        let moved = fetched(&answer(
            "302 Found\r\nLocation: http://elsewhere.test/x",
            "",
        ));
        assert!(moved.text.contains("http://elsewhere.test/x"), "{moved:?}");
        let missing = fetched(&answer("404 Not Found\r\nContent-Type: text/plain", "gone"));
        assert!(
            missing.is_error && missing.text.contains("404"),
            "{missing:?}"
        );
        let image = fetched(&answer("200 OK\r\nContent-Type: image/png", "x"));
        assert!(
            image.is_error && image.text.contains("image/png"),
            "{image:?}"
        );
    }

    #[test]
    fn a_page_without_end_is_cut() {
        let long = "x".repeat(MOST + 10);
        let output = fetched(&answer("200 OK\r\nContent-Type: text/plain", &long));
        assert!(output.text.ends_with("was not read.]") && !output.is_error);
        assert!(output.text.len() < MOST + 100);
    }

    #[test]
    fn other_addresses_are_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let tool = WebFetch::new();
        for url in ["file:///etc/passwd", "no address"] {
            let output = runtime.block_on(tool.call(json!({ "url": url }), &Call::default()));
            assert!(output.is_error, "{output:?}");
        }
    }
}
