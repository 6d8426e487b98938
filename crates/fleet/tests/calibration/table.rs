//! Rows of the page as CSV, and its tables: one row for each case and fleet, one column for each noise.

use std::fmt::Write as _;

use crate::tally::{Goal, Tally, share};
use crate::world::Shape;

const HEADER: &str = "section,case,fleet,noise,found,of,bound,goal,result\n";

/// Cases that share the row of the case that they continue.
const JOINED: [&str; 2] = ["… acted", "… reported"];
/// Number of cases below which an unsure result is shown as counts.
const FEW: usize = 100;
/// Goal of a row without one.
const NO_GOAL: &str = "–";

/// Rows of the page under construction.
pub struct Page {
    /// Header and rows.
    pub csv: String,
    /// Section of the next rows.
    pub title: &'static str,
    /// Last case whose name is complete; a case that begins with `…` continues it.
    case: String,
    /// Noises whose rows are played.
    pub shapes: &'static [Shape],
}

impl Page {
    pub fn new(shapes: &'static [Shape]) -> Self {
        Self {
            csv: HEADER.to_owned(),
            title: "",
            case: String::new(),
            shapes,
        }
    }

    /// True if the rows of this noise are played.
    pub fn plays(&self, shape: Shape) -> bool {
        self.shapes.contains(&shape)
    }

    pub fn row(&mut self, what: &str, fleet: &str, shape: Shape, tally: Tally, goal: Goal) {
        let bound = match goal {
            Goal::AtLeast(_) | Goal::Sure(..) => format!("≥ {}", percent(tally.at_least())),
            _ => format!("≤ {}", percent(tally.at_most())),
        };
        let counts = format!("{},{},{bound}", tally.hits, tally.of);
        self.add(what, fleet, shape, &counts, &show_goal(goal), tally.against(goal));
    }

    /// Adds a number beside its goal, if it has one, and whether it meets that.
    pub fn value(&mut self, what: &str, fleet: &str, shape: Shape, found: &str, goal: Option<(&str, bool)>) {
        let (target, result) = match goal {
            Some((target, true)) => (target, "met"),
            Some((target, false)) => (target, "missed"),
            None => (NO_GOAL, "none"),
        };
        self.add(what, fleet, shape, &format!("{found},,"), target, result);
    }

    fn add(&mut self, what: &str, fleet: &str, shape: Shape, counts: &str, goal: &str, result: &str) {
        let case = if let Some(rest) = what.strip_prefix("… ") {
            format!("{}; {rest}", self.case)
        } else {
            what.clone_into(&mut self.case);
            what.to_owned()
        };
        let (title, noise) = (self.title, show_shape(shape));
        let _ = writeln!(
            self.csv,
            "\"{title}\",\"{case}\",{fleet},{noise},{counts},\"{goal}\",{result}"
        );
    }
}

/// Cells of a row of the CSV.
struct Cells<'a> {
    section: &'a str,
    case: &'a str,
    fleet: &'a str,
    noise: &'a str,
    /// Number of hits of so many cases, or a value.
    found: &'a str,
    of: &'a str,
    goal: &'a str,
    result: &'a str,
}

impl<'a> Cells<'a> {
    fn read(row: &'a str) -> Option<Self> {
        // Section, case and goal are quoted.
        let parts: Vec<&str> = row.split('"').collect();
        let [_, section, _, case, counts, goal, result] = parts[..] else {
            return None;
        };
        let counts: Vec<&str> = counts.split(',').collect();
        let [_, fleet, noise, found, of, ..] = counts[..] else {
            return None;
        };
        Some(Self {
            section,
            case,
            fleet,
            noise,
            found,
            of,
            goal,
            result: result.trim_start_matches(','),
        })
    }

    fn show(&self) -> String {
        let found = match (self.found.parse::<usize>(), self.of.parse::<usize>()) {
            // A share of few cases would look surer than it is.
            (Ok(hits), Ok(of)) if of < FEW && self.result == "not refuted" => format!("{hits} of {of}"),
            (Ok(hits), Ok(of)) => percent(share(hits, of)),
            _ => self.found.to_owned(),
        };
        match self.result {
            "missed" => format!("**{found}**"),
            "not refuted" => format!("*{found}*"),
            _ => found,
        }
    }
}

