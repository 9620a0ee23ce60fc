//! Numbers from a seed (splitmix64): enough to choose by, and the same each time.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit; 0 where the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.draw() % limit.max(1) as u64).unwrap_or(0)
    }

    /// One of these, where there is one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).copied()
    }
}

/// A seed for a run: what the variable `name` says; without it `fixed`, or at night (`NIGHTLY=1`) one of the machine's.
/// It is printed, so that a failure can be repeated.
#[must_use]
pub fn seed(name: &str, fixed: u64) -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let drawn = if is_night() { RandomState::new().build_hasher().finish() } else { fixed };
    let seed = crate::env_or(name, drawn);
    println!("{name}={seed}");
    seed
}

/// Whether this run may take as long as it needs and look where no run has looked: `NIGHTLY=1`.
#[must_use]
pub fn is_night() -> bool {
    crate::env_or("NIGHTLY", 0_u8) != 0
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_gives_the_same_numbers_each_time() {
        let draw = |seed| {
            let mut random = Random(seed);
            [random.draw(), random.draw(), random.draw()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        // The reference values of the algorithm (Vigna, splitmix64.c) for the seed 0.
        assert_eq!(draw(0), [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }
}
