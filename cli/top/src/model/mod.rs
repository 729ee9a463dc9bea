//! The state of the view. The screen is drawn from this alone, and [`mod@crate::update`] alone
//! changes it.

pub(crate) mod lists;
pub(crate) mod transcript;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use crossterm::event::KeyEvent;
use observe::live::Act;
use observe::live::{Changes, Scene};
use taskboard::TaskId;
use term::prompt::Edit;

use self::transcript::{Transcript, TranscriptNews};

/// Time that a finished agent remains in the list, in ms.
pub(crate) const GRACE_MS: i64 = 30_000;
/// Maximum number of kept lines about events.
const LOG: usize = 500;

/// A pane of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pane {
    Agents,
    Board,
    Graph,
    Transcript,
    Changes,
    Mail,
    Progress,
    Needs,
}

impl Pane {
    /// The panes with a number, from 1 on.
    pub(crate) const NUMBERED: [Self; 7] = [
        Self::Agents,
        Self::Board,
        Self::Graph,
        Self::Transcript,
        Self::Changes,
        Self::Mail,
        Self::Progress,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Board => "Board",
            Self::Graph => "Graph",
            Self::Transcript => "Transcript",
            Self::Changes => "Changes",
            Self::Mail => "Mail",
            Self::Progress => "Progress",
            Self::Needs => "Needs you",
        }
    }
}

/// An agent of a team.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AgentKey {
    pub(crate) team: String,
    pub(crate) id: String,
}

/// The agent or task whose changes are shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChangesOf {
    pub(crate) team: String,
    /// An agent's id, or a task's number.
    pub(crate) what: String,
    /// Its name on the screen.
    pub(crate) name: String,
}

/// An incoming message.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    Resized,
    Suspend,
    Continued,
    /// The terminal has hung up.
    Hangup,
    /// Time has passed.
    Tick,
    Scene(Arc<Scene>),
    Transcript {
        agent: AgentKey,
        news: TranscriptNews,
    },
    Changes {
        of: ChangesOf,
        result: Result<Changes, String>,
    },
    /// The outcome of an effect.
    Done(Result<String, String>),
    /// An event of the session, as a line.
    Logged(LogLine),
    /// The question which finished work lands.
    AskLanding(LandQuestion),
    /// The question about landing is closed.
    LandingOver,
    /// True if this process directs the session from now on, false if it follows another process.
    Directs(bool),
    /// The session is over.
    SessionOver,
}

/// An action outside of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Act {
        team: String,
        act: Act,
    },
    /// Read this agent's transcript from now on.
    Follow(Option<AgentKey>),
    ReadChanges(ChangesOf),
    AnswerLanding(Vec<TaskId>),
    /// The session stops its agents, asks which work lands, and ends.
    EndSession,
    /// As Ctrl-C: the first asks agents to stop, the second ends them.
    Interrupt,
    /// The session continues as lines.
    GoPlain,
    Suspend,
    Redraw,
    Close,
}

/// The tone of a line, which decides its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// Success.
    Good,
    /// A warning for the person.
    Warn,
    /// Failure.
    Bad,
    /// A detail.
    Dim,
}

/// An event, on one line or a few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Time of the event, in ms since 1970.
    pub at_ms: i64,
    /// The line, or a few, without colours.
    pub text: String,
    /// The tone of the line.
    pub tone: Tone,
}

/// Finished work that can land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandOffer {
    /// The task that made it.
    pub task: TaskId,
    /// The task's subject.
    pub subject: String,
    /// `2 files +10 -3`; empty if unknown.
    pub size: String,
    /// The reason why no check proves it; `None` if a check passed.
    pub unchecked: Option<String>,
}

/// The question at the end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandQuestion {
    /// The session's team.
    pub team: String,
    /// The branch on which the work lands.
    pub into: String,
    /// The work to choose from.
    pub offers: Vec<LandOffer>,
}

/// The purpose of the text being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typing {
    /// A line for the lead, or a command.
    Line,
    /// The filter of a list.
    Filter,
    /// The text that an act still needs.
    Text { team: String, act: Act, ask: String },
}

/// A question in the middle of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dialog {
    /// Asks whether to perform this act.
    Confirm {
        question: String,
        more: String,
        team: String,
        act: Act,
    },
    /// Asks whether to leave a session that this process directs.
    Leave,
    /// Asks which work lands at the end of the session.
    Land {
        question: LandQuestion,
        chosen: BTreeSet<TaskId>,
        cursor: usize,
    },
}

/// The chosen row of a list. The key finds the row again when the list has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) key: Option<String>,
    pub(crate) index: usize,
}

/// This process's part in what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// Another process directs it, or none.
    Watcher,
    /// This process directs this team.
    Session { team: String },
}

