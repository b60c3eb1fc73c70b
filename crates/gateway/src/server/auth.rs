//! Who may ask.

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, ORIGIN};
use plaincall_wire::openai::ErrorObject;

use crate::error::GatewayError;
use crate::key::Secret;
use crate::server::origins::is_allowed;

pub(crate) struct Caller<'h> {
    /// Its key; empty if nobody needs one, and it has none.
    pub(crate) key: &'h str,
    /// The place of the key among several that are known, counted from 1.
    pub(crate) position: Option<usize>,
}

/// The keys of clients, as codes under a secret of this process: the time of a comparison tells nothing about them.
pub(crate) struct Keys {
    secret: Secret,
    codes: Vec<[u8; 32]>,
    /// The origins whose pages may ask.
    origins: Vec<String>,
}

impl Keys {
    /// The secret is of this process alone.
    pub(crate) fn new(keys: &[String], origins: &[String], secret: Secret) -> Self {
        let codes = keys.iter().map(|key| secret.digest(&[key.as_bytes()]));
        Self {
            codes: codes.collect(),
            origins: origins.to_vec(),
            secret,
        }
    }

    /// The caller, if it may ask.
    pub(crate) fn caller<'h>(&self, headers: &'h HeaderMap) -> Result<Caller<'h>, GatewayError> {
        let given = headers.get(AUTHORIZATION);
        let given = given.and_then(|value| value.to_str().ok());
        let key = given.and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
        });
        if self.codes.is_empty() {
            // Whoever visits a page has not asked it to use the model, and without a key nothing else keeps it from that.
            let origin = headers.get(ORIGIN);
            if origin.is_some_and(|origin| !is_allowed(origin, &self.origins)) {
                let words = "requests from this origin are not allowed; the operator of the gateway can allow it";
                let error = ErrorObject::new("permission_error", words);
                return Err(GatewayError::new(403, error.code("origin_not_allowed")));
            }
            return Ok(Caller {
                key: key.unwrap_or_default(),
                position: None,
            });
        }
        let code = key.map(|key| self.secret.digest(&[key.as_bytes()]));
        // All are looked at, so that the time does not tell which one it was.
        let place = |code: [u8; 32]| {
            let known = self.codes.iter().zip(1..);
            known.fold(
                None,
                |place, (known, number)| {
                    if *known == code { Some(number) } else { place }
                },
            )
        };
        let refused = |message: &'static str| {
            let error = ErrorObject::new("authentication_error", message);
            Err(GatewayError::new(401, error.code("invalid_api_key")))
        };
        match (key, code.and_then(place)) {
            (Some(key), Some(place)) => Ok(Caller {
                key,
                position: (self.codes.len() > 1).then_some(place),
            }),
            (Some(_), None) => refused("unknown API key"),
            (None, _) => refused("missing API key: send it as `Authorization: Bearer KEY`"),
        }
    }

    /// Whether anybody may ask.
    pub(crate) fn is_open(&self) -> bool {
        self.codes.is_empty()
    }
}
