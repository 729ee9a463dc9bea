//! Keeping results short.

/// The most bytes of text a result has, without the line that says what was cut.
pub const MAX_RESULT: usize = 48 * 1024;

/// `text` if it is short; else its beginning and end, and how much is missing between them.
pub fn bounded(text: String) -> String {
    if text.len() <= MAX_RESULT {
        return text;
    }
    let half = MAX_RESULT / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    let cut = tail - head;
    format!(
        "{}\n[… {cut} bytes left out …]\n{}",
        &text[..head],
        &text[tail..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_both_ends_and_whole_characters() {
        assert_eq!(bounded("short".into()), "short");
        let exact = "x".repeat(MAX_RESULT);
        assert_eq!(bounded(exact.clone()), exact);
        let long = format!("start{}end", "é".repeat(MAX_RESULT));
        let cut = bounded(long);
        assert!(cut.starts_with("starté") && cut.ends_with("éend"));
        assert!(cut.contains("bytes left out"));
        assert!(cut.len() < MAX_RESULT + 100);
    }
}
