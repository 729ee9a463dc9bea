//! The files of the page, as they are in the repository.

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// Path, media type and content of each file.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("assets/index.html")),
    ("/style.css", STYLE, include_str!("assets/style.css")),
    ("/icon.svg", PICTURE, include_str!("assets/icon.svg")),
    ("/app.js", SCRIPT, include_str!("assets/app.js")),
    ("/state.js", SCRIPT, include_str!("assets/state.js")),
    ("/dom.js", SCRIPT, include_str!("assets/dom.js")),
    ("/board.js", SCRIPT, include_str!("assets/board.js")),
    ("/graph.js", SCRIPT, include_str!("assets/graph.js")),
    ("/agents.js", SCRIPT, include_str!("assets/agents.js")),
    ("/attention.js", SCRIPT, include_str!("assets/attention.js")),
    ("/panel.js", SCRIPT, include_str!("assets/panel.js")),
    ("/diff.js", SCRIPT, include_str!("assets/diff.js")),
    ("/timeline.js", SCRIPT, include_str!("assets/timeline.js")),
];

/// The media type and content of the file at this path.
pub(super) fn find(path: &str) -> Option<(&'static str, &'static str)> {
    let mut files = FILES.iter();
    let found = files.find(|(at, _, _)| *at == path);
    found.map(|(_, kind, text)| (*kind, *text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_only_files_that_are_there_and_loads_nothing_else() {
        for (path, _, text) in FILES {
            assert!(
                !text.contains("innerHTML") && !text.contains("outerHTML"),
                "{path}"
            );
            assert!(
                !text.contains("insertAdjacentHTML") && !text.contains("eval("),
                "{path}"
            );
            for request in ["https://", "@import", "url("] {
                assert!(!text.contains(request), "{path}: {request}");
            }
            let named = text
                .split(['"', '\''])
                .filter(|word| word.starts_with("./"));
            for name in named {
                let name = name.trim_start_matches('.');
                assert!(find(name).is_some(), "{path} names {name}");
            }
        }
        assert!(find("/../Cargo.toml").is_none());
    }
}
