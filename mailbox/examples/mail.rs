//! A message that is sent, read and acknowledged.
//!
//! Run it with `cargo run -p ccb-mailbox --example mail`.

use std::error::Error;

use mailbox::{Draft, MailOptions, Mailbox, render};
use store::home::Home;
use store::name::Name;

/// Sends and reads mail in a temporary directory; returns what the reader was shown, and how
/// many messages are left.
pub(crate) fn exchange() -> Result<(String, usize), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let home = Home::new(dir.path().to_owned())?;
    let team = Name::new("team", "fixers")?;
    let mail = Mailbox::new(&home, &team, MailOptions::default());
    let (ann, bob) = (Name::new("agent", "ann")?, Name::new("agent", "bob")?);

    mail.send(&Draft::text(
        ann,
        bob.clone(),
        "The build is green & <fast>.",
    ))?;

    // An inbox has one reader at a time.
    let mut reader = mail.inbox(&bob)?.consumer()?;
    let batch = reader.take(10)?;
    let shown = render(&batch.messages, |_| None);
    let seqs: Vec<u64> = batch.messages.iter().map(|message| message.seq).collect();
    // A message without an acknowledgement comes again after a crash, with `redelivered`.
    reader.ack(&seqs)?;
    Ok((shown, reader.take(10)?.messages.len()))
}

#[expect(clippy::print_stdout, reason = "this is what the example is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let (shown, left) = exchange()?;
    println!("{shown}\n{left} messages left");
    Ok(())
}
