//! The promises of mail behind PgBouncer in transaction mode: notifications do not arrive, and two
//! transactions of one process may be on different connections.

use std::sync::Arc;

use database::throw_away::Bouncer;
use database::{Secrets, Settings};

use crate::mail_suite::{Team, broadcasts, delivery, once, requests};
use crate::{server, team_on};

#[test]
fn mail_keeps_its_promises_where_transactions_are_pooled() {
    let Some(server) = server() else { return };
    let Some(bouncer) = Bouncer::start(&server, 3) else {
        return;
    };
    let promises: [fn(&mut Team); 9] = [
        delivery::messages_are_numbered_without_gaps_and_handed_over_in_order,
        delivery::many_senders_at_once_leave_no_gap,
        delivery::a_waiting_reader_is_woken,
        delivery::a_second_reader_is_refused_and_told_who_reads,
        delivery::what_a_dead_reader_did_not_acknowledge_comes_again_and_says_so,
        broadcasts::many_at_once_are_in_the_same_order_for_everyone,
        once::a_repeat_is_dropped_by_every_process,
        requests::a_request_is_answered_once_by_the_one_who_was_asked,
        requests::many_answers_at_once_and_one_counts,
    ];
    for promise in promises {
        let (at, port) = (Arc::clone(&server), bouncer.port());
        let mut team = team_on(&server, move |schema| {
            Settings::parse(&at.url_at(port, schema), &Secrets::default()).unwrap()
        });
        promise(&mut team);
    }
}
