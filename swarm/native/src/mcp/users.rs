//! The servers a user has for Claude Code, which a native agent gets as well.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use swarm::runtime::McpServer;
use swarm::tools::OWN_SERVER;
use swarm::trust::{SERVERS, servers_of};

/// The file in which Claude Code keeps them, in its own directory and in the home directory.
const FILE: &str = ".claude.json";

/// The user's servers, those of the repository if it is trusted, and what is wrong with others.
/// Of two with one name the repository's counts, as in Claude Code.
pub fn users_servers(
    cwd: &Path,
    env: &[(OsString, OsString)],
    trusted: bool,
) -> (Vec<McpServer>, Vec<String>) {
    let var = |name: &str| {
        let found = env.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let dir = |name: &str| var(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let mut files: Vec<PathBuf> = Vec::new();
    if trusted {
        files.push(cwd.join(SERVERS));
    }
    let dirs = [dir("CLAUDE_CONFIG_DIR"), dir("HOME")];
    files.extend(dirs.into_iter().flatten().map(|dir| dir.join(FILE)));
    let (mut servers, mut wrong): (Vec<McpServer>, Vec<String>) = (Vec::new(), Vec::new());
    for file in files {
        let found = match servers_of(&file) {
            Ok(found) => found,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        for (name, config) in found {
            // Our own comes with the agent, for what it is in its team.
            if name == OWN_SERVER || servers.iter().any(|server| server.name == name) {
                continue;
            }
            match McpServer::from_config(&name, &config) {
                Ok(server) => servers.push(expanded(server, &|name| var(name)?.into_string().ok())),
                Err(why) => wrong.push(format!("{name}: {why}")),
            }
        }
    }
    (servers, wrong)
}

/// With the values of variables where `${NAME}` or `${NAME:-otherwise}` stands, as Claude Code
/// has it.
fn expanded(server: McpServer, var: &dyn Fn(&str) -> Option<String>) -> McpServer {
    let text = |text: String| expand(&text, var);
    let args = server.args.into_iter().map(text);
    let env = server.env.into_iter();
    McpServer {
        command: text(server.command),
        args: args.collect(),
        env: env.map(|(name, value)| (name, text(value))).collect(),
        name: server.name,
    }
}

fn expand(text: &str, var: &dyn Fn(&str) -> Option<String>) -> String {
    let mut all = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else {
            break;
        };
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        all.push_str(before);
        match (var(name), otherwise) {
            (Some(value), _) => all.push_str(&value),
            (None, Some(otherwise)) => all.push_str(otherwise),
            // Unchanged, so that the server's own error shows what is missing.
            (None, None) => all.push_str(&format!("${{{inside}}}")),
        }
        rest = behind;
    }
    all + rest
}

#[cfg(test)]
mod tests {
    use store::atomic::{Durability, replace};

    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let var = |name: &str| (name == "A").then(|| "1".to_owned());
        assert_eq!(expand("x${A}y${B:-2}z${B}", &var), "x1y2z${B}");
        assert_eq!(expand("${A", &var), "${A");
        assert_eq!(expand("$A {}", &var), "$A {}");
    }

    #[test]
    fn the_repositorys_servers_need_trust_and_others_are_the_users() {
        let (home, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let put = |dir: &Path, name: &str, text: &str| {
            replace(dir, &dir.join(name), text.as_bytes(), Durability::Relaxed).unwrap();
        };
        put(
            home.path(),
            FILE,
            r#"{"mcpServers":{"ccb":{"command":"other"},"db":{"command":"mine"},"web":{"type":"http","url":"http://x"},"ok":{"command":"${TOOL:-t}"}}}"#,
        );
        put(
            tree.path(),
            SERVERS,
            r#"{"mcpServers":{"db":{"command":"theirs"}}}"#,
        );
        let env = [(OsString::from("HOME"), home.path().as_os_str().to_owned())];
        let commands = |trusted| {
            let (servers, wrong) = users_servers(tree.path(), &env, trusted);
            assert_eq!(wrong.len(), 1, "{wrong:?}");
            assert!(wrong[0].starts_with("web: "), "{wrong:?}");
            let mut all: Vec<String> = servers
                .into_iter()
                .map(|server| format!("{}={}", server.name, server.command))
                .collect();
            all.sort();
            all
        };
        assert_eq!(commands(false), ["db=mine", "ok=t"]);
        assert_eq!(commands(true), ["db=theirs", "ok=t"]);
    }
}
