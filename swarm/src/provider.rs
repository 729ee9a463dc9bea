//! The service of a model, and the way to it.
//!
//! Settings name services (`providers`); two need no settings, because their variables are known:
//! `anthropic` and `openai`. A key is never here, only the name of the variable that holds it.

mod address;
mod service;

use std::collections::BTreeMap;

use store::settings::{ProviderKind, ProviderSettings};

pub use address::{Address, AddressFrom};
pub use service::{Prices, Provider, Wire};

/// Services that need no settings, in the order in which they are tried.
const BUILT_IN: [(&str, ProviderKind); 2] = [
    ("anthropic", ProviderKind::Anthropic),
    ("openai", ProviderKind::OpenaiResponses),
];
const AUTH_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
/// Claude's families: the word for one, the variable that names its model, the model if none does.
const FAMILIES: [(&str, &str, &str); 3] = [
    (
        "sonnet",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "claude-sonnet-5-5",
    ),
    ("opus", "ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-5-5"),
    ("haiku", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-5-5"),
];
const OPENAI_MODEL: &str = "gpt-5";

impl Provider {
    /// The shortest name that leads here again: the model's own at its vendor's service, else
    /// with the service before it.
    pub fn known_as(&self) -> String {
        match home_of(&self.model) == Some(self.name.as_str()) {
            true => self.model.clone(),
            false => format!("{}/{}", self.name, self.model),
        }
    }
}

/// The reason why no service can be asked for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ProviderError {
    /// No service is configured and no key is set.
    #[error("no model can be reached: no key is set")]
    NoKey,
    /// The one that was asked for has no key.
    #[error("provider {name:?} needs a key, and the variable {variable} is not set")]
    KeyNotSet { name: String, variable: String },
    /// No service has this name.
    #[error("there is no provider {name:?}{}", suggest(.nearest.as_deref()))]
    Unknown {
        name: String,
        nearest: Option<String>,
    },
    /// No setting names a model.
    #[error("provider {name:?} has no `model` in the settings, and nothing else names one")]
    NoModel { name: String },
    /// The variable holds something else than an address.
    #[error("{variable} {why}")]
    BadUrl {
        variable: &'static str,
        why: &'static str,
    },
}

fn suggest(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// A model that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Its service.
    pub provider: Provider,
    /// The name of a model that nothing here knows, for which the service's usual one stands in.
    pub dropped: Option<String>,
}

/// The services to choose from.
pub struct Providers<'a> {
    /// The services of the settings that may be used.
    pub configured: BTreeMap<&'a str, &'a ProviderSettings>,
    /// The one that is asked if the model says nothing else.
    pub default: Option<&'a str>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

impl std::fmt::Debug for Providers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Nothing of the environment.
        let names: Vec<&str> = self.configured.keys().copied().collect();
        f.debug_tuple("Providers").field(&names).finish()
    }
}

