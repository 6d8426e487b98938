//! `JUnit` XML, by nextest's own writer, which leaves characters out that XML cannot hold.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::cases::{Case, CaseState, SUITES};
use crate::facts::Facts;

pub(crate) fn write(facts: &Facts, cases: &[Case]) -> String {
    let title = facts.title();
    let mut report = Report::new(format!("perfvalidation {title}"));
    if let Some(time) = cases.first().and_then(|case| case.started) {
        report.set_timestamp(time);
    }
    for suite in SUITES {
        let of_suite: Vec<&Case> = cases.iter().filter(|case| case.suite == suite).collect();
        if of_suite.is_empty() {
            continue;
        }
        let mut written = TestSuite::new(format!("{title} {suite}"));
        if suite == SUITES[0] {
            let known = crate::environment::known(facts).into_iter();
            written.add_properties(known.map(|fact| (fact.key.to_owned(), fact.value)));
        }
        written.add_test_cases(of_suite.into_iter().map(|case| test_case(&title, case)));
        report.add_test_suite(written);
    }
    // It writes into memory, and every text is valid XML already.
    report.to_string().unwrap_or_default()
}

fn test_case(title: &str, case: &Case) -> TestCase {
    let mut status = match case.state {
        CaseState::Passed => TestCaseStatus::success(),
        CaseState::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        CaseState::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        CaseState::Skipped | CaseState::Pending => TestCaseStatus::skipped(),
    };
    if case.state != CaseState::Passed {
        status.set_type(case.word.as_str()).set_message(case.message.as_str());
    }
    if matches!(case.state, CaseState::Failed | CaseState::Error) {
        status.set_description(case.details.as_str());
    }
    let mut written = TestCase::new(case.name.as_str(), status);
    written.set_classname(format!("{title} {}", case.suite));
    if let Some(started) = case.started {
        written.set_timestamp(started);
    }
    if let Some(length) = case.started.zip(case.ended).map(|(started, ended)| ended - started) {
        written.set_time(length.to_std().unwrap_or(Duration::ZERO));
    }
    // The details of a failure are in the failure already.
    if !matches!(case.state, CaseState::Failed | CaseState::Error) && !case.details.is_empty() {
        written.set_system_out(case.details.as_str());
    }
    written
}
