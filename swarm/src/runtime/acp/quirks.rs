//! The differences of agents that speak the Agent Client Protocol.
//!
//! The protocol leaves open what a prompt does while another is being answered, and five agents do
//! four different things: opencode takes it into the running turn, two answer one after the other
//! in their own ways, gemini and qwen *cancel* the first. An agent we do not know gets no prompt
//! while it is busy, which is right for all of them.

use std::path::Path;

use super::super::Messages;
use super::withhold::Withhold;

/// The special properties of an agent's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quirks {
    /// The program's name.
    program: &'static str,
    /// The name with which it introduces itself.
    agent: &'static str,
    /// The moments at which it can get a prompt.
    pub messages: Messages,
    /// True if another process can resume its sessions.
    pub resume: bool,
    /// True if its sessions can be copied.
    pub fork: bool,
    /// Variables with keys, and the way to log in that uses each.
    pub keys: &'static [(&'static str, &'static str)],
    /// The argument that names the model; `None` if a request to the session does.
    pub model_flag: Option<&'static str>,
    /// The argument that allows our tools, if it has one.
    pub own_tools: Option<(&'static str, &'static str)>,
    /// The way to withhold its tools.
    pub withhold: Withhold,
    /// The way to log in, for a person.
    pub login: &'static str,
}

/// An unknown agent.
const UNKNOWN: Quirks = Quirks {
    program: "",
    agent: "",
    messages: Messages::BetweenTurns,
    resume: true,
    fork: false,
    keys: &[],
    model_flag: None,
    own_tools: None,
    withhold: Withhold::Nothing,
    login: "start it by hand and log in",
};

const KNOWN: [Quirks; 5] = [
    Quirks {
        program: "opencode",
        agent: "OpenCode",
        messages: Messages::AnyTime,
        fork: true,
        withhold: Withhold::Rules,
        login: "run `opencode auth login`",
        ..UNKNOWN
    },
    Quirks {
        program: "gemini",
        agent: "gemini-cli",
        // It writes its sessions down, but does not find them again.
        resume: false,
        keys: &[
            ("GEMINI_API_KEY", "gemini-api-key"),
            ("GOOGLE_API_KEY", "vertex-ai"),
        ],
        model_flag: Some("--model"),
        withhold: Withhold::Policy,
        login: "start `gemini` and log in, or set GEMINI_API_KEY",
        ..UNKNOWN
    },
    Quirks {
        program: "qwen",
        agent: "qwen-code",
        keys: &[("OPENAI_API_KEY", "openai")],
        model_flag: Some("--model"),
        own_tools: Some(("--allowed-tools", "mcp__ccb")),
        withhold: Withhold::Excluded,
        login: "start `qwen` and log in, or set OPENAI_API_KEY",
        ..UNKNOWN
    },
    Quirks {
        program: "claude-agent-acp",
        agent: "@agentclientprotocol/claude-agent-acp",
        messages: Messages::AnyTime,
        fork: true,
        login: "start `claude` and log in",
        ..UNKNOWN
    },
    Quirks {
        program: "codex-acp",
        agent: "codex-acp",
        fork: true,
        login: "run `codex login`",
        ..UNKNOWN
    },
];

impl Quirks {
    /// By the words of the command that starts it.
    pub(super) fn of_command(command: &[String]) -> Self {
        let is_known = |quirks: &&Self| {
            command.iter().any(|word| {
                let name = Path::new(word).file_name().and_then(|name| name.to_str());
                name == Some(quirks.program)
            })
        };
        KNOWN.iter().find(is_known).copied().unwrap_or(UNKNOWN)
    }

    /// By how it introduced itself, which is more certain than a command.
    pub(super) fn of_agent(self, name: &str) -> Self {
        let known = KNOWN.iter().find(|quirks| quirks.agent == name);
        known.copied().unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_their_command_or_their_name() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Quirks::of_command(&words)
        };
        assert_eq!(
            of(&["/opt/bin/opencode", "acp"]).messages,
            Messages::AnyTime
        );
        assert!(!of(&["node", "/x/gemini", "--acp"]).resume);
        let unknown = of(&["my-agent"]);
        assert_eq!(unknown.messages, Messages::BetweenTurns);
        assert!(!unknown.fork);
        assert!(unknown.of_agent("OpenCode").fork);
        assert_eq!(unknown.of_agent("somebody"), unknown);
    }
}
