//! How many claims a second, beside the bare query. Ignored: it measures, and proves nothing. Run with
//! `cargo test --profile dist -p ccb-taskboard --features postgres --test database rate -- --ignored --nocapture`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use database::{Database, Type};
use taskboard::{Board, ClaimRequest, Next};

use crate::site::{Site, new};

const WORKERS: usize = 32;
const TIME: Duration = Duration::from_secs(10);

/// Puts `count` tasks on a list, all ready, without writing their history.
fn fill(site: &Site, list: &str, count: i64) {
    site.board(list).create(&[new("one")], None).unwrap();
    let sql = "INSERT INTO @.tasks (list, id, status, priority, chain, open_blockers, parked, \
        internal, checks, blocked_by, blocks, lease_token, body) \
        SELECT t.list, n, 0, 0, 1, 0, false, false, false, '{}', '{}', 0, \
        replace(t.body, '\"1\"', '\"' || n || '\"') \
        FROM @.tasks t, generate_series(2, $2) n \
        WHERE t.list = (SELECT id FROM @.lists WHERE name = $1) AND t.id = 1";
    let params = |session: &database::Session<'_>| {
        session.execute(sql, &[(&list, Type::TEXT), (&count, Type::INT8)])
    };
    let patient = Database::new(
        site.server
            .settings("ccb")
            .with_patience(Duration::from_secs(300)),
    );
    patient.read(params).unwrap();
    patient
        .read(|session| session.batch("VACUUM ANALYZE @.tasks"))
        .unwrap();
}

/// Calls `claim` from many threads for a while; returns how often a second, in the first and in the
/// last fifth of the time.
fn measure(claim: impl Fn(usize) -> bool + Sync) -> (f64, f64) {
    let start = Instant::now();
    let counts: Vec<AtomicU64> = (0..5).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (claim, counts) = (&claim, &counts);
            scope.spawn(move || {
                while start.elapsed() < TIME {
                    assert!(claim(worker), "nothing is left");
                    let fifth = (5 * start.elapsed().as_millis() / TIME.as_millis()).min(4);
                    counts[fifth as usize].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let rate = |n: usize| counts[n].load(Ordering::Relaxed) as f64 / (TIME.as_secs_f64() / 5.0);
    (rate(0), rate(4))
}

#[test]
#[ignore = "measures"]
fn claims_a_second() {
    let Some(site) = Site::with(&["fsync=on", "max_connections=100", "shared_buffers=512MB"])
    else {
        return;
    };
    for count in [100_000, 1_000_000] {
        let list = format!("rate-{count}");
        fill(&site, &list, count);
        let boards: Vec<Board> = (0..WORKERS)
            .map(|_| site.board_on(&Database::new(site.server.settings("ccb")), &list))
            .collect();
        let (first, last) = measure(|worker| {
            let request = ClaimRequest::new(format!("agent-{worker}"));
            matches!(
                boards[worker].claim_next(&request).unwrap(),
                Next::Claimed(_)
            )
        });
        println!("{count} tasks: {first:.0} claims/s, {last:.0} at the end");
        let bare = "CREATE TABLE @.bare (id bigint PRIMARY KEY, done boolean NOT NULL, body text); \
            INSERT INTO @.bare SELECT n, false, repeat('x', 80) FROM generate_series(1, 1000000) n; \
            CREATE INDEX ON @.bare (id) WHERE NOT done; VACUUM ANALYZE @.bare";
        let patient = Database::new(
            site.server
                .settings("ccb")
                .with_patience(Duration::from_secs(300)),
        );
        for statement in bare.split("; ") {
            patient.read(|session| session.batch(statement)).unwrap();
        }
        let all: Vec<Database> = (0..WORKERS)
            .map(|_| Database::new(site.server.settings("ccb")))
            .collect();
        let (first, last) = measure(|worker| {
            let claim = "UPDATE @.bare SET done = true WHERE id = (SELECT id FROM @.bare \
                WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)";
            all[worker]
                .read(|session| session.execute(claim, &[]))
                .unwrap()
                == 1
        });
        println!("bare query: {first:.0}/s, {last:.0} at the end");
        patient
            .read(|session| session.batch("DROP TABLE @.bare"))
            .unwrap();
    }
}
