//! Secrets, and the marker keys and call ids that are derived from them without state.

use std::collections::HashSet;
use std::fmt;
#[cfg(feature = "server")]
use std::hash::{BuildHasher as _, RandomState};
#[cfg(feature = "server")]
use std::io;
#[cfg(feature = "server")]
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub(crate) const KEY_LENGTH: usize = 8;
/// The number of characters of an id after its prefix, which hold 124 bits.
const ID_LENGTH: usize = 24;
/// The number of characters of a short id.
const SHORT_LENGTH: usize = 9;
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A secret of the gateway. All instances that serve one conversation need the same secret, so that they derive the same marker
/// key.
///
/// ```
/// use plaincall_gateway::Secret;
///
/// let secret = Secret::new(*b"thirty-two bytes from the system");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// ```
#[derive(Clone)]
pub struct Secret(Option<Hmac<Sha256>>);

impl Secret {
    /// Creates a secret of any length. Use 32 random bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        // HMAC accepts keys of any length, so there is no error.
        Self(Hmac::new_from_slice(bytes.as_ref()).ok())
    }

    /// Creates a secret of 32 random bytes from the system (feature `server`).
    ///
    /// # Errors
    /// Returns an error if the system provides no random bytes.
    #[cfg(feature = "server")]
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self::new(bytes))
    }

    /// Derives a secret for another purpose, which reveals nothing about this one or the fields.
    pub fn derive(&self, fields: &[&[u8]]) -> Self {
        Self::new(self.digest(fields))
    }

    /// Returns the HMAC of the fields.
    pub(crate) fn digest(&self, fields: &[&[u8]]) -> [u8; 32] {
        let Some(mut mac) = self.0.clone() else {
            return [0; 32];
        };
        for field in fields {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().into()
    }

    /// Returns a word of letters and digits, derived from the fields.
    pub(crate) fn word(&self, fields: &[&[u8]]) -> String {
        letters(&self.digest(fields)).take(ID_LENGTH).collect()
    }

    /// Returns the marker key of a conversation (`spec/gateway.md` 2): the first one that appears in none of its texts.
    pub(crate) fn marker_key(
        &self,
        first_message: &str,
        is_known: impl Fn(&str) -> bool,
    ) -> String {
        let mut counter = 0_u64;
        loop {
            let digest =
                self.digest(&[b"markers", first_message.as_bytes(), &counter.to_be_bytes()]);
            let key: String = letters(&digest).take(KEY_LENGTH).collect();
            // An author learns a key only from a reply to a request with the keys before it, so this loop is short.
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

/// Generates ids for the calls of one reply.
#[derive(Clone, Debug)]
pub(crate) struct CallIds {
    seed: Secret,
    given: u64,
    taken: HashSet<String>,
    /// Whether ids are nine letters and digits, the only ones that templates of Mistral accept.
    pub(crate) is_short: bool,
}

impl CallIds {
    /// Creates a generator. The seed must be random and used for one reply only.
    pub(crate) fn new(seed: Secret, taken: HashSet<String>) -> Self {
        Self {
            seed,
            given: 0,
            taken,
            is_short: false,
        }
    }

    /// Takes an id of the model server. Returns whether no other call has it.
    pub(crate) fn take(&mut self, id: &str) -> bool {
        self.taken.insert(id.to_owned())
    }

    /// Returns an id that no call of the conversation has.
    pub(crate) fn next(&mut self) -> String {
        loop {
            let mut word = self.seed.word(&[b"call", &self.given.to_be_bytes()]);
            self.given += 1;
            if self.is_short {
                word.truncate(SHORT_LENGTH);
            } else {
                word.insert_str(0, "call_");
            }
            // A long id is unique without being kept; a reply may have a million calls.
            let is_new = if self.is_short {
                self.take(&word)
            } else {
                !self.taken.contains(&word)
            };
            if is_new {
                return word;
            }
        }
    }
}

/// Generates seeds and ids for the requests of this process, from one random secret.
#[cfg(feature = "server")]
#[derive(Debug)]
pub(crate) struct Fresh {
    secret: Secret,
    ids: RandomState,
    given: AtomicU64,
}

#[cfg(feature = "server")]
impl Fresh {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            secret: Secret::random()?,
            ids: RandomState::new(),
            given: AtomicU64::new(0),
        })
    }

    /// Returns a new secret.
    pub(crate) fn seed(&self) -> Secret {
        self.secret.derive(&[b"seed", &self.number()])
    }

    /// Returns a new request id. It is unique, but not a secret.
    pub(crate) fn request_id(&self) -> String {
        let number = self.number();
        let [high, low] = [0, 1].map(|half| self.ids.hash_one((half, number)));
        format!("req_{high:016x}{low:016x}")
    }

    fn number(&self) -> [u8; 8] {
        self.given.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }
}

/// Converts a digest to letters and digits with equal probability, by skipping bytes above the last multiple of 36.
fn letters(digest: &[u8; 32]) -> impl Iterator<Item = char> {
    let fair = digest.iter().filter(|byte| **byte < 252);
    let places = fair.map(|byte| usize::from(*byte) % ALPHABET.len());
    places.filter_map(|place| ALPHABET.get(place).copied().map(char::from))
}
