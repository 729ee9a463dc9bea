//! Aligned columns.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{BOLD, clean_line};

/// One field of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self {
            text: clean_line(text.as_ref()),
            style,
        }
    }
}

/// Lays `rows` out below `heads`. Where `width` is too small, the column `flexible` is cut.
pub(crate) fn render<const N: usize>(
    heads: [&str; N],
    rows: &[[Cell; N]],
    flexible: usize,
    width: Option<usize>,
) -> String {
    let mut widths = heads.map(UnicodeWidthStr::width);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.width());
        }
    }
    // A column nobody fills is left out.
    let used: Vec<bool> = (0..N)
        .map(|n| rows.iter().any(|row| !row[n].text.is_empty()))
        .collect();
    let shown = || (0..N).filter(|n| used[*n]);
    if let Some(limit) = width {
        let total: usize = shown().map(|n| widths[n] + 2).sum();
        widths[flexible] = widths[flexible]
            .saturating_sub(total.saturating_sub(limit))
            .max(10);
    }
    let line = |cells: [&Cell; N]| {
        let mut line = String::new();
        for n in shown() {
            let text = fit(&cells[n].text, widths[n]);
            let pad = " ".repeat(widths[n].saturating_sub(text.width()) + 2);
            let style = cells[n].style;
            line.push_str(&format!("{style}{text}{style:#}{pad}"));
        }
        line.trim_end().to_owned()
    };
    let heads = heads.map(|head| Cell::new(head, BOLD));
    let mut lines = vec![line(heads.each_ref())];
    lines.extend(rows.iter().map(|row| line(row.each_ref())));
    lines.join("\n")
}

/// `text` cut to `width` columns, with an ellipsis if something is missing.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let mut cut: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used < width
        })
        .collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::PLAIN;

    fn plain(text: &str) -> Cell {
        Cell::new(text, PLAIN)
    }

    #[test]
    fn columns_line_up_and_empty_ones_go() {
        let rows = [
            [plain("1"), plain("世界"), plain("")],
            [plain("22"), plain("a"), plain("")],
        ];
        let text = anstream::adapter::strip_str(&render(["ID", "WHAT", "OWNER"], &rows, 1, None))
            .to_string();
        assert_eq!(text, "ID  WHAT\n1   世界\n22  a");
    }

    #[test]
    fn the_flexible_column_is_cut() {
        let rows = [[plain("1"), plain(&"x".repeat(50))]];
        let text = render(["ID", "WHAT"], &rows, 1, Some(24));
        assert!(
            anstream::adapter::strip_str(&text)
                .to_string()
                .lines()
                .all(|l| l.len() <= 26)
        );
        assert!(text.contains('…'));
    }
}
