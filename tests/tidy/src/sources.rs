//! The paths that the sources of a crate name, outside of its tests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A file of a crate, and the paths it names.
#[derive(Debug)]
pub struct Source {
    /// Where it is, from the crate's directory.
    pub file: PathBuf,
    /// The module it is, from the crate's root; empty for the root itself.
    pub module: Vec<String>,
    /// Every path with at least two segments, with groups of `use` written out.
    pub paths: BTreeSet<Vec<String>>,
}

/// Reads all sources below `src` of a crate, without what is only there for tests.
pub fn read(crate_dir: &Path) -> Result<Vec<Source>> {
    let src = crate_dir.join("src");
    let mut files = Vec::new();
    list(&src, &mut files)?;
    let mut sources = BTreeMap::new();
    let mut only_tests = Vec::new();
    for file in files {
        let below = file.strip_prefix(&src).unwrap_or(&file);
        let module = module_of(below);
        let text = std::fs::read_to_string(&file)?;
        let tokens: TokenStream = text.parse().map_err(|error| {
            Error::new(
                ErrorKind::InvalidData,
                format!("{}: {error}", file.display()),
            )
        })?;
        let mut reader = Reader::default();
        reader.read(tokens, &module);
        only_tests.extend(reader.only_tests);
        let source = Source {
            file: Path::new("src").join(below),
            module: module.clone(),
            paths: reader.paths,
        };
        sources.insert(file, source);
    }
    sources.retain(|_, source| {
        !only_tests
            .iter()
            .any(|test| source.module.starts_with(test))
    });
    Ok(sources.into_values().collect())
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn module_of(below: &Path) -> Vec<String> {
    let path = below.with_extension("");
    let mut module: Vec<String> = path
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let last = module.last().map(String::as_str);
    if matches!(last, Some("mod")) || module.len() == 1 && matches!(last, Some("lib" | "main")) {
        module.pop();
    }
    module
}

#[derive(Default)]
struct Reader {
    paths: BTreeSet<Vec<String>>,
    /// Modules that are declared for tests alone.
    only_tests: Vec<Vec<String>>,
}

impl Reader {
    /// Reads the tokens of `module`; `super` and `self` are written out.
    fn read(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_cfg_test(&tokens[at..]) {
                at = self.skip_item(&tokens, at + 2, module);
            } else if let Some((name, body)) = inline_module(&tokens[at..]) {
                let inner = [module, &[name]].concat();
                self.read(body, &inner);
                at += 3;
            } else if let TokenTree::Group(group) = &tokens[at] {
                self.read(group.stream(), module);
                at += 1;
            } else if matches!(&tokens[at], TokenTree::Ident(_)) {
                at = self.read_path(&tokens, at, &[], module);
            } else {
                at += 1;
            }
        }
    }

    /// Goes past the item that an attribute belongs to.
    fn skip_item(&mut self, tokens: &[TokenTree], from: usize, module: &[String]) -> usize {
        let mut at = from;
        while let Some(token) = tokens.get(at) {
            if let (TokenTree::Ident(word), Some(TokenTree::Ident(name))) =
                (token, tokens.get(at + 1))
                && word == "mod"
            {
                let declared = [module, &[name.to_string()]].concat();
                self.only_tests.push(declared);
            }
            at += 1;
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                _ => {}
            }
        }
        at
    }

    /// Reads the path that begins at `at`, after `before`; returns where it ends.
    fn read_path(
        &mut self,
        tokens: &[TokenTree],
        mut at: usize,
        before: &[String],
        module: &[String],
    ) -> usize {
        let mut path = before.to_vec();
        while let Some(TokenTree::Ident(name)) = tokens.get(at) {
            path.push(name.to_string());
            at += 1;
            if !is_colons(&tokens[at..]) {
                break;
            }
            at += 2;
            if let Some(TokenTree::Group(group)) = tokens.get(at)
                && group.delimiter() == Delimiter::Brace
            {
                self.read_branches(group.stream(), &path, module);
                return at + 1;
            }
        }
        if is_star(tokens.get(at)) && path.len() > before.len() {
            at += 1;
        }
        self.note(path, module);
        at
    }

    /// Reads the branches of a `use`.
    fn read_branches(&mut self, tokens: TokenStream, before: &[String], module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                // Its name here does not matter.
                TokenTree::Ident(word) if word == "as" => at += 2,
                TokenTree::Ident(_) => at = self.read_path(&tokens, at, before, module),
                star if is_star(Some(star)) => {
                    self.note(before.to_vec(), module);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    fn note(&mut self, mut path: Vec<String>, module: &[String]) {
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let ups = path.iter().take_while(|name| *name == "super").count();
        let written_out = match path[0].as_str() {
            "super" => {
                let kept = module.len().saturating_sub(ups);
                let inner = module[..kept].iter().chain(&path[ups..]);
                std::iter::once("crate".to_owned())
                    .chain(inner.cloned())
                    .collect()
            }
            "self" => return,
            _ => path,
        };
        if written_out.len() > 1 {
            self.paths.insert(written_out);
        }
    }
}

fn is_star(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(star)) if star.as_char() == '*')
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(first), TokenTree::Punct(second), ..]
        if first.as_char() == ':' && first.spacing() == Spacing::Joint && second.as_char() == ':')
}

