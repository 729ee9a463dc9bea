//! Reads one team repeatedly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landing::LandState;
use mailbox::Mailbox;
use project::workplace::Workplace;
use runs::fleet::{Fleet, Gate};
use runs::session_file::{SessionFile, TeamSession};
use store::Explain;
use store::atomic::Stamp;
use store::clock::parse_rfc3339;
use store::lock::FileLock;
use store::name::Name;
use store::text::{clean, clean_cut, clean_line};
use taskboard::{Glance, TaskId};
use worktrees::Trees;

use super::board::{graph_of, tasks_of};
use super::elsewhere::Elsewhere;
use super::outage::Outage;
use super::post::{OpenRequests, Post, mailbox_of};
use super::presence::{Presence, Present};
use super::progress::{self, Rest, Tally, Times};
use super::runs::Runs;
use super::scene::{DirectorScene, GraphScene, LeadScene, TaskScene, TeamLife, TeamScene, Totals};
use super::trees::Sizes;
use super::{RunProgress, TROUBLE};
use crate::overview::attention::{self, BoardNeeds, Seen};
use crate::overview::{Counts, Kind};

/// Poll interval in ms for values that seldom change, or are expensive to read.
const SELDOM: i64 = 1_000;
/// Without a session, agents that ended longer ago than this are left out, in ms.
const RECENT: i64 = 60 * 60 * 1000;

/// Reads one team.
#[derive(Debug)]
pub(super) struct TeamReader {
    name: Name,
    workplace: Workplace,
    dir: PathBuf,
    engine_lock: PathBuf,
    plan_lock: PathBuf,
    session_file: SessionFile,
    session: Cached<(Option<TeamSession>, Option<u64>)>,
    account: Cached<Totals>,
    fleet: Fleet,
    runs: Runs,
    board: Glance,
    times: Times,
    board_shown: Board,
    sizes: Sizes,
    mailbox: Option<Mailbox>,
    post: Post,
    requests: OpenRequests,
    trees: Option<Trees>,
    director: Option<DirectorScene>,
    presence: Presence,
    /// Its agents on other machines, if it can be on several.
    elsewhere: Option<Elsewhere>,
    outage: Arc<Outage>,
    /// True if it had something to show; then it is kept in view, also when it is gone.
    pub(super) shown: bool,
    last: Option<TeamScene>,
}

/// A file's content, as long as the file is the same.
#[derive(Debug, Default)]
struct Cached<T> {
    stamp: Option<Stamp>,
    looked: Option<i64>,
    value: T,
    trouble: Option<String>,
}

/// The values that follow from the board, as long as it is the same.
#[derive(Debug, Default)]
struct Board {
    tasks: Arc<Vec<TaskScene>>,
    counts: Counts,
    graph: Arc<GraphScene>,
    tally: Tally,
    needs: BoardNeeds,
    /// True if it belongs to a plan.
    planned: bool,
    landings: BTreeMap<TaskId, LandState>,
    /// The stamps of the files that record landings.
    stamps: Vec<Option<Stamp>>,
    looked: Option<i64>,
}

pub(super) fn stamp_of(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|meta| Stamp::of(&meta))
}

fn is_due(at: Option<i64>, now_ms: i64) -> bool {
    at.is_none_or(|at| now_ms - at >= SELDOM || now_ms < at)
}

impl<T> Cached<T> {
    /// Reads again if the file has changed, or if its meaning may have changed with time.
    fn refresh<E: std::fmt::Display>(
        &mut self,
        path: &Path,
        again: bool,
        now_ms: i64,
        read: impl FnOnce() -> Result<T, E>,
    ) {
        let stamp = stamp_of(path);
        let due = again && is_due(self.looked, now_ms);
        if self.looked.is_some() && stamp == self.stamp && !due {
            return;
        }
        (self.stamp, self.looked) = (stamp, Some(now_ms));
        match read() {
            Ok(value) => (self.value, self.trouble) = (value, None),
            // The view shows the last known value.
            Err(error) => self.trouble = Some(clean_cut(&error.to_string(), TROUBLE)),
        }
    }
}

