//! The available runtimes of agents: installed programs, and services whose models answer.

use std::time::{Duration, Instant};

use project::workplace::Workplace;
use store::Failure;
use swarm::provider::AddressFrom;
use swarm::runtime::{self, RuntimeKind};

use crate::agent::{KnownProvider, known_providers, session_runtime};

/// Time limit of one small answer of a service.
const LIMIT: Duration = Duration::from_secs(60);

/// A way to run agents with a model.
#[derive(Debug)]
pub struct KnownRuntime {
    /// Its name.
    pub name: String,
    /// The error that must be fixed before it can be used; `None` if it is ready.
    pub missing: Option<Failure>,
}

/// All runtimes with a model: those of the settings and the built-in ones.
pub fn known_runtimes(workplace: &Workplace) -> Vec<KnownRuntime> {
    let built_in = runtime::built_in().map(str::to_owned);
    let mut names: Vec<String> = workplace.runtimes().keys().cloned().collect();
    for name in built_in {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let has_model = |name: &String| {
        let configured = workplace.runtimes().get(name).map(|runtime| runtime.kind);
        let kind = configured.or_else(|| runtime::kind_of(name));
        kind.is_some_and(RuntimeKind::has_model)
    };
    let names = names.into_iter().filter(has_model);
    let known = names.map(|name| KnownRuntime {
        missing: session_runtime(Some(&name), workplace).err(),
        name,
    });
    known.collect()
}

/// The services that native agents can use, and those of the settings that they cannot use.
pub fn usable_providers(workplace: &Workplace) -> Result<Vec<KnownProvider>, Failure> {
    let mut all = known_providers(workplace)?;
    // A vendor whose key is not set is not listed.
    all.retain(|one| one.configured || one.found.is_ok() || has_gateway(one));
    Ok(all)
}

fn has_gateway(one: &KnownProvider) -> bool {
    let from = one.address.as_ref().map(|address| address.from);
    from.is_some_and(|from| from != AddressFrom::Vendor)
}

/// The answer of one service to one small request.
#[derive(Debug)]
pub struct Probe {
    /// The service.
    pub provider: String,
    /// The model of the request, if it is known.
    pub model: Option<String>,
    /// The duration of the answer, or the error.
    pub answer: Result<Duration, Failure>,
}

/// Sends a request to every usable service, and names those of the settings that are not usable;
/// `begin` gets the next service. A vendor whose key is not set is left out, unless there is
/// nothing else.
pub fn probe_models(
    workplace: &Workplace,
    begin: &mut dyn FnMut(&str),
) -> Result<Vec<Probe>, Failure> {
    let all = known_providers(workplace)?;
    let wanted = |one: &KnownProvider| one.configured || one.found.is_ok();
    let any = all.iter().any(wanted);
    let mut probes = Vec::new();
    for one in all.into_iter().filter(|one| !any || wanted(one)) {
        let probe = match one.found {
            Err(failure) => Probe {
                provider: one.name,
                model: None,
                answer: Err(failure),
            },
            Ok(provider) => {
                begin(&format!("asking {} for {}", provider.name, provider.model));
                let env = swarm::starter::own_environment();
                let begun = Instant::now();
                let answer = native::probe(&provider, &env, LIMIT);
                let answer = answer.map(|()| begun.elapsed());
                Probe {
                    provider: one.name,
                    model: Some(provider.model),
                    answer: answer.map_err(|why| Failure::failed("probe_failed", why)),
                }
            }
        };
        probes.push(probe);
    }
    Ok(probes)
}
