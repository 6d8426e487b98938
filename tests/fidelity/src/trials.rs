//! docs/evidence/trials.csv: one row for each recorded trial.

use std::fmt::Write as _;

use perfval_api::{Metric, Statistic};

use crate::fault::Truth;
use crate::frontend::late_ms;
use crate::rejudged::{Group, Seen};

const COLUMNS: &str = "setting,router,fault,freeze,start,should,outcome,plain_gate,causes,named,first_cause_right,wrong,\
                       tokens_per_second_per_gpu,ttft_p99_ms,longer_percent,frontend_late_ms,evidence\n";

/// The whole file. Cells without a value are empty.
pub(super) fn csv(groups: &[Group<'_>]) -> String {
    let mut csv = COLUMNS.to_owned();
    for group in groups {
        for seen in &group.trials {
            let row = row(&group.setting.to_string(), seen).map(|cell| quoted(&cell));
            let _ = writeln!(csv, "{}", row.join(","));
        }
    }
    csv
}

fn row(setting: &str, seen: &Seen<'_>) -> [String; 17] {
    let run = seen.run;
    let should = match run.fault.truth() {
        Truth::Healthy => "pass",
        Truth::Degraded => "fail",
        Truth::Open | Truth::Broken => "be named",
    };
    let number = |value: Option<f64>, digits: usize| value.map_or(String::new(), |value| format!("{value:.digits$}"));
    let is = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let gpus = f64::from(i32::try_from(run.gpus.0.max(1)).unwrap_or(1));
    let throughput = seen.value(Metric::OutputTokenThroughput, Statistic::Avg);
    [
        setting.to_owned(),
        run.router.flag().to_owned(),
        run.what(),
        if run.training() { "before" } else { "after" }.to_owned(),
        run.deployment.clone().unwrap_or_default(),
        should.to_owned(),
        format!("{:?}", seen.outcome),
        match seen.plain {
            'P' => "pass",
            'F' => "fail",
            _ => "",
        }
        .to_owned(),
        seen.causes.join(" "),
        is(seen.named()),
        is(seen.first_is_right()),
        is(seen.is_wrong()),
        number(throughput.map(|total| total / gpus), 0),
        number(seen.value(Metric::TimeToFirstToken, Statistic::P99), 0),
        number(seen.slowdown_percent(), 0),
        number(late_ms(seen), 1),
        seen.evidence.join("; "),
    ]
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_or_a_quote_stays_one_cell() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("one, two"), "\"one, two\"");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
