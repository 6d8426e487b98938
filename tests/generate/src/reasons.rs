//! docs/reasons.md: one entry for each word of a status, a condition or an event, printed from the tables that decide.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use perfval_api::{Help, Reason};
use perfval_cluster::Word;
use perfval_operator::event_words::EventWord;
use perfval_run::diagnosis::obstacle::{Obstacle, Response};
use perfval_verdict::diagnosis::cause::{Cause, Effect};

use crate::page::one_line;

const INTRODUCTION: &str = "\
<!-- Generated from the code: run `just generate`. -->
# Reasons and causes

Each word of `status.reason`, `status.diagnosis`, a condition or an event has one entry on this page. Start with
[Troubleshoot](troubleshoot.md) if you have a symptom and no word. A cause without an *Effect* does not change the verdict.
Events also carry [phases](reference.md#phases) and the outcome of each trial, such as `Trial1Pass`.
";

/// The whole page.
pub fn reasons() -> String {
    let findings: Vec<Finding> = findings().collect();
    let mut page = INTRODUCTION.to_owned();
    let mut printed = BTreeSet::new();
    page.push_str("\n## Reasons\n\nThese words are in the order in which a run meets them.\n");
    for reason in Reason::ALL {
        printed.insert(reason.as_str());
        entry(&mut page, *reason, &findings);
    }
    page.push_str(
        "\n## Causes\n\nThese words explain a reason or a trial. `status.diagnosis` shows them with their evidence.\n",
    );
    for finding in &findings {
        if printed.insert(finding.name) {
            heading(&mut page, finding.name);
            finding.print(&mut page);
        }
    }
    page.push_str("\n## Events of the operator\n\nThese words are about a call that the API server refuses, about the operator itself, or about objects without a run.\n");
    let seen = "reason of the condition `Reconciling` and a Warning event, with the API server's answer";
    let calls = Word::ALL.iter().map(|word| (word.reason, seen, word.why, word.remedy));
    let events = EventWord::PASSES.into_iter().chain(EventWord::STRAYS);
    let events = events.map(|word| (word.reason, word.seen, word.why, word.remedy));
    for (word, seen, why, remedy) in calls.chain(events) {
        if printed.insert(word) {
            heading(&mut page, word);
            list(&mut page, &[("You see", seen), ("Why", why), ("Do", remedy)]);
        }
    }
    page
}

fn heading(page: &mut String, word: &str) {
    let _ = write!(page, "\n### {word}\n\n");
}

/// Meaning of a reason, the finding of the same name, and links to the other findings that lead to it.
fn entry(page: &mut String, reason: Reason, findings: &[Finding]) {
    let word = reason.as_str();
    heading(page, word);
    let (same, others): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .filter(|finding| finding.name == word || finding.reason == Some(reason))
        .partition(|finding| finding.name == word);
    // A finding explains its own name better.
    if same.is_empty() {
        let _ = write!(page, "{}\n\n", one_line(reason.explanation()));
    }
    if let Help::Own { seen, remedy } = reason.help() {
        list(page, &[("You see", seen), ("Do", remedy)]);
    }
    for finding in same {
        finding.print(page);
    }
    if !others.is_empty() {
        let links: Vec<_> = others.iter().map(|finding| finding.link()).collect();
        let _ = writeln!(page, "* **Causes:** {}", links.join(", "));
    }
}

/// An obstacle before the benchmark, or a cause of a trial's outcome.
struct Finding {
    name: &'static str,
    reason: Option<Reason>,
    seen: &'static str,
    why: &'static str,
    remedy: &'static str,
    /// Of a finding that is only reported, none.
    effect: Option<String>,
}

impl Finding {
    fn print(&self, page: &mut String) {
        list(page, &[("You see", self.seen), ("Why", self.why), ("Do", self.remedy)]);
        if let Some(effect) = &self.effect {
            list(page, &[("Effect", effect)]);
        }
    }

    fn link(&self) -> String {
        format!("[{}](#{})", self.name, self.name.to_lowercase())
    }
}

fn list(page: &mut String, parts: &[(&str, &str)]) {
    for (title, text) in parts {
        let _ = writeln!(page, "* **{title}:** {text}");
    }
}

fn findings() -> impl Iterator<Item = Finding> {
    let obstacles = Obstacle::ALL.iter().map(|obstacle| Finding {
        name: obstacle.as_str(),
        reason: Some(obstacle.reason()),
        seen: obstacle.seen(),
        why: obstacle.why(),
        remedy: obstacle.remedy(),
        effect: (obstacle.response() != Response::Report).then(|| obstacle.effect()),
    });
    let causes = Cause::ALL.into_iter().map(|cause| Finding {
        name: cause.as_str(),
        reason: cause.reason(),
        seen: cause.seen(),
        why: cause.why(),
        remedy: cause.remedy(),
        effect: (cause.effect() != Effect::Reported).then(|| cause.effect().explanation().to_owned()),
    });
    obstacles.chain(causes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of the page by their word.
    fn entries() -> Vec<(String, String)> {
        let page = reasons();
        let parts = page.split("\n### ").skip(1);
        let parts = parts.filter_map(|part| part.split_once('\n'));
        parts.map(|(word, text)| (word.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn each_word_has_one_entry() {
        let mut words: Vec<_> = entries().into_iter().map(|(word, _)| word).collect();
        let (count, expected) = (words.len(), words_of_the_tables());
        words.sort();
        words.dedup();
        assert_eq!(words.len(), count, "a word has two entries");
        assert_eq!(words, expected.into_iter().collect::<Vec<_>>());
    }

    fn words_of_the_tables() -> BTreeSet<String> {
        let reasons = Reason::ALL.iter().map(|reason| reason.as_str());
        let events = EventWord::PASSES.into_iter().chain(EventWord::STRAYS);
        let words = Word::ALL.iter().map(|word| word.reason);
        let words = words.chain(events.map(|word| word.reason));
        let findings: Vec<_> = findings().map(|finding| finding.name).collect();
        reasons.chain(words).chain(findings).map(str::to_owned).collect()
    }

    #[test]
    fn every_entry_has_what_is_seen_and_what_to_do() {
        for (word, text) in entries() {
            let own = text.contains("* **You see:** ") && text.contains("* **Do:** ");
            assert!(own || text.contains("* **Causes:** ["), "{word}: {text}");
        }
    }
}
