//! How much of a prompt an earlier request began with, and a model server can have in its prefix cache.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// The precision, in bytes.
const BLOCK: usize = 256;
/// The number of remembered blocks: 16 MiB of prompts, in 512 KiB.
const BLOCKS: usize = 1 << 16;
/// An odd number without a pattern in its bits.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hashes of the beginnings of earlier prompts. A newer one replaces an older one at the same place.
pub(crate) struct KnownPrompts {
    state: RandomState,
    hashes: Box<[AtomicU64]>,
}

impl Default for KnownPrompts {
    fn default() -> Self {
        Self {
            state: RandomState::new(),
            hashes: (0..BLOCKS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl KnownPrompts {
    /// Remembers a prompt. Returns how many bytes at its beginning an earlier prompt for the same model had too, rounded down to
    /// complete blocks.
    pub(crate) fn add(&self, model: &str, prompt: &[u8]) -> u64 {
        let mut hash = self.state.hash_one(model);
        let mut known = 0;
        for (number, block) in (1..).zip(prompt.chunks_exact(BLOCK)) {
            // Each hash is that of everything up to this block, so it is known only if all blocks before it were the same.
            hash = with_block(hash, block);
            let place = usize::try_from(hash >> 32).unwrap_or_default() % BLOCKS;
            if let Some(slot) = self.hashes.get(place)
                && slot.swap(hash, Ordering::Relaxed) == hash
            {
                known = number;
            }
        }
        known * BLOCK as u64
    }
}

/// Returns the hash of a block and everything before it. The standard library's hash takes several times as long for a prompt,
/// and equal hashes only make the count inaccurate. The processor computes the four independent sums at once.
fn with_block(before: u64, block: &[u8]) -> u64 {
    let add = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let mut sums = [before; 4];
    for words in block.chunks_exact(32) {
        for (sum, word) in sums.iter_mut().zip(words.chunks_exact(8)) {
            *sum = add(
                *sum,
                word.first_chunk()
                    .map_or(0, |word| u64::from_le_bytes(*word)),
            );
        }
    }
    sums.into_iter().fold(before, add)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, KnownPrompts};

    #[test]
    fn the_beginning_of_a_prompt_is_known() {
        let known = KnownPrompts::default();
        let prompt = |length: usize, end: &str| {
            let text: String = (0..)
                .map(|number| format!("{number} "))
                .take(length)
                .collect();
            (text[..length].to_owned() + end).into_bytes()
        };
        let whole = |length: usize| (length / BLOCK * BLOCK) as u64;
        assert_eq!(known.add("m", &prompt(10_000, "")), 0);
        assert_eq!(known.add("m", &prompt(10_000, "")), whole(10_000));
        assert_eq!(known.add("m", &prompt(12_000, "")), whole(10_000));
        assert_eq!(
            known.add("m", &prompt(5_000, &"x".repeat(5_000))),
            whole(5_000)
        );
        assert_eq!(known.add("m", &prompt(12_000, "and more")), whole(12_000));
        // Another model has another cache, and a change at the beginning changes everything.
        assert_eq!(known.add("n", &prompt(12_000, "")), 0);
        assert_eq!(
            known.add("m", &[b"x".to_vec(), prompt(12_000, "")].concat()),
            0
        );
        assert_eq!(known.add("m", b"short"), 0);
    }

    #[test]
    fn old_prompts_are_forgotten_and_new_ones_are_not() {
        let known = KnownPrompts::default();
        let prompt = |number: usize| number.to_string().repeat(50_000).into_bytes();
        for number in 100..1000 {
            known.add("m", &prompt(number));
        }
        assert_eq!(
            known.add("m", &prompt(999)),
            150_000 / BLOCK as u64 * BLOCK as u64
        );
        // Eight times as many blocks as there are places have come since. Few prompts have a block left.
        let is_known = |number: &usize| known.add("m", &prompt(*number)) > 0;
        let remembered = (100..120).filter(is_known).count();
        assert!(remembered < 15, "{remembered}");
    }
}
