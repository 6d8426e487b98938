use maud::{Markup, html};

use crate::chart::{Axis, Band, Chart, Drawn, absent, short};
use crate::facts::{Facts, Trial};
use crate::requests::{Quantiles, Requests, Time};
use crate::timeline::Line;

use super::over_time::second;

/// Points of one line: more cannot be told apart.
const POINTS: i64 = 240;
/// Seconds that stay empty between two trials.
const BETWEEN: i64 = 3;

/// What is drawn, its anchor and its heading.
const TIMES: [(&str, &str, Time); 3] = [
    ("requests-first", "Time to first token", |times| {
        times.time_to_first_token
    }),
    ("requests-token", "Inter-token latency", |times| {
        times.inter_token_latency
    }),
    ("requests-whole", "Request latency", |times| times.request_latency),
];

/// A line in a drawing: its class, and its value.
type Drawing = (&'static str, fn(&Quantiles) -> f64);

const LINES: [Drawing; 3] = [
    ("line p99", |found| found.p99),
    ("line p90", |found| found.p90),
    ("line own", |found| found.median),
];

/// The requests of a trial, and its first second on the common clock.
struct Placed<'a> {
    trial: i64,
    from: i64,
    requests: &'a Requests,
}

/// What single requests took over time; nothing where no trial has their record.
pub(super) fn over_time(facts: &Facts) -> Markup {
    let trials = placed(&facts.trials);
    let seconds = trials.last().map_or(0, Placed::until);
    let every = seconds.saturating_sub(1) / POINTS + 1;
    let of = if every == 1 {
        "each second".to_owned()
    } else {
        format!("each {every} s")
    };
    html! {
        @if !trials.is_empty() {
            h3 { "Single requests over time" }
            p.legend {
                "Requests that began in " (of) " of the measured phase and ended well, by AIPerf's own record of each. "
                "Solid: half of them took at most so long; dashed: 90 %; dotted: 99 %."
            }
            @for (anchor, title, time) in TIMES { (drawn(&trials, (seconds, every), (anchor, title, time))) }
        }
    }
}

impl Placed<'_> {
    fn until(&self) -> i64 {
        self.from + self.requests.seconds() + 1
    }
}

fn placed(trials: &[Trial]) -> Vec<Placed<'_>> {
    let mut placed: Vec<Placed<'_>> = Vec::new();
    for trial in trials {
        let known = trial.requests.as_ref().filter(|requests| requests.len() > 0);
        let from = placed.last().map_or(0, |before| before.until() + BETWEEN);
        placed.extend(known.map(|requests| Placed {
            trial: trial.status.number,
            from,
            requests,
        }));
    }
    placed
}

fn drawn(trials: &[Placed<'_>], (seconds, every): (i64, i64), (anchor, title, time): (&str, &str, Time)) -> Markup {
    let parts = |trial: &Placed<'_>| {
        let from = second(trial.from);
        let mut parts = trial.requests.over_time(every, time);
        for point in parts.iter_mut().flatten() {
            point.at += from;
        }
        parts
    };
    let parts: Vec<Vec<Quantiles>> = trials.iter().flat_map(parts).collect();
    let largest = parts.iter().flatten().map(|point| point.p99).fold(0.0, f64::max);
    if parts.is_empty() {
        return absent(title, "no request has it");
    }
    let mut chart = Chart::new(
        anchor,
        title,
        (960.0, 230.0),
        Axis::exactly("s", second(seconds)),
        Axis::from_zero("ms", largest),
    );
    chart.bands = trials.iter().map(band).collect();
    chart.lines = LINES
        .map(|(class, value)| {
            let point = |found: &Quantiles| (found.at, value(found));
            let line: Line = parts.iter().map(|part| part.iter().map(point).collect()).collect();
            Drawn { class, line }
        })
        .into();
    let words = trials.iter().filter_map(|trial| {
        let all = trial.requests.together(time)?;
        let (median, p90, p99) = (short(all.median), short(all.p90), short(all.p99));
        let trial = trial.trial;
        Some(format!("trial {trial}: median {median} ms, p90 {p90} ms, p99 {p99} ms"))
    });
    let words = words.collect::<Vec<_>>().join("; ");
    chart.description = format!("{words}; at most {} ms in one point.", short(largest));
    chart.figure()
}

fn band(trial: &Placed<'_>) -> Band {
    Band {
        from: second(trial.from),
        to: second(trial.until()),
        class: "trial",
        label: format!("trial {}", trial.trial),
    }
}
