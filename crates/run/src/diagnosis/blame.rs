//! Choice of the finding that decides the verdict of a run that could not be measured.

use perfval_api::{Finding, Severity, Why, text};

use crate::obstacle::Obstacle;

/// An obstacle of this reason that was found, the one behind the reason, a finding that explains it, or the reason with its
/// own remedy.
pub fn blamed(found: &[Finding], why: &Why) -> Finding {
    let newest = |is_meant: &dyn Fn(&Finding) -> bool| found.iter().rev().find(|known| is_meant(known)).cloned();
    let remedy = why.reason.remedy();
    let is_behind = |known: &Finding| Obstacle::from_finding(known).is_some_and(|of| of.reason() == why.reason);
    let is_explained_elsewhere = why.reason.own_remedy().is_none();
    let explains =
        |known: &Finding| known.cause == why.reason.as_str() && (is_explained_elsewhere || known.remedy == remedy);
    let finding = newest(&is_behind)
        .or_else(|| Obstacle::behind(why.reason).map(|obstacle| obstacle.finding(&why.message)))
        .or_else(|| newest(&explains))
        .unwrap_or_else(|| Finding {
            cause: why.reason.as_str().to_owned(),
            severity: Severity::Error,
            evidence: text::cut(&why.message, crate::obstacle::EVIDENCE),
            remedy: remedy.to_owned(),
        });
    Finding {
        severity: Severity::Error,
        ..finding
    }
}
