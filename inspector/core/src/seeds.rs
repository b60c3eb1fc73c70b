//! The seeds of hash tables, which a library requests from the system. The module has none, and needs none: it keeps no secret,
//! and a person who slows down their own page gains nothing.

/// Fills a buffer with a constant.
///
/// # Safety
/// `buffer` must be valid for writes of `length` bytes.
#[expect(
    unsafe_code,
    clippy::unnecessary_wraps,
    reason = "getrandom requires a function of this name and type"
)]
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    buffer: *mut u8,
    length: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: the caller passes a buffer of this length.
    unsafe { buffer.write_bytes(0x5a, length) };
    Ok(())
}