/// True if this is `#[cfg(test)]`, or a `cfg` that needs `test` besides other things.
fn is_cfg_test(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(group), ..] = tokens else {
        return false;
    };
    let text = group.stream().to_string().replace(' ', "");
    hash.as_char() == '#' && (text == "cfg(test)" || text.starts_with("cfg(all(test,"))
}

fn inline_module(tokens: &[TokenTree]) -> Option<(String, TokenStream)> {
    match tokens {
        [
            TokenTree::Ident(word),
            TokenTree::Ident(name),
            TokenTree::Group(body),
            ..,
        ] if word == "mod" && body.delimiter() == Delimiter::Brace => {
            Some((name.to_string(), body.stream()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(module: &[&str], text: &str) -> Vec<String> {
        let module: Vec<String> = module.iter().map(ToString::to_string).collect();
        let mut reader = Reader::default();
        reader.read(text.parse().unwrap(), &module);
        let paths = reader.paths.iter().map(|path| path.join("::"));
        paths.collect()
    }

    #[test]
    fn groups_are_written_out() {
        let text = "use crate::a::{self, b::{C, D as E}, f::*}; use std::fs;";
        let found = paths(&["x"], text);
        let wanted = [
            "crate::a",
            "crate::a::b::C",
            "crate::a::b::D",
            "crate::a::f",
            "std::fs",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn paths_in_code_and_macros_count_and_comments_and_strings_do_not() {
        let text = r#"// crate::no::No
            fn f() { let x = crate::a::B::new(); format!("crate::no::No {}", super::c::D); }"#;
        assert_eq!(
            paths(&["x", "y"], text),
            ["crate::a::B::new", "crate::x::c::D"]
        );
    }

    #[test]
    fn tests_do_not_count() {
        let text = "use crate::a::A; #[cfg(test)] use crate::no::A; #[cfg(test)] mod tests { use crate::no::B; }
            #[cfg(all(test, unix))] fn f() { crate::no::C } mod inner { use super::super::b::B; }";
        assert_eq!(paths(&["x"], text), ["crate::a::A", "crate::b::B"]);
    }

    #[test]
    fn files_of_tests_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join("src").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("lib.rs", "mod a;");
        write("a/mod.rs", "#[cfg(test)] mod tests; use crate::b::B;");
        write("a/tests.rs", "use crate::c::C;");
        let sources = read(dir.path()).unwrap();
        let modules: Vec<String> = sources
            .iter()
            .map(|source| source.module.join("::"))
            .collect();
        assert_eq!(modules, ["a", ""]);
    }
}