impl TeamReader {
    pub(super) fn new(name: Name, workplace: Workplace, outage: Arc<Outage>) -> Self {
        let shared = workplace.is_in_database();
        let elsewhere = shared.then(|| Elsewhere::new(workplace.team_named(name.clone())));
        let home = workplace.home();
        let dir = home.team(&name);
        let list = (!shared).then(|| home.list(&name));
        let mail = workplace.mailbox_to_look_at(&name, workplace.mail_options());
        let board = workplace.board();
        let options = swarm::run::RunOptions::from(workplace.settings());
        Self {
            engine_lock: dir.join(".ccb/engine.lock"),
            plan_lock: fanout::lock_of(&dir),
            session_file: SessionFile::new(home, &name),
            session: Cached::default(),
            account: Cached::default(),
            fleet: Fleet::open(&dir, options.fleet),
            runs: Runs::new(&dir.join("runs")),
            board: board.glance(),
            times: Times::default(),
            board_shown: Board::default(),
            sizes: Sizes::default(),
            mailbox: mailbox_of(&workplace, &name),
            post: Post::of(&mail),
            requests: OpenRequests::default(),
            trees: workplace.trees().ok(),
            director: None,
            presence: Presence::new(workplace.team_named(name.clone()), list),
            elsewhere,
            outage,
            shown: false,
            last: None,
            dir,
            name,
            workplace,
        }
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    /// The directories in which changes are possible.
    pub(super) fn dirs(&self) -> Vec<PathBuf> {
        let board = self.workplace.home().list(&self.name);
        let mut dirs = vec![
            self.dir.join("runs"),
            self.dir.join("requests"),
            self.dir.join(".ccb"),
            self.dir.clone(),
            board,
        ];
        dirs.extend(self.runs.dirs());
        dirs
    }

    /// The team as it is now.
    pub(super) fn look(&mut self, now_ms: i64) -> TeamScene {
        let Some(mut present) = self.present(now_ms) else {
            return self.last.clone().unwrap_or_else(|| empty(&self.name));
        };
        if present != Present::Gone && self.is_vanished() {
            // A new team of the same name: the old state does not apply to it.
            let outage = Arc::clone(&self.outage);
            *self = Self::new(self.name.clone(), self.workplace.clone(), outage);
            present = self.present(now_ms).unwrap_or(present);
        }
        if present == Present::Yes || self.last.is_none() {
            let scene = self.read(now_ms);
            // Half of it may be gone by the time the other half is read, or the database may not
            // answer.
            let found = self.present(now_ms);
            present = found.unwrap_or(present);
            let whole = found == Some(Present::Yes);
            if whole || self.last.is_none() {
                self.last = Some(scene);
            }
        }
        match present {
            Present::Yes => {}
            Present::BeingDeleted => return self.leaving(),
            Present::Gone => self.vanish(),
        }
        self.last.clone().unwrap_or_else(|| empty(&self.name))
    }

    /// The existence of the team; `None` if it cannot be determined now.
    fn present(&mut self, now_ms: i64) -> Option<Present> {
        if self.outage.lasts(now_ms).is_some() {
            return None;
        }
        let present = self.presence.now(now_ms);
        let failed = present.inspect_err(|error| {
            self.outage.begin(error.kind(), &error.to_string(), now_ms);
        });
        failed.ok()
    }

    fn is_vanished(&self) -> bool {
        let last = self.last.as_ref();
        last.is_some_and(|last| last.life == TeamLife::Vanished)
    }

    /// The scene from before the deletion began.
    fn leaving(&self) -> TeamScene {
        let name = &self.name;
        let last = self.last.clone().unwrap_or_else(|| empty(name));
        TeamScene {
            attention: Vec::new(),
            troubles: vec![format!(
                "team {name} is being deleted; if that was cut short, `ccb team delete {name}` \
                 finishes it"
            )],
            ..last
        }
    }

    /// The last scene, without agents.
    fn vanish(&mut self) {
        let name = &self.name;
        let scene = self.last.get_or_insert_with(|| empty(name));
        if scene.life == TeamLife::Vanished {
            return;
        }
        scene.life = TeamLife::Vanished;
        scene.director = None;
        scene.attention.clear();
        for agent in &mut scene.agents {
            agent.alive = false;
        }
        scene.troubles = vec![format!(
            "team {name} is gone: somebody deleted it, or its home was removed"
        )];
    }

    fn read(&mut self, now_ms: i64) -> TeamScene {
        let mut scene = empty(&self.name);
        self.read_session(now_ms, &mut scene);
        self.read_board(now_ms, &mut scene);
        self.read_totals(now_ms, &mut scene);
        let running = self.read_director(&mut scene);
        let since = match (scene.since_ms, scene.life) {
            (Some(since), _) => since,
            (None, _) => now_ms - RECENT,
        };
        let found = self.runs.look(since, Some(self.board.snapshot()), now_ms);
        (scene.agents, scene.earlier_agents) = (found.agents, found.earlier);
        scene.troubles.extend(found.troubles);
        if let Some(elsewhere) = &mut self.elsewhere {
            let board = self.board.snapshot();
            let (agents, trouble) = elsewhere.look(board, &scene.agents, now_ms);
            scene.agents.extend(agents);
            scene.troubles.extend(trouble);
        }
        if scene.totals.token_limit.is_none() {
            // If no limit counts the usage, the sum of all agents is shown.
            let tokens = scene.agents.iter().map(|agent| agent.tokens).sum();
            scene.totals.tokens = scene.totals.tokens.max(tokens);
        }
        if let Some(mailbox) = &self.mailbox {
            scene.troubles.extend(self.requests.look(mailbox, now_ms));
        }
        scene.mail = self.post.look(now_ms);
        scene.progress = self.progress(&scene);
        scene.attention = self.needs(&scene, running, now_ms);
        scene.troubles.sort();
        scene.troubles.dedup();
        scene
    }

    fn read_session(&mut self, now_ms: i64, scene: &mut TeamScene) {
        let file = &self.session_file;
        self.session
            .refresh(&file.path(), false, now_ms, || file.glance());
        scene.troubles.extend(self.session.trouble.clone());
        let (Some(session), _) = &self.session.value else {
            return;
        };
        scene.kind = match session.has_coordinator() {
            true => Kind::Coordinator,
            false => Kind::Session,
        };
        scene.prompt = session.prompt.as_deref().map(clean);
        scene.lead = match session.lead {
            Some(_) => LeadScene::Agent(session.lead_run.clone()),
            None => LeadScene::Person,
        };
        scene.into = session.into.as_deref().map(clean_line);
        scene.merge = clean_line(&session.merge);
        scene.since_ms = parse_rfc3339(&session.started_at);
        scene.ended_ms = session.ended_at.as_deref().and_then(parse_rfc3339);
    }

    /// Reads the director; returns true if there is one.
    fn read_director(&mut self, scene: &mut TeamScene) -> bool {
        let held = |lock: &Path| store::lock::is_held(lock).unwrap_or(false);
        let plan = held(&self.plan_lock);
        let lock = match plan {
            true => Some(&self.plan_lock),
            false => Some(&self.engine_lock).filter(|lock| held(lock)),
        };
        if scene.kind == Kind::Board && (plan || self.board_shown.planned) {
            scene.kind = Kind::Fanout;
        }
        let newer = self.session.value.1;
        self.director = match (lock, self.director.take()) {
            (None, _) => None,
            // The holder does not change while the lock is held.
            (Some(_), Some(known)) => Some(DirectorScene { newer, ..known }),
            (Some(lock), None) => Some(DirectorScene {
                who: clean_line(&FileLock::describe_holder(lock)),
                newer,
            }),
        };
        if let Some(format) = newer {
            scene.troubles.push(format!(
                "team {} is run by a newer ccb (format {format}): not everything can be shown or \
                 changed here",
                self.name
            ));
        }
        scene.director.clone_from(&self.director);
        let session = self.session.value.0.is_some();
        scene.life = match (self.director.is_some(), session, scene.ended_ms) {
            (true, ..) => TeamLife::Running,
            (false, true, None) => TeamLife::Interrupted,
            (false, true, Some(_)) => TeamLife::Ended,
            (false, false, _) => TeamLife::Open,
        };
        self.director.is_some()
    }

    fn read_totals(&mut self, now_ms: i64, scene: &mut TeamScene) {
        let limits = &self.workplace.settings().limits.team;
        let fleet = &self.fleet;
        // A pause ends, and a deadline passes, without a change of the file.
        self.account.refresh(&fleet.path(), true, now_ms, || {
            let (gate, used) = fleet.glance()?;
            let mut totals = Totals {
                tokens: used.total_tokens(),
                cost_usd: used.cost_usd,
                tool_uses: used.tool_uses,
                token_limit: limits.tokens,
                cost_limit_usd: limits.cost_usd,
                ..Totals::default()
            };
            match gate {
                Gate::Spent { what } => totals.spent = Some(clean_line(&what)),
                Gate::Paused { until, reason } => {
                    totals.paused = Some((until, clean_cut(&reason, TROUBLE)));
                }
                Gate::Open | Gate::Crowded { .. } => {}
            }
            Ok::<_, runs::fleet::FleetError>(totals)
        });
        scene.troubles.extend(self.account.trouble.clone());
        scene.totals = self.account.value.clone();
    }

    fn read_board(&mut self, now_ms: i64, scene: &mut TeamScene) {
        let mut changed = match self.board.look(now_ms) {
            Ok(changed) => changed,
            Err(error) => {
                if self.elsewhere.is_some() {
                    self.outage.begin(error.kind(), &error.to_string(), now_ms);
                }
                scene.troubles.push(clean_cut(&error.to_string(), TROUBLE));
                false
            }
        };
        match self.board.history() {
            Ok(changes) if changes.is_empty() => {}
            Ok(changes) => {
                self.times.take(&changes);
                changed = true;
            }
            Err(error) => scene.troubles.push(clean_cut(&error.to_string(), TROUBLE)),
        }
        changed |= self.read_landings(changed, now_ms);
        if changed || self.board_shown.looked.is_none() {
            let board = self.board.snapshot();
            self.board_shown.tasks =
                Arc::new(tasks_of(board, &self.times, &self.board_shown.landings));
            self.board_shown.counts = Counts::of(board);
            self.board_shown.graph = Arc::new(graph_of(board));
            self.board_shown.tally = Tally::of(board, &self.board_shown.graph.critical_path);
            self.board_shown.needs = BoardNeeds::of(board, self.name.as_str());
            let mut tasks = board.tasks();
            self.board_shown.planned = tasks.any(|task| fanout::planned_as(task).is_some());
        }
        if let Some(trees) = &self.trees {
            let runs = self.dir.join("runs");
            let tasks = &mut self.board_shown.tasks;
            self.sizes.fill(tasks, &runs, trees.main_tree());
        }
        scene.tasks.clone_from(&self.board_shown.tasks);
        scene.counts = self.board_shown.counts.clone();
        scene.graph.clone_from(&self.board_shown.graph);
    }

    /// Reads the landings, if they may have changed; returns true if they have.
    fn read_landings(&mut self, board_changed: bool, now_ms: i64) -> bool {
        if !board_changed && !is_due(self.board_shown.looked, now_ms) {
            return false;
        }
        self.board_shown.looked = Some(now_ms);
        let Some(trees) = &self.trees else {
            return false;
        };
        let files = trees.record_files();
        let stamps: Vec<Option<Stamp>> = files.iter().map(|file| stamp_of(file)).collect();
        if !board_changed && stamps == self.board_shown.stamps {
            return false;
        }
        let (list, shared) = (self.name.as_str(), self.elsewhere.is_some());
        let Ok(found) = landing::standings(self.board.snapshot(), list, trees, shared) else {
            return false;
        };
        self.board_shown.stamps = stamps;
        let changed = found != self.board_shown.landings;
        self.board_shown.landings = found;
        changed
    }

    fn progress(&self, scene: &TeamScene) -> RunProgress {
        let tally = &self.board_shown.tally;
        let mates = self.session.value.0.as_ref().map_or(0, |now| now.mates);
        let working = scene.agents.iter().filter(|agent| agent.alive).count();
        let rest = Rest::of(tally, mates.max(working));
        let cost: f64 = scene.agents.iter().map(|agent| agent.cost_usd).sum();
        let cost = cost.max(scene.totals.cost_usd);
        progress::of_run(tally, &self.times, rest, cost)
    }

    fn needs(&self, scene: &TeamScene, running: bool, now_ms: i64) -> Vec<attention::Attention> {
        // The actions of agents on other machines are unknown here.
        let silent = scene.agents.iter().filter(|agent| agent.alive);
        let silent = silent.filter(|agent| agent.machine.is_none());
        let silent = silent.filter_map(|agent| {
            let runs = agent.state == swarm::run::RunState::Running;
            let last = Some(agent.last_ms.unwrap_or(agent.since_ms));
            let how = attention::silence(agent.stalled.as_deref(), runs, last, now_ms)?;
            Some((agent.name.clone(), how))
        });
        let waiting = self.board_shown.landings.iter();
        let waiting = waiting.filter(|(_, state)| **state == LandState::Waiting);
        let unlanded: Vec<TaskId> = waiting.map(|(id, _)| *id).collect();
        let mut all = attention::of_team(&Seen {
            name: &scene.name,
            kind: scene.kind,
            running,
            cut_short: scene.life == TeamLife::Interrupted,
            requests: self.requests.all(),
            silent: silent.collect(),
            spent: scene.totals.spent.as_deref(),
            board: Some(&self.board_shown.needs),
            unlanded: &unlanded,
        });
        all.sort_by_key(|one| one.need);
        all
    }
}

impl TeamScene {
    /// True if there is something to show: not for a list that was never used.
    pub(super) fn is_worth_showing(&self, named: bool) -> bool {
        let nothing = self.agents.is_empty() && self.counts.total() == 0 && self.mail.is_empty();
        named || !nothing || self.lead != LeadScene::Nobody || self.life != TeamLife::Open
    }
}

fn empty(name: &Name) -> TeamScene {
    TeamScene {
        name: name.to_string(),
        kind: Kind::Board,
        life: TeamLife::Open,
        director: None,
        lead: LeadScene::Nobody,
        prompt: None,
        into: None,
        merge: String::new(),
        since_ms: None,
        ended_ms: None,
        agents: Vec::new(),
        earlier_agents: 0,
        tasks: Arc::default(),
        counts: Counts::default(),
        graph: Arc::default(),
        mail: Vec::new(),
        progress: RunProgress::default(),
        totals: Totals::default(),
        attention: Vec::new(),
        troubles: Vec::new(),
    }
}