impl Providers<'_> {
    /// The names of all, those with settings first.
    pub fn names(&self) -> Vec<&str> {
        let built_in = BUILT_IN.iter().map(|(name, _)| *name);
        let built_in = built_in.filter(|name| !self.configured.contains_key(name));
        self.configured.keys().copied().chain(built_in).collect()
    }

    /// True if one can be asked for something: it has a key, or needs none.
    pub fn any(&self) -> bool {
        self.usual_name().is_ok()
    }

    /// The service of `model`. `provider/model` names it; `claude-…` and Claude's families are at
    /// Anthropic, `gpt-…` at OpenAI, if there is a key for it; anything else is the default's.
    pub fn resolve(&self, model: Option<&str>) -> Result<Resolved, ProviderError> {
        let found = |provider| Resolved {
            provider,
            dropped: None,
        };
        let Some(model) = model.map(str::trim).filter(|model| !model.is_empty()) else {
            return self.usual().map(found);
        };
        if let Some((name, model)) = model.split_once('/')
            && self.names().contains(&name)
        {
            return self.at(name, Some(model)).map(found);
        }
        if let Some(home) = home_of(model) {
            match self.at(home, Some(model)) {
                Ok(provider) => return Ok(found(provider)),
                Err(ProviderError::KeyNotSet { .. }) => return self.elsewhere(home, model),
                Err(error) => return Err(error),
            }
        }
        let name = self.usual_name()?;
        if let Some((unknown, _)) = model.split_once('/')
            && self.at(name, None)?.base_url == self.kind_of(name).base_url()
        {
            // At the vendors' own addresses no model has a slash in its name.
            return Err(self.unknown(unknown));
        }
        self.at(name, Some(model)).map(found)
    }

    /// A vendor's model where there is no key for the vendor. A service that speaks its language,
    /// or that stands between us and several vendors, may have it by its name; a mere family
    /// becomes the service's usual model.
    fn elsewhere(&self, home: &str, model: &str) -> Result<Resolved, ProviderError> {
        let missing = self.at(home, Some(model));
        let (Ok(name), Err(missing)) = (self.usual_name(), missing) else {
            return Err(ProviderError::NoKey);
        };
        let usual = self.at(name, None);
        let kind = self.kind_of(name);
        let same = is_anthropic(kind) == (home == BUILT_IN[0].0);
        let vendors = |usual: &Provider| usual.base_url == kind.base_url();
        match usual {
            _ if same => self.found_at(name, Some(model), None),
            Ok(_) if family(model).is_some() => self.found_at(name, None, Some(model)),
            Ok(usual) if vendors(&usual) => Err(missing),
            _ => self.found_at(name, Some(model), None),
        }
    }

    fn found_at(
        &self,
        name: &str,
        model: Option<&str>,
        dropped: Option<&str>,
    ) -> Result<Resolved, ProviderError> {
        Ok(Resolved {
            provider: self.at(name, model)?,
            dropped: dropped.map(str::to_owned),
        })
    }

    /// The service that is asked if the model says nothing else, with its usual model.
    pub fn usual(&self) -> Result<Provider, ProviderError> {
        self.at(self.usual_name()?, None)
    }

    /// The default; else the first vendor with a key; else the first service that can be asked.
    fn usual_name(&self) -> Result<&str, ProviderError> {
        if let Some(name) = self.default {
            return match self.names().contains(&name) {
                true => Ok(name),
                false => Err(self.unknown(name)),
            };
        }
        let built_in = BUILT_IN.iter().map(|(name, _)| *name);
        let mut all = built_in.chain(self.configured.keys().copied());
        let ready = |name: &&str| self.key(name).is_ok();
        all.find(ready).ok_or(ProviderError::NoKey)
    }

    fn unknown(&self, name: &str) -> ProviderError {
        ProviderError::Unknown {
            name: name.to_owned(),
            nearest: store::nearest(name, self.names()).map(str::to_owned),
        }
    }

    fn kind_of(&self, name: &str) -> ProviderKind {
        if let Some(settings) = self.configured.get(name) {
            return settings.kind;
        }
        // Behind another address than OpenAI's own is rarely a service with its newer language.
        match name {
            "openai"
                if self
                    .var(address::variable(ProviderKind::OpenaiChat))
                    .is_some() =>
            {
                ProviderKind::OpenaiChat
            }
            "openai" => ProviderKind::OpenaiResponses,
            _ => ProviderKind::Anthropic,
        }
    }

    /// A model at the service `name`; `None` takes its default.
    pub fn at(&self, name: &str, model: Option<&str>) -> Result<Provider, ProviderError> {
        if !self.names().contains(&name) {
            return Err(self.unknown(name));
        }
        let (kind, settings) = (self.kind_of(name), self.configured.get(name).copied());
        let (key_env, bearer) = self.key(name)?;
        let prices = |model: &str| {
            let settings = settings?;
            let own = settings.model_prices.get(model).copied();
            own.or(settings.prices).map(|prices| Prices {
                input: prices.input,
                output: prices.output,
                cache_read: prices.cache_read.unwrap_or(prices.input),
                cache_write: prices.cache_write.unwrap_or(prices.input),
            })
        };
        let model = match model.or(settings.and_then(|settings| settings.model.as_deref())) {
            Some(model) => self.exact(model, kind),
            None => self.usual_model(name, kind, settings)?,
        };
        Ok(Provider {
            name: name.to_owned(),
            wire: wire(kind),
            base_url: self.address_of(kind, settings)?.url,
            key_env,
            bearer,
            prices: prices(&model),
            model,
            headers: settings.map_or_else(BTreeMap::new, |settings| settings.headers.clone()),
            header_env: BTreeMap::new(),
            context_window: settings.and_then(|settings| settings.context_window),
            max_output: settings.and_then(|settings| settings.max_output),
            idle_timeout_ms: None,
        })
    }

    /// A family's newest model; any other name stays as it is.
    fn exact(&self, model: &str, kind: ProviderKind) -> String {
        match family(model).filter(|_| is_anthropic(kind)) {
            Some((_, variable, usual)) => {
                let named = self.var(variable);
                named.unwrap_or_else(|| (*usual).to_owned())
            }
            None => model.to_owned(),
        }
    }

    fn usual_model(
        &self,
        name: &str,
        kind: ProviderKind,
        settings: Option<&ProviderSettings>,
    ) -> Result<String, ProviderError> {
        let own = settings.is_none_or(|settings| settings.base_url.is_none());
        let (variable, usual) = match is_anthropic(kind) {
            true => ("ANTHROPIC_MODEL", FAMILIES[0].0),
            false => ("OPENAI_MODEL", OPENAI_MODEL),
        };
        match own {
            true => {
                let model = self.var(variable);
                Ok(self.exact(model.as_deref().unwrap_or(usual), kind))
            }
            // The models of another server are unknown.
            false => Err(ProviderError::NoModel {
                name: name.to_owned(),
            }),
        }
    }

    /// The variable with the key of the service `name`, which is set, and true if the key goes as a
    /// bearer token; no variable if the service needs no key.
    fn key(&self, name: &str) -> Result<(Option<String>, bool), ProviderError> {
        let settings = self.configured.get(name).copied();
        let kind = self.kind_of(name);
        let variable = match settings {
            Some(ProviderSettings {
                key_env: Some(variable),
                ..
            }) => variable.as_str(),
            Some(settings) if settings.base_url.is_some() => return Ok((None, false)),
            _ => kind.key_env(),
        };
        let bearer = variable == AUTH_TOKEN;
        if self.var(variable).is_some() {
            return Ok((Some(variable.to_owned()), bearer));
        }
        if variable == ProviderKind::Anthropic.key_env() && self.var(AUTH_TOKEN).is_some() {
            return Ok((Some(AUTH_TOKEN.to_owned()), true));
        }
        // A server of one's own rarely wants one.
        let named = settings.is_some_and(|settings| settings.key_env.is_some());
        if !is_anthropic(kind) && !named && self.var(address::variable(kind)).is_some() {
            return Ok((None, false));
        }
        Err(ProviderError::KeyNotSet {
            name: name.to_owned(),
            variable: variable.to_owned(),
        })
    }

    fn var(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.trim().is_empty())
    }
}

