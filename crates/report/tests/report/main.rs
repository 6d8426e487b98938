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

fn report(run: &Saved) -> RunReport {
    RunReport::new(&run.object, Some(&run.results)).expect("a report")
}
