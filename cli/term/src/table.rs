//! Aligned columns.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::{BOLD, clean_line};

/// One field of a table.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell with `text` on one line, without characters that control the terminal.
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self {
            text: clean_line(text.as_ref()),
            style,
        }
    }
}

/// Minimum width of a column that is cut.
const LEAST: usize = 10;

/// Lays `rows` out below `heads`. If `width` is too small, the column `flexible` is cut, then the
/// others from the last one on. If that is not enough, the last columns are left out. The first,
/// which names the thing, is cut only if nothing else can be cut.
pub fn render<const N: usize>(
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
    // An empty column is left out.
    let mut shown: Vec<usize> = (0..N)
        .filter(|n| rows.iter().any(|row| !row[*n].text.is_empty()))
        .collect();
    if let Some(limit) = width {
        while !cut(&mut widths, &shown, flexible, limit) {
            let last = shown.iter().skip(1).rposition(|n| *n != flexible);
            let Some(last) = last else { break };
            shown.remove(last + 1);
        }
    }
    let line = |cells: [&Cell; N]| {
        let mut line = String::new();
        for n in shown.iter().copied() {
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

/// Cuts columns so that a line has at most `limit` columns; true if it has. If not, the widths do
/// not change, unless no other column can be left out.
fn cut<const N: usize>(
    widths: &mut [usize; N],
    shown: &[usize],
    flexible: usize,
    limit: usize,
) -> bool {
    let others = shown.iter().skip(1).rev().filter(|n| **n != flexible);
    let mut order: Vec<usize> = others.copied().collect();
    if shown.contains(&flexible) {
        order.insert(0, flexible);
    }
    if order.iter().all(|n| *n == flexible) {
        order.extend(shown.first());
    }
    let mut tried = *widths;
    // Nothing follows the last column.
    let total = |widths: &[usize; N]| {
        let all: usize = shown.iter().map(|n| widths[*n] + 2).sum();
        all.saturating_sub(2)
    };
    for n in order {
        let too_much = total(&tried).saturating_sub(limit);
        let least = LEAST.min(tried[n]);
        tried[n] = tried[n].saturating_sub(too_much).max(least);
    }
    let fits = total(&tried) <= limit;
    if fits || shown.len() <= 2 {
        *widths = tried;
    }
    fits
}

/// `text` cut to `width` columns, with an ellipsis if something is missing.
pub fn fit(text: &str, width: usize) -> String {
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
    use crate::style::PLAIN;

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

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let cells = [
            "a0123456789abcdef",
            "mate-1",
            "✔ completed",
            "#1",
            "12.3k",
            "Write the parser and everything around it",
            "kept agent-a0123456789abcdef",
        ];
        let heads = ["AGENT", "NAME", "STATE", "TASK", "TOKENS", "WHAT", "TREE"];
        for width in [80, 100, 70, 40, 25] {
            let text = render(heads, &[cells.map(plain)], 5, Some(width));
            let text = anstream::adapter::strip_str(&text).to_string();
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {} {line}", line.width());
            }
            if width >= 70 {
                let whole = text.contains("a0123456789abcdef");
                assert!(whole && text.contains("Write the"), "{text}");
            }
        }
        // Where there is room, nothing is cut.
        let wide = render(heads, &[cells.map(plain)], 5, Some(140));
        assert!(!wide.contains('…'), "{wide}");
    }
}
