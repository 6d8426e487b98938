//! Reports of recorded runs: what people read and what pipelines read.

mod browser;
mod chromium;
mod examples;
mod hostile;
mod page;
mod pipelines;
mod recorded;
mod requests;
mod sources;

use perfval_report::RunReport;

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
        recorded::with_requests(),
    ]
}

fn report(run: &Saved) -> RunReport {
    RunReport::new(&run.object, Some(&run.results)).expect("a report")
}
