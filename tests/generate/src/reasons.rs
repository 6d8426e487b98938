//! docs/reasons.md: one entry for each word of a status, a condition or an event, printed from the tables that decide.

use std::fmt::Write as _;

use perfval_api::{Reason, Word};
use perfval_cluster::CHANGES;
use perfval_operator::event_words::{PASSES, STRAYS};
use perfval_run::obstacle::Obstacle;
use perfval_verdict::diagnosis::cause::{Cause, CauseEffect};

use crate::page::one_line;

const INTRODUCTION: &str = "\
<!-- Generated from the code: run `just generate`. -->
# Reasons and causes

Words of `status.reason`, `status.diagnosis`, conditions and Events: meaning, *effect on the verdict* and remedy. Bullets are common cases; parentheses
show text of an event, a condition or a log. The message in the status is more precise.

Without an effect a case is only reported, or the message shows the effect.

* *Invalid (Error)*, *Invalid (Inconclusive)*: the trial does not count. Two in a row end the run with this verdict.
* *Error*: the run ends with this verdict, at once or after that time without a change.
* *The run is Failed*: also if its gates are met.
* *Sizing*: the run counts free GPUs again.
";

/// Cases that the page leaves out: they are rare, and their status, Event or alert has the remedy.
const RARE: [&str; 13] = [
    "DeploymentUnanswered",
    "DiscoveryPanic",
    "Finalizer",
    "GPUChanged",
    "JobLost",
    "LateObject",
    "LimitRangeViolated",
    "NameTaken",
    "Orphaned",
    "PoolUnsettled",
    "SelectorNotEvaluable",
    "SetAside",
    "SuspiciousAllocation",
];

/// The whole page.
pub fn reasons() -> String {
    let mut page = INTRODUCTION.to_owned();
    for word in Word::ALL {
        let cases = cases_of(*word);
        // An effect that all cases have is shown once.
        let first = cases.first().and_then(|case| case.effect.as_deref());
        let shared = first.filter(|_| cases.iter().all(|case| case.effect.as_deref() == first));
        let _ = write!(
            page,
            "\n## {}\n\n{}{}\n\n",
            word.as_str(),
            word.meaning(),
            italics(shared)
        );
        match cases.as_slice() {
            // One case has nothing to add to the word but its effect.
            [] | [_] => _ = writeln!(page, "{}", sentence(word.remedy())),
            cases => {
                for case in cases {
                    let own = case.effect.as_deref().filter(|_| shared.is_none());
                    let _ = writeln!(page, "* {}{}\n  * {}", case.why, italics(own), sentence(case.remedy));
                }
            }
        }
    }
    page
}

/// Effect, after the text of its case.
fn italics(effect: Option<&str>) -> String {
    effect.map_or(String::new(), |effect| format!(" *{}.*", capitalised(effect)))
}

