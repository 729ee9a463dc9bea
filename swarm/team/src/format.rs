//! The roster's file: the same JSON Claude Code reads and writes.
//!
//! The document is kept as it was read and only patched, so that unknown keys survive a rewrite at
//! every level, in their order. `null` means absent. Fields that only ccb has are under the key
//! `ccb`, of the roster and of a member.

use serde_json::{Map, Value, json};
use store::fields::{FieldError, Fields, Read};
use store::machine::Machine;
use store::name::Name;

use store::agent_id::{AgentId, LEAD};

/// The newest format we write.
pub(super) const VERSION: u64 = 1;

/// The backend type of members that ccb starts.
pub(super) const OURS: &str = "ccb";

/// The colours that tell members apart on a terminal, in the order they are given out.
pub const COLORS: [&str; 8] = [
    "red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan",
];

/// A team and its members, as they were at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Roster {
    /// The team's name, which is its directory's.
    pub name: String,
    /// The team's purpose.
    pub description: Option<String>,
    /// The time of its creation, in milliseconds since the epoch.
    pub created_at: Option<i64>,
    /// The lead's agent id.
    pub lead_agent_id: Option<String>,
    /// The session that leads it.
    pub lead_session_id: Option<String>,
    /// In the order they joined.
    pub members: Vec<Member>,
    /// The repository it belongs to, if it belongs to one: its shared git directory, or in a
    /// database a name that is the same on every machine.
    pub repository: Option<String>,
    /// Since when it is being deleted, if it is.
    pub deleting_since: Option<String>,
    document: Value,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// `name@team` for those we recorded.
    pub agent_id: String,
    /// Its name in the team, unique without regard to case.
    pub name: String,
    /// The name of its definition.
    pub agent_type: Option<String>,
    /// The model it runs on.
    pub model: Option<String>,
    /// One of [`COLORS`] for those we recorded; the lead has none.
    pub color: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its own worktree.
    pub worktree_path: Option<String>,
    /// The kind of terminal or process that the member runs in.
    pub backend_type: Option<String>,
    /// True if it says that it is at work. Absent counts as no.
    pub is_active: bool,
    /// The time at which it joined, in milliseconds since the epoch.
    pub joined_at: Option<i64>,
    /// True if it must have its plan approved first.
    pub plan_mode_required: bool,
    /// Its permission mode.
    pub mode: Option<String>,
    /// The mode it gets back when its plan is approved.
    pub mode_before_plan: Option<String>,
    /// The directory of its run, where that is not named after [`Self::agent_id`].
    pub run: Option<String>,
    /// The machine it is on, where its team may be on several.
    pub machine: Option<Machine>,
    value: Value,
}

impl Roster {
    /// The whole file, including unknown keys.
    pub fn to_json(&self) -> Value {
        self.document.clone()
    }

    /// The member of this name, whatever its case.
    pub fn member(&self, name: &str) -> Option<&Member> {
        let same = |member: &&Member| member.name.eq_ignore_ascii_case(name);
        self.members.iter().find(same)
    }
}

impl Member {
    /// The whole entry of the file.
    pub fn to_json(&self) -> Value {
        self.value.clone()
    }
}

/// The file's content, to be changed and written back.
#[derive(Debug, Clone)]
pub(crate) struct Document(Map<String, Value>);

impl Document {
    /// A roster that says nothing more yet.
    pub(crate) fn new(team: &Name, created_at: i64) -> Self {
        let mut map = Map::new();
        map.insert("name".into(), team.as_str().into());
        map.insert("createdAt".into(), created_at.into());
        Self(map)
    }

    /// Reads the roster of `team`; the error says what is wrong with it.
    pub(crate) fn parse(team: &Name, bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err("the file is empty".into());
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let Value::Object(map) = value else {
            return Err("it is not a JSON object".into());
        };
        let document = Self(map);
        document.read(team).map_err(|error| error.why)?;
        Ok(document)
    }

