//! Markdown as GitHub renders it in the summary of a job.

use std::fmt::Write as _;

use perfval_api::Verdict;
use perfval_api::text::reorders;

use crate::environment;
use crate::facts::Facts;
use crate::words;

pub(crate) fn write(facts: &Facts) -> String {
    let status = &facts.status;
    let mut page = String::new();
    let sign = match status.verdict {
        Some(Verdict::Passed) => "✅",
        Some(Verdict::Failed) => "❌",
        Some(Verdict::Inconclusive) => "❔",
        Some(Verdict::Error) => "⚠️",
        Some(Verdict::Skipped) => "⏭️",
        None => "⏳",
    };
    // Writing into a String never fails.
    let _ = writeln!(
        page,
        "## {sign} {}: {}\n",
        plain(&facts.title()),
        plain(&words::verdict(facts))
    );
    if let Some(message) = &status.message {
        let _ = writeln!(page, "{}\n", plain(message));
    }
    for note in &facts.notes {
        let _ = writeln!(page, "> {}\n", plain(note));
    }
    gates(facts, &mut page);
    findings(facts, &mut page);
    trials(facts, &mut page);
    let known = environment::known(facts);
    if !known.is_empty() {
        page.push_str("<details><summary>Environment</summary>\n\n| | |\n|---|---|\n");
        for fact in known {
            let _ = writeln!(page, "| {} | {} |", fact.label, plain(&fact.value));
        }
        page.push_str("\n</details>\n");
    }
    page
}

fn gates(facts: &Facts, page: &mut String) {
    if facts.status.gates.is_empty() {
        return;
    }
    page.push_str("| gate | observed | threshold | margin | result |\n|---|---|---|---|---|\n");
    for gate in &facts.status.gates {
        let _ = writeln!(
            page,
            "| {} | {} | {} {} | {} | {:?} |",
            plain(&gate.name),
            plain(&format!(
                "{} {}",
                gate.observed.as_deref().unwrap_or("–"),
                words::unit(facts, gate)
            )),
            words::sign(facts, gate),
            plain(&gate.effective),
            gate.margin_percent
                .as_deref()
                .map_or("–".to_owned(), |margin| plain(&words::signed(margin))),
            gate.result,
        );
    }
    page.push('\n');
}

fn findings(facts: &Facts, page: &mut String) {
    for finding in &facts.status.diagnosis {
        let _ = writeln!(
            page,
            "- **{}** ({:?}): {}  \n  *What to do:* {}",
            plain(&finding.cause),
            finding.severity,
            plain(&finding.evidence),
            plain(&finding.remedy)
        );
    }
    if !facts.status.diagnosis.is_empty() {
        page.push('\n');
    }
}

fn trials(facts: &Facts, page: &mut String) {
    if facts.status.state.trials.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "<details><summary>Trials: {}</summary>\n\n\
         | trial | outcome | tok/s | TTFT p99 (ms) | failed requests | margin | causes |\n|---|---|---|---|---|---|---|",
        words::tally(facts)
    );
    for trial in &facts.status.state.trials {
        let text = |value: &Option<String>| value.as_deref().map_or("–".to_owned(), plain);
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            trial.number,
            words::outcome(trial.outcome),
            text(&trial.throughput),
            text(&trial.ttft_p99_ms),
            text(&words::errors(trial)),
            text(&trial.margin_percent.as_deref().map(words::signed)),
            plain(&trial.causes.join(", ")),
        );
    }
    page.push_str("\n</details>\n\n");
}

/// A text that Markdown takes as it is, on one line and inside a table: every character that could begin markup
/// within a line is escaped, which `CommonMark` allows for all of ASCII's punctuation.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            // GitHub's tables know no escape for these in all places; an entity always works.
            '|' => plain.push_str("&#124;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '&' => plain.push_str("&amp;"),
            // A name after it would be mentioned, and that person notified.
            '@' => plain.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '!' | '$' => plain.extend(['\\', letter]),
            letter if letter.is_control() || reorders(letter) => plain.push(' '),
            letter => plain.push(letter),
        }
    }
    // A link needs no brackets on GitHub.
    plain.replace("://", "&#58;//").replace("www.", "www&#46;")
}
