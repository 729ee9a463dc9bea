//! A conversation, in any of the protocols.

/// The speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions for the model.
    System,
    User,
    Assistant,
    /// A tool's result.
    Tool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub role: Role,
    pub text: String,
}

/// All messages so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    pub turns: Vec<Turn>,
}

impl Conversation {
    pub fn say(&mut self, role: Role, text: impl Into<String>) {
        let text = text.into();
        self.turns.push(Turn { role, text });
    }

    /// The last message of this speaker; empty if there is none.
    pub fn last(&self, role: Role) -> &str {
        let last = self.turns.iter().rfind(|turn| turn.role == role);
        last.map_or("", |turn| turn.text.as_str())
    }

    /// The text after the last `prefix`, up to a blank or a quote.
    pub fn after(&self, prefix: &str) -> String {
        let with_prefix = self.turns.iter().rev().filter_map(|turn| {
            let at = turn.text.rfind(prefix)?;
            Some(&turn.text[at + prefix.len()..])
        });
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | ',' | '\\');
        let first = with_prefix
            .map(|rest| rest.split(is_end).next().unwrap_or_default())
            .find(|word| !word.is_empty() && !word.starts_with("}}"));
        first.unwrap_or("nothing").to_owned()
    }

    /// True if any speaker but the model said this.
    pub fn was_told(&self, text: &str) -> bool {
        let mut told = self
            .turns
            .iter()
            .filter(|turn| turn.role != Role::Assistant);
        told.any(|turn| turn.text.contains(text))
    }
}
