//! docs/troubleshooting.md: symptoms by hand, and one entry per reason, printed from the tables that decide.

use std::fmt::Write as _;

use perfval_api::{Help, Reason};
use perfval_cluster::Word;
use perfval_run::diagnosis::obstacle::Obstacle;
use perfval_verdict::diagnosis::cause::Cause;

use super::one_line;
use crate::event_words::EventWord;

const SYMPTOMS: &str = include_str!("troubleshooting/symptoms.txt");
const REPORT: &str = include_str!("troubleshooting/report.txt");

/// The whole page.
pub fn troubleshooting() -> String {
    let mut page = format!("<!-- Generated from the code: run `just generate`. -->\n{SYMPTOMS}\n{REPORT}");
    page.push_str(
        "\n## By reason\n\nEvery word of `status.reason`, conditions and events, in the order in which a run meets them. What is in \
         the way is named in the status as soon as it is seen; where time may heal it, the run waits and says for what.\n",
    );
    for reason in Reason::ALL {
        entry(&mut page, *reason);
    }
    page.push_str(
        "\n## Other words of conditions and events\n\nEvents also carry the names of [phases](reference.md#phases) as a run enters them, \
         `Trial` with a number and an outcome (such as `Trial1Pass`) as trials end, and [causes](causes.md) with their remedy. The condition \
         `Blocked` and the metric of failed passes name the call that the API server refuses:\n",
    );
    for word in Word::ALL {
        let seen = "condition `Blocked`, where a status can be written, and a Warning event; the message has the API server's answer";
        other(&mut page, word.reason, seen, word.why, word.remedy);
    }
    page.push_str("\nAbout the operator itself:\n");
    for word in EventWord::PASSES {
        other(&mut page, word.reason, word.seen, word.why, word.remedy);
    }
    page.push_str("\nOn objects that no run looks after any more:\n");
    for word in EventWord::STRAYS {
        other(&mut page, word.reason, word.seen, word.why, word.remedy);
    }
    page
}

fn other(page: &mut String, word: &str, seen: &str, why: &str, remedy: &str) {
    let _ = write!(page, "\n### {word}\n\n");
    list(page, &[("You see", seen), ("Why", why), ("Do", remedy)]);
}

/// What a reason means, and for each thing behind it what is seen, why, and what to do.
fn entry(page: &mut String, reason: Reason) {
    let _ = write!(
        page,
        "\n### {}\n\n{}\n\n",
        reason.as_str(),
        one_line(reason.explanation())
    );
    let parts = behind(reason);
    if let Help::Own { seen, remedy } = reason.help() {
        list(page, &[("You see", seen), ("Do", remedy)]);
        for part in &parts {
            let _ = writeln!(
                page,
                "\nWhere it is [{0}](causes.md#{1}):\n",
                part.name,
                part.name.to_lowercase()
            );
            part.print(page);
        }
        return;
    }
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            page.push('\n');
        }
        if parts.len() > 1 || part.name != reason.as_str() {
            let _ = writeln!(page, "As [{0}](causes.md#{1}):\n", part.name, part.name.to_lowercase());
        }
        part.print(page);
    }
}

/// An obstacle or a cause of a reason.
struct Part {
    name: &'static str,
    seen: &'static str,
    why: &'static str,
    remedy: &'static str,
    effect: String,
}

impl Part {
    fn print(&self, page: &mut String) {
        let Self {
            seen,
            why,
            remedy,
            effect,
            ..
        } = self;
        list(
            page,
            &[("You see", seen), ("Why", why), ("Do", remedy), ("Effect", effect)],
        );
    }
}

fn list(page: &mut String, parts: &[(&str, &str)]) {
    for (what, text) in parts {
        let _ = writeln!(page, "* **{what}:** {text}");
    }
}

fn behind(reason: Reason) -> Vec<Part> {
    let obstacles = Obstacle::ALL.iter().filter(|obstacle| obstacle.reason() == reason);
    let obstacles = obstacles.map(|obstacle| Part {
        name: obstacle.as_str(),
        seen: obstacle.seen(),
        why: obstacle.why(),
        remedy: obstacle.remedy(),
        effect: obstacle.effect(),
    });
    let causes = Cause::ALL.into_iter().filter(|cause| cause.reason() == Some(reason));
    let causes = causes.map(|cause| Part {
        name: cause.as_str(),
        seen: cause.seen(),
        why: cause.why(),
        remedy: cause.remedy(),
        effect: cause.effect().explanation().to_owned(),
    });
    obstacles.chain(causes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_says_what_is_seen_and_what_to_do() {
        for reason in Reason::ALL {
            let mut page = String::new();
            entry(&mut page, *reason);
            for part in ["* **You see:** ", "* **Do:** "] {
                assert!(page.contains(part), "{part} is missing in {page}");
            }
        }
    }

    /// Whoever reads a word in an Event or a condition finds it here.
    #[test]
    fn words_that_are_no_reasons_of_a_run_have_their_entry() {
        let page = troubleshooting();
        let others = EventWord::PASSES.into_iter().chain(EventWord::STRAYS);
        let words = Word::ALL.map(|word| word.reason);
        for word in words.into_iter().chain(others.map(|word| word.reason)) {
            assert!(page.contains(&format!("\n### {word}\n\n* **You see:**")), "{word}");
        }
    }
}
