//! The key of a conversation's markers.

const LENGTH: usize = 8;
const CHARACTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A key that nobody can guess: eight of a-z and 0-9, from the system's random numbers.
pub(crate) fn fresh() -> Result<String, ()> {
    let mut key = String::with_capacity(LENGTH);
    while key.len() < LENGTH {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| ())?;
        // What lies above the last multiple of 36 would make some characters more likely than others.
        let fair = bytes.iter().filter(|&&byte| byte < 252);
        let drawn = fair.filter_map(|&byte| CHARACTERS.get(usize::from(byte) % CHARACTERS.len()));
        let missing = LENGTH - key.len();
        key.extend(drawn.take(missing).map(|&byte| char::from(byte)));
    }
    Ok(key)
}
