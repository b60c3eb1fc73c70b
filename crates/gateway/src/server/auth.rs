//! Authentication of clients.

use std::sync::Arc;

use http::header::{AUTHORIZATION, ORIGIN};
use http::{HeaderMap, HeaderName};
use plaincall_wire::openai::ErrorObject;

use crate::error::GatewayError;
use crate::key::Secret;
use crate::server::config::GatewayConfig;
use crate::server::forwarded_headers::API_KEY;
use crate::server::key_limits::{KeyLimits, KeyPermit, KeyUse, Uses};
use crate::server::origins::is_allowed;

pub(crate) struct Caller<'c> {
    /// The client's key. Empty if it sent none and none is required.
    pub(crate) key: &'c str,
    /// The position of the key in the list of keys, counted from 1; `None` unless there are several.
    pub(crate) position: Option<usize>,
    /// The key in the list, if keys are required.
    known: Option<&'c KnownKey>,
}

impl Caller<'_> {
    /// Begins a request of this client, unless it exceeds a limit of its key.
    pub(super) fn begin(&self) -> Result<Option<KeyPermit>, GatewayError> {
        let known = self.known;
        known
            .map(|known| known.usage.begin(known.limits))
            .transpose()
    }
}

struct KnownKey {
    digest: [u8; 32],
    limits: KeyLimits,
    usage: Arc<KeyUse>,
}

/// The keys of clients, stored as digests under a secret of this process, so that comparison times do not leak them.
pub(crate) struct Keys {
    secret: Secret,
    known: Vec<KnownKey>,
    /// The origins whose pages may use the gateway.
    origins: Vec<String>,
}

impl Keys {
    /// Creates the list. Keys that were in the list before keep their use. The seed must belong to this process alone.
    pub(super) fn new(config: &GatewayConfig, before: Option<&Self>, seed: Secret) -> Self {
        let secret = before.map_or(seed, |before| before.secret.clone());
        let mut known: Vec<KnownKey> = Vec::with_capacity(config.keys.len());
        for key in &config.keys {
            let digest = secret.digest(&[key.as_bytes()]);
            let mut others = before
                .into_iter()
                .flat_map(|before| &before.known)
                .chain(&known);
            let usage = others.find(|other| other.digest == digest);
            let usage = usage.map_or_else(Arc::default, |other| Arc::clone(&other.usage));
            known.push(KnownKey {
                digest,
                limits: config.limits_for_key(key),
                usage,
            });
        }
        Self {
            known,
            origins: config.origins.clone(),
            secret,
        }
    }

    /// Returns the caller if it may use the gateway.
    pub(crate) fn caller<'c>(&'c self, headers: &'c HeaderMap) -> Result<Caller<'c>, GatewayError> {
        let given = given_keys(headers);
        if self.is_open() {
            // Without keys, any page that a user visits could use the model.
            let origin = headers.get(ORIGIN);
            if origin.is_some_and(|origin| !is_allowed(origin, &self.origins)) {
                let words = "requests from this origin are not allowed; the operator of the gateway can allow it";
                let error = ErrorObject::new("permission_error", words);
                return Err(GatewayError::new(403, error.code("origin_not_allowed")));
            }
            return Ok(Caller {
                key: given.into_iter().flatten().next().unwrap_or_default(),
                position: None,
                known: None,
            });
        }
        // Compares all keys, so that the time does not leak which one matched.
        let position = |key: &str| {
            let digest = self.secret.digest(&[key.as_bytes()]);
            let known = self.known.iter().zip(1..);
            known.fold(None, |found, (known, number)| {
                if known.digest == digest {
                    Some((known, number))
                } else {
                    found
                }
            })
        };
        let unauthorized = |message: &'static str| {
            let error = ErrorObject::new("authentication_error", message);
            Err(GatewayError::new(401, error.code("invalid_api_key")))
        };
        let mut keys = given.into_iter().flatten();
        match keys.find_map(|key| Some((key, position(key)?))) {
            Some((key, (known, position))) => Ok(Caller {
                key,
                position: (self.known.len() > 1).then_some(position),
                known: Some(known),
            }),
            None if given == [None; 2] => unauthorized(
                "missing API key: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`",
            ),
            None => unauthorized("unknown API key"),
        }
    }

    /// Returns whether clients need no key.
    pub(crate) fn is_open(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the use of each key, in the order of the list.
    pub(super) fn uses(&self) -> impl Iterator<Item = Uses> {
        self.known.iter().map(|known| known.usage.now())
    }
}

/// Returns the keys that a client sent, as a bearer token and in Anthropic's header.
fn given_keys(headers: &HeaderMap) -> [Option<&str>; 2] {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(&AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    [bearer, text(&API_KEY).map(str::trim)]
}
