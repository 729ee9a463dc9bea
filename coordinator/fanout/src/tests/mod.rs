mod expansion;
mod inputs;
mod places;
mod plans;
mod reports;
mod results;
mod selection;

use std::collections::BTreeMap;
use std::path::PathBuf;
use store::Explain;

use super::*;

/// Inputs that need no disk.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) files: Vec<&'static str>,
    pub(super) texts: BTreeMap<&'static str, String>,
    pub(super) checkout: Checkout,
}

impl Source for Given {
    fn files(&self, _: &[String], except: &[String]) -> Result<Vec<PathBuf>, FanoutError> {
        let wanted = self
            .files
            .iter()
            .filter(|file| !except.iter().any(|one| one == *file));
        Ok(wanted.map(PathBuf::from).collect())
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, FanoutError> {
        match self.texts.get(name) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Err(FanoutError::Input {
                what: name.into(),
                why: "there is no such file".into(),
            }),
        }
    }

    fn contents(&self) -> Result<Vec<(String, String)>, FanoutError> {
        let files = self.files.iter();
        let content = |file: &str| self.texts.get(file).cloned().unwrap_or_default();
        Ok(files
            .map(|file| (file.to_string(), content(file)))
            .collect())
    }

    fn checkout(&self) -> &Checkout {
        &self.checkout
    }
}

pub(super) fn basis() -> Basis {
    Basis {
        base: "b".repeat(40),
        ..Basis::default()
    }
}

pub(super) fn tasks_of(text: &str, given: &Given) -> Result<Vec<PlannedTask>, FanoutError> {
    let file = PlanFile::read("plan.yaml", text)?;
    Ok(expand(&file, given, &basis())?.tasks)
}

/// The tasks of a plan without inputs.
pub(super) fn tasks(text: &str) -> Vec<PlannedTask> {
    tasks_of(text, &Given::default()).unwrap()
}

/// The problem in a plan, and the hint.
pub(super) fn wrong(text: &str) -> (String, String) {
    let error = tasks_of(text, &Given::default()).unwrap_err();
    (error.to_string(), error.hint().unwrap_or_default())
}
