//! Runs the stand-in for the other tool as a process of its own.
//!
//! ```text
//! foreign-tool DIR hammer NAME ROUNDS ID…   changes the tasks and creates others, at full speed
//! foreign-tool DIR hold ID                  locks a task until stdin closes
//! foreign-tool DIR half ID                  stops half-way through writing it until stdin closes
//! ```

use std::io::{self, Read, Write};

use harness::ForeignTool;
use serde_json::{Map, Value, json};

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().map_err(io::Error::other);
    match args[..] {
        [dir, "hammer", name, rounds, ref ids @ ..] => {
            let ids: Vec<u64> = ids.iter().map(|id| number(id)).collect::<io::Result<_>>()?;
            hammer(&ForeignTool::new(dir), name, number(rounds)?, &ids)
        }
        [dir, "hold", id] => {
            let _lock = ForeignTool::new(dir).lock_task(number(id)?)?;
            say("held")?;
            wait_for_stdin()
        }
        [dir, "half", id] => {
            let mark = |task: &mut Map<String, Value>| {
                task.insert("subject".into(), "written in two goes".into());
            };
            let wait = || {
                say("half")
                    .and_then(|()| wait_for_stdin())
                    .expect("the test's pipes");
            };
            ForeignTool::new(dir)
                .update_slowly(number(id)?, mark, wait)
                .map(drop)
        }
        _ => Err(io::Error::other(format!("what is {args:?}?"))),
    }
}

/// Counts in the metadata of the shared tasks, and prints the ids of the tasks it creates.
fn hammer(tool: &ForeignTool, name: &str, rounds: u64, ids: &[u64]) -> io::Result<()> {
    for round in 0..rounds {
        for id in ids {
            tool.update(*id, |task| count(task, name, round))?;
        }
        let mark = json!({"foreignCreator": name, "metadata": {"foreignRound": round}});
        let mark = mark.as_object().cloned().unwrap_or_default();
        let id = tool.create(&format!("{name} {round}"), &mark)?;
        say(&format!("created {id}"))?;
        if round % 3 == 2 {
            tool.delete(id)?;
            say(&format!("deleted {id}"))?;
        }
    }
    Ok(())
}

/// Adds one to the common counter, to this process's own and to a list, and sets a key of its own.
fn count(task: &mut Map<String, Value>, name: &str, round: u64) {
    task.insert(
        format!("foreign-{name}"),
        json!({ "round": round, "half": 0.5 }),
    );
    let metadata = task.entry("metadata").or_insert_with(|| json!({}));
    for key in ["total".to_owned(), format!("count-{name}")] {
        let counter = &mut metadata[key];
        *counter = (counter.as_u64().unwrap_or(0) + 1).into();
    }
    let trail = &mut metadata["trail"];
    if !trail.is_array() {
        *trail = json!([]);
    }
    if let Some(trail) = trail.as_array_mut() {
        trail.push(format!("{name}:{round}").into());
    }
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

fn wait_for_stdin() -> io::Result<()> {
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}
