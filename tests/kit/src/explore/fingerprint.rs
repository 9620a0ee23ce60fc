//! What two values that differ have in common once in 2^64, in fewer steps than by std's own hasher.

use std::hash::{Hash, Hasher};

/// The fingerprint of a value: the same in each run.
pub fn fingerprint(of: &impl Hash) -> u64 {
    let mut mixer = Mixer(0x9e37_79b9_7f4a_7c15);
    of.hash(&mut mixer);
    mixer.finish()
}

struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(whole));
        }
        self.write_u64(bytes.len() as u64);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        // Nothing is lost in a step: what differs before it differs after it.
        let mixed = (self.0.rotate_left(5) ^ word).wrapping_mul(0xa076_1d64_78bd_642f);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_usize(word.cast_unsigned());
    }
}
