//! Choice of the finding that decides the verdict of a run that could not be measured.

use perfval_api::{Finding, Help, Severity, Why, text};

use super::obstacle::Obstacle;

/// An obstacle of this reason that was found, the one behind the reason, or the reason with its own remedy.
pub fn blamed(found: &[Finding], why: &Why) -> Option<Finding> {
    let is_behind = |known: &&Finding| Obstacle::from_word(&known.cause).is_some_and(|of| of.reason() == why.reason);
    let known = found.iter().rev().find(is_behind).cloned();
    let obstacle = || Obstacle::behind(why.reason).map(|obstacle| obstacle.finding(&why.message));
    let finding = known.or_else(obstacle).or_else(|| match why.reason.help() {
        Help::Own { remedy, .. } => Some(Finding {
            cause: why.reason.as_str().to_owned(),
            severity: Severity::Error,
            evidence: text::cut(&why.message, super::obstacle::EVIDENCE),
            remedy: remedy.to_owned(),
        }),
        Help::Behind => None,
    })?;
    Some(Finding {
        severity: Severity::Error,
        ..finding
    })
}
