//! Numbers from a seed, and seeds.

pub use random_objects::Random;

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
