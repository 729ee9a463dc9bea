//! The `ccb` binary with fault injection compiled in.

fn main() -> std::process::ExitCode {
    ccb_cli::main()
}
