//! The end of a life, once it has ended.

use super::exit::{By, Exit, ExitReason, ExitStatus};
use super::life::Life;
use super::meta::RunState;
use super::partial::partial_text;
use super::stop::Why;
use super::transcript::Entry;
use crate::process::Ending;
use crate::runtime::TurnStatus;

impl Life<'_> {
    /// The end of this life.
    pub(super) fn exit(&mut self) -> Exit {
        let (status, mut error) = self.verdict();
        if let (Some(error), Some(words)) = (&mut error, self.stopped_children()) {
            error.push_str(&format!("; {words}"));
        }
        let reason = self.reason(status);
        let result = self.last_words().filter(|text| !text.is_empty());
        self.record.add(Entry::Ended {
            status: status.as_str().into(),
            error: error.clone(),
        });
        // The usage is recorded with the end.
        self.write_meta();
        Exit {
            result: result.or_else(|| partial_text(&self.run, self.meta.life)),
            reason,
            usage: self.used,
            ending: self.ending,
            ..Exit::now(&self.meta, status, error, By::Host)
        }
    }

    /// The reason for the end, if the run might have continued.
    fn reason(&self, status: ExitStatus) -> Option<ExitReason> {
        if status != ExitStatus::Failed || self.not_launched.is_some() {
            return None;
        }
        match (self.stopping.why(), &self.last_turn) {
            (Some(Why::Over(reason, _)), _) if self.meta.state != RunState::Ending => Some(*reason),
            (_, Some(turn)) if !self.busy => match turn.status {
                TurnStatus::LimitReached => Some(ExitReason::Limit),
                TurnStatus::Quota => Some(ExitReason::Quota),
                _ => None,
            },
            _ => None,
        }
    }

    fn verdict(&self) -> (ExitStatus, Option<String>) {
        if let Some(why) = &self.not_launched {
            return (ExitStatus::Failed, Some(why.clone()));
        }
        let finished = self.meta.state == RunState::Ending;
        match self.stopping.why() {
            _ if finished => {}
            Some(Why::Asked(words)) => return (ExitStatus::Killed, Some(words.clone())),
            Some(Why::LostTask(why)) => return (ExitStatus::Killed, Some(why.clone())),
            Some(Why::Over(_, why) | Why::Broken(why)) => {
                return (ExitStatus::Failed, Some(why.clone()));
            }
            Some(Why::GuardDied) => {
                let why = "its guard died, so it was ended".to_owned();
                return (ExitStatus::Lost, Some(why));
            }
            None => {}
        }
        if let (Some(why), None) = (&self.hooking.refused, self.stopping.why()) {
            return (ExitStatus::Failed, Some(why.clone()));
        }
        let how = || {
            let ending = self.ending.unwrap_or(Ending::Unknown);
            format!("the program {}", ending.in_words())
        };
        match &self.last_turn {
            Some(turn) if !self.busy => match turn.status {
                TurnStatus::Completed => (ExitStatus::Completed, None),
                _ => {
                    let why = turn.error.clone();
                    (
                        ExitStatus::Failed,
                        Some(why.unwrap_or_else(|| status_words(turn.status))),
                    )
                }
            },
            Some(_) => {
                let why = format!("{} in the middle of a turn", how());
                (ExitStatus::Failed, Some(why))
            }
            None => {
                let why = format!("{} without a result", how());
                (ExitStatus::Failed, Some(why))
            }
        }
    }
}

fn status_words(status: TurnStatus) -> String {
    match status {
        TurnStatus::Interrupted => "it was interrupted".into(),
        TurnStatus::LimitReached => "it reached a limit".into(),
        TurnStatus::Quota => "the provider refuses for now: out of quota".into(),
        _ => "it says that it failed".into(),
    }
}
