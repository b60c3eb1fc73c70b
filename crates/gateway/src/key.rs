//! Secrets, and what is derived from them without keeping any state: keys of markers, ids of calls.

use std::collections::HashSet;
use std::fmt;
use std::io;
#[cfg(feature = "server")]
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub(crate) const KEY_LENGTH: usize = 8;
/// How many characters an id has behind its prefix: 124 bits.
const ID_LENGTH: usize = 24;
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A secret of the gateway. All instances that serve one conversation must have the same, so that they give its markers
/// the same key.
///
/// ```
/// use plaincall_gateway::Secret;
///
/// let secret = Secret::new(*b"thirty-two bytes from the system");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// ```
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// A secret of any length; 32 random bytes are right.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// A secret of 32 random bytes from the system.
    ///
    /// # Errors
    /// Says why the system gives none.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self::new(bytes))
    }

    /// Derives a secret for another use, from which nothing can be found out about this one or the fields.
    pub fn derive(&self, fields: &[&[u8]]) -> Self {
        Self(self.digest(fields).to_vec())
    }

    /// The HMAC of some fields.
    pub(crate) fn digest(&self, fields: &[&[u8]]) -> [u8; 32] {
        // A key of any length is taken: the error is a matter of the trait.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            return [0; 32];
        };
        for field in fields {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().into()
    }

    /// A word of letters and digits that belongs to some fields.
    pub(crate) fn word(&self, fields: &[&[u8]]) -> String {
        letters(&self.digest(fields)).take(ID_LENGTH).collect()
    }

    /// The key of a conversation's markers (`spec/gateway.md` 2): the first that is in none of its texts.
    pub(crate) fn marker_key(
        &self,
        caller: &str,
        first_message: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> String {
        let mut counter = 0_u64;
        loop {
            let digest = self.digest(&[
                b"markers",
                caller.as_bytes(),
                first_message.as_bytes(),
                &counter.to_be_bytes(),
            ]);
            let key: String = letters(&digest).take(KEY_LENGTH).collect();
            // Nobody can write all keys into a conversation, nor one that he has not seen.
            if counter == u64::MAX || !is_known(&key) {
                return key;
            }
            counter += 1;
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Fresh ids for the calls of one reply.
#[derive(Clone, Debug)]
pub(crate) struct CallIds {
    seed: Secret,
    given: u64,
    taken: HashSet<String>,
}

impl CallIds {
    /// The seed is random and used for one reply alone.
    pub(crate) fn new(seed: Secret, taken: HashSet<String>) -> Self {
        Self {
            seed,
            given: 0,
            taken,
        }
    }

    /// An id that no call of the conversation has.
    pub(crate) fn next(&mut self) -> String {
        loop {
            let word = self.seed.word(&[b"call", &self.given.to_be_bytes()]);
            self.given += 1;
            let id = format!("call_{word}");
            if !self.taken.contains(&id) {
                return id;
            }
        }
    }
}

/// What is fresh for each request of this process. The system is asked for random numbers once.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct Fresh {
    secret: Secret,
    given: AtomicU64,
}

#[cfg(feature = "server")]
impl Fresh {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            secret: Secret::random()?,
            given: AtomicU64::new(0),
        })
    }

    /// A secret that nobody else has been given.
    pub(crate) fn seed(&self) -> Secret {
        self.secret.derive(&[b"seed", &self.number()])
    }

    /// A word that nobody else has been given.
    pub(crate) fn word(&self) -> String {
        self.secret.word(&[b"word", &self.number()])
    }

    fn number(&self) -> [u8; 8] {
        self.given.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }
}

/// Letters and digits, each as likely as the others: bytes above the last multiple of 36 are left out.
fn letters(digest: &[u8; 32]) -> impl Iterator<Item = char> {
    let fair = digest.iter().filter(|byte| **byte < 252);
    let places = fair.map(|byte| usize::from(*byte) % ALPHABET.len());
    places.filter_map(|place| ALPHABET.get(place).copied().map(char::from))
}
