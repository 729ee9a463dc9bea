use serde::{Deserialize, Serialize};

/// A set of sequence numbers, kept as ranges because they mostly come in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl From<Vec<(u64, u64)>> for Ranges {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut ranges = Self::default();
        for (first, last) in pairs.into_iter().filter(|(first, last)| first <= last) {
            ranges.insert_all(first, last);
        }
        ranges
    }
}

impl From<Ranges> for Vec<(u64, u64)> {
    fn from(ranges: Ranges) -> Self {
        ranges.0
    }
}

impl Ranges {
    pub(crate) fn contains(&self, seq: u64) -> bool {
        let after = self.0.partition_point(|(_, last)| *last < seq);
        self.0.get(after).is_some_and(|(first, _)| *first <= seq)
    }

    pub(crate) fn insert(&mut self, seq: u64) {
        self.insert_all(seq, seq);
    }

    fn insert_all(&mut self, mut first: u64, mut last: u64) {
        // Ranges that overlap or touch become one with it.
        let from = self
            .0
            .partition_point(|(_, end)| end.saturating_add(1) < first);
        let to = self
            .0
            .partition_point(|(start, _)| *start <= last.saturating_add(1));
        if let Some((start, _)) = self.0.get(from)
            && from < to
        {
            first = first.min(*start);
            last = last.max(self.0[to - 1].1);
        }
        self.0.splice(from..to.max(from), [(first, last)]);
    }

    /// Forgets everything up to `mark`.
    pub(crate) fn forget_up_to(&mut self, mark: u64) {
        self.0.retain(|(_, last)| *last > mark);
        if let Some((first, _)) = self.0.first_mut() {
            *first = (*first).max(mark.saturating_add(1));
        }
    }

    /// Forgets everything above `limit`.
    pub(crate) fn forget_above(&mut self, limit: u64) {
        self.0.retain(|(first, _)| *first <= limit);
        if let Some((_, last)) = self.0.last_mut() {
            *last = (*last).min(limit);
        }
    }

    /// The highest number in it, 0 if there is none.
    pub(crate) fn max(&self) -> u64 {
        self.0.last().map_or(0, |(_, last)| *last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(seqs in prop::collection::vec(0u64..60, 0..80), mark in 0u64..60) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for seq in seqs {
                ranges.insert(seq);
                set.insert(seq);
            }
            prop_assert!(ranges.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            prop_assert!((0..70).all(|seq| ranges.contains(seq) == set.contains(&seq)));
            ranges.forget_up_to(mark);
            set.retain(|seq| *seq > mark);
            prop_assert!((0..70).all(|seq| ranges.contains(seq) == set.contains(&seq)));
            prop_assert_eq!(ranges.max(), set.last().copied().unwrap_or(0));
            ranges.forget_above(mark + 9);
            set.retain(|seq| *seq <= mark + 9);
            prop_assert!((0..70).all(|seq| ranges.contains(seq) == set.contains(&seq)));
            let text = serde_json::to_string(&ranges).unwrap();
            prop_assert_eq!(serde_json::from_str::<Ranges>(&text).unwrap(), ranges);
        }
    }
}
