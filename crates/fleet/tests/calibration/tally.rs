//! Shares with their 95 % bounds, beside a goal.

use perfval_fleet::tail::binomial;

/// Number of cases, and of those that hit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub hits: usize,
    pub of: usize,
}

/// Goal for a share.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// A share, and what its bound has to reach.
    Sure(f64, f64),
    None,
}

impl Tally {
    pub fn add(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.of += 1;
    }

    pub fn share(self) -> f64 {
        share(self.hits, self.of)
    }

    /// Bound on the true share, 95 % sure (Clopper and Pearson, one side).
    pub fn at_most(self) -> f64 {
        bisect(|rate| 1.0 - binomial(self.hits + 1, self.of, rate) > 0.05)
    }

    pub fn at_least(self) -> f64 {
        bisect(|rate| binomial(self.hits, self.of, rate) < 0.05)
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            of: self.of + other.of,
        }
    }

    /// `met` if the bound is within the goal, `not refuted` if only the share is.
    pub fn against(self, goal: Goal) -> &'static str {
        let (share_meets, bound_meets) = match goal {
            Goal::AtMost(most) => (self.share() <= most, self.at_most() <= most),
            Goal::AtLeast(least) => (self.share() >= least, self.at_least() >= least),
            Goal::Sure(least, bound) => (self.share() >= least, self.at_least() >= bound),
            Goal::None => return "none",
        };
        match (share_meets, bound_meets) {
            (true, true) => "met",
            (true, false) => "not refuted",
            _ => "missed",
        }
    }
}

fn bisect(is_above: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if is_above(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[expect(clippy::cast_precision_loss, reason = "counts of simulated passes")]
pub fn share(hits: usize, of: usize) -> f64 {
    hits as f64 / of.max(1) as f64
}
