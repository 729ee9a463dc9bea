//! `ccb trust`: the user allows a repository's hooks, setup and runtimes to run.

use clap::Args;
use coordinator::agent::definitions;
use project::rights::not_yours;
use project::workplace::Who;
use project::workplace::hooks;
use serde_json::{Value, json};
use store::Failure;
use store::clock::SystemClock;
use swarm::hooks::{HookFiles, Hooks};
use swarm::trust::{Item, Places, Trust, gather};
use worktrees::{ConfigCode, config_code};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{BOLD, DIM, GREEN, YELLOW, clean_line};

/// Hooks, set-up commands, runtimes, MCP servers and environment rules that come with a
/// repository are not used before you trust them. This shows what there is and trusts it as it
/// is now; whatever changes later, also a script one of them names, needs your word again.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// List what there is, and whether it is trusted
    #[arg(long, conflicts_with = "revoke")]
    show: bool,
    /// Revoke all trust in this repository
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(args: &TrustArgs, context: &mut Context) -> Result<Exit, Failure> {
    let (Some(trust), Some(root)) = (context.trust(), context.main_tree()) else {
        let error = Failure::usage("no_repository", "this is not a git repository");
        return Err(error.with_hint("trust is given to a repository; use -C DIR"));
    };
    let root = root.to_owned();
    if !args.show {
        only_for_people(context)?;
    }
    if args.revoke {
        return revoke(&trust, context);
    }
    let repository_hooks = Hooks::load(&HookFiles {
        user: None,
        project: Some(root.join(".claude/settings.json")),
        local: Some(root.join(".claude/settings.local.json")),
    });
    let all = definitions::load(None, context)?;
    let places = Places::one(&root);
    let items = gather(
        context.settings(),
        &context.own_settings(),
        &repository_hooks,
        &all,
        places,
    );
    // Only shown: git does not ask ccb.
    let git = config_code(&root)?;
    let before = trust.granted()?;
    let new = items.iter().filter(|item| !before.contains(&item.id()));
    let new = new.count();
    if !args.show && new > 0 {
        trust.grant(&items, &SystemClock)?;
    }
    let trusted = |item: &Item| !args.show || before.contains(&item.id());
    context.out.answer(
        || {
            let each = items.iter().map(|item| {
                let mut value = item.to_json();
                value["trusted"] = trusted(item).into();
                value
            });
            json!({
                "repository": trust.repository().to_string_lossy(),
                "items": each.collect::<Vec<Value>>(),
                "git": git.iter().map(git_json).collect::<Vec<Value>>(),
                "granted": if args.show { 0 } else { new },
            })
        },
        || {
            let mut lines: Vec<String> =
                items.iter().map(|item| line(item, trusted(item))).collect();
            lines.extend(git_lines(&git));
            lines.push(match (items.len(), args.show, new) {
                (0, _, _) if !git.is_empty() => "the repository's files want to run nothing".into(),
                (0, _, _) => "this repository wants to run nothing".into(),
                (_, false, 0) => "all of it was trusted already".into(),
                (_, false, new) => format!("{GREEN}✔{GREEN:#} {new} newly trusted"),
                (_, true, 0) => "all of it is trusted".into(),
                (_, true, _) => "`ccb trust` trusts it".into(),
            });
            lines.join("\n")
        },
    )?;
    for problem in &repository_hooks.problems {
        context.out.warn(problem);
    }
    Ok(Exit::Done)
}

/// Refuses agents and hooks: only a person can trust a repository.
fn only_for_people(context: &Context) -> Result<(), Failure> {
    if context.who() == Who::Person && !hooks::in_hook() {
        return Ok(());
    }
    Err(not_yours(
        "trust is the user's to give, not an agent's or a hook's".into(),
        "`ccb trust --show` shows what there is",
    ))
}

fn revoke(trust: &Trust, context: &mut Context) -> Result<Exit, Failure> {
    let was = trust.revoke()?;
    context.out.done(
        || json!({"repository": trust.repository().to_string_lossy(), "revoked": was}),
        || match was {
            true => format!("{GREEN}✔{GREEN:#} nothing of this repository is trusted any more"),
            false => "nothing of this repository was trusted".into(),
        },
    )
}

fn git_json(entry: &ConfigCode) -> Value {
    json!({
        "key": entry.key, "value": entry.value, "file": entry.file.to_string_lossy(),
        "runsForCcb": entry.by_ccb,
    })
}

/// The programs that git itself runs, which ccb neither allows nor forbids.
fn git_lines(entries: &[ConfigCode]) -> Vec<String> {
    let mut lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let (key, value) = (clean_line(&entry.key), clean_line(&entry.value));
            let file = clean_line(&entry.file.to_string_lossy());
            let for_whom = match entry.by_ccb {
                true => "git runs it, also when ccb calls git",
                false => "git runs it, but not when ccb calls git",
            };
            format!(
                "{YELLOW}!{YELLOW:#} {BOLD}git{BOLD:#} {key}: {value}\n    {DIM}{for_whom}; in {file}{DIM:#}"
            )
        })
        .collect();
    if !entries.is_empty() {
        lines.push(
            "git's own configuration (.git/config) and hooks (.git/hooks) are not covered by \
             `ccb trust`; change the configuration with `git config --local --edit`"
                .into(),
        );
    }
    lines
}

fn line(item: &Item, trusted: bool) -> String {
    let mark = match trusted {
        true => format!("{GREEN}✔{GREEN:#}"),
        false => format!("{YELLOW}?{YELLOW:#}"),
    };
    let (kind, name) = (item.kind.as_str(), clean_line(&item.name));
    let what = clean_line(&item.what);
    let mut text = format!("{mark} {BOLD}{kind}{BOLD:#} {name}: {what}");
    if let Some(file) = &item.file {
        let file = clean_line(&file.to_string_lossy());
        text.push_str(&format!("\n    {DIM}in {file}{DIM:#}"));
    }
    let scripts: Vec<&str> = item.scripts().collect();
    if !scripts.is_empty() {
        let scripts = clean_line(&scripts.join(", "));
        text.push_str(&format!("\n    {DIM}with {scripts} as it is now{DIM:#}"));
    }
    text
}
