//! Random decisions that can be repeated.

/// A generator of random numbers (`SplitMix64`).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count.max(1)).unwrap();
        usize::try_from(self.next() % count).unwrap()
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(super) fn one<'o, T>(&mut self, of: &'o [T]) -> &'o T {
        &of[self.below(of.len())]
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .map(|_| u8::try_from(self.below(256)).unwrap())
            .collect()
    }
}
