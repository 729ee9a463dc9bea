//! A terminal's screen as an SVG, for the documentation.

use std::fmt::Write;

use vt100::Color;

use crate::terminal::Screen;

/// The size of a cell, and of the letters in it.
const CELL: (f64, f64) = (8.4, 18.0);
const LETTERS: f64 = 14.0;
/// The frame around the screen.
const FRAME: f64 = 12.0;
/// The terminal's own colours.
const FOREGROUND: (u8, u8, u8) = (0xd8, 0xde, 0xe9);
const BACKGROUND: (u8, u8, u8) = (0x1c, 0x21, 0x28);
const PALETTE: [(u8, u8, u8); 16] = [
    (0x3b, 0x42, 0x52),
    (0xe0, 0x6c, 0x75),
    (0x8f, 0xbf, 0x7f),
    (0xe5, 0xc0, 0x7b),
    (0x6c, 0xa8, 0xe8),
    (0xc6, 0x86, 0xd8),
    (0x56, 0xb6, 0xc2),
    (0xd8, 0xde, 0xe9),
    (0x6b, 0x75, 0x87),
    (0xf0, 0x88, 0x90),
    (0xa9, 0xd6, 0x99),
    (0xf2, 0xd3, 0x95),
    (0x8c, 0xbe, 0xf2),
    (0xd9, 0xa3, 0xe8),
    (0x7d, 0xcf, 0xd9),
    (0xff, 0xff, 0xff),
];

/// The style of a cell.
#[derive(Clone, PartialEq)]
struct Look {
    fill: (u8, u8, u8),
    behind: Option<(u8, u8, u8)>,
    bold: bool,
    italic: bool,
    underline: bool,
}

/// The screen as an SVG.
pub fn svg(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let width = f64::from(columns) * CELL.0 + 2.0 * FRAME;
    let height = f64::from(rows) * CELL.1 + 2.0 * FRAME;
    let mut svg = String::new();
    // Writing to a string cannot fail.
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.1} {height:.1}\" font-family=\"'DejaVu Sans Mono', Menlo, Consolas, \
         'Liberation Mono', monospace\" font-size=\"{LETTERS}\">"
    )
    .ok();
    let ground = hex(BACKGROUND);
    writeln!(
        svg,
        "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{ground}\"/>"
    )
    .ok();
    for row in 0..rows {
        draw_row(screen, row, columns, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// One row: adjacent cells of one style are one piece.
fn draw_row(screen: &Screen, row: u16, columns: u16, svg: &mut String) {
    let mut piece: Option<(u16, u16, Look, String)> = None;
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else {
            continue;
        };
        if cell.is_wide_continuation() {
            if let Some(piece) = &mut piece {
                piece.1 += 1;
            }
            continue;
        }
        let look = look_of(cell);
        let text = if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
        // After a wide letter the next piece begins at its own place.
        match &mut piece {
            Some((_, cells, before, words))
                if *before == look && text.is_ascii() && words.is_ascii() =>
            {
                *cells += 1;
                words.push_str(text);
            }
            _ => {
                if let Some(done) = piece.replace((column, 1, look, text.to_owned())) {
                    draw(row, &done, svg);
                }
            }
        }
    }
    if let Some(done) = piece {
        draw(row, &done, svg);
    }
}

fn draw(row: u16, (column, cells, look, text): &(u16, u16, Look, String), svg: &mut String) {
    let x = FRAME + f64::from(*column) * CELL.0;
    let y = FRAME + f64::from(row) * CELL.1;
    let width = f64::from(*cells) * CELL.0;
    if let Some(behind) = look.behind {
        writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
            CELL.1,
            hex(behind)
        )
        .ok();
    }
    if text.trim().is_empty() {
        return;
    }
    let mut more = String::new();
    if look.bold {
        more.push_str(" font-weight=\"bold\"");
    }
    if look.italic {
        more.push_str(" font-style=\"italic\"");
    }
    if look.underline {
        more.push_str(" text-decoration=\"underline\"");
    }
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{}\" textLength=\"{width:.1}\" \
         xml:space=\"preserve\"{more}>{text}</text>",
        y + CELL.1 * 0.76,
        hex(look.fill)
    )
    .ok();
}

fn look_of(cell: &vt100::Cell) -> Look {
    let mut fill = rgb(cell.fgcolor(), FOREGROUND);
    let mut behind = match cell.bgcolor() {
        Color::Default => None,
        color => Some(rgb(color, BACKGROUND)),
    };
    if cell.inverse() {
        (fill, behind) = (behind.unwrap_or(BACKGROUND), Some(fill));
    }
    if cell.dim() {
        let ground = behind.unwrap_or(BACKGROUND);
        let mix =
            |a: u8, b: u8| u8::try_from((u16::from(a) * 3 + u16::from(b) * 2) / 5).unwrap_or(a);
        fill = (
            mix(fill.0, ground.0),
            mix(fill.1, ground.1),
            mix(fill.2, ground.2),
        );
    }
    Look {
        fill,
        behind,
        bold: cell.bold(),
        italic: cell.italic(),
        underline: cell.underline(),
    }
}

fn rgb(color: Color, usual: (u8, u8, u8)) -> (u8, u8, u8) {
    let step = |n: u8| if n == 0 { 0 } else { 55 + n * 40 };
    match color {
        Color::Default => usual,
        Color::Idx(n @ 0..=15) => PALETTE[usize::from(n)],
        Color::Idx(n @ 16..=231) => {
            let n = n - 16;
            (step(n / 36), step(n / 6 % 6), step(n % 6))
        }
        Color::Idx(n) => {
            let grey = 8 + (n - 232) * 10;
            (grey, grey, grey)
        }
        Color::Rgb(r, g, b) => (r, g, b),
    }
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
