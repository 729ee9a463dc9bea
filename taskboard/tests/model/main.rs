//! Random sequences of operations on a real board and on a naive model of it, compared after
//! every step.

#[cfg(test)]
mod generate;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod naive_task;
#[cfg(test)]
mod ops;
#[cfg(test)]
mod outcome;
#[cfg(test)]
mod real;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod view;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::atomic::Durability;
    use store::settings::LockMode;

    use crate::generate::sequence;
    use crate::naive::Model;
    use crate::ops::Op;
    use crate::real::{Real, Site};

    const START_MS: i64 = 1_700_000_000_000;

    fn cases(cases: u32) -> ProptestConfig {
        // The failing sequence is printed in full; a file of seeds would add nothing.
        ProptestConfig {
            cases,
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }

    fn compare(sequence: Vec<Op>, lock_mode: LockMode, durability: Durability) {
        compare_at(sequence, &Site::new(START_MS, lock_mode, durability));
    }

    fn compare_at(sequence: Vec<Op>, site: &Site) {
        let mut model = Model::new(START_MS);
        let mut real = Real::new(site);
        for mut op in sequence {
            op.settle(&model);
            let before = model.clone();
            let expected = model.apply(&op);
            let actual = real.apply(&op, &before);
            assert_eq!(
                actual, expected,
                "the board (left) answered {op:?}\non {before:#?}"
            );
            real.check(&model, &op);
        }
        real.check_at_the_end();
    }

    proptest! {
        #![proptest_config(cases(256))]
        #[test]
        fn the_board_does_what_the_rules_say(sequence in sequence()) {
            compare(sequence, LockMode::Flock, Durability::Relaxed);
        }
    }

    proptest! {
        #![proptest_config(cases(64))]
        #[test]
        fn the_board_does_the_same_with_lock_directories(sequence in sequence()) {
            compare(sequence, LockMode::Shared, Durability::Relaxed);
        }
    }

    proptest! {
        #![proptest_config(cases(48))]
        #[test]
        fn the_board_does_the_same_when_it_syncs(sequence in sequence()) {
            compare(sequence, LockMode::Shared, Durability::Full);
        }
    }

    proptest! {
        #![proptest_config(cases(256))]
        #[test]
        fn the_board_does_the_same_in_memory(mut sequence in sequence()) {
            // No other tool writes there.
            sequence.retain(|op| !matches!(op, Op::Foreign { .. }));
            compare_at(sequence, &Site::in_memory(START_MS));
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    #[ignore = "needs PostgreSQL: tests/postgres/run.sh"]
    fn the_board_does_the_same_in_a_database() {
        use proptest::test_runner::TestRunner;

        let Some(server) = database::throw_away::Server::start() else {
            return;
        };
        let database = database::Database::new(server.settings("ccb"));
        let components = [&database::COMMON, &taskboard::MIGRATIONS];
        database::migrate(&database, &components, false).unwrap();
        Site::take_over_clock(&database);
        let lists = std::cell::Cell::new(0);
        let done = TestRunner::new(cases(192)).run(&sequence(), |mut sequence| {
            // No other tool writes there.
            sequence.retain(|op| !matches!(op, Op::Foreign { .. }));
            lists.set(lists.get() + 1);
            let list = format!("list-{}", lists.get());
            compare_at(sequence, &Site::in_tables(START_MS, &database, &list));
            Ok(())
        });
        done.unwrap();
    }
}
