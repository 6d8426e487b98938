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
