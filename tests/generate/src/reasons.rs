//! docs/reasons.md: one entry for each word of a status, a condition or an event, printed from the tables that decide.

use std::fmt::Write as _;

use perfval_api::{Reason, Word};
use perfval_cluster::Change;
use perfval_operator::event_words::EventWord;
use perfval_run::diagnosis::obstacle::Obstacle;
use perfval_verdict::diagnosis::cause::{Cause, CauseEffect};

use crate::page::one_line;

const INTRODUCTION: &str = "\
<!-- Generated from the code: run `just generate`. -->
# Reasons and causes

Words of `status.reason`, `status.diagnosis`, conditions and Events, with their cases as bullets. The message in the status is more precise.
[Troubleshoot](troubleshoot.md) starts from a symptom.

**Effect** is what a case does to the verdict. Without it a case is only reported, or the message shows whether the run waits or ends with Error.

* *Invalid (Error)*, *Invalid (Inconclusive)*: the trial does not count. Two in a row end the run with this verdict.
* *Miss*: the trial is a miss.
* *Error*: the run ends with this verdict, at once or after that time without a change.
* *the run is Failed*: also if its gates are met.
* *sizing*: the run counts free GPUs again.
";

/// The whole page.
pub fn reasons() -> String {
    let mut page = INTRODUCTION.to_owned();
    for word in Word::ALL {
        let _ = write!(page, "\n## {}\n\n{}\n\n", word.as_str(), word.meaning());
        match cases_of(*word).as_slice() {
            // One case has nothing to add to the word but its effect.
            [] => remedy(&mut page, "", word.remedy(), None),
            [case] => remedy(&mut page, "", word.remedy(), case.effect.as_deref()),
            cases => {
                for case in cases {
                    let _ = writeln!(page, "* {}", case.why);
                    remedy(&mut page, "  * ", case.remedy, case.effect.as_deref());
                }
            }
        }
    }
    page
}

fn remedy(page: &mut String, bullet: &str, remedy: &str, effect: Option<&str>) {
    let remedy = remedy.trim_end_matches('.');
    let effect = effect.map_or(String::new(), |effect| format!(" **Effect:** {effect}."));
    let _ = writeln!(page, "{bullet}**Do:** {remedy}.{effect}");
}

/// Something behind a word: a reason, an obstacle before the benchmark, a cause of a trial's outcome, a refused change or
/// an event of the operator.
struct Case {
    word: Word,
    why: String,
    remedy: &'static str,
    /// `None` if the page shows no effect.
    effect: Option<String>,
}

/// Cases of a word whose remedies differ from its own and from each other.
fn cases_of(word: Word) -> Vec<Case> {
    let mut remedies = vec![word.remedy()];
    // Of a reason and a cause with one remedy the cause has more to tell.
    let mut cases: Vec<Case> = cases().filter(|case| case.word == word).collect();
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
            word: reason.word(),
            why: one_line(reason.explanation()),
            remedy: reason.own_remedy()?,
            effect: None,
        })
    });
    let obstacles = Obstacle::ALL.iter().map(|obstacle| Case {
        word: obstacle.reason().word(),
        why: format!("{} ({}).", obstacle.why().trim_end_matches('.'), obstacle.seen()),
        remedy: obstacle.remedy(),
        effect: Some(obstacle.effect()),
    });
    let causes = Cause::ALL.into_iter().map(|cause| Case {
        word: cause.word(),
        why: one_line(cause.why()),
        remedy: cause.remedy(),
        effect: (cause.effect() != CauseEffect::Reported).then(|| cause.effect().explanation().to_owned()),
    });
    let changes = Change::ALL.into_iter().map(|change| Case {
        word: change.reason.word(),
        why: change.why.to_owned(),
        remedy: change.remedy,
        effect: None,
    });
    let events = EventWord::PASSES
        .into_iter()
        .chain(EventWord::STRAYS)
        .map(|event| Case {
            word: event.word,
            why: event.why.to_owned(),
            remedy: event.remedy,
            effect: None,
        });
    reasons.chain(obstacles).chain(causes).chain(changes).chain(events)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use perfval_api::Place;

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
            assert!(text.contains("**Do:** "), "{word}: {text}");
        }
        for word in Word::ALL {
            assert!(!word.meaning().is_empty() && !word.remedy().is_empty(), "{word:?}");
        }
        for case in cases() {
            assert!(!case.why.is_empty() && !case.remedy.is_empty());
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
    fn words_stand_where_the_page_shows_them() {
        for reason in Reason::ALL {
            assert_ne!(reason.word().place(), Place::Finding, "{reason:?}");
        }
        let causes = Cause::ALL.into_iter().map(Cause::word);
        for word in Obstacle::ALL
            .iter()
            .map(|obstacle| obstacle.reason().word())
            .chain(causes)
        {
            assert_ne!(word.place(), Place::Run, "{word:?}");
        }
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
