//! The meaning of a line that a person types in a session or a view.

use coordinator::session::Decision;

/// The help: what can be typed.
pub const HELP: &str = "  TEXT             message the lead; if you lead: add a task for an agent
  @NAME TEXT       message an agent
  /task TEXT       add a task for an agent
  /run CMD         add a task that runs a command
  /tasks           show the board
  /agents          show who is working
  /stop NAME       stop an agent; its task goes back on the board
  /approve ID      approve a plan or permission; who asks will do for the ID
  /reject ID WHY   deny it
  /quit            stop the agents, decide what lands, and end
The session ends by itself when the work is done (not with --stay).
Ctrl-C stops the agents; the same command resumes the session.";

/// The decision that a line stands for; `None` if it asks for help.
pub fn decision(line: &str) -> Option<Decision> {
    if let Some(rest) = line.strip_prefix('@') {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        return Some(Decision::Write {
            to: name.to_owned(),
            text: text.trim().to_owned(),
        });
    }
    let Some(command) = line.strip_prefix('/') else {
        return Some(Decision::Say(line.to_owned()));
    };
    let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
    let rest = rest.trim();
    let answer = |approve| {
        let (request, why) = rest.split_once(' ').unwrap_or((rest, ""));
        Decision::Answer {
            request: request.to_owned(),
            approve,
            why: (!why.trim().is_empty()).then(|| why.trim().to_owned()),
        }
    };
    match verb {
        "quit" | "exit" | "q" => Some(Decision::Quit),
        "tasks" => Some(Decision::ShowTasks),
        "agents" => Some(Decision::ShowAgents),
        "task" => Some(Decision::AddTask(rest.to_owned())),
        "run" => Some(Decision::AddCommand(rest.to_owned())),
        "stop" => Some(Decision::Stop(rest.to_owned())),
        "approve" => Some(answer(true)),
        "reject" => Some(answer(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_a_message_or_a_word_to_the_lead() {
        let answer = |request: &str, approve, why: Option<&str>| {
            Some(Decision::Answer {
                request: request.into(),
                approve,
                why: why.map(str::to_owned),
            })
        };
        assert_eq!(decision("do it"), Some(Decision::Say("do it".into())));
        let to_ann = Decision::Write {
            to: "ann".into(),
            text: "hello you".into(),
        };
        assert_eq!(decision("@ann  hello you"), Some(to_ann));
        assert_eq!(decision("/q"), Some(Decision::Quit));
        let test = Decision::AddCommand("make test".into());
        assert_eq!(decision("/run make test"), Some(test));
        assert_eq!(decision("/stop bob"), Some(Decision::Stop("bob".into())));
        assert_eq!(decision("/approve 12"), answer("12", true, None));
        assert_eq!(
            decision("/reject 12 too wide"),
            answer("12", false, Some("too wide"))
        );
        assert_eq!(decision("/what"), None);
    }
}
