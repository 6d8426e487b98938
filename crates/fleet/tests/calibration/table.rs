//! Tables of the page: one row for each case and fleet, one column for each noise, and all counts as CSV.

use std::fmt::Write as _;

use crate::tally::{Goal, Tally};
use crate::world::Shape;

const ROWS: &str = "section,case,fleet,noise,found,of,bound,goal,result\n";

/// Cases that share the row of the case that they continue.
const JOINED: [&str; 2] = ["… acted", "… reported"];
/// Goal of a row without one.
const NO_GOAL: &str = "–";

/// Page under construction.
pub struct Page {
    text: String,
    csv: String,
    title: &'static str,
    lines: Vec<Line>,
    /// Last case whose name is complete; a case that begins with `…` continues it.
    case: String,
    /// Rows whose goal is missed.
    pub missed: Vec<String>,
    /// Noises whose rows are played.
    pub shapes: &'static [Shape],
}

/// Row of a table: one case and fleet under each noise.
struct Line {
    key: (String, String),
    what: String,
    goals: Vec<String>,
    found: [Option<String>; 3],
}

impl Line {
    /// Adds the cells of a case that continues this one.
    fn join(&mut self, other: Self) {
        self.what = self.what.replace(", reported", "").replace(", stated", "");
        for (cell, more) in self.found.iter_mut().zip(other.found) {
            if let (Some(cell), Some(more)) = (cell, more) {
                let _ = write!(cell, ", {more}");
            }
        }
        self.goals.extend(other.goals);
        self.goals.retain(|goal| goal != NO_GOAL);
    }
}

/// One row for each case and those that continue it.
fn join(lines: Vec<Line>) -> Vec<Line> {
    let mut rows: Vec<Line> = Vec::new();
    for line in lines {
        let is_joined = JOINED.contains(&line.what.as_str());
        if let Some(row) = rows.last_mut().filter(|_| is_joined) {
            row.join(line);
        } else {
            rows.push(line);
        }
    }
    rows
}

impl Page {
    pub fn new(introduction: &str, shapes: &'static [Shape]) -> Self {
        Self {
            text: introduction.to_owned(),
            csv: ROWS.to_owned(),
            title: "",
            lines: Vec::new(),
            case: String::new(),
            missed: Vec::new(),
            shapes,
        }
    }

    /// True if the rows of this noise are played.
    pub fn plays(&self, shape: Shape) -> bool {
        self.shapes.contains(&shape)
    }

    /// The page, and all its rows as CSV.
    pub fn into_texts(self) -> (String, String) {
        (self.text, self.csv)
    }

    pub fn table(&mut self, title: &'static str, text: &str) {
        self.end_table();
        self.title = title;
        let _ = write!(self.text, "\n## {title}\n\n{text}");
    }

    pub fn end_table(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return;
        }
        let shown: Vec<Shape> = Shape::ALL
            .into_iter()
            .filter(|shape| lines.iter().any(|line| line.found[*shape as usize].is_some()))
            .collect();
        let heads: Vec<&str> = shown.iter().map(|shape| show_shape(*shape)).collect();
        let _ = writeln!(
            self.text,
            "| case | fleet | {} | goal |\n|---|---|{}---|",
            heads.join(" | "),
            "---|".repeat(shown.len())
        );
        for line in join(lines) {
            let cells: Vec<&str> = shown
                .iter()
                .map(|shape| line.found[*shape as usize].as_deref().unwrap_or(""))
                .collect();
            let _ = writeln!(
                self.text,
                "| {} | {} | {} | {} |",
                line.what,
                line.key.1,
                cells.join(" | "),
                line.goals.join(" / ")
            );
        }
    }

    pub fn row(&mut self, what: &str, fleet: &str, shape: Shape, tally: Tally, goal: Goal) {
        let (target, result) = (show_goal(goal), tally.against(goal));
        let bound = match goal {
            Goal::AtLeast(_) | Goal::Sure(..) => format!("≥ {}", percent(tally.at_least())),
            _ => format!("≤ {}", percent(tally.at_most())),
        };
        let counts = format!("{},{},{bound}", tally.hits, tally.of);
        self.add(what, fleet, shape, &percent(tally.share()), &counts, &target, result);
    }

    pub fn value(&mut self, what: &str, fleet: &str, shape: Shape, found: &str, target: &str, is_met: bool) {
        let result = if is_met { "met" } else { "missed" };
        self.add(what, fleet, shape, found, &format!("{found},,"), target, result);
    }

    #[expect(clippy::too_many_arguments, reason = "the cells of one row")]
    fn add(
        &mut self,
        what: &str,
        fleet: &str,
        shape: Shape,
        found: &str,
        counts: &str,
        goal: &str,
        result: &'static str,
    ) {
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
        let cell = match result {
            "missed" => format!("**{found}**"),
            "not refuted" => format!("*{found}*"),
            _ => found.to_owned(),
        };
        let key = (case, fleet.to_owned());
        let at = self.lines.iter().position(|line| line.key == key).unwrap_or_else(|| {
            self.lines.push(Line {
                key,
                what: what.to_owned(),
                goals: Vec::new(),
                found: [None, None, None],
            });
            self.lines.len() - 1
        });
        let line = &mut self.lines[at];
        line.found[shape as usize] = Some(cell);
        if !line.goals.iter().any(|known| known == goal) {
            line.goals.push(goal.to_owned());
        }
        self.note(what, fleet, shape, result);
    }

    fn note(&mut self, what: &str, fleet: &str, shape: Shape, result: &str) {
        if result == "missed" {
            self.missed.push(format!("{what}, {fleet}, {}", show_shape(shape)));
        }
    }
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
