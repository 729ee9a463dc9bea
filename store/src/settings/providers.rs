//! `providers`: services with models that ccb's own agent loop can talk to, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::agents::{checked_name, is_variable};
use crate::fields::{Fields, Read};

crate::words! {
    /// The protocol of a service.
    #[derive(Default)]
    pub enum ProviderKind {
        /// Anthropic's Messages.
        #[default]
        Anthropic = "anthropic",
        /// OpenAI's chat completions, which most other servers speak too.
        OpenaiChat = "openai-chat",
        /// OpenAI's responses.
        OpenaiResponses = "openai-responses",
    }
}

impl ProviderKind {
    /// The default address of requests: OpenAI's ends with the version, Anthropic's does not.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenaiChat | Self::OpenaiResponses => "https://api.openai.com/v1",
        }
    }

    /// The variable that usually holds the key.
    pub fn key_env(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenaiChat | Self::OpenaiResponses => "OPENAI_API_KEY",
        }
    }
}

/// Prices of a million tokens, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Tokens sent.
    pub input: f64,
    /// Tokens received.
    pub output: f64,
    /// Tokens sent that the provider had in its cache; as `input` if `None`.
    pub cache_read: Option<f64>,
    /// Tokens sent that the provider puts into its cache; as `input` if `None`.
    pub cache_write: Option<f64>,
}

/// One entry of `providers`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSettings {
    /// The protocol it speaks.
    pub kind: ProviderKind,
    /// The address, without a slash at its end. `None` stands for the vendor's own service.
    pub base_url: Option<String>,
    /// The variable that holds the key. `None` means the kind's usual one at the vendor's own
    /// address, and no key at any other: a key is only sent to an address it was named for.
    pub key_env: Option<String>,
    /// The model of agents whose definition names none.
    pub model: Option<String>,
    /// Headers on top of the usual ones.
    pub headers: BTreeMap<String, String>,
    /// Maximum tokens of a conversation.
    pub context_window: Option<u64>,
    /// Maximum tokens of one answer.
    pub max_output: Option<u64>,
    /// Prices of models that are not in `model_prices`.
    pub prices: Option<Prices>,
    /// Prices of each model, by its name in requests.
    pub model_prices: BTreeMap<String, Prices>,
    /// The file that defines it: a repository's is not used without the user's consent.
    pub file: PathBuf,
}

pub(super) const KEYS: &[&str] = &[
    "baseUrl",
    "contextWindow",
    "headers",
    "keyEnv",
    "kind",
    "maxOutput",
    "model",
    "modelPrices",
    "prices",
];
const PRICES: &[&str] = &["cacheRead", "cacheWrite", "input", "output"];
/// Headers that would carry a key, or change what is sent.
const OWN_HEADERS: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "transfer-encoding",
    "x-api-key",
];
/// The highest limit accepted; no model takes more.
const MOST_TOKENS: u64 = 100_000_000;
const MOST_PRICE: f64 = 100_000.0;

/// A later file's provider replaces an earlier one's whole, as with `runtimes`: were they mixed,
/// a repository could send the user's key elsewhere.
pub(super) fn read(
    providers: &mut BTreeMap<String, ProviderSettings>,
    section: &Fields<'_>,
    file: &Path,
) -> Read<()> {
    for name in section.keys() {
        checked_name(name.clone(), name, section)?;
        if section.is_null(name) {
            providers.remove(name);
        } else if let Some(fields) = section.section(name)? {
            providers.insert(name.clone(), read_provider(&fields, file)?);
        }
    }
    Ok(())
}

