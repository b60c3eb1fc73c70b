//! Authentication of clients.

use http::header::{AUTHORIZATION, ORIGIN};
use http::{HeaderMap, HeaderName};
use plaincall_wire::openai::ErrorObject;

use crate::error::GatewayError;
use crate::key::Secret;
use crate::server::origins::is_allowed;

/// The header for the key in Anthropic's API.
pub(super) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

pub(crate) struct Caller<'h> {
    /// The client's key. Empty if it sent none and none is required.
    pub(crate) key: &'h str,
    /// The position of the key in the list of keys, counted from 1; `None` unless there are several.
    pub(crate) position: Option<usize>,
}

/// The keys of clients, stored as digests under a secret of this process, so that comparison times do not leak them.
pub(crate) struct Keys {
    secret: Secret,
    digests: Vec<[u8; 32]>,
    /// The origins whose pages may use the gateway.
    origins: Vec<String>,
}

impl Keys {
    /// Creates the list. The secret must belong to this process alone.
    pub(crate) fn new(keys: &[String], origins: &[String], secret: Secret) -> Self {
        let digests = keys.iter().map(|key| secret.digest(&[key.as_bytes()]));
        Self {
            digests: digests.collect(),
            origins: origins.to_vec(),
            secret,
        }
    }

    /// Returns the caller if it may use the gateway.
    pub(crate) fn caller<'h>(&self, headers: &'h HeaderMap) -> Result<Caller<'h>, GatewayError> {
        let given = given_keys(headers);
        if self.digests.is_empty() {
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
            });
        }
        // Compares all keys, so that the time does not leak which one matched.
        let position = |key: &str| {
            let digest = self.secret.digest(&[key.as_bytes()]);
            let known = self.digests.iter().zip(1..);
            known.fold(None, |found, (known, number)| {
                if *known == digest {
                    Some(number)
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
            Some((key, position)) => Ok(Caller {
                key,
                position: (self.digests.len() > 1).then_some(position),
            }),
            None if given == [None; 2] => unauthorized(
                "missing API key: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`",
            ),
            None => unauthorized("unknown API key"),
        }
    }

    /// Returns whether clients need no key.
    pub(crate) fn is_open(&self) -> bool {
        self.digests.is_empty()
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
