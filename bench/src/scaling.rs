//! The cost of single operations on boards of different size.
//!
//! Each is done by a process of its own ([`probe`](crate::probe)), so that memory is that of one
//! operation on one board. *Opening* is the time from before the board is opened to the first
//! answer, in a fresh process, without the start of that process.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tempfile::TempDir;

use crate::args::Options;
use crate::designs::{Design, ccb};
use crate::environment::Place;
use crate::probe::{self, BATCH, Found, Operation};
use crate::stats::Spread;
use crate::table::{Table, ms, significant, thousands};
use crate::{Failure, check_interrupted};

/// One number: the operation, the place, and the size of the board.
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
                let mut bench = Bench {
                    place,
                    tasks,
                    design,
                    fresh: if options.quick { 3 } else { 7 },
                    repeat: if options.quick { 5 } else { 20 },
                    edits: 0,
                    times: Vec::new(),
                    memory: Vec::new(),
                };
                let board = bench.board()?;
                bench.reading(board.path())?;
                bench.opening(board.path())?;
                bench.creating(board)?;
                samples.extend(bench.times);
                samples.extend(bench.memory);
            }
        }
    }
    Ok(samples)
}

/// One design at one size.
struct Bench<'a> {
    place: &'a Place,
    tasks: u64,
    design: Design,
    /// Number of fresh processes of which a number is the median.
    fresh: usize,
    /// Maximum of repetitions of an operation in one process.
    repeat: usize,
    edits: u32,
    times: Vec<Sample>,
    memory: Vec<Sample>,
}

impl Bench<'_> {
    /// A new board.
    fn board(&self) -> Result<TempDir, Failure> {
        check_interrupted()?;
        let board = self.place.scratch()?;
        self.design.prepare(board.path(), self.tasks)?;
        self.place.flush()?;
        Ok(board)
    }

    /// List and ready set in a process that has the board open already.
    fn reading(&mut self, board: &Path) -> Result<(), Failure> {
        let list = self.probe(board, false, Operation::List, self.repeat)?;
        self.time("list all tasks", list.later);
        self.memory("list all tasks", list.memory_kib);
        let ready = self.probe(board, false, Operation::Ready, self.repeat)?;
        self.time("ready set", ready.later);
        Ok(())
    }

    /// A fresh process until its first answer; and once more after a hand edit each time.
    fn opening(&mut self, board: &Path) -> Result<(), Failure> {
        for operation in [Operation::Ready, Operation::Claim] {
            let what = match operation {
                Operation::Claim => "open, first claim",
                _ => "open, ready set",
            };
            let (times, memory) = self.fresh(board, operation, false)?;
            self.time(what, times);
            if operation == Operation::Claim {
                self.memory(what, memory);
            }
            if self.design != Design::Sqlite {
                let (times, _) = self.fresh(board, operation, true)?;
                self.time(&format!("{what}, a file edited by hand"), times);
                // The board records the last edit now.
                self.probe(board, false, Operation::Claim, 1)?;
            }
        }
        Ok(())
    }

    /// One task, and a batch, durable and not.
    fn creating(&mut self, board: TempDir) -> Result<(), Failure> {
        for durable in [true, false] {
            let single = self.probe(board.path(), durable, Operation::Create, self.repeat)?;
            let sync = if durable { "durable" } else { "not durable" };
            self.time(&format!("create one, {sync}"), single.later);
        }
        drop(board);
        for durable in [true, false] {
            // A new board, and only once where a batch more would make it much larger.
            let board = self.board()?;
            let repeat = if self.tasks < 10 * BATCH as u64 { 1 } else { 3 };
            let mut batch = self.probe(board.path(), durable, Operation::Batch, repeat)?;
            batch.later.push(batch.first);
            let sync = if durable { "durable" } else { "not durable" };
            let what = format!("create {}, {sync}", thousands(BATCH as u64));
            self.time(&what, batch.later);
        }
        Ok(())
    }

    fn probe(
        &self,
        board: &Path,
        durable: bool,
        operation: Operation,
        repeat: usize,
    ) -> Result<Found, Failure> {
        let mut found = probe::start(self.design, board, durable, operation, repeat)?;
        if found.later.is_empty() {
            found.later.push(found.first);
        }
        self.place.flush()?;
        Ok(found)
    }

    /// Times and highest memory of several fresh processes.
    fn fresh(
        &mut self,
        board: &Path,
        operation: Operation,
        edit: bool,
    ) -> Result<(Vec<Duration>, u64), Failure> {
        let (mut times, mut memory) = (Vec::new(), 0);
        for _ in 0..self.fresh {
            if edit {
                self.edit_by_hand(board)?;
            }
            let found = probe::start(self.design, board, false, operation, 1)?;
            times.push(found.first);
            memory = memory.max(found.memory_kib);
        }
        Ok((times, memory))
    }

    /// Changes a word in the file of the last task, which is the last to be claimed, in place.
    fn edit_by_hand(&mut self, board: &Path) -> Result<(), Failure> {
        self.edits += 1;
        let file = ccb::list_dir(board).join(format!("{}.json", self.tasks));
        let text = std::fs::read_to_string(&file)?;
        let subject = format!("\"subject\": \"Edited {} times: ", self.edits);
        let (before, after) = text.split_once("\"subject\": \"").ok_or("no subject")?;
        std::fs::write(&file, format!("{before}{subject}{after}"))?;
        Ok(())
    }

    fn time(&mut self, what: &str, times: Vec<Duration>) {
        let p50 = Spread::of(times).p50;
        let sample = self.sample(format!("{what}, ms"), p50.as_secs_f64() * 1e3, ms(p50));
        self.times.push(sample);
    }

    fn memory(&mut self, what: &str, kib: u64) {
        let mib = kib as f64 / 1024.0;
        let what = format!("{what}, peak memory MiB");
        let sample = self.sample(what, mib, significant(mib));
        self.memory.push(sample);
    }

    fn sample(&self, what: String, value: f64, text: String) -> Sample {
        Sample {
            place: self.place.label.clone(),
            tasks: self.tasks,
            design: self.design,
            what,
            value,
            text,
        }
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
