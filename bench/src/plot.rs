//! Claims per second against board size as an SVG, both axes logarithmic.
//!
//! One panel per directory and durability, all with the same axes, at the largest number of
//! processes that was measured. A hollow mark: stopped by the time limit with tasks left.

use std::fmt::Write;

use crate::args::Options;
use crate::claims::Outcome;
use crate::designs::Design;
use crate::table::{significant, thousands};

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 250.0;
/// Around the plotting area of a panel.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 48.0;
/// Above the panels: title and legend.
const HEAD: f64 = 76.0;

/// Colour, dashes and mark of a design.
fn style(design: Design) -> (&'static str, &'static str, Mark) {
    match design {
        Design::Ccb => ("#1d4ed8", "none", Mark::Circle),
        Design::CcbFlock => ("#0891b2", "6 3", Mark::Square),
        Design::Sqlite => ("#c2410c", "none", Mark::Triangle),
        Design::Seed => ("#57534e", "2 3", Mark::Diamond),
    }
}

enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
}

/// The plot of the outcomes with most processes.
pub(crate) fn claims(options: &Options, outcomes: &[Outcome]) -> String {
    let processes = options.processes.iter().copied().max().unwrap_or(1);
    let shown: Vec<&Outcome> = outcomes
        .iter()
        .filter(|o| o.processes == processes && o.claims > 0)
        .collect();
    let axes = Axes::around(&shown);
    let width = 2.0 * (LEFT + WIDTH + RIGHT);
    let height = HEAD + options.places.len() as f64 * (TOP + HEIGHT + BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" \
         fill=\"#1c1917\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let noun = if processes == 1 {
        "process"
    } else {
        "processes"
    };
    let title = format!("Claims per second by board size, {processes} {noun}");
    text(&mut svg, (LEFT, 28.0), "start", 17, &title);
    legend(&mut svg, &options.designs);
    for (row, place) in options.places.iter().enumerate() {
        for (column, durable) in options.durable.iter().copied().enumerate() {
            let x = LEFT + column as f64 * (LEFT + WIDTH + RIGHT);
            let y = HEAD + TOP + row as f64 * (TOP + HEIGHT + BOTTOM);
            let sync = if durable { "durable" } else { "not durable" };
            let here: Vec<&Outcome> = shown
                .iter()
                .filter(|o| o.place == place.label && o.durable == durable)
                .copied()
                .collect();
            writeln!(svg, "<g transform=\"translate({x} {y})\">").ok();
            text(
                &mut svg,
                (0.0, -12.0),
                "start",
                14,
                &format!("{}, {sync}", place.label),
            );
            axes.draw(&mut svg);
            for design in &options.designs {
                series(&mut svg, &axes, *design, &here);
            }
            label_ends(&mut svg, &axes, &options.designs, &here);
            svg.push_str("</g>\n");
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The common axes: board sizes, and whole decades of claims per second.
struct Axes {
    sizes: Vec<u64>,
    low: i32,
    high: i32,
}

impl Axes {
    fn around(outcomes: &[&Outcome]) -> Self {
        let mut sizes: Vec<u64> = outcomes.iter().map(|o| o.tasks).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let rates = || {
            outcomes
                .iter()
                .map(|o| o.claims_per_second.max(0.01).log10())
        };
        let low = rates().fold(f64::INFINITY, f64::min);
        let high = rates().fold(f64::NEG_INFINITY, f64::max);
        let finite = low.is_finite() && high.is_finite();
        let (low, high) = if finite { (low, high) } else { (0.0, 1.0) };
        Self {
            sizes,
            low: low.floor() as i32,
            high: (high.ceil() as i32).max(low.floor() as i32 + 1),
        }
    }

    fn x(&self, tasks: u64) -> f64 {
        let log = |tasks: u64| (tasks.max(1) as f64).log10();
        let first = log(self.sizes.first().copied().unwrap_or(1));
        let last = log(self.sizes.last().copied().unwrap_or(1));
        if last <= first {
            return WIDTH / 2.0;
        }
        (log(tasks) - first) / (last - first) * WIDTH
    }

    fn y(&self, rate: f64) -> f64 {
        let share =
            (rate.max(0.01).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        HEIGHT - share * HEIGHT
    }

    fn draw(&self, svg: &mut String) {
        for decade in self.low..=self.high {
            let y = self.y(10_f64.powi(decade));
            line(svg, (0.0, y), (WIDTH, y), "#e7e5e4");
            let label = if decade < 0 {
                format!("{}", 10_f64.powi(decade))
            } else {
                thousands(10_u64.pow(decade.unsigned_abs()))
            };
            text(svg, (-8.0, y + 4.0), "end", 12, &label);
        }
        for size in &self.sizes {
            let x = self.x(*size);
            line(svg, (x, 0.0), (x, HEIGHT), "#e7e5e4");
            text(svg, (x, HEIGHT + 18.0), "middle", 12, &thousands(*size));
        }
        line(svg, (0.0, HEIGHT), (WIDTH, HEIGHT), "#78716c");
        text(
            svg,
            (WIDTH / 2.0, HEIGHT + 36.0),
            "middle",
            12,
            "tasks on the board",
        );
    }
}

/// The line of one design, with a mark at every size.
fn series(svg: &mut String, axes: &Axes, design: Design, outcomes: &[&Outcome]) {
    let (colour, dashes, mark) = style(design);
    let mut points: Vec<&&Outcome> = outcomes.iter().filter(|o| o.design == design).collect();
    points.sort_by_key(|o| o.tasks);
    let path: Vec<String> = points
        .iter()
        .map(|o| format!("{:.1},{:.1}", axes.x(o.tasks), axes.y(o.claims_per_second)))
        .collect();
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-dasharray=\"{dashes}\"/>",
        path.join(" ")
    )
    .ok();
    for point in points {
        let at = (axes.x(point.tasks), axes.y(point.claims_per_second));
        draw_mark(svg, at, &mark, colour, point.cut);
    }
}

/// The rate on the largest board, to the right of each line, moved apart where they touch.
fn label_ends(svg: &mut String, axes: &Axes, designs: &[Design], outcomes: &[&Outcome]) {
    let mut ends: Vec<(f64, &str, String)> = designs
        .iter()
        .filter_map(|design| {
            let of_design = outcomes.iter().filter(|o| o.design == *design);
            let last = of_design.max_by_key(|o| o.tasks)?;
            let rate = last.claims_per_second;
            Some((axes.y(rate) + 4.0, style(*design).0, significant(rate)))
        })
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = f64::NEG_INFINITY;
    for (y, colour, label) in ends {
        let y = y.max(lowest + 13.0);
        lowest = y;
        let x = WIDTH + 10.0;
        writeln!(
            svg,
            "<text x=\"{x}\" y=\"{y:.1}\" fill=\"{colour}\">{label}</text>"
        )
        .ok();
    }
}

fn legend(svg: &mut String, designs: &[Design]) {
    let mut x = LEFT;
    for design in designs {
        let (colour, dashes, mark) = style(*design);
        writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"52\" x2=\"{}\" y2=\"52\" stroke=\"{colour}\" \
             stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>",
            x + 34.0
        )
        .ok();
        draw_mark(svg, (x + 17.0, 52.0), &mark, colour, false);
        text(svg, (x + 42.0, 56.0), "start", 12, design.label());
        x += 70.0 + 7.0 * design.label().len() as f64;
    }
    text(
        svg,
        (x, 56.0),
        "start",
        12,
        "hollow: stopped by the time limit",
    );
}

fn draw_mark(svg: &mut String, at: (f64, f64), mark: &Mark, colour: &str, hollow: bool) {
    let (x, y) = at;
    let fill = if hollow { "#ffffff" } else { colour };
    let paint = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"");
    let path = |points: [(f64, f64); 4]| {
        let points = points.map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy));
        format!("<polygon points=\"{}\" {paint}/>", points.join(" "))
    };
    let shape = match mark {
        Mark::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {paint}/>"),
        Mark::Square => path([(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)]),
        Mark::Triangle => path([(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0), (0.0, -5.0)]),
        Mark::Diamond => path([(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)]),
    };
    writeln!(svg, "{shape}").ok();
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    )
    .ok();
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, size: u32, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>",
        at.0, at.1
    )
    .ok();
}
