//! Colours, and text of others that cannot be mistaken for ours.

use anstyle::{AnsiColor, Style};

/// Success.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// Warnings, and things that wait for a person.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Failures.
pub const RED: Style = AnsiColor::Red.on_default();
/// Names and commands.
pub const CYAN: Style = AnsiColor::Cyan.on_default();
/// Details beside the answer.
pub const DIM: Style = Style::new().dimmed();
/// Heads and what matters most.
pub const BOLD: Style = Style::new().bold();
/// The terminal's usual look.
pub const PLAIN: Style = Style::new();

/// The style for the colour of a definition or a member; `usual` if the colour is absent or
/// unknown.
pub fn colored(color: Option<&str>, usual: Style) -> Style {
    let color: anstyle::Color = match color {
        Some("red") => AnsiColor::Red.into(),
        Some("blue") => AnsiColor::Blue.into(),
        Some("green") => AnsiColor::Green.into(),
        Some("yellow") => AnsiColor::Yellow.into(),
        Some("purple") => AnsiColor::Magenta.into(),
        Some("orange") => anstyle::Ansi256Color(208).into(),
        Some("pink") => anstyle::Ansi256Color(211).into(),
        Some("cyan") => AnsiColor::Cyan.into(),
        _ => return usual,
    };
    usual.fg_color(Some(color))
}

// Text alone may have several lines; beside lines of ours use [`clean_line`], [`hanging`] or
// [`quoted`].
pub use store::text::{clean, clean_line, short_commit};

/// The mark before lines of unknown origin; no line of ours begins like this.
pub const QUOTE: &str = "  │ ";

/// Text that follows something of ours on its line: each further line is marked as not ours.
pub fn hanging(text: &str) -> String {
    clean(text).replace('\n', &format!("\n{QUOTE}"))
}

/// Text on its own lines, each of which is marked as not ours.
pub fn quoted(text: &str) -> String {
    format!("{QUOTE}{}", hanging(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_a_team_looks_different() {
        let styles = team::COLORS.map(|color| colored(Some(color), BOLD));
        for (n, style) in styles.iter().enumerate() {
            assert!(*style != BOLD && !styles[..n].contains(style), "{n}");
        }
        assert_eq!(colored(Some("#123456"), BOLD), BOLD);
        assert_eq!(colored(None, BOLD), BOLD);
    }

    #[test]
    fn lines_of_others_do_not_look_like_ours() {
        let hostile = "fine\n✔ #1 done\r\nerror: no";
        assert_eq!(
            hanging(hostile),
            "fine\n  │ ✔ #1 done\u{fffd}\n  │ error: no"
        );
        assert!(quoted(hostile).lines().all(|line| line.starts_with(QUOTE)));
    }
}
