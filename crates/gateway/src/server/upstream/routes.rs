//! The choice of the model server by the requested model.

use std::collections::BTreeMap;
use std::sync::Arc;

use plaincall_wire::openai::ErrorObject;
use tokio_util::sync::CancellationToken;

use crate::error::GatewayError;
use crate::server::config::{ConfigError, GatewayConfig};
use crate::server::upstream::{Connection, Upstream, UpstreamCounts};
use plaincall_config::for_name;

/// The model servers of a configuration.
pub(crate) struct Routes {
    /// The server of all models without another one.
    default: Option<Arc<Connection>>,
    by_name: Vec<(String, Arc<Connection>)>,
}

impl Routes {
    /// Creates the connections. Patterns with the same server, key and headers share them.
    pub(in crate::server) fn new(
        config: &GatewayConfig,
        stop: &CancellationToken,
        before: Option<&Self>,
    ) -> Result<Self, ConfigError> {
        let before = before.map_or_else(Vec::new, Self::all);
        let connection = |upstream: &Upstream, gets_client_keys| {
            let mut known = before.iter();
            let known = known.find(|known| known.is_for(upstream, gets_client_keys));
            if let Some(known) = known {
                return Ok(Some(Arc::clone(known)));
            }
            let new = Connection::new(upstream, config, gets_client_keys, stop.clone())?;
            Ok(new.map(Arc::new))
        };
        let mut routes = Self {
            default: connection(&config.upstream, config.keys.is_empty())?,
            by_name: Vec::new(),
        };
        for (name, upstream) in &config.upstreams {
            let mut known = routes.by_name.iter().map(|(_, known)| known);
            let known = known.find(|known| known.is_for(upstream, false));
            let connection = match known {
                Some(known) => Some(Arc::clone(known)),
                None => connection(upstream, false).map_err(|error: ConfigError| {
                    ConfigError(format!("the model {name}: {error}"))
                })?,
            };
            let connection = connection.map(|connection| (name.clone(), connection));
            routes.by_name.extend(connection);
        }
        Ok(routes)
    }

    pub(in crate::server) fn for_model(
        &self,
        model: &str,
    ) -> Result<&Arc<Connection>, GatewayError> {
        let found = for_name(&self.by_name, model).or(self.default.as_ref());
        found.ok_or_else(unknown_model)
    }

    /// Returns the only server, if there are no others.
    pub(in crate::server) fn only(&self) -> Option<&Arc<Connection>> {
        self.default.as_ref().filter(|_| self.by_name.is_empty())
    }

    /// Returns each server once.
    pub(in crate::server) fn all(&self) -> Vec<&Arc<Connection>> {
        let mut all: Vec<&Arc<Connection>> = Vec::new();
        let named = self.by_name.iter().map(|(_, connection)| connection);
        for connection in self.default.iter().chain(named) {
            if !all.iter().any(|known| Arc::ptr_eq(known, connection)) {
                all.push(connection);
            }
        }
        all
    }

    /// Returns the counters by the name of the server.
    pub(in crate::server) fn counts(&self) -> BTreeMap<&str, UpstreamCounts> {
        let mut counts: BTreeMap<&str, UpstreamCounts> = BTreeMap::new();
        for connection in self.all() {
            *counts.entry(connection.name()).or_default() += connection.counts();
        }
        counts
    }
}

/// The error for a model without a model server.
pub(in crate::server) fn unknown_model() -> GatewayError {
    let message = "no model server is configured for this model; `GET /v1/models` lists the models";
    let error = ErrorObject::new("invalid_request_error", message);
    GatewayError::new(404, error.param("model").code("model_not_found"))
}
