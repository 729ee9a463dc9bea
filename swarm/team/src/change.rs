//! Changes of a roster: what each one refuses and what it writes.

use serde_json::{Map, Value, json};
use store::StoreError;
use store::agent_id::{AgentId, LEAD};
use store::machine::Machine;
use store::name::Name;
use swarm::definitions::PermissionMode;

use super::error::TeamError;
use super::format::{COLORS, Document, VERSION, set};
use super::{Member, NewMember, Roster, Team, nearest};

/// The fields of a new team.
#[derive(Debug, Clone, Default)]
pub struct NewTeam {
    /// The team's purpose.
    pub description: Option<String>,
    /// The working directory of its lead.
    pub cwd: Option<String>,
    /// The session that leads it.
    pub lead_session_id: Option<String>,
}

/// The fields of a member that can change; `None` leaves a field as it is. The name cannot: others
/// write to it.
#[derive(Debug, Clone, Default)]
pub struct MemberUpdate {
    /// True if it works at present.
    pub is_active: Option<bool>,
    /// Its permission mode.
    pub mode: Option<String>,
    /// The mode it gets when its plan is approved, if that is not the one it has now.
    pub mode_before_plan: Option<String>,
    /// The model it runs on.
    pub model: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its own worktree; `Some(None)` if it has none any more.
    pub worktree_path: Option<Option<String>>,
    /// The directory of its run.
    pub run: Option<AgentId>,
}

impl Team {
    /// Makes the team, with its lead as the only member, which is not at work.
    pub fn create(&self, new: &NewTeam) -> Result<Roster, TeamError> {
        let first = |now| self.first_document(new, now);
        self.understood(&self.backend.create(self, &first)?)
    }

    /// The reason why a team with this roster cannot be made.
    pub(super) fn is_there(&self, document: &Document) -> TeamError {
        match self.understood(document) {
            Ok(roster) if roster.deleting_since.is_some() => self.deleting(),
            Ok(_) => TeamError::Exists {
                name: self.name.to_string(),
            },
            Err(error) => error,
        }
    }

    /// A roster with the lead alone.
    fn first_document(&self, new: &NewTeam, now: i64) -> Result<Document, TeamError> {
        let mut document = Document::new(&self.name, now);
        document.set("description", new.description.clone().map(Value::from));
        let lead = NewMember {
            agent_type: LEAD.into(),
            cwd: new.cwd.clone(),
            ..NewMember::new(Name::new("agent", LEAD)?)
        };
        let lead_id = AgentId::member(&lead.name, &self.name);
        document.set("leadAgentId", Some(lead_id.as_str().into()));
        let session = new.lead_session_id.clone().map(Value::from);
        document.set("leadSessionId", session);
        document.add_member(self.member_value(&lead, None, now));
        let repository = self.options.repository.clone().map(Value::from);
        document.set_ours("repository", repository);
        Ok(document)
    }

    /// The roster's entry of a new member.
    fn member_value(&self, new: &NewMember, color: Option<&str>, now: i64) -> Value {
        let mut value = new.to_value(&self.name, color, now);
        if let (Some(machine), Some(member)) = (&self.options.machine, value.as_object_mut()) {
            note_machine(member, machine);
        }
        value
    }

    /// Records a member, before it starts, and gives it a colour.
    pub fn join(&self, new: &NewMember) -> Result<(Roster, Member), TeamError> {
        check_free_for_members(new.name.as_str())?;
        let roster = self.change(|document, roster, now| {
            self.check_stays(roster)?;
            if let Some(existing) = roster.member(new.name.as_str()) {
                return Err(self.taken(&new.name, existing));
            }
            let known = |color: &&str| COLORS.contains(color);
            let color = new.color.as_deref().filter(known);
            let color = color.unwrap_or_else(|| document.take_color());
            document.add_member(self.member_value(new, Some(color), now));
            Ok(())
        })?;
        let member = self.require(&roster, new.name.as_str())?;
        Ok((roster, member))
    }

    /// Takes a member off the roster; returns what it was.
    pub fn leave(&self, name: &str) -> Result<(Roster, Member), TeamError> {
        let mut left = None;
        let roster = self.change(|document, roster, _| {
            let member = self.require(roster, name)?;
            if member.name.eq_ignore_ascii_case(LEAD) {
                return Err(TeamError::LeadStays {
                    team: self.name.to_string(),
                });
            }
            document.remove_member(&member.name);
            left = Some(member);
            Ok(())
        })?;
        match left {
            Some(member) => Ok((roster, member)),
            None => Err(self.no_such_member(&roster, name)),
        }
    }

    /// Notes if a member works at present.
    pub fn set_active(&self, name: &str, is_active: bool) -> Result<Member, TeamError> {
        let update = MemberUpdate {
            is_active: Some(is_active),
            ..MemberUpdate::default()
        };
        self.update(name, &update)
    }

    /// Sets a member's permission mode. A member that begins to plan gets its previous mode back
    /// when its plan is approved.
    pub fn set_mode(&self, name: &str, mode: &str) -> Result<Member, TeamError> {
        let update = MemberUpdate {
            mode: Some(mode.to_owned()),
            ..MemberUpdate::default()
        };
        self.update(name, &update)
    }

