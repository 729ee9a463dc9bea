//! Uses the mailbox as a host does, in the database of `$CCB_BOARD` if it is set. Arguments: home,
//! team, then one of
//!
//! * `send FROM TO COUNT`: that many messages, numbered from 1
//! * `read AGENT MOST`: reads for ever, `MOST` messages at a time; prints `H SEQ ID REDELIVERED
//!   FROM TEXT` for each message it gets, `T SEQ` before it acknowledges and `A SEQ` after it
//! * `notify RUN`: notifies the lead that a run has ended
//! * `notify-short RUN`: the same, remembering so few ids that old ones are forgotten
//! * `shout FROM COUNT`: that many broadcasts, numbered from 1, few of which are kept
//! * `broadcast-short TEXT`: to everyone, keeping so few broadcasts that old ones are dropped
//! * `ask FROM TO PLAN`: asks for approval of a plan; prints the request's id
//! * `idle AGENT`, `busy AGENT`: notifies the lead, on the edge
//! * `recover`: the recovery by the next command: notifies of requests, and sends a `probe` to
//!   everyone
//! * `rotate`: acknowledges everything in bob's inbox, with so low limits that it rotates

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use database::{Database, Secrets};
use mailbox::{
    DEFAULT_DEADLINE, Draft, IdleNotification, IdleReason, Limits, MailOptions, Mailbox, Plan,
    Question, RunStatus, TaskNotification, Usage,
};
use store::home::Home;
use store::name::Name;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (home, team) = (args[0], args[1]);
    let home = Home::new(home.into())?;
    let name = |text: &str| Name::new("agent", text);
    let mut options = MailOptions::default();
    if ["rotate", "notify-short", "broadcast-short"].contains(&args[2]) {
        options.limits = Limits {
            rotate_bytes: 1,
            archives: 2,
            remembered_ids: 2,
            broadcast_bytes: 1,
            ..Limits::default()
        };
    }
    if args[2] == "shout" {
        options.limits.broadcast_bytes = 4096;
    }
    let mailbox = match std::env::var("CCB_BOARD") {
        Ok(url) => {
            let settings = database::Settings::parse(&url, &Secrets::default())?;
            Mailbox::on(&Database::new(settings), &home, &name(team)?, options)
        }
        Err(_) => Mailbox::new(&home, &name(team)?, options),
    };
    let lead = name("team-lead")?;
    match &args[2..] {
        ["send", from, to, count] => {
            for n in 1..=count.parse::<u32>()? {
                mailbox.send(&Draft::text(name(from)?, name(to)?, n.to_string()))?;
            }
        }
        ["read", agent, most] => read(&mailbox, &name(agent)?, most.parse()?)?,
        ["shout", from, count] => {
            let everyone = [name("bob")?, name("carol")?, lead];
            for n in 1..=count.parse::<u32>()? {
                let draft = Draft::text(name(from)?, name(from)?, n.to_string());
                mailbox.broadcast(&draft, &everyone)?;
            }
        }
        ["broadcast-short", text] => {
            let everyone = [name("bob")?, name("carol")?, lead];
            let user = name("user")?;
            mailbox.broadcast(&Draft::text(user.clone(), user, *text), &everyone)?;
        }
        ["notify" | "notify-short", run] => {
            let posted = mailbox.notify(name("worker")?, lead, run, &notification(run))?;
            println!(
                "{}",
                if posted.already {
                    "already there"
                } else {
                    "posted"
                }
            );
        }
        ["ask", from, to, plan] => {
            let plan = Plan {
                plan: (*plan).to_owned(),
                plan_file_path: None,
                allowed_prompts: Vec::new(),
            };
            let (from, to) = (name(from)?, name(to)?);
            let request = mailbox.ask(&from, &to, Question::Plan(plan), DEFAULT_DEADLINE)?;
            println!("{}", request.id);
        }
        ["idle", agent] => {
            let notification = IdleNotification {
                idle_reason: IdleReason::Available,
                finished_tasks: vec!["7".into()],
                failure_reason: None,
            };
            mailbox.note_idle(&name(agent)?, &lead, notification)?;
        }
        ["busy", agent] => mailbox.note_busy(&name(agent)?)?,
        ["recover"] => {
            mailbox.requests()?;
            for agent in ["bob", "carol", "team-lead"] {
                mailbox.send(&Draft::text(name("user")?, name(agent)?, "probe"))?;
            }
        }
        ["rotate"] => {
            let mut consumer = mailbox.consumer(&name("bob")?)?;
            let batch = consumer.take(usize::MAX)?;
            let seqs: Vec<u64> = batch.messages.iter().map(|message| message.seq).collect();
            consumer.ack(&seqs)?;
        }
        other => return Err(format!("unknown command {other:?}").into()),
    }
    Ok(())
}

fn notification(run: &str) -> TaskNotification {
    TaskNotification {
        task_id: run.to_owned(),
        tool_use_id: None,
        output_file: "output.log".into(),
        status: RunStatus::Completed,
        description: "Fix the build".into(),
        result: Some("It builds.".into()),
        usage: Usage::default(),
        worktree: None,
    }
}

fn read(mailbox: &Mailbox, agent: &Name, most: usize) -> Result<(), Box<dyn Error>> {
    let mut consumer = mailbox.consumer(agent)?;
    let mut out = std::io::stdout().lock();
    loop {
        consumer.wait(Duration::from_secs(60))?;
        let messages = consumer.take(most)?.messages;
        for message in &messages {
            let text = message.text().unwrap_or_default();
            writeln!(
                out,
                "H {} {} {} {} {text}",
                message.seq, message.id, message.redelivered, message.from
            )?;
        }
        let seqs: Vec<u64> = messages.iter().map(|message| message.seq).collect();
        consumer.delivered(&seqs)?;
        for seq in &seqs {
            writeln!(out, "T {seq}")?;
        }
        out.flush()?;
        for seq in consumer.ack(&seqs)?.new {
            writeln!(out, "A {seq}")?;
        }
        out.flush()?;
    }
}
