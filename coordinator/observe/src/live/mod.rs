//! Everything that runs, for views that stay open: the terminal now, others later.
//!
//! [`Live`] is read from files; if board and mail are in a database, from there (by one
//! connection). It takes no lock and changes nothing, so any number of people can watch. A look
//! reads only the changes since the last one: lengths and times of files first, then the new ends
//! of transcripts. [`Waiter`] says when to look. The decisions of a person go through
//! `coordinator::perform`, which is the code of the commands and works from any process.
//!
//! ```no_run
//! # use std::time::Duration;
//! # use observe::live::{Live, Woken};
//! # use store::clock::{Clock, SystemClock};
//! # fn view(workplace: &project::workplace::Workplace) -> Result<(), store::Failure> {
//! let mut live = Live::open(workplace)?;
//! let mut waiter = live.waiter();
//! loop {
//!     let scene = live.look(SystemClock.now_ms());
//!     println!("{} teams, {} need you", scene.teams.len(), scene.attention.len());
//!     while waiter.wait(Duration::from_secs(60)) == Woken::TimeUp {}
//! }
//! # }
//! ```

mod board;
pub mod changes;
mod elsewhere;
mod habits;
mod outage;
mod post;
mod presence;
mod progress;
mod runs;
mod scene;
mod team;
mod transcript;
mod trees;
mod waiter;

use std::sync::{Arc, Mutex, PoisonError};

use project::workplace::Workplace;
use store::Failure;
use store::name::Name;
use store::text::clean_cut;

pub use self::changes::{Changes, changes};
use self::outage::Outage;
pub use self::progress::{
    AttemptScene, CheckState, DiffSize, Difference, Mark, MarkKind, RunProgress,
};
pub use self::scene::*;
use self::team::TeamReader;
pub use self::transcript::{Happened, ToolResult, TranscriptEntry, TranscriptReader};
use self::waiter::Pace;
pub use self::waiter::{Waiter, WaiterBell, Woken};
pub use crate::act::Act;
use crate::overview;

/// Poll interval for new teams, in ms.
const TEAMS_EVERY: i64 = 1_000;
/// Maximum characters of an error in a view.
const TROUBLE: usize = 300;

/// Everything that runs in one repository, or in one team of it if the workplace names one.
#[derive(Debug)]
pub struct Live {
    workplace: Workplace,
    teams: Vec<TeamReader>,
    /// The time of the last search for teams, and its error.
    searched: Option<i64>,
    trouble: Option<String>,
    before: Option<Scene>,
    outage: Arc<Outage>,
    pace: Arc<Mutex<Pace>>,
}

impl Live {
    /// Opens the view; reads nothing yet.
    pub fn open(workplace: &Workplace) -> Result<Self, Failure> {
        // An invalid name, or a team of another repository, is an error at once.
        workplace.agents()?;
        Ok(Self {
            workplace: workplace.for_view(),
            teams: Vec::new(),
            searched: None,
            trouble: None,
            before: None,
            outage: Arc::default(),
            pace: Arc::default(),
        })
    }

    /// Everything as it is now. Never fails: the scene lists read errors. Cheap when little has
    /// changed; ten looks a second are enough for any view.
    pub fn look(&mut self, now_ms: i64) -> Scene {
        let due = |at: i64| now_ms - at >= TEAMS_EVERY || now_ms < at;
        if self.searched.is_none_or(due) && self.outage.lasts(now_ms).is_none() {
            self.searched = Some(now_ms);
            self.search(now_ms);
        }
        let mut scene = Scene {
            at_ms: now_ms,
            troubles: self.trouble.iter().cloned().collect(),
            ..Scene::default()
        };
        for team in &mut self.teams {
            let found = team.look(now_ms);
            team.shown |= found.is_worth_showing(self.workplace.team_is_explicit());
            if team.shown {
                scene.attention.extend(found.attention.iter().cloned());
                scene.teams.push(found);
            }
        }
        if let Some(words) = self.outage.lasts(now_ms) {
            scene.troubles = vec![words];
        }
        scene.attention.sort_by_key(|one| one.need);
        let order = |team: &TeamScene| (team.life != TeamLife::Running, team.name.clone());
        scene.teams.sort_by_key(order);
        self.note(&scene);
        scene
    }

    /// Follows the transcript of an agent, by its id.
    pub fn transcript(&self, team: &str, agent: &str) -> Result<TranscriptReader, Failure> {
        let there = self.workplace.in_team(&Name::new("team", team)?);
        Ok(TranscriptReader::new(&there.agents()?.run(agent)))
    }

    /// A waiter for the next look; usable from its own thread.
    pub fn waiter(&self) -> Waiter {
        Waiter::new(Arc::clone(&self.pace))
    }

    /// Finds new teams. A known team is kept, also when it is gone.
    fn search(&mut self, now_ms: i64) {
        self.trouble = None;
        let names = match overview::teams_of(&self.workplace) {
            Ok(names) => names,
            Err(error) => {
                if self.workplace.is_in_database() {
                    self.outage.begin(error.kind(), error.message(), now_ms);
                }
                self.trouble = Some(clean_cut(&error.in_a_line(), TROUBLE));
                return;
            }
        };
        for name in names {
            if !self.teams.iter().any(|team| *team.name() == name) {
                let there = self.workplace.in_team(&name);
                let outage = Arc::clone(&self.outage);
                self.teams.push(TeamReader::new(name, there, outage));
            }
        }
    }

    /// Records whether something has changed, and where changes are possible.
    fn note(&mut self, scene: &Scene) {
        let same = self.before.as_ref().is_some_and(|before| {
            before.teams == scene.teams
                && before.attention == scene.attention
                && before.troubles == scene.troubles
        });
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.elsewhere = self.workplace.is_in_database();
        if same {
            // They are watched only when nothing happens.
            let teams = self.teams.iter().flat_map(TeamReader::dirs);
            pace.dirs = std::iter::once(self.workplace.home().teams())
                .chain(teams)
                .collect();
            pace.quiet = pace.quiet.saturating_add(1);
        } else {
            pace.quiet = 0;
            self.before = Some(scene.clone());
        }
    }
}
