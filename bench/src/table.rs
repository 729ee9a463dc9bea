//! Markdown tables that can also be read as plain text.

use std::fmt;
use std::time::Duration;

/// A table under construction.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Number of columns, from the left, that hold words and not numbers.
    words: usize,
}

impl Table {
    /// A table with these column heads; the first `words` columns are set to the left.
    pub(crate) fn new(words: usize, head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self {
            rows: vec![head],
            words,
        }
    }

    /// Adds a row at the end.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |n: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(n));
            cells.map(|c| c.chars().count()).max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for (n, row) in self.rows.iter().enumerate() {
            for (m, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if m < self.words {
                    write!(f, "| {cell:<width$} ")?;
                } else {
                    write!(f, "| {cell:>width$} ")?;
                }
            }
            writeln!(f, "|")?;
            if n == 0 {
                for (m, width) in widths.iter().enumerate() {
                    let line = "-".repeat(width + 1);
                    let (left, right) = if m < self.words { ("-", "") } else { ("", ":") };
                    write!(f, "|{left}{line}{right}")?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Milliseconds with three significant digits.
pub(crate) fn ms(duration: Duration) -> String {
    significant(duration.as_secs_f64() * 1000.0)
}

/// Three significant digits, thousands separated.
pub(crate) fn significant(value: f64) -> String {
    if value >= 100.0 {
        thousands(value.round() as u64)
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else if value >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// 1234567 as `1,234,567`.
pub(crate) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        for (value, text) in [
            (0.01234, "0.012"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(1, ["design", "claims/s"]);
        table.row(vec!["a".into(), "1".into()]);
        assert_eq!(
            table.to_string(),
            "| design | claims/s |\n|--------|---------:|\n| a      |        1 |\n"
        );
    }
}
