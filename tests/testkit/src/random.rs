//! Numbers that follow no rule, and are the same each time.

/// Returns a generator of numbers whose high bits no compression makes smaller.
pub fn random_numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state
    }
}

/// xorshift64*.
pub struct Random(pub u64);

impl Random {
    /// A number between 0 and 1.
    ///
    /// # Panics
    /// Never: 32 bits fit into 32 bits.
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        f64::from(u32::try_from(bits).expect("32 bits")) / f64::from(u32::MAX)
    }

    /// A number with a standard normal distribution: the sum of twelve others.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}