/// The whole state.
#[derive(Debug)]
pub(crate) struct Model {
    /// Time in ms since the epoch; there is no other clock.
    pub(crate) now: i64,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) role: Role,
    pub(crate) scene: Arc<Scene>,
    /// True if at least one scene has come.
    pub(crate) looked: bool,
    /// The team that the person chose; `None` if they chose none.
    pub(crate) team: Option<String>,
    pub(crate) pane: Pane,
    /// The panes that Esc returns to.
    pub(crate) behind: Vec<Pane>,
    pub(crate) cursors: BTreeMap<Pane, Cursor>,
    /// The scroll position of panes with text.
    pub(crate) scrolls: BTreeMap<Pane, usize>,
    pub(crate) filter: String,
    pub(crate) typing: Option<Typing>,
    /// The line to the lead, with its history.
    pub(crate) line: Edit,
    /// The line for all other text.
    pub(crate) edit: Edit,
    pub(crate) dialog: Option<Dialog>,
    /// True if the dialog waits while the person looks at a diff.
    pub(crate) peeking: bool,
    pub(crate) help: bool,
    /// True if the details of the chosen row fill the pane.
    pub(crate) expanded: bool,
    pub(crate) show_finished: bool,
    /// Finished agents that the person dismissed.
    pub(crate) dismissed: HashSet<AgentKey>,
    pub(crate) happened: VecDeque<LogLine>,
    /// The outcome of the last act, shown until the next key.
    pub(crate) said: Option<(Tone, String)>,
    /// Number of unfinished acts.
    pub(crate) busy: usize,
    pub(crate) transcript: Transcript,
    /// The agent or task whose changes are shown, and its changes; `None` until they are known.
    pub(crate) changes: Option<(ChangesOf, Option<Result<Changes, String>>)>,
    /// Time of the last request for changes.
    pub(crate) changes_at: i64,
    /// Time when the chosen entry that needs a person was replaced by another one without a key.
    pub(crate) moved_at: i64,
    /// The last answered entry.
    pub(crate) answered: Option<String>,
    /// True if the session is over; the view remains because the person looks at something.
    pub(crate) over: bool,
    /// True if another process directs the session.
    pub(crate) follows: bool,
    pub(crate) colours: bool,
}

impl Model {
    pub(crate) fn new(role: Role, now: i64, (columns, rows): (u16, u16)) -> Self {
        let team = match &role {
            Role::Session { team } => Some(team.clone()),
            Role::Watcher => None,
        };
        Self {
            now,
            columns,
            rows,
            role,
            scene: Arc::default(),
            looked: false,
            team,
            pane: Pane::Agents,
            behind: Vec::new(),
            cursors: BTreeMap::new(),
            scrolls: BTreeMap::new(),
            filter: String::new(),
            typing: None,
            line: Edit::default(),
            edit: Edit::default(),
            dialog: None,
            peeking: false,
            help: false,
            expanded: false,
            show_finished: false,
            dismissed: HashSet::new(),
            happened: VecDeque::new(),
            said: None,
            busy: 0,
            transcript: Transcript::default(),
            changes: None,
            changes_at: 0,
            moved_at: i64::MIN / 2,
            answered: None,
            over: false,
            follows: false,
            colours: true,
        }
    }

    pub(crate) fn is_session(&self) -> bool {
        matches!(self.role, Role::Session { .. })
    }

    /// True if the work stops when this process ends.
    pub(crate) fn directs(&self) -> bool {
        self.is_session() && !self.over && !self.follows
    }

    /// The team that is shown: the chosen one, else the first.
    pub(crate) fn team(&self) -> Option<&observe::live::TeamScene> {
        let chosen = self.team.as_deref().and_then(|name| self.scene.team(name));
        chosen.or_else(|| self.scene.teams.first())
    }

    /// The name of the shown team, also before its first scene.
    pub(crate) fn team_name(&self) -> String {
        match (self.team(), &self.team) {
            (Some(team), _) => team.name.clone(),
            (None, Some(name)) => name.clone(),
            (None, None) => String::new(),
        }
    }

    pub(crate) fn log(&mut self, one: LogLine) {
        self.happened.push_back(one);
        let many = self.happened.len().saturating_sub(LOG);
        self.happened.drain(..many);
    }

    pub(crate) fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.said = Some((tone, text.into()));
    }

    /// The chosen row of a pane's list.
    pub(crate) fn chosen(&self, pane: Pane) -> usize {
        let keys = lists::keys(self, pane);
        let Some(cursor) = self.cursors.get(&pane) else {
            return 0;
        };
        let same = keys.iter().position(|key| Some(key) == cursor.key.as_ref());
        same.unwrap_or_else(|| cursor.index.min(keys.len().saturating_sub(1)))
    }

    pub(crate) fn scroll(&self, pane: Pane) -> usize {
        self.scrolls.get(&pane).copied().unwrap_or_default()
    }

    /// Time in ms until the view must be drawn again although nothing happens: for the clock while
    /// an agent works, or to fold a finished agent away.
    pub(crate) fn next_tick(&self) -> Option<i64> {
        let team = self.team()?;
        let alive = team.agents.iter().any(|agent| agent.alive);
        let runs = alive || team.life == observe::live::TeamLife::Running;
        let second = runs.then(|| 1000 - self.now.rem_euclid(1000));
        let folds = team.agents.iter().filter_map(|agent| {
            let left = agent.ended_ms? + GRACE_MS - self.now;
            (left > 0).then_some(left + 1)
        });
        second.into_iter().chain(folds).min()
    }
}
