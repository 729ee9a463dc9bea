use clap::Args;
use coordinator::agent::KnownProvider;
use coordinator::{Finding, KnownRuntime, Probe};
use serde_json::{Value, json};
use store::{Category, Failure};
use swarm::provider::Address;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{GREEN, RED, YELLOW, clean_line};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired without losing anything
    #[arg(long)]
    fix: bool,
    /// Ask each provider's model for one word: is the key right, the model there, the service
    /// reachable
    #[arg(long, conflicts_with = "fix")]
    probe: bool,
}

/// Exit code 0 if nothing is left to do, 1 if something is.
pub(crate) fn run(args: &DoctorArgs, context: &mut Context) -> Result<Exit, Failure> {
    if args.probe {
        return probe(context);
    }
    let board = context.board();
    let fix = context.out.command("doctor --fix");
    let findings = coordinator::doctor_of_all(context, args.fix)?;
    let runtimes = coordinator::known_runtimes(context);
    let providers = coordinator::usable_providers(context)?;
    let left = findings
        .iter()
        .filter(|finding| finding.fixed.is_none())
        .count();
    let json = || {
        let findings: Vec<Value> = findings
            .iter()
            .map(|f| json!({"kind": f.kind, "message": f.message, "fixed": f.fixed}))
            .collect();
        let runtimes: Vec<Value> = runtimes.iter().map(runtime_json).collect();
        json!({
            "list": board.name().as_str(), "findings": findings, "left": left,
            "runtimes": runtimes, "providers": providers.iter().map(provider_json).collect::<Vec<_>>(),
        })
    };
    let text = || {
        let mut lines = finding_lines(&findings, board.name().as_str());
        if left > 0 && !args.fix {
            lines.push(format!("Repair what can be repaired: {fix}"));
        }
        lines.extend(runtime_lines(&runtimes));
        lines.extend(providers.iter().map(provider_line));
        lines.join("\n")
    };
    context.out.answer(json, text)?;
    Ok(exit(left == 0))
}

fn exit(sound: bool) -> Exit {
    match sound {
        true => Exit::Done,
        false => Exit::Not(Category::Failed),
    }
}

fn finding_lines(findings: &[Finding], list: &str) -> Vec<String> {
    if findings.is_empty() {
        let sound = format!("{GREEN}✔{GREEN:#} the task list {list:?} and its team are sound");
        return vec![sound];
    }
    let lines = findings.iter().map(|finding| {
        let message = clean_line(&finding.message);
        match &finding.fixed {
            Some(fixed) => format!("{GREEN}✔{GREEN:#} {message}: {}", clean_line(fixed)),
            None => format!("{YELLOW}!{YELLOW:#} {message}"),
        }
    });
    lines.collect()
}

fn runtime_json(runtime: &KnownRuntime) -> Value {
    let mut json = json!({"name": runtime.name, "ready": runtime.missing.is_none()});
    if let Some(missing) = &runtime.missing {
        json["why"] = missing.message().into();
    }
    json
}

/// The runtimes of agents with a model, and what the unusable ones lack.
fn runtime_lines(runtimes: &[KnownRuntime]) -> Vec<String> {
    let ready: Vec<&str> = runtimes
        .iter()
        .filter(|runtime| runtime.missing.is_none())
        .map(|runtime| runtime.name.as_str())
        .collect();
    let mut lines = match ready.as_slice() {
        [] => vec![format!(
            "{YELLOW}!{YELLOW:#} no agent can have a model: export ANTHROPIC_API_KEY=… for the \
             runtime native, or install an agent program (docs/runtimes.md)"
        )],
        names => vec![format!(
            "{GREEN}✔{GREEN:#} agents can run on: {}",
            names.join(", ")
        )],
    };
    for runtime in runtimes {
        if let Some(missing) = &runtime.missing {
            let why = clean_line(missing.message());
            lines.push(format!("  {}: {why}", runtime.name));
        }
    }
    lines
}

/// The provider that native agents send their prompts to, and why.
fn provider_json(provider: &KnownProvider) -> Value {
    let mut json = json!({"name": provider.name, "ready": provider.found.is_ok()});
    if let Some(Address { url, from }) = &provider.address {
        json["address"] = url.as_str().into();
        json["from"] = from.to_string().into();
    }
    if let Err(why) = &provider.found {
        json["why"] = why.message().into();
    }
    json
}

fn provider_line(provider: &KnownProvider) -> String {
    let name = clean_line(&provider.name);
    match (&provider.found, &provider.address) {
        (Ok(_), Some(Address { url, from })) => {
            format!(
                "  native sends the prompts for {name} to {} ({from})",
                clean_line(url)
            )
        }
        (Err(why), _) => format!("  provider {name}: {}", clean_line(why.message())),
        (Ok(_), None) => format!("  provider {name}"),
    }
}

fn probe(context: &mut Context) -> Result<Exit, Failure> {
    let workplace = context.workplace.clone();
    let out = &mut context.out;
    let mut begin = |what: &str| out.note(&format!("{what} …"));
    let probes = coordinator::probe_models(&workplace, &mut begin)?;
    let sound = probes.iter().all(|probe| probe.answer.is_ok());
    let json = || {
        let probes: Vec<Value> = probes.iter().map(probe_json).collect();
        json!({"probes": probes, "ok": sound})
    };
    let text = || {
        let lines: Vec<String> = probes.iter().map(probe_line).collect();
        lines.join("\n")
    };
    context.out.answer(json, text)?;
    Ok(exit(sound))
}

fn probe_json(probe: &Probe) -> Value {
    let mut json = json!({"provider": probe.provider, "ok": probe.answer.is_ok()});
    if let Some(model) = &probe.model {
        json["model"] = model.as_str().into();
    }
    match &probe.answer {
        Ok(took) => json["ms"] = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).into(),
        Err(error) => json["error"] = error.to_json()["error"].clone(),
    }
    json
}

fn probe_line(probe: &Probe) -> String {
    let name = &probe.provider;
    match &probe.answer {
        Ok(took) => {
            let model = clean_line(probe.model.as_deref().unwrap_or_default());
            let seconds = took.as_secs_f64();
            format!("{GREEN}✔{GREEN:#} {name}: {model} answered in {seconds:.1} s")
        }
        Err(error) => {
            let hint = error
                .hint()
                .map(|hint| format!("\n    {}", clean_line(hint)));
            let hint = hint.unwrap_or_default();
            let message = clean_line(error.message());
            format!("{RED}✘{RED:#} {name}: {message}{hint}")
        }
    }
}
