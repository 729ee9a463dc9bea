use store::clock::ManualClock;
use store::settings::{Limits, QuotaSettings, TeamLimits};
use swarm::run::Meta;
use tempfile::TempDir;

use super::*;

const T0: i64 = 1_700_000_000_000;
const SECOND: i64 = 1000;

/// A team with a clock that is set by hand. Pauses of 10, 20, 40, 40, … seconds.
struct Team {
    dir: TempDir,
    clock: Arc<ManualClock>,
    fleet: Fleet,
}

impl Team {
    fn new(team: TeamLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(T0));
        let quota = QuotaSettings {
            first_pause: Duration::from_secs(10),
            longest_pause: Duration::from_secs(40),
            ..QuotaSettings::default()
        };
        let limits = Limits {
            team,
            quota,
            ..Limits::default()
        };
        let fleet = Fleet::open(dir.path(), FleetOptions::from(&limits));
        let fleet = fleet.with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        Self { dir, clock, fleet }
    }

    fn at(&self, seconds: i64) {
        self.clock.set(T0 + seconds * SECOND);
    }

    /// The answer to an agent that wants to begin a turn: 0, or the seconds it has to wait.
    fn enter(&self, id: &str) -> i64 {
        wait_of(&self.fleet.enter(id).unwrap(), self.fleet.now())
    }

    fn refused(&self, id: &str) {
        self.fleet.quota(id, None, "429").unwrap();
    }

    /// A supervised run, as long as the returned lock lives.
    fn alive(&self, id: &str) -> FileLock {
        let run = self.dir.path().join("runs").join(id);
        create_private_dir(&run).unwrap();
        let lock = FileLock::try_exclusive(&run.join("alive.lock")).unwrap();
        lock.expect("nobody has it")
    }

    fn active(&self, id: &str) {
        let dir = self.dir.path().join("runs/.active");
        create_private_dir(&dir).unwrap();
        atomic::open_private(&dir.join(id)).unwrap();
    }
}

fn wait_of(gate: &Gate, now: i64) -> i64 {
    match gate {
        Gate::Open => 0,
        other => (other.until().expect("a time") - now) / SECOND,
    }
}

fn tokens(count: u64) -> Usage {
    Usage {
        input_tokens: count,
        ..Usage::default()
    }
}

#[test]
fn one_refusal_holds_everybody_back_and_one_answer_lets_everybody_go_on() {
    let team = Team::new(TeamLimits::default());
    let _alive: Vec<FileLock> = ["a", "b", "c"].iter().map(|id| team.alive(id)).collect();
    assert_eq!(team.enter("a"), 0);
    team.refused("a");
    // Others whose calls were under way are refused, too: still one pause.
    team.at(1);
    team.refused("b");
    team.refused("c");
    assert_eq!(
        (team.enter("a"), team.enter("b"), team.enter("d")),
        (9, 9, 9)
    );
    // The pause is over: the first agent that asks tries, the others wait for it.
    team.at(10);
    assert_eq!(team.enter("b"), 0);
    assert_eq!(team.enter("b"), 0, "asking again changes nothing");
    assert!(team.enter("a") > 0);
    team.fleet.answered("a").unwrap();
    assert!(team.enter("a") > 0, "not the one who tries");
    team.fleet.answered("b").unwrap();
    assert_eq!((team.enter("a"), team.enter("c")), (0, 0));
    assert_eq!(team.fleet.gate().unwrap(), Gate::Open);
}

#[test]
fn pauses_that_do_not_help_get_longer_up_to_a_limit() {
    let team = Team::new(TeamLimits::default());
    let _alive = team.alive("a");
    let mut now = 0;
    let mut lengths = Vec::new();
    for _ in 0..5 {
        team.refused("a");
        let wait = team.enter("a");
        lengths.push(wait);
        now += wait;
        team.at(now);
        assert_eq!(team.enter("a"), 0, "it tries");
    }
    assert_eq!(lengths, [10, 20, 40, 40, 40]);
    // It helped, but not for long: as if it had not.
    team.fleet.answered("a").unwrap();
    team.at(now + 5);
    team.refused("a");
    assert_eq!(team.enter("a"), 40);
    team.at(now + 45);
    assert_eq!(team.enter("a"), 0);
    team.fleet.answered("a").unwrap();
    team.at(now + 1000);
    team.refused("a");
    assert_eq!(team.enter("a"), 10, "that was long ago");
}

