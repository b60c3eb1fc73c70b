//! The size of a test: the default, or a value from the environment.

/// A number from the environment.
///
/// # Panics
/// When the variable holds something else.
#[expect(clippy::disallowed_methods, reason = "this crate is test code")]
pub fn setting(name: &str, ordinary: u64) -> u64 {
    std::env::var(name).map_or(ordinary, |value| {
        let number = value.parse();
        number.unwrap_or_else(|_| panic!("{name} is not a number: {value:?}"))
    })
}

/// Returns the number of random cases, which `ORACLE_CASES` can reduce but not increase.
pub fn at_most(ordinary: u64) -> u64 {
    setting("ORACLE_CASES", ordinary).min(ordinary)
}

/// How many threads compute at the same time.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
