//! Skills: instructions that are loaded when they are needed.

use std::path::PathBuf;

use serde_json::{Value, json};
use store::beneath::Root;
use swarm::definitions::front_matter;

use super::Surroundings;
use crate::tools::{BoxFuture, Call, Tool, ToolOutput, ToolSpec};

/// The most bytes of a skill.
const MOST: u64 = 64 * 1024;
/// The most bytes of all names and descriptions, which are part of each request.
const MOST_LISTED: usize = 4 * 1024;
/// Maximum bytes of one description.
const DESCRIPTION: usize = 250;

/// Instructions with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The skill's name.
    pub name: String,
    /// The occasions to use it.
    pub description: String,
    /// Its files are here, `SKILL.md` among them.
    pub dir: PathBuf,
}

/// The skills of the project, then those of the user that have another name, by name.
pub(super) fn find(around: &Surroundings) -> Vec<Skill> {
    let mut all: Vec<Skill> = Vec::new();
    let own = around.home.as_ref().map(|home| home.join("skills"));
    let places = [Some(around.tree.join(".claude/skills")), own];
    for place in places.into_iter().flatten() {
        for name in store::tree::names_in(&place).unwrap_or_default() {
            let dir = place.join(&name);
            if let Some(skill) = read(&name, dir)
                && all.iter().all(|other| other.name != skill.name)
            {
                all.push(skill);
            }
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn read(name: &str, dir: PathBuf) -> Option<Skill> {
    let text = text_of(&dir)?;
    let (fields, _) = front_matter(&text)?;
    let field = |key: &str| fields.get(key).and_then(Value::as_str).map(str::trim);
    let description = field("description").filter(|text| !text.is_empty())?;
    let on_request = fields.get("disable-model-invocation") == Some(&Value::Bool(true));
    let cut = description.floor_char_boundary(DESCRIPTION);
    (!on_request).then(|| Skill {
        name: field("name").unwrap_or(name).to_owned(),
        description: description[..cut].replace('\n', " "),
        dir,
    })
}

/// `SKILL.md`, which must really be there and not somewhere a link leads to.
fn text_of(dir: &std::path::Path) -> Option<String> {
    use std::io::Read;
    let file = Root::open(dir).ok()?.read("SKILL.md".as_ref()).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Loads a skill.
#[derive(Debug)]
pub struct SkillTool {
    spec: ToolSpec,
    skills: Vec<Skill>,
}

impl SkillTool {
    /// For these skills, which its description lists.
    pub fn new(skills: Vec<Skill>) -> Self {
        let mut description =
            "Loads instructions for a kind of work. Use one that fits before you begin:".to_owned();
        let mut left_out = Vec::new();
        for skill in &skills {
            let line = format!("\n- {}: {}", skill.name, skill.description);
            match description.len() + line.len() > MOST_LISTED {
                true => left_out.push(skill.name.as_str()),
                false => description.push_str(&line),
            }
        }
        if !left_out.is_empty() {
            let few: Vec<&str> = left_out.iter().copied().take(30).collect();
            let and = left_out.len() - few.len();
            description.push_str(&format!(
                "\nAlso (no room to describe them): {}",
                few.join(", ")
            ));
            if and > 0 {
                description.push_str(&format!(" and {and} more"));
            }
        }
        let spec = ToolSpec {
            name: swarm::tools::SKILL.into(),
            description,
            input_schema: json!({
                "type": "object",
                "properties": {
                    "skill": { "type": "string" },
                    "args": { "type": "string" },
                },
                "required": ["skill"],
            }),
            reads_only: true,
        };
        Self { spec, skills }
    }

    fn load(&self, input: &Value) -> Result<String, String> {
        let name = input["skill"]
            .as_str()
            .ok_or("skill is missing; it must be a name.")?;
        let names = || self.skills.iter().map(|skill| skill.name.as_str());
        let skill = self.skills.iter().find(|skill| skill.name == name);
        let skill = skill.ok_or_else(|| {
            let all: Vec<&str> = names().collect();
            let hint = store::did_you_mean(name, names(), format!("there are: {}", all.join(", ")));
            format!("There is no skill {name:?}; {hint}.")
        })?;
        let text = text_of(&skill.dir).ok_or_else(|| format!("The skill {name:?} is gone."))?;
        let body = front_matter(&text).map_or(text.as_str(), |(_, body)| body);
        let args = input["args"].as_str().unwrap_or_default();
        let body = body.replace("$ARGUMENTS", args);
        let place = skill.dir.display();
        let mut said = format!("Skill {name}; its files are in {place}\n\n{}", body.trim());
        if !args.is_empty() {
            said.push_str(&format!("\n\nArguments: {args}"));
        }
        Ok(said)
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, _: &'a Call) -> BoxFuture<'a, ToolOutput> {
        let loaded = self
            .load(&input)
            .map_or_else(ToolOutput::error, ToolOutput::ok);
        Box::pin(async move { loaded })
    }
}
