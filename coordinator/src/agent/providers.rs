//! The model services for ccb's own loop: those of the settings that may be used, and those whose
//! keys are in the environment.

use std::collections::BTreeMap;

use project::workplace::Workplace;
use runs::env;
use store::Failure;
use store::settings::ProviderSettings;
use swarm::provider::Provider;
use swarm::provider::{Address, ProviderError, Providers, Resolved};
use swarm::run::{LaunchPlan, RuntimeSpec};
use swarm::runtime::RuntimeKind;
use swarm::trust::{Item, Places};

use super::models::known_model;

/// The providers available to an agent on `native` with these variables.
struct Choice<'a> {
    trusted: BTreeMap<&'a str, &'a ProviderSettings>,
    /// Providers of the repository that the user has not trusted.
    held_back: BTreeMap<&'a str, &'a ProviderSettings>,
    default: Option<&'a str>,
}

impl<'a> Choice<'a> {
    fn of(workplace: &'a Workplace) -> Result<Self, Failure> {
        let settings = workplace.settings();
        let (mut trusted, mut held_back) = (BTreeMap::new(), BTreeMap::new());
        for (name, provider) in &settings.providers {
            let item = |places: Places<'_>| Item::provider(name, provider, places);
            let list = match workplace.may_use(&provider.file, item)? {
                true => &mut trusted,
                false => &mut held_back,
            };
            list.insert(name.as_str(), provider);
        }
        Ok(Self {
            trusted,
            held_back,
            default: settings.agents.default_provider.as_deref(),
        })
    }

    fn providers<'b>(&'b self, env: &'b dyn Fn(&str) -> Option<String>) -> Providers<'b> {
        Providers {
            configured: self.trusted.clone(),
            default: self.default,
            env,
        }
    }

    /// An untrusted provider has no substitute, not even the default one of a vendor.
    fn check(&self, name: &str, workplace: &Workplace) -> Result<(), Failure> {
        match self.held_back.get(name) {
            None => Ok(()),
            Some(provider) => Err(not_trusted(name, provider, workplace)),
        }
    }
}

/// The model of an agent on `native`: its provider goes into `plan`. Returns its name, and the
/// requested name that it replaces, if no provider knows that name.
pub(super) fn put_provider(
    model: Option<String>,
    runtime: &RuntimeSpec,
    plan: &mut LaunchPlan,
    workplace: &Workplace,
) -> Result<(Option<String>, Option<String>), Failure> {
    let (model, _) = known_model(model, runtime, workplace);
    let given = [&plan.env, &runtime.env];
    let var = |name: &str| {
        let mut own = given.iter().filter_map(|env| env.get(name));
        own.next().cloned().or_else(|| env::var(name))
    };
    let choice = Choice::of(workplace)?;
    let named = model.as_deref().and_then(|model| model.split_once('/'));
    let named = named.map(|(name, _)| name).or(choice.default);
    if let Some(name) = named {
        choice.check(name, workplace)?;
    }
    let Resolved { provider, dropped } = choice
        .providers(&var)
        .resolve(model.as_deref())
        .map_err(|error| failure(&error, workplace))?;
    choice.check(&provider.name, workplace)?;
    let name = provider.known_as();
    let keys = choice.trusted.values();
    let keys = keys.filter_map(|provider| provider.key_env.clone());
    for key in keys.chain(provider.key_env.clone()) {
        if !plan.pass_env.contains(&key) {
            plan.pass_env.push(key.clone());
        }
        if !plan.redact_env.contains(&key) {
            plan.redact_env.push(key);
        }
    }
    plan.provider = Some(provider);
    Ok((Some(name), dropped))
}

/// Refuses `native` if no model is available.
pub(super) fn check_key(runtime: &RuntimeSpec, workplace: &Workplace) -> Result<(), Failure> {
    if runtime.kind != RuntimeKind::Native {
        return Ok(());
    }
    let var = |name: &str| runtime.env.get(name).cloned().or_else(|| env::var(name));
    let choice = Choice::of(workplace)?;
    if let Some(name) = choice.default {
        choice.check(name, workplace)?;
    }
    let usual = choice.providers(&var).usual();
    match usual {
        // A model may still be named.
        Ok(_) | Err(ProviderError::NoModel { .. }) => Ok(()),
        Err(error) => Err(failure(&error, workplace)),
    }
}

/// A model service in the view of the doctor.
#[derive(Debug)]
pub struct KnownProvider {
    /// Its name in settings and messages.
    pub name: String,
    /// The provider, or the reason why it cannot be used.
    pub found: Result<Provider, Failure>,
    /// True if the settings name it; the vendors' own are built in.
    pub configured: bool,
    /// The address of requests and its source; `None` if it cannot be used.
    pub address: Option<Address>,
}

/// All services: those of the settings, and the vendors' whose keys may be set.
pub fn known_providers(workplace: &Workplace) -> Result<Vec<KnownProvider>, Failure> {
    let choice = Choice::of(workplace)?;
    let providers = choice.providers(&env::var);
    let names = providers.names().into_iter();
    let names = names.filter(|name| !choice.held_back.contains_key(name));
    let usable = names.map(|name| {
        let found = providers.at(name, None);
        KnownProvider {
            name: name.to_owned(),
            found: found.map_err(|error| failure(&error, workplace)),
            address: providers.address(name).ok(),
            configured: choice.trusted.contains_key(name),
        }
    });
    let held_back = choice.held_back.iter().map(|(name, provider)| {
        let name = (*name).to_owned();
        let found = Err(not_trusted(&name, provider, workplace));
        KnownProvider {
            name,
            found,
            configured: true,
            address: None,
        }
    });
    let mut all: Vec<KnownProvider> = usable.chain(held_back).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// The error with its remedy.
fn failure(error: &ProviderError, workplace: &Workplace) -> Failure {
    let settings = workplace.own_settings();
    let settings = settings.display();
    let (kind, hint) = match error {
        ProviderError::NoKey => (
            "no_key",
            format!(
                "export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…, or name a service under \
                 `providers` in {settings} (docs/native.md)"
            ),
        ),
        ProviderError::KeyNotSet { variable, .. } => (
            "no_key",
            format!("export {variable}=… and run the same command again"),
        ),
        ProviderError::Unknown { .. } => (
            "unknown_provider",
            format!("`providers` in {settings} adds one (docs/native.md)"),
        ),
        ProviderError::NoModel { name } => (
            "no_model",
            format!(
                "name one with --model {name}/MODEL, or as providers.{name}.model in {settings}"
            ),
        ),
        _ => (
            "bad_provider",
            "correct it and run the same command again".into(),
        ),
    };
    Failure::usage(kind, error.to_string()).with_hint(hint)
}

fn not_trusted(name: &str, provider: &ProviderSettings, workplace: &Workplace) -> Failure {
    Failure::refused(
        "not_trusted",
        format!(
            "provider {name:?} comes from {}, and you have not trusted this repository",
            provider.file.display()
        ),
    )
    .with_hint(format!(
        "look at it and run `ccb trust`, or put it into {}",
        workplace.own_settings().display()
    ))
}