fn read_provider(fields: &Fields<'_>, file: &Path) -> Read<ProviderSettings> {
    fields.check_keys(KEYS)?;
    let Some(kind) = fields.word("kind", ProviderKind::ALL, ProviderKind::as_str)? else {
        let all: Vec<&str> = ProviderKind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(fields.must_be("kind", &format!("one of {}", all.join(", "))));
    };
    let base_url = fields.text("baseUrl")?.map(str::to_owned);
    if let Some(url) = &base_url
        && let Some(why) = wrong_url(url)
    {
        let name = fields.name("baseUrl");
        return Err(fields.wrong("baseUrl", format!("{name} {why}")));
    }
    let key_env = fields.text("keyEnv")?.map(str::to_owned);
    if let Some(name) = key_env.as_deref().filter(|name| !is_variable(name)) {
        let what = format!("the name of a variable that holds the key, not {name:?}");
        // The user may have written the key itself; it is not repeated in the message.
        let what = match looks_like_key(name) {
            true => "the name of a variable that holds the key, not the key itself".to_owned(),
            false => what,
        };
        return Err(fields.must_be("keyEnv", &what));
    }
    Ok(ProviderSettings {
        kind,
        base_url: base_url.map(|url| url.trim_end_matches('/').to_owned()),
        key_env,
        model: fields.text("model")?.map(str::to_owned),
        headers: headers(fields)?,
        context_window: fields.number("contextWindow", 1_000..=MOST_TOKENS)?,
        max_output: fields.number("maxOutput", 1..=MOST_TOKENS)?,
        prices: prices(fields, "prices")?,
        model_prices: model_prices(fields)?,
        file: file.to_owned(),
    })
}

/// The reason why requests cannot be sent to `url`; `None` if they can.
pub fn wrong_url(url: &str) -> Option<&'static str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Some("must begin with https:// or http://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Some("must not contain a user or password; name a variable with keyEnv");
    }
    if host.is_empty() {
        return Some("names no host");
    }
    if rest.contains(['?', '#']) {
        return Some("must end with its path, without ? and #");
    }
    let plain = url.chars().all(|c| c.is_ascii_graphic());
    (!plain).then_some("contains characters that a URL cannot have")
}

fn looks_like_key(text: &str) -> bool {
    text.starts_with("sk-") || text.len() > 40
}

fn headers(fields: &Fields<'_>) -> Read<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    for (name, value) in fields.object("headers")?.into_iter().flatten() {
        let wrong = |why: String| {
            let whole = fields.name("headers");
            Err(fields.wrong("headers", format!("{whole}: {why}")))
        };
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            return wrong(format!("{name:?} is no name of a header"));
        }
        if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return wrong(format!(
                "{name:?} is set by ccb; a key comes from the variable that keyEnv names"
            ));
        }
        let printable = |text: &&str| text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        let Some(value) = value.as_str().filter(printable) else {
            return wrong(format!("the value of {name:?} must be text in one line"));
        };
        headers.insert(name.clone(), value.to_owned());
    }
    Ok(headers)
}

fn model_prices(fields: &Fields<'_>) -> Read<BTreeMap<String, Prices>> {
    let mut all = BTreeMap::new();
    if let Some(section) = fields.section("modelPrices")? {
        for model in section.keys() {
            all.extend(prices(&section, model)?.map(|prices| (model.clone(), prices)));
        }
    }
    Ok(all)
}

