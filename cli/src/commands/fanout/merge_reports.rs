use std::path::{Path, PathBuf};

use clap::Args;
use fanout::{Report, merge_results};
use observe::report;
use serde_json::json;
use store::Failure;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::DIM;

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The directories with the results of the parts
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Write the whole here, with all patches; without it only the report is shown
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Ends with the exit code that the whole run would have had.
pub(super) fn run(args: &MergeArgs, context: &mut Context) -> Result<Exit, Failure> {
    let dirs: Vec<PathBuf> = args
        .dirs
        .iter()
        .map(|dir| context.directory.join(dir))
        .collect();
    let out = args.out.as_ref().map(|out| context.directory.join(out));
    let secrets = context.secrets();
    let page =
        |merged: &Report, dir: &Path| report::html(&report::of_plan(merged, dir, None, &secrets));
    let report = merge_results(&dirs, out.as_deref(), context.secrets(), Some(&page))?;
    super::step_summary(&report);
    context.out.answer(
        || json!({"report": report, "out": out.as_ref().map(|out| out.to_string_lossy())}),
        || {
            let place = out.as_deref().unwrap_or(Path::new(""));
            let mut text = super::summary(&report, place);
            if let Some(out) = &out {
                text.push_str(&format!("\n  {DIM}results: {}{DIM:#}", out.display()));
            }
            text
        },
    )?;
    Ok(report.verdict.into())
}