#[test]
fn what_the_provider_asks_for_is_honoured_within_reason() {
    let team = Team::new(TeamLimits::default());
    let asked = |seconds| Some(Duration::from_secs(seconds));
    team.fleet.quota("a", asked(100), "429").unwrap();
    assert_eq!(team.enter("a"), 100, "longer than the longest of ours");
    team.fleet.quota("b", asked(300), "429").unwrap();
    assert_eq!(team.enter("a"), 300, "another one knows more");
    team.fleet.quota("b", asked(3), "429").unwrap();
    assert_eq!(team.enter("a"), 300, "it does not get shorter by that");
    team.fleet.cleared().unwrap();
    team.fleet.quota("a", asked(u64::MAX), "429").unwrap();
    assert_eq!(team.enter("a"), 24 * 3600);
    team.fleet.cleared().unwrap();
    assert_eq!(team.enter("a"), 0);
}

#[test]
fn one_who_tries_and_dies_or_takes_for_ever_is_replaced() {
    let team = Team::new(TeamLimits::default());
    let a = team.alive("a");
    let _b = team.alive("b");
    team.refused("a");
    team.at(10);
    assert_eq!(team.enter("a"), 0);
    assert_eq!(team.enter("b"), 300);
    drop(a);
    assert_eq!(team.enter("b"), 0, "the kernel says that it is gone");
    let _a = team.alive("a");
    assert!(team.enter("a") > 0);
    // The agent reports its own end.
    team.fleet.left("b", "b", &Usage::default()).unwrap();
    assert_eq!(team.enter("a"), 0);
    // It neither answers nor dies.
    team.at(10 + 299);
    assert!(team.enter("b") > 0);
    team.at(10 + 300);
    assert_eq!(team.enter("b"), 0);
}

#[test]
fn a_clock_that_is_set_back_holds_nobody_longer_than_the_pause_was() {
    let team = Team::new(TeamLimits::default());
    team.refused("a");
    team.at(-3600);
    assert_eq!(team.enter("b"), 10);
    assert_eq!(wait_of(&team.fleet.gate().unwrap(), team.fleet.now()), 10);
    team.at(-3600 + 6);
    assert_eq!(team.enter("b"), 4, "it counts by the new time from here on");
    team.at(-3600 + 10);
    let _b = team.alive("b");
    assert_eq!(team.enter("b"), 0);
    // Also for the agent that tries, and the other way round.
    team.at(-7200);
    assert_eq!(team.enter("a"), 10, "the pause itself counts again");
    team.at(100_000);
    assert_eq!(team.enter("a"), 0, "forward, everything is over");
}

#[test]
fn a_gate_asked_without_a_lock_settles_a_clock_that_was_set_back() {
    let team = Team::new(TeamLimits::default());
    team.refused("a");
    team.at(-3600);
    assert_eq!(wait_of(&team.fleet.gate().unwrap(), team.fleet.now()), 10);
    team.at(-3600 + 10);
    assert_eq!(team.fleet.gate().unwrap(), Gate::Open);
}

#[test]
fn so_many_are_started_per_minute() {
    let team = Team::new(TeamLimits {
        spawns_per_minute: Some(2),
        ..TeamLimits::default()
    });
    let admit = |id| wait_of(&team.fleet.admit(id, true).unwrap(), team.fleet.now());
    assert_eq!(admit("a"), 0);
    team.at(20);
    assert_eq!(admit("b"), 0);
    assert_eq!(admit("c"), 40);
    assert_eq!(wait_of(&team.fleet.gate().unwrap(), team.fleet.now()), 40);
    team.at(60);
    assert_eq!(admit("c"), 0);
    assert_eq!(admit("d"), 20);
    // A clock that was set back does not keep a count of the future.
    team.at(-3600);
    assert_eq!(admit("d"), 0);
}

#[test]
fn a_command_is_not_held_back_by_a_provider() {
    let team = Team::new(TeamLimits::default());
    team.refused("a");
    assert_eq!(team.fleet.admit("b", false).unwrap(), Gate::Open);
    assert_eq!(
        wait_of(&team.fleet.admit("c", true).unwrap(), team.fleet.now()),
        10
    );
    // The agent that starts when the pause is over is the one that tries.
    team.at(10);
    let _d = team.alive("d");
    assert_eq!(team.fleet.admit("d", true).unwrap(), Gate::Open);
    assert!(team.enter("a") > 0);
    assert_eq!(team.enter("d"), 0);
}