fn wire(kind: ProviderKind) -> Wire {
    match kind {
        ProviderKind::Anthropic => Wire::Anthropic,
        ProviderKind::OpenaiChat => Wire::Chat,
        ProviderKind::OpenaiResponses => Wire::Responses,
    }
}

fn is_anthropic(kind: ProviderKind) -> bool {
    kind == ProviderKind::Anthropic
}

/// The vendor whose model this is, by its name.
fn home_of(model: &str) -> Option<&'static str> {
    let numbered = |start: &str| {
        let rest = model.strip_prefix(start);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let claude = model.starts_with("claude-") || family(model).is_some();
    let gpt = ["gpt-", "chatgpt-", "codex-"]
        .iter()
        .any(|start| model.starts_with(start));
    match (claude, gpt || numbered("o")) {
        (true, _) => Some(BUILT_IN[0].0),
        (_, true) => Some(BUILT_IN[1].0),
        _ => None,
    }
}

/// The family that a word means, whatever follows it in brackets.
fn family(word: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    let word = word.split('[').next().unwrap_or(word);
    let word = if word == "opusplan" { "opus" } else { word };
    FAMILIES.iter().find(|(name, ..)| *name == word)
}

#[cfg(test)]
mod tests {
    use store::settings::Settings;

    use super::*;