fn prices(fields: &Fields<'_>, key: &str) -> Read<Option<Prices>> {
    let Some(section) = fields.section(key)? else {
        return Ok(None);
    };
    section.check_keys(PRICES)?;
    let price = |key: &str| {
        let what = "US dollars for a million tokens, from 0 to 100000";
        section.read(key, what, |value| {
            value
                .as_f64()
                .filter(|price| (0.0..=MOST_PRICE).contains(price))
        })
    };
    let needed = |key: &str| match price(key)? {
        Some(price) => Ok(price),
        None => Err(section.must_be(key, "US dollars for a million tokens")),
    };
    Ok(Some(Prices {
        input: needed("input")?,
        output: needed("output")?,
        cache_read: price("cacheRead")?,
        cache_write: price("cacheWrite")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn a_provider_is_replaced_whole_and_remembers_its_file() {
        let settings = load(&[
            r#"{"providers":{"mine":{"kind":"anthropic","keyEnv":"MY_KEY","model":"m"},"gone":{"kind":"openai-chat"}}}"#,
            r#"{"providers":{"mine":{"kind":"openai-chat","baseUrl":"http://localhost:11434/v1/","headers":{"X-Title":"ccb"},
                "contextWindow":32000,"maxOutput":4000,"prices":{"input":1,"output":2.5,"cacheRead":0.1},
                "modelPrices":{"qwen/q.3":{"input":0,"output":0}}},"gone":null}}"#,
        ])
        .unwrap();
        assert_eq!(settings.providers.len(), 1);
        let mine = &settings.providers["mine"];
        assert_eq!(mine.kind, ProviderKind::OpenaiChat);
        assert_eq!(mine.base_url.as_deref(), Some("http://localhost:11434/v1"));
        assert_eq!(mine.key_env, None, "nothing of the first file is left");
        assert_eq!(mine.model, None);
        assert_eq!(mine.headers["X-Title"], "ccb");
        assert_eq!(mine.context_window, Some(32_000));
        let prices = mine.prices.unwrap();
        assert_eq!((prices.output, prices.cache_read), (2.5, Some(0.1)));
        assert_eq!(prices.cache_write, None);
        assert_eq!(mine.model_prices["qwen/q.3"].output, 0.0);
        assert!(mine.file.ends_with("1.json"));
    }

    #[test]
    fn mistakes_are_refused_and_named() {
        for (fields, says) in [
            (r#"{}"#, "providers.a.kind must be one of anthropic"),
            (r#"{"kind":"openai-chta"}"#, "did you mean \"openai-chat\"?"),
            (
                r#"{"kind":"anthropic","baseURL":"https://x"}"#,
                "did you mean \"providers.a.baseUrl\"",
            ),
            (r#"{"kind":"anthropic","baseUrl":"x.org"}"#, "https://"),
            (
                r#"{"kind":"anthropic","baseUrl":"https://u:p@x.org"}"#,
                "keyEnv",
            ),
            (r#"{"kind":"anthropic","baseUrl":"https://"}"#, "no host"),
            (
                r#"{"kind":"anthropic","baseUrl":"https://x.org/?key=1"}"#,
                "without ? and #",
            ),
            (
                r#"{"kind":"anthropic","keyEnv":"sk-ant-secret"}"#,
                "not the key itself",
            ),
            (r#"{"kind":"anthropic","keyEnv":"A B"}"#, "not \"A B\""),
            (
                r#"{"kind":"anthropic","headers":{"Authorization":"x"}}"#,
                "keyEnv",
            ),
            (
                r#"{"kind":"anthropic","headers":{"X":"a\nb"}}"#,
                "in one line",
            ),
            (
                r#"{"kind":"anthropic","headers":{"X Y":"a"}}"#,
                "no name of a header",
            ),
            (r#"{"kind":"anthropic","contextWindow":5}"#, "from 1000"),
            (
                r#"{"kind":"anthropic","prices":{"input":1}}"#,
                "providers.a.prices.output",
            ),
            (
                r#"{"kind":"anthropic","prices":{"input":-1,"output":1}}"#,
                "providers.a.prices.input",
            ),
            (
                r#"{"kind":"anthropic","modelPrices":{"m":{"input":1}}}"#,
                "providers.a.modelPrices.m.output",
            ),
            (r#"{"kind":"anthropic","model":""}"#, "is empty"),
        ] {
            let bad = format!(r#"{{"providers":{{"a":{fields}}}}}"#);
            let error = load(&[&bad]).expect_err(&bad).to_string();
            assert!(error.contains(says), "{bad}: {error}");
            assert!(!error.contains("sk-ant-secret"), "{error}");
        }
        let error = load(&[r#"{"providers":{"a/b":{"kind":"anthropic"}}}"#]);
        assert!(error.unwrap_err().to_string().contains("providers"));
    }
}
