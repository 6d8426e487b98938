//! Reports of recorded runs: what people read and what pipelines read.

mod browser;
mod chromium;
mod examples;
mod hostile;
mod page;
mod pipelines;
mod recorded;
mod sources;

use perfval_report::Report;

use recorded::Saved;

/// Every recorded run.
fn runs() -> Vec<Saved> {
    vec![
        recorded::healthy(),
        recorded::slow(),
        recorded::shared(),
        recorded::broken(),
        recorded::frozen(),
        recorded::starved(),
    ]
}

fn report(run: &Saved) -> Report {
    Report::of(&run.object, Some(&run.results)).expect("a report")
}
