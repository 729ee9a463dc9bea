//! Everything the view knows. It is drawn from this alone, and changed by [`mod@crate::update`] alone.

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

/// How long a finished agent stays in the list, in ms.
pub(crate) const GRACE_MS: i64 = 30_000;
/// How many lines of what happened are kept.
const LOG: usize = 500;

/// One of the things that can be looked at.
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
    /// Those that have a number, from 1 on.
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

/// Whose changes are shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChangesOf {
    pub(crate) team: String,
    /// An agent's id, or a task's number.
    pub(crate) what: String,
    /// How it is called on the screen.
    pub(crate) name: String,
}

/// Something that came in.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    Resized,
    Suspend,
    Continued,
    /// Nobody is at the terminal any more.
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
    /// What became of something that was asked for.
    Done(Result<String, String>),
    /// Something happened in the session.
    Logged(LogLine),
    /// Which of the finished work is to land.
    AskLanding(LandQuestion),
    /// The question is no longer asked.
    LandingOver,
    /// Whether this process directs the session from now on, or follows another one.
    Directs(bool),
    /// The session is over.
    SessionOver,
}

/// Something to be done outside of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Act {
        team: String,
        act: Act,
    },
    /// Whose transcript is read from now on.
    Follow(Option<AgentKey>),
    ReadChanges(ChangesOf),
    AnswerLanding(Vec<TaskId>),
    /// The session is to stop its agents, ask what lands, and end.
    EndSession,
    /// As Ctrl-C: the first asks agents to stop, the second ends them.
    Interrupt,
    /// The session goes on as lines.
    GoPlain,
    Suspend,
    Redraw,
    Close,
}

/// How a line is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// As other text.
    #[default]
    Plain,
    /// Something succeeded.
    Good,
    /// A person should look at it.
    Warn,
    /// Something failed.
    Bad,
    /// A detail.
    Dim,
}

/// Something that happened, on one line or a few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When it happened, in ms since 1970.
    pub at_ms: i64,
    /// The line, or a few, without colours.
    pub text: String,
    /// Its colour.
    pub tone: Tone,
}

/// Finished work that can land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandOffer {
    /// The task that made it.
    pub task: TaskId,
    /// What the task is about.
    pub subject: String,
    /// `2 files +10 -3`; empty if it is not known.
    pub size: String,
    /// Why nothing proves it; none if a check passed.
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

/// What is being typed, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typing {
    /// A line for the lead, or a command.
    Line,
    /// The filter of a list.
    Filter,
    /// What an act still needs.
    Text { team: String, act: Act, ask: String },
}

/// A question in the middle of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dialog {
    /// Whether to do this.
    Confirm {
        question: String,
        more: String,
        team: String,
        act: Act,
    },
    /// Whether to leave a session that this process directs.
    Leave,
    /// What lands at the end of the session.
    Land {
        question: LandQuestion,
        chosen: BTreeSet<TaskId>,
        cursor: usize,
    },
}

/// Which row of a list is chosen. The key finds it again when the list has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) key: Option<String>,
    pub(crate) index: usize,
}

/// Whether this process directs what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// Another process does, or none.
    Watcher,
    /// This process directs this team.
    Session { team: String },
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Model {
    /// ms since the epoch; there is no other clock.
    pub(crate) now: i64,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) role: Role,
    pub(crate) scene: Arc<Scene>,
    /// Whether a scene has come at all.
    pub(crate) looked: bool,
    /// The team that is shown, if somebody chose one.
    pub(crate) team: Option<String>,
    pub(crate) pane: Pane,
    /// Where Esc goes.
    pub(crate) behind: Vec<Pane>,
    pub(crate) cursors: BTreeMap<Pane, Cursor>,
    /// How far panes of text are scrolled.
    pub(crate) scrolls: BTreeMap<Pane, usize>,
    pub(crate) filter: String,
    pub(crate) typing: Option<Typing>,
    /// The line to the lead, with its history.
    pub(crate) line: Edit,
    /// Everything else that is typed.
    pub(crate) edit: Edit,
    pub(crate) dialog: Option<Dialog>,
    /// The dialog waits while a diff is looked at.
    pub(crate) peeking: bool,
    pub(crate) help: bool,
    /// The details of the chosen row have the whole pane.
    pub(crate) expanded: bool,
    pub(crate) show_finished: bool,
    /// Finished agents that were dismissed.
    pub(crate) dismissed: HashSet<AgentKey>,
    pub(crate) happened: VecDeque<LogLine>,
    /// What became of the last thing that was asked for, until the next key.
    pub(crate) said: Option<(Tone, String)>,
    /// How many acts have not come to an end.
    pub(crate) busy: usize,
    pub(crate) transcript: Transcript,
    /// Whose changes are looked at, and what they are once that is known.
    pub(crate) changes: Option<(ChangesOf, Option<Result<Changes, String>>)>,
    /// When changes were asked for last.
    pub(crate) changes_at: i64,
    /// When another entry took the place of the chosen one that needs a person, by itself.
    pub(crate) moved_at: i64,
    /// The entry that was answered last.
    pub(crate) answered: Option<String>,
    /// The session is over; the view stays because somebody looks at something.
    pub(crate) over: bool,
    /// The session is one of another process.
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

    /// Whether the work stops when this process ends.
    pub(crate) fn directs(&self) -> bool {
        self.is_session() && !self.over && !self.follows
    }

    /// The team that is shown: the chosen one, else the first.
    pub(crate) fn team(&self) -> Option<&observe::live::TeamScene> {
        let chosen = self.team.as_deref().and_then(|name| self.scene.team(name));
        chosen.or_else(|| self.scene.teams.first())
    }

    /// Its name, also before it was seen.
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

    /// When the view has to be drawn again although nothing happens, in ms from now: the clock,
    /// while somebody works; a finished agent that folds away.
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
