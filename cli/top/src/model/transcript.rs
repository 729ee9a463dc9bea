//! The transcript of the agent that the person looks at: its last entries, which of them is chosen
//! and which are unfolded.

use std::collections::{BTreeSet, VecDeque};

use observe::live::{Happened, TranscriptEntry};

use crate::model::AgentKey;

/// Maximum lines of a text until it is unfolded.
pub(crate) const FOLDED: usize = 4;
/// Maximum number of kept entries.
const KEPT: usize = 2000;

/// The entries read since the last time.
#[derive(Debug, Clone, Default)]
pub(crate) struct TranscriptNews {
    /// The number of the first entry that still exists.
    pub(crate) first: u64,
    /// The last entries: new ones, and those that may have changed.
    pub(crate) entries: Vec<TranscriptEntry>,
    /// True if there are earlier entries.
    pub(crate) earlier: bool,
    /// The reason why the transcript cannot be read; `None` if it can.
    pub(crate) trouble: Option<String>,
}

/// The transcript as the view shows it.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) agent: Option<AgentKey>,
    pub(crate) entries: VecDeque<TranscriptEntry>,
    pub(crate) earlier: bool,
    pub(crate) trouble: Option<String>,
    /// True if it was read at least once.
    pub(crate) read: bool,
    /// The number of the chosen entry; `None` at the end, where the view follows new ones.
    pub(crate) at: Option<u64>,
    /// The numbers of unfolded entries.
    pub(crate) unfolded: BTreeSet<u64>,
}

impl Transcript {
    /// Starts with the transcript of this agent.
    pub(crate) fn begin(&mut self, agent: AgentKey) {
        *self = Self {
            agent: Some(agent),
            ..Self::default()
        };
    }

    pub(crate) fn take(&mut self, agent: &AgentKey, news: TranscriptNews) {
        if self.agent.as_ref() != Some(agent) {
            return;
        }
        self.read = true;
        self.earlier = news.earlier;
        self.trouble = news.trouble;
        self.entries.retain(|entry| entry.number >= news.first);
        if let Some(first) = news.entries.first() {
            while self
                .entries
                .back()
                .is_some_and(|last| last.number >= first.number)
            {
                self.entries.pop_back();
            }
        }
        self.entries.extend(news.entries);
        while self.entries.len() > KEPT {
            self.entries.pop_front();
            self.earlier = true;
        }
        let there = |number: &u64| self.entries.iter().any(|entry| entry.number == *number);
        self.at = self.at.filter(there);
        let first = self.entries.front().map_or(0, |entry| entry.number);
        self.unfolded.retain(|number| *number >= first);
    }

    /// The position of the chosen entry; the last one where the view follows new ones.
    pub(crate) fn position(&self) -> usize {
        let last = self.entries.len().saturating_sub(1);
        let Some(at) = self.at else {
            return last;
        };
        let found = self.entries.iter().position(|entry| entry.number == at);
        found.unwrap_or(last)
    }

    /// Chooses another entry; after the last one the view follows new ones.
    pub(crate) fn go(&mut self, by: isize) {
        let last = self.entries.len().saturating_sub(1);
        let to = self.position().saturating_add_signed(by).min(last);
        self.at = match to == last {
            true => None,
            false => self.entries.get(to).map(|entry| entry.number),
        };
    }

    /// Unfolds the chosen entry, or folds it again; false if there is nothing to unfold.
    pub(crate) fn unfold(&mut self) -> bool {
        let Some(entry) = self.entries.get(self.position()) else {
            return false;
        };
        if !can_unfold(entry) {
            return false;
        }
        // Otherwise the next new entry would be the chosen one.
        self.at = Some(entry.number);
        if !self.unfolded.remove(&entry.number) {
            self.unfolded.insert(entry.number);
        }
        true
    }
}

/// True if an entry has more to show than its first lines.
fn can_unfold(entry: &TranscriptEntry) -> bool {
    match &entry.what {
        Happened::Tool { result, .. } => result.is_some(),
        Happened::Told { text, .. }
        | Happened::Said { text }
        | Happened::Printed { text, .. }
        | Happened::Received { text }
        | Happened::Note { text } => {
            text.lines().count() > FOLDED || text.chars().count() > 60 * FOLDED
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(numbers: std::ops::Range<u64>, text: &str) -> Vec<TranscriptEntry> {
        numbers
            .map(|number| TranscriptEntry {
                number,
                at_ms: 0,
                what: Happened::Said { text: text.into() },
            })
            .collect()
    }

    #[test]
    fn what_is_read_again_takes_the_place_of_what_was_read() {
        let key = AgentKey {
            team: "t".into(),
            id: "a".into(),
        };
        let mut shown = Transcript::default();
        shown.begin(key.clone());
        let news = |first, entries| TranscriptNews {
            first,
            entries,
            ..TranscriptNews::default()
        };
        shown.take(&key, news(1, entries(1..6, "old")));
        shown.go(-3);
        assert_eq!(shown.at, Some(2));
        shown.take(&key, news(1, entries(5..9, "new")));
        assert_eq!(shown.entries.len(), 8);
        assert_eq!(shown.at, Some(2), "what is looked at stays");
        shown.go(100);
        assert_eq!(shown.at, None, "the end is followed");
        // The file was cut off and began again.
        shown.take(&key, news(9, entries(9..10, "again")));
        assert_eq!(shown.entries.len(), 1);
        let other = AgentKey {
            team: "t".into(),
            id: "b".into(),
        };
        shown.take(&other, news(1, entries(1..6, "late")));
        assert_eq!(
            shown.entries.len(),
            1,
            "news of another agent come too late"
        );
    }
}
