//! The question at the end of a session: which finished work lands.

use std::process::Command;

use coordinator::session::Offer;
use store::counted;
use taskboard::{TaskId, Unchecked};

use super::typed::Typed;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW, clean_line};

/// An answer to the question about everything.
#[derive(Debug, PartialEq, Eq)]
enum All {
    Every,
    OneByOne,
    None,
    Diff,
}

fn read_all(answer: &str) -> Option<All> {
    match answer.trim().to_lowercase().as_str() {
        "a" | "all" | "y" | "yes" | "j" | "ja" => Some(All::Every),
        "o" | "one" | "one by one" => Some(All::OneByOne),
        "" | "n" | "no" | "none" => Some(All::None),
        "d" | "diff" => Some(All::Diff),
        _ => None,
    }
}

/// Asks until there is an answer. `say` prints a line; `give_up` returns true to end the wait.
pub(super) fn choose(
    typed: &Typed,
    into: &str,
    offers: &[Offer],
    say: &dyn Fn(&str),
    give_up: &dyn Fn() -> bool,
) -> Vec<TaskId> {
    say(&format!(
        "{BOLD}Finished, and not on {} yet:{BOLD:#}",
        clean_line(into)
    ));
    for offer in offers {
        say(&offer_line(offer));
    }
    let (question, choices) = match offers {
        [one] => (
            format!("Land it on {into}?{}", doubt(one)),
            "[y]es, [n]o (default), [d]iff",
        ),
        many => (
            format!("Land these {} on {into}?", counted(many.len(), "task")),
            "[a]ll, [o]ne by one, [n]one (default), [d]iff",
        ),
    };
    let (checked, unchecked): (Vec<&Offer>, Vec<&Offer>) =
        offers.iter().partition(|offer| offer.unchecked.is_none());
    let separate = !checked.is_empty() && !unchecked.is_empty();
    loop {
        let answer = typed.ask(&format!("{question} {choices}"), give_up);
        // The person has left.
        let Some(answer) = answer else {
            return Vec::new();
        };
        match read_all(&answer) {
            Some(All::Every) if separate => {
                let mut chosen: Vec<TaskId> = checked.iter().map(|offer| offer.task).collect();
                chosen.extend(one_by_one(typed, into, &unchecked, give_up));
                return chosen;
            }
            Some(All::Every) => return offers.iter().map(|offer| offer.task).collect(),
            Some(All::None) => return Vec::new(),
            Some(All::Diff) => offers.iter().for_each(|offer| show(typed, offer)),
            Some(All::OneByOne) => {
                let all: Vec<&Offer> = offers.iter().collect();
                return one_by_one(typed, into, &all, give_up);
            }
            None => say(&format!("Type one of: {choices}")),
        }
    }
}

fn one_by_one(
    typed: &Typed,
    into: &str,
    offers: &[&Offer],
    give_up: &dyn Fn() -> bool,
) -> Vec<TaskId> {
    let mut chosen = Vec::new();
    for offer in offers {
        loop {
            let subject: String = offer.subject.chars().take(40).collect();
            let question = format!(
                "Land #{} {subject} on {into}?{} [y]es, [n]o (default), [d]iff",
                offer.task,
                doubt(offer)
            );
            let answer = typed.ask(&question, give_up);
            match answer.as_deref().map(read_all) {
                Some(Some(All::Every)) => chosen.push(offer.task),
                Some(Some(All::Diff)) => {
                    show(typed, offer);
                    continue;
                }
                Some(Some(All::None)) => {}
                Some(_) => continue,
                None => return Vec::new(),
            }
            break;
        }
    }
    chosen
}

/// The reason not to land it unseen, as a part of the question.
fn doubt(offer: &Offer) -> String {
    match &offer.unchecked {
        None => String::new(),
        Some(why) => format!(" It is {}: {}.", Unchecked::MARK, clean_line(why)),
    }
}

fn offer_line(offer: &Offer) -> String {
    let known = |count: Option<u64>| count.unwrap_or_default();
    let added: u64 = offer.files.iter().map(|file| known(file.added)).sum();
    let deleted: u64 = offer.files.iter().map(|file| known(file.deleted)).sum();
    let size = match offer.files.len() {
        0 => String::new(),
        files => format!(
            "  {} {GREEN}+{added}{GREEN:#} {RED}-{deleted}{RED:#}",
            counted(files, "file")
        ),
    };
    let check = match &offer.unchecked {
        None => format!("  {GREEN}✔{GREEN:#} {DIM}check passed{DIM:#}"),
        Some(why) => format!(
            "  {YELLOW}{}{YELLOW:#} {DIM}{}{DIM:#}",
            Unchecked::MARK,
            clean_line(why)
        ),
    };
    format!(
        "  #{} {}{size}{check}",
        offer.task,
        clean_line(&offer.subject)
    )
}

/// Shows the changes with git itself: with the person's pager and colours.
fn show(typed: &Typed, offer: &Offer) {
    let Some((base, commit)) = &offer.range else {
        return;
    };
    typed.lend(|| {
        let mut git = Command::new("git");
        git.arg("-C").arg(&offer.repository);
        git.args(["diff", "--stat", "--patch", base, commit, "--"]);
        git.status().ok()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_words_or_their_first_letters() {
        assert_eq!(read_all(" A\n"), Some(All::Every));
        assert_eq!(read_all("yes"), Some(All::Every));
        assert_eq!(read_all("o"), Some(All::OneByOne));
        assert_eq!(read_all(""), Some(All::None));
        assert_eq!(read_all("d"), Some(All::Diff));
        assert_eq!(read_all("maybe"), None);
    }
}
