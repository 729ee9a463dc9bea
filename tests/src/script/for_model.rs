//! A script for an agent that is ccb's own program around a model: the same steps as answers of the
//! scripted model. So tests that are about sessions, and not about agents, run on both.

use std::path::Path;

use serde_json::{Value, json};

use super::{Do, MARK, Script};
use crate::model::{self, Step};

/// Number of messages that one that serves answers.
const ANSWERS: usize = 8;

impl Script {
    /// A prompt that makes a model do the same through the tools of a native agent. Scripts in the
    /// inputs of calls, for other agents, become such prompts, too. Panics at a step that a model
    /// cannot do.
    pub fn to_model_prompt(&self) -> String {
        let mut told = Told::default();
        for step in &self.steps {
            told.add(step);
        }
        model::prompt("Follow the script.", &told.steps)
    }
}

#[derive(Default)]
struct Told {
    steps: Vec<Step>,
    /// The file that the next answer waits for.
    waits: Option<std::path::PathBuf>,
    /// The usage that the next answer reports.
    used: (u64, u64),
}

impl Told {
    fn push(&mut self, step: Step) {
        let (input, output) = std::mem::take(&mut self.used);
        let step = step.usage(input, output);
        self.steps.push(match self.waits.take() {
            Some(file) => step.wait_for(&file),
            None => step,
        });
    }

    fn shell(&mut self, line: &str) {
        self.push(Step::tool("Bash", json!({ "command": line })));
    }

    fn add(&mut self, step: &Do) {
        match step {
            Do::Write { path, text } => self.shell(&format!(
                "mkdir -p \"$(dirname {0})\" && printf %s {1} > {0}",
                word(path),
                quoted(text)
            )),
            Do::Append { path, text } => {
                self.shell(&format!("echo {} >> {}", quoted(text), word(path)));
            }
            Do::Touch { path } => self.shell(&format!("touch {}", word(path))),
            Do::Commit { message } => self.shell(&format!(
                "git add -A && git commit -q -m {}",
                quoted(message)
            )),
            Do::Run { command } => match command.as_slice() {
                [sh, flag, line] if sh == "sh" && flag == "-c" => self.shell(line),
                words => {
                    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                    self.shell(&words.join(" "));
                }
            },
            Do::Call { tool, input, .. } => {
                let tool = format!("mcp__ccb__{tool}");
                self.push(Step::tool(tool, for_models(input)));
            }
            // An answer without a call would end the turn.
            Do::Say { text } => {
                let look = Step::tool("mcp__ccb__TaskList", json!({}));
                self.push(look.and_text(text));
            }
            Do::WaitFile { path } => self.waits = Some(path.clone()),
            Do::Usage { input, output, .. } => self.used = (*input, *output),
            Do::Result { status, text, .. } if status == "completed" => {
                self.push(Step::text(text));
            }
            // The next answer is about the message. A model cannot describe its arguments.
            Do::WaitMessage { .. } | Do::Describe { .. } => {}
            Do::Serve => (0..ANSWERS).for_each(|_| self.push(Step::text("I have heard."))),
            other => panic!("a model cannot be made to do this: {other:?}"),
        }
    }
}

/// The same input, with scripts for models.
fn for_models(input: &Value) -> Value {
    match input {
        Value::String(text) => match (text.find(MARK), Script::find(text)) {
            (Some(at), Some(Ok(script))) => {
                format!("{}{}", &text[..at], script.to_model_prompt()).into()
            }
            _ => input.clone(),
        },
        Value::Array(all) => all.iter().map(for_models).collect(),
        Value::Object(map) => {
            let entries = map.iter();
            let entries = entries.map(|(key, value)| (key.clone(), for_models(value)));
            Value::Object(entries.collect())
        }
        other => other.clone(),
    }
}

fn word(path: &Path) -> String {
    quoted(&path.display().to_string())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
