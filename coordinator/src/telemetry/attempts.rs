//! Spans of agents' work: attempts, runs, checks, model calls.

use runs::failure_text::FailureText;
use store::clock::parse_rfc3339;
use store::text::clean_cut;
use swarm::run::{CheckEnd, Exit, ExitStatus, Meta};

use super::calls::Call;
use super::conventions::{TEXT, error_type, gen_ai};
use super::model::{Attribute, Span, SpanKind, Value};
use super::recorder::Recorder;

impl Recorder {
    pub(super) fn call(&mut self, meta: &Meta, call: &Call) -> Span {
        let model = call.model.as_deref().or(meta.model.as_deref());
        self.figures.call(call, model, meta);
        let id = format!("call {} {}", meta.agent_id, call.number);
        let mut attributes = gen_ai("chat", model, meta);
        attributes.push(("gen_ai.usage.input_tokens", call.usage.input_tokens.into()));
        attributes.push((
            "gen_ai.usage.output_tokens",
            call.usage.output_tokens.into(),
        ));
        attributes.push(("gen_ai.agent.id", self.text(&meta.agent_id)));
        if call.usage.cost_usd > 0.0 {
            attributes.push(("ccb.cost.usd", Value::Real(call.usage.cost_usd)));
        }
        Span {
            parent: Some(self.trace.span(&run_name(meta, call.life))),
            kind: SpanKind::Client,
            attributes,
            ..self.span(&id, &with_model("chat", model), call.from_ms, call.to_ms)
        }
    }

    /// An attempt with its run and its check, or a run without a task.
    pub(super) fn ended(
        &mut self,
        meta: &Meta,
        exit: &Exit,
        model: Option<&str>,
        spans: &mut Vec<Span>,
    ) {
        let ms = |text: &str| parse_rfc3339(text);
        let end = ms(&exit.ended_at).unwrap_or(self.ledger.began_ms);
        let took = i64::try_from(exit.duration_ms).unwrap_or(0);
        let created = match exit.life {
            1 => ms(&meta.created_at),
            _ => None,
        };
        let begun = created.unwrap_or(end - took).min(end);
        let check = exit.proof.as_ref().and_then(|proof| proof.check.as_ref());
        let checked = check.map_or(0, |check| i64::try_from(check.duration_ms).unwrap_or(0));
        let worked = (end - checked).max(begun);
        let red = check.is_some_and(|check| !check.passed);
        let (kind, why) = outcome(exit, red);
        let error = kind.map(|_| clean_cut(&self.secrets.redact(&why), TEXT));
        let mut parent = self.root;
        if let Some(task) = &meta.task_id {
            let mut attempt = self.attempt(meta, exit, task, (begun, end));
            self.figures.attempt(kind.unwrap_or("done"));
            attempt.error.clone_from(&error);
            attempt.attributes.extend(error_type(kind));
            parent = attempt.id;
            spans.push(attempt);
        }
        let mut run = self.span(&run_name(meta, exit.life), "", begun, worked);
        run.name = format!(
            "invoke_agent {}",
            clean_cut(&self.secrets.redact(meta.address()), TEXT)
        );
        run.parent = Some(parent);
        run.attributes = self.about_run(meta, exit, model.or(meta.model.as_deref()));
        if !red {
            run.error.clone_from(&error);
            run.attributes.extend(error_type(kind));
        }
        spans.push(run);
        if let Some(check) = check {
            let id = format!("check {}#{}", meta.agent_id, exit.life);
            let mut span = self.span(&id, "ccb.check", worked, end);
            span.parent = Some(parent);
            span.attributes = vec![("ccb.check.passed", Value::Yes(check.passed))];
            let code = check.end.and_then(CheckEnd::code);
            let code = code.map(|code| ("process.exit.code", Value::Whole(code.into())));
            span.attributes.extend(code);
            if red {
                span.error = error;
                span.attributes.extend(error_type(kind));
            }
            spans.push(span);
        }
    }

    fn attempt(&mut self, meta: &Meta, exit: &Exit, task: &str, times: (i64, i64)) -> Span {
        let (from_ms, to_ms) = times;
        let track = self.tasks.entry(task.to_owned()).or_default();
        if track.attempts == 0 {
            track.from_ms = from_ms;
        } else if std::mem::take(&mut track.told) {
            track.round += 1;
            track.from_ms = from_ms;
        }
        track.attempts += 1;
        track.from_ms = track.from_ms.min(from_ms);
        track.to_ms = track.to_ms.max(to_ms);
        let number = track.attempts;
        let id = format!("attempt {}#{}", meta.agent_id, exit.life);
        Span {
            parent: Some(self.task_span(task)),
            attributes: vec![
                ("ccb.task.id", self.text(task)),
                ("ccb.attempt", number.into()),
                (
                    "ccb.attempt.status",
                    Value::Text(exit.status.as_str().to_owned()),
                ),
            ],
            ..self.span(&id, "ccb.attempt", from_ms, to_ms)
        }
    }

    fn about_run(&self, meta: &Meta, exit: &Exit, model: Option<&str>) -> Vec<Attribute> {
        let mut all = gen_ai("invoke_agent", model, meta);
        all.push(("gen_ai.agent.id", self.text(&meta.agent_id)));
        all.push(("gen_ai.agent.name", self.text(meta.address())));
        all.push(("gen_ai.usage.input_tokens", exit.usage.input_tokens.into()));
        all.push((
            "gen_ai.usage.output_tokens",
            exit.usage.output_tokens.into(),
        ));
        all.push(("ccb.agent.type", self.text(&meta.agent_type)));
        all.push(("ccb.runtime", self.text(&meta.runtime.name)));
        all.push(("ccb.life", Value::Whole(exit.life.into())));
        all.push(("ccb.tool_uses", exit.usage.tool_uses.into()));
        all.push(("ccb.cost.usd", Value::Real(exit.usage.cost_usd)));
        all
    }
}

fn run_name(meta: &Meta, life: u32) -> String {
    format!("run {}#{life}", meta.agent_id)
}

/// The error of an attempt: a word, and a sentence.
fn outcome(exit: &Exit, red: bool) -> (Option<&'static str>, String) {
    let said = exit.error.as_deref().unwrap_or_default();
    let why = FailureText::of(said).what;
    match exit.status {
        _ if red => (Some("check_failed"), why),
        ExitStatus::Completed => (None, String::new()),
        status => match exit.reason {
            Some(reason) => (Some(reason.as_str()), why),
            None => (Some(status.as_str()), why),
        },
    }
}

fn with_model(operation: &str, model: Option<&str>) -> String {
    match model {
        Some(model) => clean_cut(&format!("{operation} {model}"), TEXT),
        None => operation.to_owned(),
    }
}