fn cells(csv: &str) -> impl Iterator<Item = Cells<'_>> {
    csv.lines().skip(1).filter_map(Cells::read)
}

/// Rows whose goal is missed.
pub fn missed(csv: &str) -> Vec<String> {
    let missed = cells(csv).filter(|row| row.result == "missed");
    missed
        .map(|row| format!("{}, {}, {}", row.case, row.fleet, row.noise))
        .collect()
}

/// Page with this introduction, and with the title, text and rows of each section.
pub fn render(introduction: &str, sections: &[(&str, &str)], csv: &str) -> String {
    let mut page = introduction.to_owned();
    for (title, text) in sections {
        let _ = write!(page, "\n## {title}\n\n{text}");
        let rows: Vec<Cells<'_>> = cells(csv).filter(|row| row.section == *title).collect();
        write_table(&mut page, &rows);
    }
    page
}

fn write_table(page: &mut String, rows: &[Cells<'_>]) {
    let heads = Shape::ALL.map(show_shape).into_iter();
    let heads: Vec<&str> = heads.filter(|head| rows.iter().any(|row| row.noise == *head)).collect();
    let _ = writeln!(
        page,
        "| case | fleet | {} | goal |\n|---|---|{}---|",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for line in lines(rows) {
        let cells = heads.iter().map(|head| {
            let cell = line.found.iter().find(|(noise, _)| noise == head);
            cell.map_or("", |(_, found)| found.as_str())
        });
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            line.what,
            line.key.1,
            cells.collect::<Vec<_>>().join(" | "),
            line.goals.join(" / ")
        );
    }
}

/// Row of a table: one case and fleet under each noise.
struct Line<'a> {
    key: (&'a str, &'a str),
    what: String,
    goals: Vec<&'a str>,
    /// Cells by noise.
    found: Vec<(&'a str, String)>,
}

impl Line<'_> {
    /// Adds the cells of a case that continues this one.
    fn join(&mut self, other: Self) {
        self.what = self.what.replace(", reported", "").replace(", stated", "");
        for (noise, more) in other.found {
            if let Some((_, cell)) = self.found.iter_mut().find(|(known, _)| *known == noise) {
                let _ = write!(cell, ", {more}");
            }
        }
        self.goals.extend(other.goals);
        self.goals.retain(|goal| *goal != NO_GOAL);
    }
}

/// One line for each case and fleet, and those that continue it.
fn lines<'a>(rows: &[Cells<'a>]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for row in rows {
        let key = (row.case, row.fleet);
        let at = lines.iter().position(|line| line.key == key).unwrap_or_else(|| {
            let rest = row.case.split_once("; ").map(|(_, rest)| format!("… {rest}"));
            lines.push(Line {
                key,
                what: rest.unwrap_or_else(|| row.case.to_owned()),
                goals: Vec::new(),
                found: Vec::new(),
            });
            lines.len() - 1
        });
        let line = &mut lines[at];
        line.found.push((row.noise, row.show()));
        if !line.goals.contains(&row.goal) {
            line.goals.push(row.goal);
        }
    }
    let mut joined: Vec<Line<'a>> = Vec::new();
    for line in lines {
        let is_joined = JOINED.contains(&line.what.as_str());
        if let Some(before) = joined.last_mut().filter(|_| is_joined) {
            before.join(line);
        } else {
            joined.push(line);
        }
    }
    joined
}

pub fn show_shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Gaussian => "Gaussian",
        Shape::Heavy => "heavy",
        Shape::Recorded => "recorded",
    }
}

fn show_goal(goal: Goal) -> String {
    match goal {
        Goal::AtMost(most) => format!("≤ {}", percent(most)),
        Goal::AtLeast(least) => format!("≥ {}", percent(least)),
        Goal::Sure(least, bound) => format!("≥ {}, bound ≥ {}", percent(least), percent(bound)),
        Goal::None => NO_GOAL.to_owned(),
    }
}

fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.001 {
        format!("{:.3} %", 100.0 * share)
    } else {
        format!("{:.1} %", 100.0 * share)
    }
}
