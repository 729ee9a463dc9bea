//! The `ccb` binary. Everything is in the library, so that tests can run their own copy.

fn main() -> std::process::ExitCode {
    ccb_cli::main()
}
