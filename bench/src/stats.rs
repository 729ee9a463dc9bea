//! Statistics of many measurements.

use std::time::Duration;

/// The value below which the share `q` (0 to 1) of the sorted values lies; 0 if there are none.
pub(crate) fn percentile(sorted: &[u64], q: f64) -> u64 {
    if sorted.is_empty() {
        return 0;
    }
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// The median wait at a random moment: half of all waiting time was spent in waits up to this long.
/// 0 if there are none.
pub(crate) fn median_by_time(sorted: &[u64]) -> u64 {
    let half = sorted.iter().sum::<u64>() / 2;
    let mut passed = 0;
    for wait in sorted {
        passed += wait;
        if passed >= half {
            return *wait;
        }
    }
    0
}

/// Jain's fairness index: 1 if all got the same, 1/n if one got everything.
pub(crate) fn jain(counts: &[u64]) -> f64 {
    let sum: f64 = counts.iter().map(|c| *c as f64).sum();
    let squares: f64 = counts.iter().map(|c| (*c as f64).powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    sum * sum / (counts.len() as f64 * squares)
}

/// Median and 99th percentile of some durations.
#[derive(Debug)]
pub(crate) struct Spread {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) count: usize,
}

impl Spread {
    pub(crate) fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let nanos: Vec<u64> = samples.iter().map(|d| d.as_nanos() as u64).collect();
        Self {
            p50: Duration::from_nanos(percentile(&nanos, 0.5)),
            p99: Duration::from_nanos(percentile(&nanos, 0.99)),
            count: nanos.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(percentile(&hundred, 0.5), 50);
        assert_eq!(percentile(&hundred, 0.99), 99);
        assert_eq!(percentile(&hundred, 1.0), 100);
        assert_eq!(percentile(&[7], 0.01), 7);
        assert_eq!(percentile(&[], 0.5), 0);
    }

    #[test]
    fn a_long_wait_counts_by_its_length() {
        assert_eq!(median_by_time(&[1, 1, 1, 1]), 1);
        assert_eq!(median_by_time(&[1, 1, 1, 1, 100]), 100);
        assert_eq!(median_by_time(&[]), 0);
    }

    #[test]
    fn jain_runs_from_one_over_n_to_one() {
        assert!((jain(&[5, 5, 5, 5]) - 1.0).abs() < 1e-9);
        assert!((jain(&[20, 0, 0, 0]) - 0.25).abs() < 1e-9);
        assert_eq!(jain(&[0, 0]), 0.0);
    }
}