    /// Changes what is recorded about a member.
    pub fn update(&self, name: &str, update: &MemberUpdate) -> Result<Member, TeamError> {
        let roster = self.change(|document, roster, _| {
            self.check_stays(roster)?;
            let member = self.require(roster, name)?;
            match document.member_mut(&member.name) {
                Some(fields) => {
                    update.apply(fields);
                    // A process that starts it, or says that it works, is where it is.
                    let starts = update.run.is_some() || update.is_active == Some(true);
                    if let (true, Some(machine)) = (starts, &self.options.machine) {
                        note_machine(fields, machine);
                    }
                    Ok(())
                }
                None => Err(self.no_such_member(roster, name)),
            }
        })?;
        self.require(&roster, name)
    }

    /// Does one change; all of it or nothing is kept. `apply` gets the time, and may be called again
    /// if its first result could not be kept.
    pub(super) fn change(
        &self,
        mut apply: impl FnMut(&mut Document, &Roster, i64) -> Result<(), TeamError>,
    ) -> Result<Roster, TeamError> {
        self.backend.change(self, &mut apply)
    }

    pub(super) fn keeps_changing(&self) -> TeamError {
        TeamError::ChangedMeanwhile {
            team: self.name.to_string(),
            path: self.backend.path(self),
        }
    }

    pub(super) fn check_writable(
        &self,
        document: &Document,
        roster: &Roster,
    ) -> Result<(), TeamError> {
        let found = document
            .version()
            .map_err(|error| self.corrupt(error.why))?;
        StoreError::check_version(&self.backend.path(self), found, VERSION)?;
        self.check_repository(roster)
    }

    fn check_stays(&self, roster: &Roster) -> Result<(), TeamError> {
        match roster.deleting_since {
            Some(_) => Err(self.deleting()),
            None => Ok(()),
        }
    }

    /// The member `name`, or an error that names those there are.
    fn require(&self, roster: &Roster, name: &str) -> Result<Member, TeamError> {
        let member = roster.member(name).cloned();
        member.ok_or_else(|| self.no_such_member(roster, name))
    }

    fn no_such_member(&self, roster: &Roster, name: &str) -> TeamError {
        let members = roster.members.iter().map(|member| member.name.clone());
        TeamError::NoSuchMember {
            team: self.name.to_string(),
            name: name.to_owned(),
            nearest: nearest(name, members.collect()),
        }
    }

    fn taken(&self, name: &Name, existing: &Member) -> TeamError {
        if existing.name == name.as_str() {
            return TeamError::AlreadyMember {
                team: self.name.to_string(),
                name: name.to_string(),
            };
        }
        TeamError::Store(StoreError::NameClash {
            what: "agent",
            given: name.to_string(),
            existing: existing.name.clone(),
        })
    }

    pub(super) fn deleting(&self) -> TeamError {
        TeamError::Deleting {
            team: self.name.to_string(),
        }
    }
}

impl MemberUpdate {
    fn apply(&self, member: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Option<Value>| {
            if value.is_some() {
                set(member, key, value);
            }
        };
        put("isActive", self.is_active.map(Value::from));
        put("model", self.model.clone().map(Value::from));
        put("cwd", self.cwd.clone().map(Value::from));
        if let Some(path) = &self.worktree_path {
            set(member, "worktreePath", path.clone().map(Value::from));
        }
        if let Some(mode) = &self.mode {
            self.change_mode(mode, member);
        }
        if let Some(run) = &self.run {
            set_ours(member, "run", Some(run.as_str().into()));
        }
    }

    fn change_mode(&self, mode: &str, member: &mut Map<String, Value>) {
        let plan = PermissionMode::Plan.as_str();
        let now = member.get("mode").and_then(Value::as_str);
        let before = match (mode == plan, now == Some(plan)) {
            (true, true) => member
                .get("ccb")
                .and_then(|ours| ours["modeBeforePlan"].as_str()),
            // The mode of a client from outside is unknown.
            (true, false) => Some(now.unwrap_or(PermissionMode::Ask.as_str())),
            (false, _) => None,
        };
        let before = self.mode_before_plan.as_deref().or(before);
        let before = before.map(Value::from);
        set(member, "mode", Some(mode.into()));
        if before.is_some() || member.get("ccb").is_some_and(Value::is_object) {
            set_ours(member, "modeBeforePlan", before);
        }
    }
}

/// Says where a member is.
fn note_machine(member: &mut Map<String, Value>, machine: &Machine) {
    set_ours(member, "host", Some(machine.host.clone().into()));
    set_ours(member, "machine", Some(machine.id.clone().into()));
}

/// Sets or removes something that only we say about a member.
fn set_ours(member: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    let ours = member.entry("ccb").or_insert(Value::Null);
    if !ours.is_object() {
        *ours = json!({});
    }
    if let Value::Object(ours) = ours {
        set(ours, key, value);
    }
}

/// Some names mean something where a member's name can stand.
fn check_free_for_members(name: &str) -> Result<(), TeamError> {
    let why = match name.to_ascii_lowercase().as_str() {
        LEAD => "it is the lead's",
        "user" => "it stands for whoever uses ccb without giving a name",
        name if name.ends_with(".json") => "its inbox would look like another tool's file",
        _ => return Ok(()),
    };
    Err(TeamError::Reserved {
        name: name.to_owned(),
        why,
    })
}