    /// The roster. Fails only where a key has the wrong type, which [`Self::parse`] has made sure
    /// of.
    pub(crate) fn read(&self, team: &Name) -> Read<Roster> {
        let root = Fields::new(&self.0);
        let ours = root.section("ccb")?;
        let ours_text = |key| ours.as_ref().map_or(Ok(None), |ours| text(ours, key));
        self.version()?;
        let members = root.read("members", "a list", Value::as_array)?;
        let members = members.into_iter().flatten();
        let members: Read<Vec<Member>> = members.map(|value| Member::read(team, value)).collect();
        Ok(Roster {
            name: team.to_string(),
            description: text(&root, "description")?,
            created_at: milliseconds(&root, "createdAt")?,
            lead_agent_id: text(&root, "leadAgentId")?,
            lead_session_id: text(&root, "leadSessionId")?,
            members: members?,
            repository: ours_text("repository")?,
            deleting_since: ours_text("deletingSince")?,
            document: Value::Object(self.0.clone()),
        })
    }

    /// The format it was written in; files of other tools have none.
    pub(crate) fn version(&self) -> Read<u64> {
        let ours = Fields::new(&self.0).section("ccb")?;
        let v = ours.map_or(Ok(None), |ours| ours.read("v", "a number", Value::as_u64));
        Ok(v?.unwrap_or(VERSION))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // `{:#}` on a JSON value is its pretty form and cannot fail.
        format!("{:#}\n", Value::Object(self.0.clone())).into_bytes()
    }

    /// Sets a key of the roster, or removes it.
    pub(crate) fn set(&mut self, key: &str, value: Option<Value>) {
        set(&mut self.0, key, value);
    }

    /// Sets a key that is ours alone, or removes it.
    pub(crate) fn set_ours(&mut self, key: &str, value: Option<Value>) {
        let ours = self.0.entry("ccb").or_insert(Value::Null);
        if ours.is_null() {
            *ours = json!({ "v": VERSION });
        }
        if let Value::Object(ours) = ours {
            ours.entry("v").or_insert_with(|| VERSION.into());
            set(ours, key, value);
        }
    }

    pub(crate) fn add_member(&mut self, member: Value) {
        let members = self.0.entry("members").or_insert(Value::Null);
        if members.is_null() {
            *members = json!([]);
        }
        if let Value::Array(members) = members {
            members.push(member);
        }
    }

    /// The member of exactly this name.
    pub(crate) fn member_mut(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        let members = self.0.get_mut("members")?.as_array_mut()?;
        let mut objects = members.iter_mut().filter_map(Value::as_object_mut);
        objects.find(|member| is_named(member, name))
    }

    pub(crate) fn remove_member(&mut self, name: &str) {
        if let Some(Value::Array(members)) = self.0.get_mut("members") {
            members.retain(|member| !member.as_object().is_some_and(|m| is_named(m, name)));
        }
    }

    /// The colour after the one given out last, so that those who leave do not make others
    /// look alike.
    pub(crate) fn take_color(&mut self) -> &'static str {
        let given = match self.0.get("ccb") {
            Some(ours) => ours["colorsGiven"].as_u64().unwrap_or(0),
            None => 0,
        };
        // Other tools add members without counting.
        let members = self.0.get("members").and_then(Value::as_array);
        let mates = members.into_iter().flatten().filter(|member| {
            let name = member["name"].as_str();
            !name.is_some_and(|name| name.eq_ignore_ascii_case(LEAD))
        });
        let given = given.max(mates.count() as u64);
        self.set_ours("colorsGiven", Some(given.saturating_add(1).into()));
        COLORS[(given % COLORS.len() as u64) as usize]
    }
}

impl Member {
    pub(super) fn read(team: &Name, value: &Value) -> Read<Self> {
        let wrong = |why: &str| FieldError {
            key: "members".into(),
            why: why.into(),
        };
        let Value::Object(map) = value else {
            return Err(wrong("a member is not a JSON object"));
        };
        let fields = Fields::within(map, "members.");
        let text = |key: &str| text(&fields, key);
        let name = text("name")?.ok_or_else(|| wrong("a member has no \"name\""))?;
        let ours = fields.section("ccb")?;
        let ours_text = |key| ours.as_ref().map_or(Ok(None), |ours| self::text(ours, key));
        Ok(Self {
            agent_id: text("agentId")?.unwrap_or_else(|| AgentId::member(&name, team).to_string()),
            name,
            agent_type: text("agentType")?,
            model: text("model")?,
            color: text("color")?,
            cwd: text("cwd")?,
            worktree_path: text("worktreePath")?,
            backend_type: text("backendType")?,
            is_active: fields.boolean("isActive")? == Some(true),
            joined_at: milliseconds(&fields, "joinedAt")?,
            plan_mode_required: fields.boolean("planModeRequired")? == Some(true),
            mode: text("mode")?,
            mode_before_plan: ours_text("modeBeforePlan")?,
            run: ours_text("run")?,
            machine: match (ours_text("machine")?, ours_text("host")?) {
                (Some(id), Some(host)) => Some(Machine { id, host }),
                _ => None,
            },
            value: value.clone(),
        })
    }
}

