//! The metrics: some are counted as events happen, the others when they are read.

use std::collections::BTreeMap;

use observe::overview::Counts;
use swarm::run::Meta;
use taskboard::Snapshot;

use super::calls::Call;
use super::conventions::gen_ai;
use super::model::{Attribute, Data, Histogram, Metric, Point, Value};
use super::runs::Standing;

/// The buckets of the conventions.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECONDS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/// The values that are counted as events happen.
#[derive(Debug)]
pub(super) struct Figures {
    since_ms: i64,
    /// By model and kind of token.
    tokens: BTreeMap<(String, &'static str), Histogram>,
    /// By model.
    durations: BTreeMap<String, Histogram>,
    /// By how they ended.
    attempts: BTreeMap<&'static str, u64>,
}

impl Figures {
    pub(super) fn new(since_ms: i64) -> Self {
        Self {
            since_ms,
            tokens: BTreeMap::new(),
            durations: BTreeMap::new(),
            attempts: BTreeMap::new(),
        }
    }

    pub(super) fn call(&mut self, call: &Call, model: Option<&str>, meta: &Meta) {
        let key = format!("{} {}", model.unwrap_or_default(), meta.runtime.name);
        let attributes = || gen_ai("chat", model, meta);
        for (kind, count) in [
            ("input", call.usage.input_tokens),
            ("output", call.usage.output_tokens),
        ] {
            let spread = self.tokens.entry((key.clone(), kind)).or_insert_with(|| {
                let mut attributes = attributes();
                attributes.push(("gen_ai.token.type", Value::Text(kind.to_owned())));
                Histogram::new(TOKENS, attributes)
            });
            #[expect(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
            spread.take(count as f64);
        }
        let spread = self.durations.entry(key);
        let spread = spread.or_insert_with(|| Histogram::new(SECONDS, attributes()));
        #[expect(clippy::cast_precision_loss, reason = "no call takes 2^53 ms")]
        spread.take((call.to_ms - call.from_ms) as f64 / 1000.0);
    }

    pub(super) fn attempt(&mut self, how: &'static str) {
        *self.attempts.entry(how).or_default() += 1;
    }

    /// All metrics, including the present values.
    pub(super) fn metrics(
        &self,
        runs: &[Standing<'_>],
        board: &Snapshot,
        team: &str,
    ) -> Vec<Metric> {
        let of_team = OfTeam(team);
        let attempts = self.attempts.iter();
        let attempts = attempts
            .map(|(how, count)| point(of_team.and("ccb.attempt.outcome", how), *count))
            .collect();
        let tokens = self.tokens.values().cloned().collect();
        let durations = self.durations.values().cloned().collect();
        let metric = |name, about, unit, data| Metric {
            name,
            about,
            unit,
            since_ms: self.since_ms,
            data,
        };
        vec![
            metric(
                "ccb.tasks",
                "Tasks on the board",
                "{task}",
                Data::Gauge(of_team.tasks(board)),
            ),
            metric(
                "ccb.agents",
                "Agents that live",
                "{agent}",
                Data::Gauge(of_team.agents(runs)),
            ),
            metric(
                "ccb.attempts",
                "Attempts that ended",
                "{attempt}",
                Data::Sum(attempts),
            ),
            metric(
                "ccb.cost",
                "What agents cost, as far as providers say",
                "{USD}",
                Data::Sum(of_team.cost(runs)),
            ),
            metric(
                "gen_ai.client.token.usage",
                "Tokens of each model call",
                "{token}",
                Data::Histogram(tokens),
            ),
            metric(
                "gen_ai.client.operation.duration",
                "How long model calls took",
                "s",
                Data::Histogram(durations),
            ),
        ]
    }
}

/// Points about a team.
struct OfTeam<'a>(&'a str);

impl OfTeam<'_> {
    fn and(&self, key: &'static str, word: &str) -> Vec<Attribute> {
        let text = |text: &str| Value::Text(text.to_owned());
        vec![("ccb.team", text(self.0)), (key, text(word))]
    }

    fn tasks(&self, board: &Snapshot) -> Vec<Point> {
        let counts = Counts::of(board);
        let blocked = counts.pending.saturating_sub(counts.ready + counts.parked);
        let states = [
            ("ready", counts.ready),
            ("blocked", blocked),
            ("parked", counts.parked),
            ("in_progress", counts.in_progress),
            ("completed", counts.completed),
            ("unreadable", counts.unreadable),
        ];
        let state = |(state, count)| point(self.and("ccb.task.state", state), count as u64);
        states.map(state).into()
    }

    fn agents(&self, runs: &[Standing<'_>]) -> Vec<Point> {
        let none = ["starting", "running", "idle"].map(|state| (state, 0));
        let mut counts: BTreeMap<&str, u64> = none.into();
        for run in runs.iter().filter(|run| run.lives) {
            let state = match run.meta.state.as_str() {
                "registered" | "starting" => "starting",
                "idle" => "idle",
                _ => "running",
            };
            *counts.entry(state).or_default() += 1;
        }
        let state = |(state, count): (&str, u64)| point(self.and("ccb.agent.state", state), count);
        counts.into_iter().map(state).collect()
    }

    fn cost(&self, runs: &[Standing<'_>]) -> Vec<Point> {
        let mut cost: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for meta in runs.iter().map(|run| run.meta) {
            let model = meta.model.as_deref().unwrap_or_default();
            *cost.entry((&meta.runtime.name, model)).or_default() += meta.usage.cost_usd;
        }
        let of_model = |((runtime, model), value): ((&str, &str), f64)| {
            let mut attributes = self.and("ccb.runtime", runtime);
            if !model.is_empty() {
                attributes.push(("gen_ai.request.model", Value::Text(model.to_owned())));
            }
            Point { attributes, value }
        };
        cost.into_iter().map(of_model).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 tasks")]
fn point(attributes: Vec<Attribute>, count: u64) -> Point {
    Point {
        attributes,
        value: count as f64,
    }
}