    /// The provider that `model` selects with these settings and variables: `provider kind url key
    /// model`.
    fn resolved(providers: &str, vars: &[(&str, &str)], model: Option<&str>) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ccb.json");
        let text = format!("{{\"providers\":{providers}}}");
        let relaxed = store::atomic::Durability::Relaxed;
        store::atomic::replace(dir.path(), &file, text.as_bytes(), relaxed).unwrap();
        let settings = Settings::load(&[file]).unwrap();
        let env = |name: &str| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        };
        let configured = settings.providers.iter();
        let known = Providers {
            configured: configured.map(|(name, one)| (name.as_str(), one)).collect(),
            default: vars
                .iter()
                .find(|(name, _)| *name == "default")
                .map(|(_, value)| *value),
            env: &env,
        };
        match known.resolve(model) {
            Ok(Resolved { provider, dropped }) => {
                let Provider {
                    name,
                    wire,
                    base_url,
                    key_env,
                    bearer,
                    model,
                    ..
                } = provider;
                let key = key_env.unwrap_or_else(|| "-".into());
                let bearer = if bearer { " bearer" } else { "" };
                let dropped = dropped.map_or_else(String::new, |word| format!(" ({word})"));
                format!("{name} {wire} {base_url} {key} {model}{bearer}{dropped}")
            }
            Err(error) => error.to_string(),
        }
    }

    const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "k");
    const GPT: (&str, &str) = ("OPENAI_API_KEY", "k");
    const ANTHROPIC: &str = "anthropic anthropic https://api.anthropic.com ANTHROPIC_API_KEY";
    const OPENAI: &str = "openai responses https://api.openai.com/v1 OPENAI_API_KEY";

    #[test]
    fn a_key_alone_is_enough() {
        let with = |vars: &[(&str, &str)], model| resolved("{}", vars, model);
        assert_eq!(with(&[KEY], None), format!("{ANTHROPIC} claude-sonnet-5-5"));
        assert_eq!(
            with(&[KEY, GPT], None),
            format!("{ANTHROPIC} claude-sonnet-5-5")
        );
        assert_eq!(with(&[GPT], None), format!("{OPENAI} gpt-5"));
        assert_eq!(with(&[], None), "no model can be reached: no key is set");
        assert_eq!(with(&[("ANTHROPIC_API_KEY", " ")], None), with(&[], None));
        let token = [
            ("ANTHROPIC_AUTH_TOKEN", "t"),
            ("ANTHROPIC_BASE_URL", "https://gate/"),
        ];
        assert_eq!(
            with(&token, Some("claude-x")),
            "anthropic anthropic https://gate ANTHROPIC_AUTH_TOKEN claude-x bearer"
        );
        let local = [
            ("OPENAI_BASE_URL", "http://localhost:11434/v1"),
            ("OPENAI_MODEL", "qwen3"),
        ];
        assert_eq!(
            with(&local, None),
            "openai chat http://localhost:11434/v1 - qwen3"
        );
        let bad = [KEY, ("ANTHROPIC_BASE_URL", "gate")];
        assert_eq!(
            with(&bad, None),
            "ANTHROPIC_BASE_URL must begin with https:// or http://"
        );
    }

    #[test]
    fn the_settings_then_the_vendors_variable_then_the_vendor_say_where_requests_go() {
        for (kind, wire, variable, vendor) in [
            (
                "anthropic",
                "anthropic",
                "ANTHROPIC_BASE_URL",
                "https://api.anthropic.com",
            ),
            (
                "openai-chat",
                "chat",
                "OPENAI_BASE_URL",
                "https://api.openai.com/v1",
            ),
            (
                "openai-responses",
                "responses",
                "OPENAI_BASE_URL",
                "https://api.openai.com/v1",
            ),
        ] {
            for name in ["anthropic", "openai", "mine"] {
                let at = |base: &str, vars: &[(&str, &str)]| {
                    let settings = format!(
                        r#"{{"{name}":{{"kind":"{kind}",{base}"keyEnv":"K","model":"m"}}}}"#
                    );
                    let vars = [vars, &[("K", "k"), ("default", name)]].concat();
                    resolved(&settings, &vars, Some("m"))
                };
                let gate = [(variable, "https://gate/v1/")];
                let own = r#""baseUrl":"https://own/v1","#;
                let expected = |url| format!("{name} {wire} {url} K m");
                assert_eq!(at(own, &gate), expected("https://own/v1"));
                assert_eq!(at("", &gate), expected("https://gate/v1"));
                assert_eq!(at("", &[]), expected(vendor));
                assert_eq!(at("", &[(variable, " ")]), expected(vendor));
                let bad = at("", &[(variable, "gate")]);
                assert!(bad.starts_with(variable), "{bad}");
            }
        }
        // Where no key is named, a gateway of one's own needs none.
        let settings = r#"{"mine":{"kind":"openai-chat","model":"m"}}"#;
        let gate = [("OPENAI_BASE_URL", "http://gate/v1"), ("default", "mine")];
        assert_eq!(
            resolved(settings, &gate, None),
            "mine chat http://gate/v1 - m"
        );
    }

    #[test]
    fn a_models_name_says_where_it_is() {
        let with = |model| resolved("{}", &[KEY, GPT], Some(model));
        assert_eq!(with("gpt-5-mini"), format!("{OPENAI} gpt-5-mini"));
        assert_eq!(with("o4-mini"), format!("{OPENAI} o4-mini"));
        assert_eq!(with("openai/opus"), format!("{OPENAI} opus"));
        assert_eq!(
            with("claude-opus-4-1"),
            format!("{ANTHROPIC} claude-opus-4-1")
        );
        assert_eq!(with("haiku"), format!("{ANTHROPIC} claude-haiku-5-5"));
        assert_eq!(with("sonnet[1m]"), format!("{ANTHROPIC} claude-sonnet-5-5"));
        assert_eq!(with("whatever"), format!("{ANTHROPIC} whatever"));
        assert_eq!(
            with("opnai/gpt-5"),
            "there is no provider \"opnai\"; did you mean \"openai\"?"
        );
        let pinned = [KEY, ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-4-5")];
        assert_eq!(
            resolved("{}", &pinned, Some("haiku")),
            format!("{ANTHROPIC} claude-haiku-4-5")
        );
        let other = [KEY, ("ANTHROPIC_MODEL", "opus")];
        assert_eq!(
            resolved("{}", &other, None),
            format!("{ANTHROPIC} claude-opus-5-5")
        );
    }

    #[test]
    fn a_vendors_model_without_its_key_is_elsewhere_or_an_error_that_names_the_key() {
        assert_eq!(
            resolved("{}", &[GPT], Some("haiku")),
            format!("{OPENAI} gpt-5 (haiku)")
        );
        let error = resolved("{}", &[GPT], Some("claude-opus-4-1"));
        assert!(error.contains("ANTHROPIC_API_KEY is not set"), "{error}");
        let error = resolved("{}", &[KEY], Some("gpt-5"));
        assert!(error.contains("OPENAI_API_KEY is not set"), "{error}");
        assert_eq!(
            resolved("{}", &[], Some("gpt-5")),
            "no model can be reached: no key is set"
        );
        let router = r#"{"router":{"kind":"openai-chat","baseUrl":"https://r.org/v1","keyEnv":"R","model":"m/d"}}"#;
        let at = "router chat https://r.org/v1 R";
        let with = |model| resolved(router, &[("R", "k")], model);
        assert_eq!(with(None), format!("{at} m/d"));
        assert_eq!(with(Some("sonnet")), format!("{at} m/d (sonnet)"));
        assert_eq!(
            with(Some("claude-opus-4-1")),
            format!("{at} claude-opus-4-1")
        );
        assert_eq!(with(Some("meta/llama")), format!("{at} meta/llama"));
        assert_eq!(with(Some("router/a/b")), format!("{at} a/b"));
    }

    #[test]
    fn a_key_goes_nowhere_that_nobody_has_named_for_it() {
        let local = r#"{"local":{"kind":"openai-chat","baseUrl":"http://localhost:1/v1"}}"#;
        let both = [GPT, ("default", "local")];
        assert_eq!(
            resolved(local, &both, Some("qwen")),
            "local chat http://localhost:1/v1 - qwen"
        );
        let error = resolved(local, &both, None);
        assert!(error.contains("has no `model`"), "{error}");
        let own = r#"{"anthropic":{"kind":"anthropic","model":"claude-x"}}"#;
        assert_eq!(resolved(own, &[KEY], None), format!("{ANTHROPIC} claude-x"));
        let error = resolved(own, &[], Some("anthropic/claude-x"));
        assert!(error.contains("ANTHROPIC_API_KEY is not set"), "{error}");
    }
}
