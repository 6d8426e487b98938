//! Random choices, the same for the same seed.

/// A source of choices.
pub struct Draw(fastrand::Rng);

impl Draw {
    /// The choices of a seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// True in this many of a hundred cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(0..100) < percent
    }

    /// One of a list that is not empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.usize(0..choices.len())]
    }

    /// A number within bounds, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.usize(low..=high)
    }

    /// A number within bounds, small ones more often.
    pub fn rather_few(&mut self, low: usize, high: usize) -> usize {
        let mut least = high;
        for _ in 0..3 {
            least = least.min(self.between(low, high));
        }
        least
    }

    /// Any order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        self.0.shuffle(list);
    }
}