/// Remedy as a sentence.
fn sentence(remedy: &str) -> String {
    let remedy = remedy.trim_end_matches('.');
    match remedy.strip_prefix("nothing") {
        Some(rest) => format!("Do nothing{rest}."),
        None => format!("{}.", capitalised(remedy)),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Something behind a word: a reason, an obstacle before the benchmark, a cause of a trial's outcome, a refused change or
/// an event of the operator.
struct Case {
    name: &'static str,
    word: Word,
    why: String,
    remedy: &'static str,
    /// `None` if the page shows no effect.
    effect: Option<String>,
}

/// Cases of a word that the page shows: their remedies differ from its own and from each other.
fn cases_of(word: Word) -> Vec<Case> {
    let mut remedies = vec![word.remedy()];
    // Of a reason and a cause with one remedy the cause has more to tell.
    let mut cases: Vec<Case> = cases()
        .filter(|case| case.word == word && !RARE.contains(&case.name))
        .collect();
    cases.sort_by_key(|case| case.effect.is_none());
    if let [case] = &cases[..] {
        remedies.retain(|known| *known != case.remedy);
    }
    cases.retain(|case| {
        let is_new = !remedies.contains(&case.remedy);
        remedies.push(case.remedy);
        is_new
    });
    cases
}

fn cases() -> impl Iterator<Item = Case> {
    let reasons = Reason::ALL.iter().filter_map(|reason| {
        Some(Case {
            name: reason.name(),
            word: reason.word(),
            why: one_line(reason.explanation()),
            remedy: reason.own_remedy()?,
            effect: None,
        })
    });
    let obstacles = Obstacle::ALL.iter().map(|obstacle| Case {
        name: obstacle.name(),
        word: obstacle.reason().word(),
        why: with_signs(obstacle.why(), obstacle.seen()),
        remedy: obstacle.remedy(),
        effect: Some(obstacle.effect()),
    });
    let causes = Cause::ALL.into_iter().map(|cause| Case {
        name: cause.name(),
        word: cause.word(),
        why: one_line(cause.why()),
        remedy: cause.remedy(),
        effect: (cause.effect() != CauseEffect::Reported).then(|| cause.effect().explanation().to_owned()),
    });
    let events = CHANGES.into_iter().chain(PASSES).chain(STRAYS).map(|event| Case {
        name: event.name,
        word: event.word,
        why: event.why.to_owned(),
        remedy: event.remedy,
        effect: None,
    });
    reasons.chain(obstacles).chain(causes).chain(events)
}

/// Explanation with the signs of the obstacle behind its first sentence.
fn with_signs(why: &str, signs: &str) -> String {
    match why.trim_end_matches('.').split_once(". ") {
        Some((first, rest)) => format!("{first} ({signs}). {rest}."),
        None => format!("{} ({signs}).", why.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Most words that users have to learn.
    const MOST: usize = 45;

    /// Entries of the page by their word.
    fn entries() -> Vec<(String, String)> {
        let page = reasons();
        let parts = page.split("\n## ").skip(1);
        let parts = parts.filter_map(|part| part.split_once('\n'));
        parts.map(|(word, text)| (word.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn each_word_has_one_entry_and_there_are_few() {
        let words: Vec<_> = entries().into_iter().map(|(word, _)| word).collect();
        println!("{} words", words.len());
        assert!(words.len() <= MOST, "{} words", words.len());
        let expected: Vec<_> = Word::ALL.iter().map(|word| word.as_str()).collect();
        assert_eq!(words, expected);
        // Each one is in use.
        let used: BTreeSet<_> = Reason::ALL
            .iter()
            .map(|reason| reason.word())
            .chain(cases().map(|case| case.word))
            .collect();
        assert_eq!(used, Word::ALL.iter().copied().collect());
    }

    #[test]
    fn every_entry_and_every_case_has_a_remedy() {
        for (word, text) in entries() {
            // A paragraph after the meaning, or a bullet below each case.
            assert!(text.trim().contains("\n\n"), "{word}: {text}");
            assert_eq!(
                text.matches("\n* ").count(),
                text.matches("\n  * ").count(),
                "{word}: {text}"
            );
        }
        for word in Word::ALL {
            assert!(!word.meaning().is_empty() && !word.remedy().is_empty(), "{word:?}");
        }
        for case in cases() {
            assert!(!case.why.is_empty() && !case.remedy.is_empty());
        }
    }

    #[test]
    fn signs_are_behind_the_sentence_about_the_obstacle() {
        assert_eq!(with_signs("It is full.", "`x`"), "It is full (`x`).");
        assert_eq!(
            with_signs("It is full. Empty it.", "`x`"),
            "It is full (`x`). Empty it."
        );
    }

    #[test]
    fn cases_that_are_left_out_exist() {
        let names: BTreeSet<_> = cases().map(|case| case.name).collect();
        for rare in RARE {
            assert!(names.contains(rare), "{rare}");
        }
    }

    /// A status finds the case of a finding again by its word and its remedy.
    #[test]
    fn cases_with_one_word_differ_in_their_remedy() {
        let obstacles = Obstacle::ALL
            .iter()
            .map(|obstacle| (obstacle.as_str(), obstacle.remedy()));
        let causes = Cause::ALL.iter().map(|cause| (cause.as_str(), cause.remedy()));
        let all: Vec<_> = obstacles.chain(causes).collect();
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn a_cause_that_decides_ends_the_run_with_its_own_word() {
        for reason in Cause::ALL
            .into_iter()
            .filter_map(|cause| Some((cause.word(), cause.reason()?.word())))
        {
            assert_eq!(reason.0, reason.1);
        }
    }
}