#[test]
fn what_is_used_is_counted_once_however_often_it_is_said() {
    let team = Team::new(TeamLimits {
        tokens: Some(100),
        ..TeamLimits::default()
    });
    let used = || team.fleet.account().unwrap().used.total_tokens();
    team.active("a");
    assert_eq!(team.fleet.spent("a", &tokens(30)).unwrap(), None);
    team.fleet.spent("a", &tokens(40)).unwrap();
    team.fleet.left("a", "a", &tokens(40)).unwrap();
    // Cut short, and repeated by another process.
    team.fleet.left("a", "a", &tokens(40)).unwrap();
    assert_eq!(used(), 40);
    // The agent's next life is another one.
    team.fleet.spent("a#2", &tokens(5)).unwrap();
    assert_eq!(used(), 45);
    // Lives that are over are added up, and stay counted.
    atomic::remove(&team.dir.path().join("runs/.active/a")).unwrap();
    team.active("b");
    assert_eq!(team.fleet.admit("b", true).unwrap(), Gate::Open);
    assert_eq!(used(), 45);
    let file = std::fs::read_to_string(team.dir.path().join(".ccb/fleet.json")).unwrap();
    assert!(!file.contains("\"a#2\""), "{file}");
    let what = team.fleet.spent("b", &tokens(55)).unwrap().unwrap();
    assert!(what.contains("100 tokens"), "{what}");
    assert!(matches!(team.fleet.gate().unwrap(), Gate::Spent { .. }));
    assert!(matches!(team.fleet.enter("b").unwrap(), Gate::Spent { .. }));
    // A new account: the earlier usage of running agents does not count again.
    team.fleet.reset().unwrap();
    assert_eq!(used(), 0);
    assert_eq!(team.fleet.spent("b", &tokens(60)).unwrap(), None);
    assert_eq!(used(), 5);
}

#[test]
fn money_and_time_run_out() {
    let team = Team::new(TeamLimits {
        cost_usd: Some(1.5),
        wall_clock: Some(Duration::from_secs(60)),
        ..TeamLimits::default()
    });
    assert_eq!(team.fleet.admit("a", true).unwrap(), Gate::Open);
    team.at(59);
    assert_eq!(team.fleet.admit("b", true).unwrap(), Gate::Open);
    team.at(60);
    let Gate::Spent { what } = team.fleet.gate().unwrap() else {
        panic!("its time is over");
    };
    assert!(what.contains("60 s"), "{what}");
    assert!(matches!(
        team.fleet.admit("b", true).unwrap(),
        Gate::Spent { .. }
    ));
    // Until the user opens a new account.
    team.fleet.reset().unwrap();
    assert_eq!(team.fleet.admit("c", true).unwrap(), Gate::Open);
    let cost = Usage {
        cost_usd: 1.5,
        ..Usage::default()
    };
    let what = team.fleet.spent("c", &cost).unwrap().unwrap();
    assert!(what.contains("$1.50"), "{what}");
}

#[test]
fn a_file_nobody_can_read_is_built_again_from_the_runs() {
    let team = Team::new(TeamLimits {
        tokens: Some(100),
        ..TeamLimits::default()
    });
    let write = |text: &str| {
        let dir = team.dir.path().join(".ccb");
        create_private_dir(&dir).unwrap();
        let path: &Path = &dir.join("fleet.json");
        atomic::replace(&dir, path, text.as_bytes(), Durability::Relaxed).unwrap();
    };
    let mut meta = Meta {
        agent_id: "a".into(),
        life: 2,
        usage: tokens(60),
        used_before: tokens(20),
        created_at: rfc3339(T0),
        ..Meta::default()
    };
    let run = |meta: &Meta| {
        let run = RunDir::new(&team.dir.path().join("runs"), &meta.agent_id);
        run.create(meta, "").unwrap()
    };
    let _held = run(&meta);
    for damage in ["", "{", "\0\0\0\0"] {
        write(damage);
        assert!(team.fleet.is_damaged().unwrap());
        assert_eq!(team.fleet.gate().unwrap(), Gate::Open, "nobody is paused");
        assert_eq!(team.fleet.account().unwrap().used, tokens(60));
        assert_eq!(team.fleet.account().unwrap().since, Some(rfc3339(T0)));
        team.fleet.repair().unwrap();
        assert!(!team.fleet.is_damaged().unwrap());
        // A life's usage is set, not added.
        assert_eq!(team.fleet.spent("a#2", &tokens(50)).unwrap(), None);
        assert_eq!(team.fleet.account().unwrap().used, tokens(70));
    }
    (meta.agent_id, meta.usage) = ("b".into(), tokens(80));
    let _held = run(&meta);
    write("");
    assert!(
        matches!(team.fleet.gate().unwrap(), Gate::Spent { .. }),
        "limits still hold"
    );
    write(r#"{"v":2}"#);
    assert_eq!(team.fleet.gate().unwrap(), Gate::Open, "read, not written");
    assert!(matches!(
        team.fleet.admit("a", true),
        Err(FleetError::Newer { found: 2, .. })
    ));
    // Unknown fields survive.
    write(r#"{"v":1,"later":[1]}"#);
    team.refused("a");
    let file = std::fs::read_to_string(team.dir.path().join(".ccb/fleet.json")).unwrap();
    assert!(file.contains("later"), "{file}");
}
