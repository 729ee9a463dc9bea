//! Makes a task from its part of a plan.

use std::collections::BTreeMap;

use store::Explain;
use store::name::Name;

use super::error::FanoutError;
use super::expand::Basis;
use super::items::Item;
use super::lines::Step;
use super::paths::Checkout;
use super::plan::{Foreach, TaskIsolation, TaskSpec};
use super::read::PlanFile;
use super::task::{PlannedTask, Work};
use super::template::{self, Wrong};
use super::things::{origins, own_path};

const MOST_RETRIES: u32 = 20;
const MOST_CHECK_RETRIES: u32 = 10;

/// The place in the plan that a task comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is one of the `tasks`.
    Task(usize),
    /// It is made by one of the `foreach`.
    Foreach(usize),
}

impl Place {
    /// The path to its value under `key`.
    pub(super) fn steps(self, key: &str) -> Vec<Step<'_>> {
        match self {
            Self::Task(at) => vec![Step::Key("tasks"), Step::At(at), Step::Key(key)],
            Self::Foreach(at) => vec![
                Step::Key("foreach"),
                Step::At(at),
                Step::Key("task"),
                Step::Key(key),
            ],
        }
    }
}

/// Makes tasks from one place of a plan.
pub(super) struct Maker<'p> {
    pub(super) file: &'p PlanFile,
    pub(super) basis: &'p Basis,
    pub(super) checkout: &'p Checkout,
    pub(super) place: Place,
    pub(super) spec: &'p TaskSpec,
    /// The `foreach` it is the template of.
    pub(super) foreach: Option<&'p Foreach>,
}

