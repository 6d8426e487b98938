//! Result of a run, for people and for pipelines, and the newest results of many nodes ([`FleetReport`]).
//!
//! Pure: no client, no clock, and the same input gives the same bytes. Every word of the verdict and of its causes is
//! from the status or from [`perfval_verdict`]; there is no judgement here.
//!
//! ```no_run
//! # fn cluster() -> (perfval_api::PerfValidation, k8s_openapi::api::core::v1::ConfigMap) { unimplemented!() }
//! let (object, results) = cluster();
//! let report = perfval_report::RunReport::new(&object, Some(&results))?;
//! for file in report.files() {
//!     println!("{}: {} bytes", file.name, file.content.len());
//! }
//! # Ok::<(), perfval_report::Error>(())
//! ```

mod cases;
mod chart;
mod ctrf;
mod environment;
mod error;
mod facts;
mod fleet;
mod html;
mod junit;
mod markdown;
mod openmetrics;
mod statement;
mod timeline;
mod words;

use perfval_api::Verdict;

pub use error::Error;
pub use facts::{Export, Facts as RunReport};
pub use fleet::FleetReport;
pub use perfval_verdict::requests::RequestTimes;
pub use statement::{File, Predicate, STATEMENT, Statement, sha256};

impl RunReport {
    /// Names of the files of a report, under which pipelines look for them.
    pub const FILES: [&str; 6] = [
        "report.html",
        "junit.xml",
        "ctrf-report.json",
        "summary.md",
        "metrics.openmetrics.txt",
        STATEMENT,
    ];

    /// Verdict of the run; `None` while it continues.
    pub fn verdict(&self) -> Option<Verdict> {
        self.status.verdict
    }

    /// One self-contained page: no network, light and dark, for screen, paper and screen reader.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// `JUnit` XML: one test case per gate and per trial.
    pub fn junit(&self) -> String {
        junit::write(self, &cases::cases(self))
    }

    /// Common Test Report Format, JSON: the same test cases.
    pub fn ctrf(&self) -> String {
        ctrf::write(self, &cases::cases(self))
    }

    /// Markdown, for the summary of a job on GitHub (`$GITHUB_STEP_SUMMARY`) or a comment.
    pub fn markdown(&self) -> String {
        markdown::write(self)
    }

    /// `OpenMetrics` text: verdict, gates and headline numbers.
    pub fn openmetrics(&self) -> String {
        openmetrics::write(self)
    }

    /// All of them under the names of [`Self::FILES`], and the statement with their digests.
    pub fn files(&self) -> Vec<File> {
        let [html, junit, ctrf, markdown, openmetrics, last] = Self::FILES;
        let file = |name, content| File { name, content };
        let mut files = vec![
            file(html, self.html()),
            file(junit, self.junit()),
            file(ctrf, self.ctrf()),
            file(markdown, self.markdown()),
            file(openmetrics, self.openmetrics()),
        ];
        files.push(file(last, statement::write(self, &files)));
        files
    }
}
