use clap::Args;
use coordinator::actions::mail;
use mailbox::{Request, RequestState};
use serde_json::{Value, json};
use store::Failure;
use term::table::{self, Cell};

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{CYAN, DIM, GREEN, PLAIN, RED, clean_line, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// Also show answered and expired requests
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The request's id
    id: String,
    /// A comment
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// The request's id
    id: String,
    /// Why not, and what to do instead
    #[arg(long, value_name = "TEXT", required = true)]
    feedback: String,
}

pub(crate) fn list(args: &RequestsArgs, context: &mut Context) -> Result<Exit, Failure> {
    let found = context.mailbox()?.requests()?;
    let shown: Vec<&Request> = found
        .requests
        .iter()
        .filter(|request| args.all || request.state == RequestState::Pending)
        .collect();
    let json = || {
        let requests: Vec<Value> = shown.iter().map(|request| request.to_json()).collect();
        let mut answer = json!({ "requests": requests });
        if !found.unreadable.is_empty() {
            let unreadable = found.unreadable.iter();
            answer["unreadable"] = unreadable
                .map(|(path, detail)| json!({"path": path, "detail": detail}))
                .collect();
        }
        answer
    };
    let text = || {
        if shown.is_empty() {
            return "no requests".to_owned();
        }
        let rows: Vec<[Cell; 6]> = shown.iter().map(|request| row(request)).collect();
        let heads = ["ID", "STATE", "FROM", "TO", "UNTIL", "WHAT"];
        table::render(heads, &rows, 5, terminal_width())
    };
    context.out.answer(json, text)?;
    for (path, detail) in &found.unreadable {
        context.out.warn(format!("{}: {detail}", path.display()));
    }
    Ok(Exit::Done)
}

fn row(request: &Request) -> [Cell; 6] {
    let style = match request.state {
        RequestState::Pending => CYAN,
        RequestState::Approved => GREEN,
        RequestState::Rejected => RED,
        RequestState::Expired => DIM,
    };
    let until = request.expires_at.get(11..19).unwrap_or_default();
    [
        Cell::new(&request.id, PLAIN),
        Cell::new(request.state.as_str(), style),
        Cell::new(&request.from, PLAIN),
        Cell::new(&request.to, PLAIN),
        Cell::new(until, DIM),
        Cell::new(mailbox::in_short(&request.question), PLAIN),
    ]
}

pub(crate) fn approve(args: &ApproveArgs, context: &mut Context) -> Result<Exit, Failure> {
    answer(&args.id, true, args.feedback.clone(), context)
}

pub(crate) fn reject(args: &RejectArgs, context: &mut Context) -> Result<Exit, Failure> {
    if args.feedback.trim().is_empty() {
        let error = Failure::usage("invalid", "--feedback is empty");
        return Err(error.with_hint("say why not, and what to do instead"));
    }
    answer(&args.id, false, Some(args.feedback.clone()), context)
}

fn answer(
    id: &str,
    approved: bool,
    feedback: Option<String>,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let id = mail::open_request(id, None, context)?;
    let request = mail::answer(&id, approved, feedback, context)?;
    let text = || {
        let from = clean_line(&request.from);
        let what = clean_line(&mailbox::in_short(&request.question));
        format!(
            "{GREEN}✔{GREEN:#} {} ({what}); ccb told {from}",
            request.state.as_str()
        )
    };
    context
        .out
        .done(|| json!({"request": request.to_json()}), text)
}
