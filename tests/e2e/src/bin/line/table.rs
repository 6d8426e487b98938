//! All rounds next to each other, and the goals.

use crate::reached::Reached;
use crate::round::Round;
use perfval_e2e::process::Cost;

const NAME: usize = 50;
const CELL: usize = 17;

/// Prints the rounds; the first is what the others are compared with.
pub fn print(rounds: &[Round]) {
    let Some(first) = rounds.first() else { return };
    let table = Table { rounds };
    let above_idle = |part: fn(&Cost) -> Option<f64>| {
        move |round: &Round| number(difference(part(&round.all_wait), part(&round.idle)), 1)
    };
    println!();
    table.row("waiting behind the head", "goal", |round| round.waiting.to_string());
    table.row("idle: operator, MiB resident", "<= 20", |round| {
        number(round.idle_mib, 1)
    });
    table.row("idle: operator, % of a core", "", |round| {
        number(round.idle.operator, 1)
    });
    table.row("idle: API server, % of a core", "", |round| {
        number(round.idle.api_server, 1)
    });
    table.row("new: with the operator's word within 2 s", "all", |round| {
        format!("{} of {}", round.greeted.soon, round.greeted.all)
    });
    table.row("new: with the operator's word at all", "all", |round| {
        format!("{} of {}", round.greeted.ever, round.greeted.all)
    });
    table.row("new: median until then, s", "", |round| number(round.greeted.median, 2));
    table.row("new: slowest until then, s", "<= 2", |round| {
        number(round.greeted.slowest, 2)
    });
    table.row("new: from then until all are in the queue", "", |round| {
        reached(round.queued)
    });
    table.row(
        "all wait: operator, % of a core above idle",
        "<= 2",
        above_idle(|cost| cost.operator),
    );
    table.row(
        "all wait: API server, % of a core above idle",
        "<= 5",
        above_idle(|cost| cost.api_server),
    );
    table.row("all wait: requests of the operator a minute", "", |round| {
        number(round.all_wait_requests, 0)
    });
    table.row("all wait: operator, MiB resident", "<= 80", |round| {
        number(round.all_wait_mib, 1)
    });
    table.row("restart: until all were looked at", "<= 5 s", |round| {
        reached(round.restart)
    });
    table.row("head: from the holder's end to Deploying, s", "", |round| {
        number(round.head.started_after, 1)
    });
    table.row("head: from Deploying to Completed, s", "", |round| {
        number(round.head.took, 1)
    });
    table.row("head: that, as a multiple of the first column", "<= 1.1", |round| {
        number(ratio(round.head.took, first.head.took), 2)
    });
    table.row("head: its end", "Passed", |round| round.head.end.clone());
    let trial = |part: fn(&Cost) -> Option<f64>| {
        move |round: &Round| number(round.head.benchmarking.as_ref().and_then(part), 1)
    };
    table.row("head measures: for so many s", "", trial(|cost| Some(cost.seconds)));
    table.row("head measures: operator, % of a core", "", trial(|cost| cost.operator));
    table.row(
        "head measures: API server, % of a core",
        "",
        trial(|cost| cost.api_server),
    );
    table.row("head measures: requests of the operator a minute", "", |round| {
        number(round.head_requests, 0)
    });
    table.row(
        "head: change of a Job to the next write, median s",
        "<= 0.05",
        |round| number(round.reaction, 3),
    );
    table.row("all deleted: until nothing is left", "< 60 s", |round| {
        reached(round.deletion)
    });
    table.row("whole round: operator, most MiB resident", "<= 80", |round| {
        number(round.peak_mib, 1)
    });
    table.row("whole round: unrequested restarts", "0", |round| {
        round.restarts.to_string()
    });
}

struct Table<'a> {
    rounds: &'a [Round],
}

impl Table<'_> {
    fn row(&self, name: &str, goal: &str, cell: impl Fn(&Round) -> String) {
        print!("{name:<NAME$}");
        for round in self.rounds {
            print!("{:>CELL$}", cell(round));
        }
        println!("{goal:>CELL$}");
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn reached(value: Option<Reached>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn difference(of: Option<f64>, from: Option<f64>) -> Option<f64> {
    Some(of? - from?)
}

fn ratio(of: Option<f64>, to: Option<f64>) -> Option<f64> {
    Some(of? / to?)
}