impl Maker<'_> {
    /// The task without its key and with its dependencies as written. `item` is its thing.
    pub(super) fn task(&self, id: &str, item: Option<&Item>) -> Result<PlannedTask, FanoutError> {
        self.check_name(id)?;
        let (spec, defaults) = (self.spec, &self.file.plan.defaults);
        let work = self.work(id, item)?;
        let subject = match (&spec.subject, item) {
            (Some(subject), _) => self.text("subject", subject, item)?,
            (None, Some(item)) => item.label.clone(),
            (None, None) => id.to_owned(),
        };
        let verify = spec.verify.as_ref().or(defaults.verify.as_ref());
        let verify = verify.map(|verify| self.command("verify", verify, item));
        let verify = verify.transpose()?;
        let mut env = defaults.env.clone();
        for (name, value) in &spec.env {
            env.insert(name.clone(), self.text("env", value, item)?);
        }
        self.check_env(id, &env)?;
        let retries = spec.retries.or(defaults.retries).unwrap_or(1);
        self.at_most("retries", retries, MOST_RETRIES, id)?;
        let check_retries = spec.check_retries.or(defaults.check_retries).unwrap_or(0);
        self.at_most("checkRetries", check_retries, MOST_CHECK_RETRIES, id)?;
        let budget = spec.budget.or(defaults.budget).unwrap_or_default();
        if budget.usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
            let why = "has a budget that is not an amount of money";
            return Err(self.about("budget", id, why));
        }
        let depends_on = spec.depends_on.0.iter();
        let depends_on = depends_on.map(|on| self.text("dependsOn", on, item));
        let isolation = spec.isolation.or(defaults.isolation);
        Ok(PlannedTask {
            id: id.to_owned(),
            subject: one_line(&subject),
            runtime: self.runtime(id, &work)?,
            work,
            depends_on: depends_on.collect::<Result<_, _>>()?,
            paths: self.paths(id, item)?,
            protect: self.protect(item)?,
            inputs: self.inputs(item)?,
            verify: verify.filter(|verify| !verify.trim().is_empty()),
            check_retries,
            agent: self.agent(id)?,
            model: spec.model.clone().or_else(|| defaults.model.clone()),
            priority: spec.priority.unwrap_or(0),
            env,
            attempts: retries + 1,
            timeout: spec.timeout.or(defaults.timeout).map(|span| span.0),
            budget,
            isolation: isolation.unwrap_or(TaskIsolation::Worktree),
            group: self.foreach.and_then(|foreach| foreach.id.clone()),
            origin: item.and_then(|item| item.origin.clone()),
            findings: item.map(origins).unwrap_or_default(),
            key: String::new(),
        })
    }

    /// The id of the task of this thing, if the plan has one.
    pub(super) fn own_id(&self, item: &Item) -> Result<Option<String>, FanoutError> {
        let id = self.spec.id.as_ref();
        id.map(|id| self.text("id", id, Some(item))).transpose()
    }

    fn text(&self, key: &str, given: &str, item: Option<&Item>) -> Result<String, FanoutError> {
        match item {
            None => Ok(given.to_owned()),
            Some(item) => self.filled(key, template::text(given, &item.values)),
        }
    }

    fn command(&self, key: &str, given: &str, item: Option<&Item>) -> Result<String, FanoutError> {
        match item {
            None => Ok(given.to_owned()),
            Some(item) => self.filled(key, template::command(given, &item.values)),
        }
    }

    fn filled(&self, key: &str, text: Result<String, Wrong>) -> Result<String, FanoutError> {
        text.map_err(|wrong| {
            let why = format!("foreach, {key}: {}", wrong.why);
            self.file.wrong_at(self.line(key), why, wrong.hint)
        })
    }

    /// The line of `key` for the task: its own, or that of the defaults.
    fn line(&self, key: &str) -> Option<usize> {
        let own = self.place.steps(key);
        let defaults = [Step::Key("defaults"), Step::Key(key)];
        let exact = self.file.exact_line(&own);
        let exact = exact.or_else(|| self.file.exact_line(&defaults));
        exact.or_else(|| self.file.line(&own))
    }

    fn about(&self, key: &str, id: &str, why: &str) -> FanoutError {
        let why = format!("task {id:?} {why}");
        self.file.wrong_at(self.line(key), why, None)
    }

    fn check_name(&self, id: &str) -> Result<(), FanoutError> {
        Name::new("task", id).map(|_| ()).map_err(|error| {
            let line = self.line("id");
            self.file.wrong_at(line, error.to_string(), error.hint())
        })
    }

    fn work(&self, id: &str, item: Option<&Item>) -> Result<Work, FanoutError> {
        let (key, work) = match (&self.spec.prompt, &self.spec.run) {
            (Some(prompt), None) => ("prompt", Work::Prompt(self.text("prompt", prompt, item)?)),
            (None, Some(run)) => ("run", Work::Run(self.command("run", run, item)?)),
            (None, None) => return Err(self.about("id", id, "has neither `prompt` nor `run`")),
            (Some(_), Some(_)) => {
                return Err(self.about("id", id, "has both `prompt` and `run`"));
            }
        };
        let (Work::Prompt(said) | Work::Run(said)) = &work;
        match said.trim().is_empty() {
            false => Ok(work),
            true => {
                let why = format!("says nothing to do: its `{key}` is empty");
                Err(self.about(key, id, &why))
            }
        }
    }

    fn inputs(&self, item: Option<&Item>) -> Result<Vec<String>, FanoutError> {
        let (own, common) = (&self.spec.inputs.0, &self.file.plan.defaults.inputs.0);
        let given = if own.is_empty() { common } else { own };
        let given = given.iter();
        given.map(|one| self.text("inputs", one, item)).collect()
    }

    fn protect(&self, item: Option<&Item>) -> Result<Vec<String>, FanoutError> {
        let given = self.spec.protect.0.iter();
        given.map(|one| self.text("protect", one, item)).collect()
    }

    fn paths(&self, id: &str, item: Option<&Item>) -> Result<Vec<String>, FanoutError> {
        if let Some(item) = item {
            return Ok(item.paths.clone());
        }
        let mut paths = Vec::new();
        for given in &self.spec.paths.0 {
            let path = own_path(given, self.checkout);
            let path = path.map_err(|why| {
                self.about(
                    "paths",
                    id,
                    &format!("cannot change {given:?}, which {why}"),
                )
            })?;
            paths.extend(path);
        }
        Ok(paths)
    }

    fn at_most(&self, key: &str, given: u32, most: u32, id: &str) -> Result<(), FanoutError> {
        if given <= most {
            return Ok(());
        }
        let what = match key {
            "retries" => "retries",
            _ => "retries of its check",
        };
        let why = format!("wants {given} {what}, at most {most} are allowed");
        Err(self.about(key, id, &why))
    }

    /// A command is run by a shell, and a shell understands nothing else.
    fn runtime(&self, id: &str, work: &Work) -> Result<Option<String>, FanoutError> {
        let own = self.spec.runtime.as_deref();
        let common = self.file.plan.defaults.runtime.as_deref();
        match work {
            Work::Run(_) => match own {
                None | Some("shell") => Ok(Some("shell".into())),
                Some(other) => {
                    let why = format!("has `run`, which the runtime {other:?} does not do");
                    Err(self.about("runtime", id, &why))
                }
            },
            Work::Prompt(_) => match own.or(common) {
                Some("shell") => Err(self.about(
                    "runtime",
                    id,
                    "has a `prompt`, which the runtime \"shell\" does not understand",
                )),
                Some(name) => {
                    self.known("runtime", name, self.basis.runtimes.as_deref(), id)?;
                    Ok(Some(name.to_owned()))
                }
                None => Ok(None),
            },
        }
    }

    fn agent(&self, id: &str) -> Result<Option<String>, FanoutError> {
        let common = self.file.plan.defaults.agent.as_ref();
        let agent = self.spec.agent.as_ref().or(common);
        if let (Some(agent), Some(_)) = (agent, &self.spec.prompt) {
            self.known("agent", agent, self.basis.agents.as_deref(), id)?;
        }
        Ok(agent.cloned())
    }

    /// Reports an unknown name now, not when the task begins.
    fn known(
        &self,
        key: &str,
        name: &str,
        known: Option<&[String]>,
        id: &str,
    ) -> Result<(), FanoutError> {
        let Some(known) = known.filter(|known| !known.iter().any(|one| one == name)) else {
            return Ok(());
        };
        let what = match key {
            "agent" => "agent of type",
            key => key,
        };
        let why = format!("task {id:?}: there is no {what} {name:?}");
        let names = known.iter().map(String::as_str);
        let hint = store::did_you_mean(name, names, format!("there are: {}", known.join(", ")));
        Err(self.file.wrong_at(self.line(key), why, Some(hint)))
    }

    fn check_env(&self, id: &str, env: &BTreeMap<String, String>) -> Result<(), FanoutError> {
        let bad = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        match env.iter().find(bad) {
            None => Ok(()),
            Some((name, _)) => {
                let why = format!("has an environment variable {name:?} that cannot be");
                Err(self.about("env", id, &why))
            }
        }
    }
}

fn one_line(text: &str) -> String {
    // A tool may quote any text of the file in its finding.
    let apart = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(apart).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}
