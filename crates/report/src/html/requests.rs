use maud::{Markup, html};
use perfval_api::Metric;
use perfval_verdict::requests::{Distribution, Quantiles, RequestTimes};

use crate::chart::{Axis, Band, Chart, Drawn, absent, short};
use crate::facts::{Facts, Trial};
use crate::timeline::{BETWEEN, ChartLine};

use super::over_time::second;

/// Times of a request, and their headings.
pub(super) const TIMES: [(Metric, &str); 3] = [
    (Metric::TimeToFirstToken, "Time to first token"),
    (Metric::InterTokenLatency, "Inter-token latency"),
    (Metric::RequestLatency, "Request latency"),
];

/// A line in a drawing: its class, and its value.
type Drawing = (&'static str, fn(&Quantiles) -> i64);

const LINES: [Drawing; 3] = [
    ("line p99", |found| found.p99),
    ("line p90", |found| found.p90),
    ("line own", |found| found.median),
];

/// The requests of a trial, and its first second on the common clock.
struct Placed<'a> {
    trial: i64,
    from: i64,
    requests: &'a RequestTimes,
}

/// Times of single requests over time.
pub(super) fn over_time(facts: &Facts) -> Markup {
    let trials = placed(&facts.trials);
    html! {
        h3 { "Single requests over time" }
        @if trials.is_empty() {
            (absent("Single requests", "there is no record of requests that ended well beside AIPerf's export"))
        } @else {
            p.legend {
                "Requests that began in each " (length(&trials)) " of the measured phase and ended well, by AIPerf's own record of each. "
                "Solid: half of them took at most so long; dashed: 90 %; dotted: 99 %."
            }
            @for (metric, title) in TIMES { (drawn(&trials, metric, title)) }
        }
    }
}

/// Distribution of these requests, if a metric is a time of them.
pub(super) fn request_distribution(requests: &RequestTimes, metric: Metric) -> Option<&Distribution> {
    match metric {
        Metric::TimeToFirstToken => Some(&requests.time_to_first_token),
        Metric::InterTokenLatency => Some(&requests.inter_token_latency),
        Metric::RequestLatency => Some(&requests.request_latency),
        _ => None,
    }
}

/// Milliseconds of microseconds, shares of per mille.
#[expect(clippy::cast_precision_loss, reason = "a week in µs at most")]
pub(super) fn thousandth(number: i64) -> f64 {
    number as f64 / 1000.0
}

impl Placed<'_> {
    fn until(&self) -> i64 {
        self.from + self.requests.seconds + 1
    }

    /// The points of a metric, in parts where no request began in between.
    fn parts(&self, metric: Metric) -> Vec<Vec<Quantiles>> {
        let points = request_distribution(self.requests, metric).map_or(&[][..], |found| &found.over_time);
        let next = |one: &Quantiles, other: &Quantiles| other.from - one.from <= self.requests.every;
        points.chunk_by(next).map(<[Quantiles]>::to_vec).collect()
    }

    /// The middle of a point's seconds on the common clock.
    fn x(&self, point: &Quantiles) -> f64 {
        let until = (point.from + self.requests.every).min(self.requests.seconds + 1);
        second(self.from) + f64::midpoint(second(point.from), second(until))
    }
}

fn placed(trials: &[Trial]) -> Vec<Placed<'_>> {
    let mut placed: Vec<Placed<'_>> = Vec::new();
    for trial in trials {
        let known = trial.requests.as_ref().filter(|requests| requests.count > 0);
        let from = placed.last().map_or(0, |before| before.until() + BETWEEN);
        placed.extend(known.map(|requests| Placed {
            trial: trial.status.number,
            from,
            requests,
        }));
    }
    placed
}

/// Seconds of one point: trials of another length may have others.
fn length(trials: &[Placed<'_>]) -> String {
    let every = || trials.iter().map(|trial| trial.requests.every);
    match (every().min().unwrap_or(1), every().max().unwrap_or(1)) {
        (1, 1) => "second".to_owned(),
        (least, most) if least == most => format!("{most} s"),
        (least, most) => format!("{least} to {most} s"),
    }
}

fn drawn(trials: &[Placed<'_>], metric: Metric, title: &str) -> Markup {
    let all = || trials.iter().flat_map(|trial| trial.parts(metric)).flatten();
    let largest = all().map(|point| thousandth(point.p99)).fold(0.0, f64::max);
    if all().next().is_none() {
        return absent(title, "no request has it");
    }
    let seconds = trials.last().map_or(0, Placed::until);
    let mut chart = Chart::new(
        format!("requests-{}", metric.as_str()),
        title,
        (960.0, 230.0),
        Axis::exactly("s", second(seconds)),
        Axis::from_zero("ms", largest),
    );
    chart.bands = trials.iter().map(band).collect();
    chart.lines = LINES.map(|of| line(trials, metric, of)).into();
    let words: Vec<String> = trials.iter().filter_map(|trial| words(trial, metric)).collect();
    chart.description = format!("{}; at most {} ms in one point.", words.join("; "), short(largest));
    chart.figure()
}

fn line(trials: &[Placed<'_>], metric: Metric, (class, value): Drawing) -> Drawn {
    let of_trial = |trial: &Placed<'_>| -> ChartLine {
        let point = |found: &Quantiles| (trial.x(found), thousandth(value(found)));
        let parts = trial.parts(metric);
        parts.iter().map(|part| part.iter().map(point).collect()).collect()
    };
    Drawn {
        class,
        line: trials.iter().flat_map(of_trial).collect(),
    }
}

fn words(trial: &Placed<'_>, metric: Metric) -> Option<String> {
    let found = request_distribution(trial.requests, metric)?;
    let [median, p90, p99] = [500, 900, 990].map(|share| found.at_most(share).map(|us| short(thousandth(us))));
    let number = trial.trial;
    Some(format!(
        "trial {number}: median {} ms, p90 {} ms, p99 {} ms",
        median?, p90?, p99?
    ))
}

fn band(trial: &Placed<'_>) -> Band {
    Band {
        from: second(trial.from),
        to: second(trial.until()),
        class: "trial",
        label: format!("trial {}", trial.trial),
    }
}
