//! Fuzz targets: hooks in settings files, and what hooks print; see [`store::fuzz`].

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::answer::{Answer, HookEnd, MAX_WORDS};
use super::config::{Origin, read_events};
use super::event::HookEvent;
use super::matcher::Matcher;
use crate::process::Ending;

/// The hooks of a settings file.
pub(crate) fn hook_settings(data: &[u8]) {
    let (matcher, rest) = store::fuzz::halves(data);
    if let Ok(matcher) = Matcher::new(&String::from_utf8_lossy(matcher)) {
        matcher.matches("general-purpose");
    }
    let Ok(events) = serde_json::from_slice::<Map<String, Value>>(rest) else {
        return;
    };
    let (mut hooks, mut problems) = (Vec::new(), Vec::new());
    let origin = Origin::Project(PathBuf::from("/r/.claude/settings.json"));
    read_events(&events, &origin, &mut hooks, &mut problems);
    assert!(hooks.len() + problems.len() <= data.len());
    for problem in problems {
        assert!(problem.to_string().len() <= 4 * data.len() + 1024);
    }
}

/// The output of a hook: the first byte selects event and exit code, then errors, then output.
pub(crate) fn hook_answer(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let event = HookEvent::ALL[usize::from(*first) % HookEvent::ALL.len()];
    let (stderr, stdout) = store::fuzz::halves(rest);
    for code in [0, 1, 2] {
        let end = HookEnd::Ended(Ending::Exited(code));
        let answer = Answer::read(event, &end, stdout, stderr);
        assert!(code != 2 || answer.block.is_some(), "a no is lost");
        assert!(!answer.halt || answer.block.is_some());
        let texts = [
            &answer.block,
            &answer.context,
            &answer.message,
            &answer.failure,
        ];
        for text in texts.into_iter().flatten() {
            assert!(
                text.chars().count() <= MAX_WORDS + 16,
                "{} characters",
                text.len()
            );
        }
        drop(answer.in_words());
    }
}
