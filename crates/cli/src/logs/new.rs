//! Memory of the printed lines, when logs are read again and again.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, FixedOffset, TimeDelta};
use tokio::time::Instant;

use super::line::LogLine;
use super::source::{Extent, Source};
use crate::screen::Screen;

/// A kubelet gives whole seconds, and its clock differs from the local one.
const OVERLAP: u64 = 5;
/// A node sees a restart before the API server does: a container's first lines may be read before the last words of
/// its predecessor. Lines of this time before the newest are remembered one by one.
const UNSETTLED: TimeDelta = TimeDelta::seconds(30);

type Key = (String, String, String);

/// Printed lines of a container, and of its predecessors.
#[derive(Default)]
struct Printed {
    /// Nothing up to here is printed any more.
    settled: Option<DateTime<FixedOffset>>,
    /// The lines after that.
    lines: BTreeSet<(Option<DateTime<FixedOffset>>, String)>,
}

/// Printed lines of all containers.
#[derive(Default)]
pub struct New {
    printed: BTreeMap<Key, Printed>,
    /// Logs that were read, the predecessor of a container apart from it.
    read: BTreeSet<(Key, bool)>,
    /// Notes printed about logs that cannot be read.
    said: BTreeSet<String>,
    /// The end of the last look.
    looked: Option<Instant>,
    /// Characters of the longest label.
    width: usize,
}

impl New {
    /// Part of a container's log to read now: after the first time only the new lines.
    pub fn extent(&self, source: &Source, tail: i64) -> Extent {
        match (self.read.contains(&(key(source), source.previous)), self.looked) {
            (true, Some(looked)) => {
                let seconds = looked.elapsed().as_secs() + OVERLAP;
                Extent::Seconds(i64::try_from(seconds).unwrap_or(i64::MAX))
            }
            _ => Extent::Last(tail),
        }
    }

    /// Those lines that were not printed yet.
    pub fn take(&mut self, source: &Source, lines: Vec<LogLine>) -> Vec<LogLine> {
        self.read.insert((key(source), source.previous));
        self.printed.entry(key(source)).or_default().new_of(lines)
    }

    /// A look is over.
    pub fn looked(&mut self) {
        self.looked = Some(Instant::now());
    }

    /// Prints once why a log is left out.
    pub fn note(&mut self, screen: &mut Screen, why: &str) {
        if self.said.insert(why.to_owned()) {
            screen.note(why);
        }
    }

    /// Lines as they are printed: labels of one width, which only grows.
    pub fn text(&mut self, lines: &[LogLine]) -> String {
        let longest = lines.iter().map(|line| line.from.chars().count()).max();
        self.width = self.width.max(longest.unwrap_or_default());
        let width = self.width;
        let shown = lines
            .iter()
            .map(|line| format!("{} {:<width$}  {}\n", line.time, line.from, line.text));
        shown.collect::<Vec<_>>().concat()
    }
}

impl Printed {
    fn new_of(&mut self, lines: Vec<LogLine>) -> Vec<LogLine> {
        let key = |line: &LogLine| (line.at, line.text.clone());
        let is_new = |line: &LogLine| {
            let settled = line.at.is_some() && line.at <= self.settled;
            !settled && !self.lines.contains(&key(line))
        };
        let new: Vec<LogLine> = lines.into_iter().filter(is_new).collect();
        self.lines.extend(new.iter().map(key));
        let newest = self.lines.last().and_then(|(at, _)| *at);
        let Some(limit) = newest.and_then(|newest| newest.checked_sub_signed(UNSETTLED)) else {
            return new;
        };
        // Lines without a time never settle: their age is unknown.
        let old = |at: Option<DateTime<FixedOffset>>| at.is_some_and(|at| at <= limit);
        let settled = self
            .lines
            .iter()
            .filter_map(|(at, _)| at.filter(|at| *at <= limit))
            .max();
        self.settled = self.settled.max(settled);
        self.lines.retain(|(at, _)| !old(*at));
        new
    }
}

fn key(source: &Source) -> Key {
    (source.namespace.clone(), source.pod.clone(), source.container.clone())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::line::lines;
    use super::*;

    #[test]
    fn a_log_is_read_again_from_before_the_last_look() {
        let source = Source::default();
        let predecessor = Source {
            previous: true,
            ..source.clone()
        };
        let mut new = New::default();
        new.take(&source, Vec::new());
        new.looked = Instant::now().checked_sub(Duration::from_secs(2));
        let again = new.extent(&source, 100);
        assert!(matches!(again, Extent::Seconds(7..)), "{again:?}");
        let first = new.extent(&predecessor, 100);
        assert!(matches!(first, Extent::Last(100)), "{first:?}");
    }

    #[test]
    fn last_words_that_are_read_after_the_next_containers_first_are_printed_once() {
        let mut printed = Printed::default();
        let mut texts = |log: &str| {
            let new = printed.new_of(lines(log, "worker", |_| true));
            new.into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        assert_eq!(
            texts("2026-09-21T14:10:00Z one\n2026-09-21T14:13:33Z two\n"),
            ["one", "two"]
        );
        assert_eq!(texts("2026-09-21T14:13:43Z again\n"), ["again"]);
        let before = "2026-09-21T14:10:00Z one\n2026-09-21T14:13:33Z two\n2026-09-21T14:13:41Z last words\n";
        assert_eq!(texts(before), ["last words"]);
        assert_eq!(texts(before), [""; 0]);
    }
}
