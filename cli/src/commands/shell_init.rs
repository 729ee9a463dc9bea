use clap::{Args, ValueEnum};
use store::Failure;

use super::completion;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct ShellInitArgs {
    /// Which shell
    shell: InitShell,
}

/// The shells in which a function can stand in for a program.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum InitShell {
    Bash,
    Zsh,
    Fish,
}

/// Only a function of the shell itself can change its directory. The path ends in a mark, because
/// the shell would remove line breaks from its end.
const POSIX: &str = r#"ccb() {
    if [ "$1" != cd ]; then
        command ccb "$@"
        return
    fi
    case "$2" in
        -) builtin cd -; return ;;
        -h | --help) command ccb "$@"; return ;;
    esac
    local ccb_dir
    ccb_dir="$(command ccb cd --print "${@:2}" && printf x)" || return
    builtin cd -- "${ccb_dir%??}"
}"#;

const FISH: &str = r#"function ccb --wraps ccb
    if test "$argv[1]" != cd
        command ccb $argv
        return
    end
    switch "$argv[2]"
        case -
            cd -
            return
        case -h --help
            command ccb $argv
            return
    end
    set -l ccb_dir (command ccb cd --print $argv[2..-1] | string collect)
    and cd -- "$ccb_dir"
end"#;

/// Prints the function `ccb` and the completions.
pub(crate) fn run(args: &ShellInitArgs, context: &mut Context) -> Result<Exit, Failure> {
    let (name, function) = match args.shell {
        InitShell::Bash => ("bash", POSIX),
        InitShell::Zsh => ("zsh", POSIX),
        InitShell::Fish => ("fish", FISH),
    };
    let completions = completion::script(name)?;
    // Started before `compinit`, zsh does not know `compdef` yet.
    let completions = match args.shell {
        InitShell::Zsh => format!("if (( $+functions[compdef] )); then\n{completions}\nfi"),
        InitShell::Bash | InitShell::Fish => completions,
    };
    context.out.text(&format!("{function}\n{completions}"))?;
    Ok(Exit::Done)
}