/// The fields of a member before it starts.
#[derive(Debug, Clone)]
pub struct NewMember {
    /// Its name in the team.
    pub name: Name,
    /// The name of its definition.
    pub agent_type: String,
    /// The model it runs on.
    pub model: Option<String>,
    /// The colour in which it is shown, if it is one of [`COLORS`]; else it gets one.
    pub color: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its own worktree.
    pub worktree_path: Option<String>,
    /// The kind of terminal or process it runs in; other tools have words of their own.
    pub backend_type: String,
    /// True if it is at work already; agents we start are not.
    pub is_active: bool,
    /// True if it must have its plan approved first.
    pub plan_mode_required: bool,
    /// Its permission mode.
    pub mode: Option<String>,
    /// The mode it gets when its plan is approved.
    pub mode_before_plan: Option<String>,
    /// The directory of its run, if that is not to be named `name@team`.
    pub run: Option<AgentId>,
}

impl NewMember {
    /// A member that is not at work yet, with nothing special about it.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            agent_type: "general-purpose".into(),
            model: None,
            color: None,
            cwd: None,
            worktree_path: None,
            backend_type: OURS.into(),
            is_active: false,
            plan_mode_required: false,
            mode: None,
            mode_before_plan: None,
            run: None,
        }
    }

    pub(super) fn to_value(&self, team: &Name, color: Option<&str>, joined_at: i64) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Option<Value>| set(&mut map, key, value);
        put(
            "agentId",
            Some(AgentId::member(&self.name, team).as_str().into()),
        );
        put("name", Some(self.name.as_str().into()));
        put("agentType", Some(self.agent_type.clone().into()));
        put("model", self.model.clone().map(Value::from));
        put("color", color.map(Value::from));
        put(
            "planModeRequired",
            self.plan_mode_required.then(|| true.into()),
        );
        put("joinedAt", Some(joined_at.into()));
        // Claude Code takes these two for granted.
        put("tmuxPaneId", Some("".into()));
        put("cwd", Some(self.cwd.clone().unwrap_or_default().into()));
        put("worktreePath", self.worktree_path.clone().map(Value::from));
        put("subscriptions", Some(json!([])));
        put("backendType", Some(self.backend_type.clone().into()));
        put("isActive", Some(self.is_active.into()));
        put("mode", self.mode.clone().map(Value::from));
        let mut ours = Map::new();
        let run = self.run.as_ref().map(|run| run.as_str().into());
        set(&mut ours, "run", run);
        let before = self.mode_before_plan.clone().map(Value::from);
        set(&mut ours, "modeBeforePlan", before);
        put("ccb", (!ours.is_empty()).then(|| ours.into()));
        Value::Object(map)
    }
}

fn is_named(member: &Map<String, Value>, name: &str) -> bool {
    member.get("name").and_then(Value::as_str) == Some(name)
}

/// Sets a key where it stands, or removes it.
pub(super) fn set(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            map.insert(key.to_owned(), value);
        }
        None => {
            map.shift_remove(key);
        }
    }
}

/// Any text, also an empty one.
fn text(fields: &Fields<'_>, key: &str) -> Read<Option<String>> {
    fields.read(key, "text", |value| value.as_str().map(str::to_owned))
}

fn milliseconds(fields: &Fields<'_>, key: &str) -> Read<Option<i64>> {
    // JavaScript may write a fraction.
    let whole = |value: &Value| value.as_i64().or(value.as_f64().map(|ms| ms as i64));
    fields.read(key, "a number", whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_gets_a_color_whatever_the_count_of_them_says() {
        let team = Name::new("team", "t").unwrap();
        let text = format!(
            r#"{{"name":"t","ccb":{{"v":1,"colorsGiven":{}}}}}"#,
            u64::MAX
        );
        let mut document = Document::parse(&team, text.as_bytes()).unwrap();
        assert!(COLORS.contains(&document.take_color()));
        assert!(COLORS.contains(&document.take_color()));
    }
}
