//! What single operations cost on boards of different size.
//!
//! Each is done by a process of its own ([`probe`](crate::probe)), so that memory is that of
//! one operation on one board. *Opening* is the time from before the board is opened to the
//! first answer, in a fresh process, without the start of that process.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::args::Options;
use crate::designs::{Design, ccb};
use crate::environment::Place;
use crate::probe::{self, BATCH, Found, Operation};
use crate::stats::Spread;
use crate::table::{Table, ms, significant, thousands};
use crate::{Failure, check_interrupted};

/// One number: what was measured, where, on how large a board.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    tasks: u64,
    design: Design,
    what: String,
    /// Milliseconds, or MiB where `what` says memory.
    value: f64,
    #[serde(skip)]
    text: String,
}

/// The designs that are compared here; the lock directories matter little to one process.
const DESIGNS: [Design; 2] = [Design::Ccb, Design::Sqlite];

/// Measures every size in every place.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let mut samples = Vec::new();
    for place in &options.places {
        for &tasks in &options.sizes {
            for design in DESIGNS {
                eprintln!(
                    "scaling: {}, {tasks} tasks, {}",
                    place.label,
                    design.label()
                );
                let board = place.scratch()?;
                design.prepare(board.path(), tasks)?;
                place.flush()?;
                let mut bench = Bench {
                    place,
                    tasks,
                    design,
                    board: board.path(),
                    fresh: if options.quick { 3 } else { 7 },
                    repeat: if options.quick { 5 } else { 20 },
                    edits: 0,
                    samples: Vec::new(),
                };
                bench.reading()?;
                bench.opening()?;
                bench.creating()?;
                samples.extend(bench.samples);
            }
        }
    }
    Ok(samples)
}

/// One board under measurement.
struct Bench<'a> {
    place: &'a Place,
    tasks: u64,
    design: Design,
    board: &'a Path,
    /// How many fresh processes a number is the median of.
    fresh: usize,
    /// How often one process repeats an operation, at most.
    repeat: usize,
    edits: u32,
    samples: Vec<Sample>,
}

impl Bench<'_> {
    /// List and ready set in a process that has the board open already.
    fn reading(&mut self) -> Result<(), Failure> {
        let list = self.probe(false, Operation::List, self.repeat)?;
        self.memory("list all tasks", list.memory_kib);
        self.time("list all tasks", list.later);
        let ready = self.probe(false, Operation::Ready, self.repeat)?;
        self.time("ready set", ready.later);
        Ok(())
    }

    /// A fresh process until its first answer; and once more after a hand edit each time.
    fn opening(&mut self) -> Result<(), Failure> {
        for operation in [Operation::Ready, Operation::Claim] {
            let what = match operation {
                Operation::Claim => "open, first claim",
                _ => "open, ready set",
            };
            let (times, memory) = self.fresh(operation, false)?;
            self.time(what, times);
            if operation == Operation::Claim {
                self.memory(what, memory);
            }
            if self.design != Design::Sqlite {
                let (times, _) = self.fresh(operation, true)?;
                self.time(&format!("{what}, a file edited by hand"), times);
                // Whatever is still to be noted about the last edit is noted now.
                self.probe(false, Operation::Claim, 1)?;
            }
        }
        Ok(())
    }

    /// One task, and a batch, durable and not.
    fn creating(&mut self) -> Result<(), Failure> {
        for durable in [true, false] {
            let sync = if durable { "durable" } else { "not durable" };
            let single = self.probe(durable, Operation::Create, self.repeat)?;
            self.time(&format!("create one, {sync}"), single.later);
            let batch = self.probe(durable, Operation::Batch, 4)?;
            self.time(
                &format!("create {}, {sync}", thousands(BATCH as u64)),
                batch.later,
            );
        }
        Ok(())
    }

    fn probe(&self, durable: bool, operation: Operation, repeat: usize) -> Result<Found, Failure> {
        // The first time opens the board; at least one more is needed for the others.
        let mut found = probe::start(self.design, self.board, durable, operation, repeat.max(2))?;
        if found.later.is_empty() {
            found.later.push(found.first);
        }
        self.place.flush()?;
        Ok(found)
    }

    /// Times and highest memory of several fresh processes.
    fn fresh(&mut self, op: Operation, edit: bool) -> Result<(Vec<Duration>, u64), Failure> {
        let (mut times, mut memory) = (Vec::new(), 0);
        for _ in 0..self.fresh {
            check_interrupted()?;
            if edit {
                self.edit_by_hand()?;
            }
            let found = probe::start(self.design, self.board, false, op, 1)?;
            times.push(found.first);
            memory = memory.max(found.memory_kib);
        }
        Ok((times, memory))
    }

    /// Changes a word in the file of the last task, which is the last to be claimed, in place.
    fn edit_by_hand(&mut self) -> Result<(), Failure> {
        self.edits += 1;
        let file = ccb::list_dir(self.board).join(format!("{}.json", self.tasks));
        let text = std::fs::read_to_string(&file)?;
        let subject = format!("\"subject\": \"Edited {} times: ", self.edits);
        let (before, after) = text.split_once("\"subject\": \"").ok_or("no subject")?;
        std::fs::write(&file, format!("{before}{subject}{after}"))?;
        Ok(())
    }

    fn time(&mut self, what: &str, times: Vec<Duration>) {
        let p50 = Spread::of(times).p50;
        self.sample(&format!("{what}, ms"), p50.as_secs_f64() * 1e3, ms(p50));
    }

    fn memory(&mut self, what: &str, kib: u64) {
        let mib = kib as f64 / 1024.0;
        self.sample(&format!("{what}, peak memory MiB"), mib, significant(mib));
    }

    fn sample(&mut self, what: &str, value: f64, text: String) {
        self.samples.push(Sample {
            place: self.place.label.clone(),
            tasks: self.tasks,
            design: self.design,
            what: what.to_owned(),
            value,
            text,
        });
    }
}

/// Prints one table per place; columns are board sizes.
pub(crate) fn print(options: &Options, samples: &[Sample]) {
    println!("## By size\n");
    println!(
        "Medians. Boards are made by writing task files and letting the board take note of them."
    );
    println!(
        "Memory is VmHWM of a process that does only this. *Open* is a fresh process, not durable.\n"
    );
    for place in &options.places {
        println!("### {}\n", place.label);
        let sizes = options
            .sizes
            .iter()
            .map(|size| format!("{} tasks", thousands(*size)));
        let head = ["what".to_owned(), "design".to_owned()]
            .into_iter()
            .chain(sizes);
        let mut table = Table::new(2, head);
        let here: Vec<&Sample> = samples.iter().filter(|s| s.place == place.label).collect();
        let mut seen: Vec<&str> = Vec::new();
        for sample in &here {
            if seen.contains(&sample.what.as_str()) {
                continue;
            }
            seen.push(&sample.what);
            for design in DESIGNS {
                let cells: Vec<String> = here
                    .iter()
                    .filter(|s| s.what == sample.what && s.design == design)
                    .map(|s| s.text.clone())
                    .collect();
                if cells.len() == options.sizes.len() {
                    let name = [sample.what.clone(), design.label().to_owned()];
                    table.row(name.into_iter().chain(cells).collect());
                }
            }
        }
        println!("{table}");
    }
}
