//! `ccb mcp`: from starting the process to the answer of the first call, and a thousand calls
//! in a row with the memory before and after.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Options;
use crate::designs::{Design, ccb};
use crate::environment::Place;
use crate::stats::Spread;
use crate::table::{Table, ms, significant, thousands};
use crate::{Failure, check_interrupted, startup};

/// Tasks on the board.
const TASKS: u64 = 100;
/// Calls that are not counted: they allocate what is needed once.
const WARM_UP: usize = 100;
/// Calls that are counted.
const CALLS: usize = 1_000;

/// The numbers of one place.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    place: String,
    durable: bool,
    starts: usize,
    first_answer_p50_ms: f64,
    first_answer_p99_ms: f64,
    calls: usize,
    call_p50_ms: f64,
    call_p99_ms: f64,
    calls_per_second: f64,
    rss_before_kib: u64,
    rss_after_kib: u64,
    #[serde(skip)]
    texts: [String; 4],
}

/// Measures in every place, with and without fsync.
pub(crate) fn run(options: &Options) -> Result<Vec<Sample>, Failure> {
    let binary = startup::binary(options)?;
    let starts = if options.quick { 30 } else { 200 };
    let mut samples = Vec::new();
    for place in &options.places {
        for durable in [true, false] {
            eprintln!("mcp: {}, durable {durable}", place.label);
            samples.push(measure(place, &binary, durable, starts)?);
        }
    }
    Ok(samples)
}

fn measure(place: &Place, binary: &Path, durable: bool, starts: usize) -> Result<Sample, Failure> {
    let home = place.scratch()?;
    Design::Ccb.prepare(home.path(), TASKS)?;
    let settings = json!({"taskboard": {"durable": durable}, "mailbox": {"durable": durable}});
    std::fs::write(home.path().join("ccb.json"), settings.to_string())?;
    place.flush()?;
    let mut firsts = Vec::new();
    for _ in 0..starts {
        check_interrupted()?;
        let started = Instant::now();
        let mut server = Server::start(binary, home.path())?;
        server.call("TaskGet", &json!({"taskId": "1"}))?;
        firsts.push(started.elapsed());
        server.end()?;
    }
    let mut server = Server::start(binary, home.path())?;
    let id = server.call(
        "TaskCreate",
        &json!({"subject": "bench", "description": "x"}),
    )?;
    let id = id["structuredContent"]["task"]["id"].clone();
    server.calls(WARM_UP, &id)?;
    let before = server.memory()?;
    let started = Instant::now();
    let times = server.calls(CALLS, &id)?;
    let all = started.elapsed();
    let after = server.memory()?;
    server.end()?;
    let (first, call) = (Spread::of(firsts), Spread::of(times));
    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    Ok(Sample {
        place: place.label.clone(),
        durable,
        starts: first.count,
        first_answer_p50_ms: millis(first.p50),
        first_answer_p99_ms: millis(first.p99),
        calls: call.count,
        call_p50_ms: millis(call.p50),
        call_p99_ms: millis(call.p99),
        calls_per_second: CALLS as f64 / all.as_secs_f64(),
        rss_before_kib: before,
        rss_after_kib: after,
        texts: [ms(first.p50), ms(first.p99), ms(call.p50), ms(call.p99)],
    })
}

/// A server and its client.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    /// Starts one and greets it.
    fn start(binary: &Path, home: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(binary)
            .args(["--list", ccb::LIST, "--home"])
            .arg(home)
            .args(["mcp", "--role", "lead"])
            // Not inside the repository, whose settings would count.
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no pipe")?;
        let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let mut server = Self {
            child,
            input,
            output,
            id: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"experimental": {"ccb/json": {}}},
            "clientInfo": {"name": "ccb-bench", "version": "1"},
        });
        server.request("initialize", &hello)?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(server.input, "{ready}")?;
        Ok(server)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        writeln!(self.input, "{request}")?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server has ended".into());
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == self.id {
                return Ok(answer["result"].clone());
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        match result["isError"] == json!(false) {
            true => Ok(result),
            false => Err(format!("{tool}: {result}").into()),
        }
    }

    /// Reads and writes in turn: get, claim, give back, list.
    fn calls(&mut self, count: usize, id: &Value) -> Result<Vec<Duration>, Failure> {
        let mix = [
            ("TaskGet", json!({"taskId": id})),
            ("TaskUpdate", json!({"taskId": id, "status": "in_progress"})),
            ("TaskUpdate", json!({"taskId": id, "status": "pending"})),
            ("TaskList", json!({})),
        ];
        let mut times = Vec::with_capacity(count);
        for n in 0..count {
            check_interrupted()?;
            let (tool, arguments) = &mix[n % mix.len()];
            let started = Instant::now();
            self.call(tool, arguments)?;
            times.push(started.elapsed());
        }
        Ok(times)
    }

    /// Its resident memory in KiB.
    fn memory(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        Ok(number.ok_or("no VmRSS")?)
    }

    fn end(self) -> Result<(), Failure> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        match child.wait()? {
            status if status.success() => Ok(()),
            status => Err(format!("the server ended with {status}").into()),
        }
    }
}

/// Prints one table.
pub(crate) fn print(samples: &[Sample]) {
    println!("## MCP server\n");
    println!("First answer: from before `ccb mcp` is started until the result of the first call,");
    println!(
        "with the handshake. Calls: get, claim, give back and list in turn, {CALLS} in a row on"
    );
    println!(
        "{TASKS} tasks, after {WARM_UP} that are not counted; memory before and after them.\n"
    );
    let head = [
        "",
        "place",
        "first answer p50 ms",
        "p99 ms",
        "call p50 ms",
        "p99 ms",
        "calls/s",
        "RSS before KiB",
        "after KiB",
    ];
    let mut table = Table::new(2, head);
    for sample in samples {
        let durable = if sample.durable {
            "durable"
        } else {
            "not durable"
        };
        let [first, first_p99, call, call_p99] = sample.texts.clone();
        table.row(vec![
            durable.into(),
            sample.place.clone(),
            first,
            first_p99,
            call,
            call_p99,
            significant(sample.calls_per_second),
            thousands(sample.rss_before_kib),
            thousands(sample.rss_after_kib),
        ]);
    }
    println!("{table}");
}
