//! The promises of mail, for every place of mail.
//!
//! Every promise is a function of a [`Team`] that has no mail yet. [`every_promise`] makes a test
//! of each; the compiler reports a function that it does not name as never used.

pub(crate) mod broadcasts;
pub(crate) mod delivery;
pub(crate) mod keeping;
pub(crate) mod once;
pub(crate) mod requests;

use mailbox::{Draft, Limits, MailOptions, Mailbox, Posted};
use store::name::Name;

/// Somewhere to keep the mail of one team, which several "processes" can open.
pub(crate) struct Team {
    /// The limits of the next mailbox that opens.
    pub(crate) limits: Limits,
    /// Opens it as a new process would: without earlier state. Of the options only limits and
    /// secrets count.
    pub(crate) open_with: Box<dyn Fn(MailOptions) -> Mailbox + Send + Sync>,
    /// The clock that counts there, in milliseconds since the epoch.
    pub(crate) now: Box<dyn Fn() -> i64 + Send + Sync>,
    /// Lets so many milliseconds pass on that clock.
    pub(crate) pass: Box<dyn Fn(i64) + Send + Sync>,
}

impl Team {
    pub(crate) fn open(&self) -> Mailbox {
        (self.open_with)(MailOptions {
            limits: self.limits,
            ..MailOptions::default()
        })
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new("agent", text).unwrap()
}

pub(crate) fn text(from: &str, to: &str, text: &str) -> Draft {
    Draft::text(name(from), name(to), text)
}

/// Sends from `a` to `bob`.
pub(crate) fn send(mailbox: &Mailbox, words: &str) -> Posted {
    mailbox.send(&text("a", "bob", words)).unwrap()
}

/// Everything in an inbox that is kept, by number.
pub(crate) fn kept(mailbox: &Mailbox, agent: &str) -> Vec<(u64, String)> {
    let listing = mailbox.inbox(&name(agent)).unwrap().list(true).unwrap();
    let messages = listing.messages.into_iter();
    messages
        .map(|(message, _)| (message.seq, message.text().unwrap().to_owned()))
        .collect()
}

/// Texts as the first messages of an inbox.
pub(crate) fn numbered(expected: &[&str]) -> Vec<(u64, String)> {
    (1..)
        .zip(expected)
        .map(|(seq, text)| (seq, (*text).to_owned()))
        .collect()
}

/// A test for every promise; `$team` makes a [`Team`] without mail.
macro_rules! every_promise {
    ($team:expr) => {
        $crate::mail_suite::promises! { $team;
            broadcasts: everyone_but_the_sender_gets_it_in_order,
            broadcasts: one_full_inbox_stops_it_for_all,
            broadcasts: a_view_sees_what_passes,
            broadcasts: many_at_once_are_in_the_same_order_for_everyone,
            broadcasts: what_is_not_for_all_is_refused,
            delivery: a_follower_sees_everything_once,
            delivery: a_reader_is_woken,
            delivery: a_waiting_reader_is_woken,
            delivery: a_second_reader_is_refused_and_told_who_reads,
            delivery: expired_messages_are_counted_and_not_handed_over,
            delivery: many_senders_at_once_leave_no_gap,
            delivery: messages_are_numbered_without_gaps_and_handed_over_in_order,
            delivery: names_that_differ_only_in_case_are_one_inbox,
            delivery: one_message_can_be_read_again_by_its_number,
            delivery: priority_comes_before_age,
            delivery: states_are_seen_by_others,
            delivery: what_a_dead_reader_did_not_acknowledge_comes_again_and_says_so,
            keeping: any_text_survives,
            keeping: old_messages_go_once_they_are_acknowledged,
            keeping: secrets_are_not_kept,
            keeping: too_many_bytes_are_refused,
            keeping: too_much_unread_is_refused_and_reading_makes_room,
            keeping: what_is_too_long_is_refused_with_a_hint,
            once: a_repeat_is_dropped_after_the_first_is_gone,
            once: a_repeat_is_dropped_by_every_process,
            once: becoming_idle_is_told_once_per_edge,
            once: the_oldest_ids_are_forgotten_in_the_end,
            once: unknown_kinds_are_not_sent,
            requests: a_late_answer_is_refused_and_the_asker_told_that_nobody_answered,
            requests: a_request_is_answered_once_by_the_one_who_was_asked,
            requests: a_request_nobody_can_be_told_of_is_not_made,
            requests: an_answer_stands_if_the_asker_has_no_room_for_it,
            requests: every_kind_of_request_has_its_answer,
            requests: many_answers_at_once_and_one_counts,
            requests: old_requests_go_once_there_are_many,
            requests: requests_and_answers_cannot_simply_be_sent,
            requests: unknown_ids_are_not_found_and_never_paths,
        }
    };
}

macro_rules! promises {
    ($team:expr; $($module:ident: $promise:ident,)+) => {
        $(#[test]
        fn $promise() {
            $crate::mail_suite::$module::$promise(&mut $team);
        })+
    };
}

pub(crate) use {every_promise, promises};
