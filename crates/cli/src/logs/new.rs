//! What was printed already, when logs are read again and again.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::source::{Extent, Line, Source};
use crate::screen::Screen;

/// A kubelet gives whole seconds, and its clock is not ours.
const OVERLAP: u64 = 5;

/// What was printed already.
#[derive(Default)]
pub struct New {
    /// The time of the last line of each container.
    last: BTreeMap<(String, String, String), String>,
    /// What was said of logs that cannot be read.
    said: BTreeSet<String>,
    /// The end of the last look.
    looked: Option<Instant>,
    /// Characters of the longest label.
    width: usize,
}

impl New {
    /// How much of a container is read now: of one that was read before, what came since.
    pub fn extent(&self, source: &Source, tail: i64) -> Extent {
        match (self.last.contains_key(&key(source)), self.looked) {
            (true, Some(looked)) => {
                let seconds = looked.elapsed().as_secs() + OVERLAP;
                Extent::Seconds(i64::try_from(seconds).unwrap_or(i64::MAX))
            }
            _ => Extent::Last(tail),
        }
    }

    /// Those lines that were not printed yet.
    pub fn of(&mut self, source: &Source, lines: Vec<Line>) -> Vec<Line> {
        let last = self.last.entry(key(source)).or_default();
        let new: Vec<Line> = lines.into_iter().filter(|line| line.time > *last).collect();
        if let Some(newest) = new.iter().map(|line| &line.time).max() {
            last.clone_from(newest);
        }
        new
    }

    /// A look is over.
    pub fn looked(&mut self) {
        self.looked = Some(Instant::now());
    }

    /// Says once why a log is left out.
    pub fn note(&mut self, screen: &mut Screen, why: &str) {
        if self.said.insert(why.to_owned()) {
            screen.note(why);
        }
    }

    /// Lines as they are printed: labels of one width, which only grows.
    pub fn text(&mut self, lines: &[Line]) -> String {
        let longest = lines.iter().map(|line| line.from.chars().count()).max();
        self.width = self.width.max(longest.unwrap_or_default());
        let width = self.width;
        let shown = lines
            .iter()
            .map(|line| format!("{} {:<width$}  {}\n", line.time, line.from, line.text));
        shown.collect::<Vec<_>>().concat()
    }
}

fn key(source: &Source) -> (String, String, String) {
    (source.namespace.clone(), source.pod.clone(), source.container.clone())
}
