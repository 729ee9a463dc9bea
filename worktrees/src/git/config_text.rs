//! Settings as git's configuration files have them.

/// One setting.
pub(crate) fn setting(name: &str, value: &str) -> String {
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    let value = quoted(value);
    match rest.rsplit_once('.') {
        Some((part, key)) => format!("[{section} {}]\n\t{key} = {value}\n", quoted(part)),
        None => format!("[{section}]\n\t{rest} = {value}\n"),
    }
}

pub(crate) fn quoted(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", value.replace('\n', "\\n").replace('\t', "\\t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_git_reads_them() {
        assert_eq!(
            setting("user.name", "A \"B\""),
            "[user]\n\tname = \"A \\\"B\\\"\"\n"
        );
        assert_eq!(
            setting("remote.a.b.url", "c:\\d"),
            "[remote \"a.b\"]\n\turl = \"c:\\\\d\"\n"
        );
    }
}
